"""Facts that Google, the job's record and its hosts know, each read when it is first needed."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from accel.clouds.google.api import Google, object_path

from ...base import Explanation, JobRef, Status
from ...google_logging import newest
from ...vm import labels
from ...vm.cloud_messages import MachineMessages, ReportingMachines
from ...vm.reconciler import look
from ...vm.record import MADE, Attempt, Record, Result
from ...vm.records import Records, folder
from ...vm.state_machine import ABSENT, MachineState, Write, decide
from ...vm.status import status_of
from ..cause import THEN_RETRY
from ..engine import LazyFacts

TAIL_LINES = 100
KEPT_BYTES = 1024 * 1024
"""Largest log in the bucket that is read."""
SHOWN = 5
AGENT = "accel: "
"""Prefix of a line that the agent wrote."""


class VmFacts(LazyFacts):
    """Facts about one job, as of now."""

    PLATFORM = "vm"
    NEXT_STEPS: ClassVar = {
        "container-gpu": "use a boot image that has the NVIDIA Container Toolkit, as Deep Learning VM images do",
        "gpu-not-visible": "the image's CUDA must not be newer than the driver of the machine: `accel-jobs exec REF "
        "--host -- nvidia-smi` shows it while a job runs; the stack's boot image decides",
        "mount": "the account that jobs run as needs roles/storage.objectUser on the bucket (objectViewer to read)",
        "permission": f"of jobs on TPUs it takes roles/tpu.admin, on VMs roles/compute.instanceAdmin.v1; {THEN_RETRY}",
        "quota": "ask for more (`stacks quota --request` writes the request), or wait until other machines are gone; "
        f"{THEN_RETRY}. Spot and on demand have quotas of their own, and so has each region; suspended requests hold "
        "quota too",
        "shared-memory": "raise shm_mib (half of the machine's memory where it is left out), or use fewer data loader "
        "workers",
        "tpu-not-visible": "the runtime version must be the generation's (`tpu_vm.runtime_version`; leave it out), "
        "libtpu must be in the image (pip install 'jax[tpu]'), and all hosts of a slice must run the program",
        "unknown": "`accel-jobs logs REF` shows what its machines printed",
    }

    def __init__(
        self, google: Google, records: Records, machines: ReportingMachines, ref: JobRef, record: Record
    ) -> None:
        super().__init__()
        self._google, self._records, self._machines = google, records, machines
        self.ref, self.record = ref, record

    @cached_property
    def _looked(self) -> tuple[MachineState, Mapping[int, Result]] | None:
        return self.read("the machines' state", lambda: look(self._machines, self._records, self.record))

    @property
    def blind(self) -> bool:
        """Whether the state of its machines may not be read."""
        return self._looked is None

    @property
    def machine_state(self) -> MachineState:
        return self._looked[0] if self._looked else MachineState(ABSENT, "")

    @property
    def results(self) -> Mapping[int, Result]:
        """Results of the last attempt's hosts. Those of an ended attempt are read here."""
        if self._looked and self._looked[1]:
            return self._looked[1]
        return self._over

    @cached_property
    def _over(self) -> Mapping[int, Result]:
        found = self.read("results in the bucket", lambda: self._records.results(self.record, self.record.last))
        return found or {}

    @cached_property
    def foreseen(self) -> Record:
        """Record with the result of its last attempt, as it will be once a client advances the job."""
        if self.record.ended or self.record.last.state != MADE or self._looked is None:
            return self.record
        step = decide(self.record, *self._looked, self.now)
        return step.record if isinstance(step, Write) else self.record

    @cached_property
    def status(self) -> Status:
        seen, results = self._looked or (MachineState(ABSENT, ""), {})
        return status_of(self.record, seen, results, self.now)

    @property
    def last(self) -> Attempt:
        """Attempt that is explained."""
        return self.foreseen.last

    def since(self, moment: str | None) -> float:
        """Return seconds; 0 without a moment."""
        return (self.now - datetime.fromisoformat(moment)).total_seconds() if moment else 0.0

    @cached_property
    def messages(self) -> MachineMessages:
        return (
            self.read("the machines' health", lambda: self._machines.messages(self.record, self.last))
            or MachineMessages()
        )

    @cached_property
    def printed(self) -> tuple[str, ...]:
        """End of the first machine's serial port output."""
        what = "the serial port (compute.instances.getSerialPortOutput)"
        return self.read(what, lambda: self._machines.printed(self.record, self.last)) or ()

    @cached_property
    def history(self) -> tuple[str, ...]:
        """Operations on the first machine."""
        what = "operations of the zone (compute.zoneOperations.list)"
        return self.read(what, lambda: self._machines.history(self.record, self.last)) or ()

    @cached_property
    def _left(self) -> dict[str, int] | None:
        """Sizes of the objects in the attempt's folder, by name. None if they may not be listed."""
        prefix = f"{folder(self.record.name, self.last.number)}/"

        def read() -> dict[str, int]:
            items = self._google.pages(
                "storage",
                f"b/{self._records.bucket}/o",
                "items",
                prefix=prefix,
                fields="items(name,size),nextPageToken",
            )
            return {str(each.get("name")).removeprefix(prefix): int(str(each.get("size") or 0)) for each in items}

        return self.read("the attempt's folder (storage.objects.list)", read)

    @property
    def arrived(self) -> tuple[int, ...] | None:
        """Hosts whose agent has spoken. None if unknown."""
        if self._left is None:
            return None
        found = [re.fullmatch(r"(?:host|result)-(\d+)\.json", name) for name in self._left]
        return tuple(sorted({int(each[1]) for each in found if each}))

    @cached_property
    def failed(self) -> Result | None:
        """First host that failed by itself, of those whose result decided the attempt. Others were stopped then."""
        bad = [each for each in self.results.values() if (each.exit_code, each.reason) != (0, "exited")]
        own = [each for each in bad if not (each.reason or "").startswith("stopped: ")]
        decided = [each for each in own if str(each.host) in self.last.exit_codes]
        return min(decided or own or bad, key=lambda each: each.host, default=None)

    @property
    def host(self) -> int:
        return self.failed.host if self.failed else 0

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """End of the log of one host of the attempt, including the agent's lines. None if it could not be read."""
        project = str(self.record.body["project"])
        query = [
            f'logName="projects/{project}/logs/{labels.LOG}"',
            f'labels."{labels.JOB}"="{self.record.name}"',
            f'labels."{labels.ATTEMPT}"="{self.last.number}"',
            f'labels."{labels.HOST}"="{self.host}"',
            f'timestamp>="{self.last.planned}"',
        ]
        found = self.read("its log", lambda: newest(self._google, project, " AND ".join(query), TAIL_LINES))
        if found:
            return tuple(str(each.get("textPayload", "")) for each in found)
        return self._kept or (None if found is None else ())

    @property
    def kept_name(self) -> str | None:
        """Object that has the lines which Cloud Logging did not take."""
        name = f"log-{self.host}.txt"
        return name if self._left and name in self._left else None

    @cached_property
    def _kept(self) -> tuple[str, ...] | None:
        name = self.kept_name
        if name is None or (self._left or {}).get(name, 0) > KEPT_BYTES:
            return None
        path = object_path(self._records.bucket, f"{folder(self.record.name, self.last.number)}/{name}")
        data = self.read(f"{name} in the bucket", lambda: self._google.read("storage", path)[0])
        # Each begins with its time.
        texts = [each.partition(" ")[2] for each in (data or b"").decode(errors="replace").splitlines()]
        return tuple(texts[-TAIL_LINES:]) or None

    @property
    def output(self) -> tuple[str, ...] | None:
        """Last output of the command itself. None if it could not be read."""
        return None if self.lines is None else tuple(each for each in self.lines if not each.startswith(AGENT))

    @property
    def agent(self) -> tuple[str, ...]:
        return tuple(each for each in self.lines or () if each.startswith(AGENT))

    @property
    def machine(self) -> dict[str, Any]:
        return dict(self.record.body.get("machine") or {})

    @property
    def place(self) -> tuple[str, ...]:
        hosts = f"host {self.host} of {self.record.hosts}" if self.record.hosts > 1 else ""
        attempt = f"attempt {self.last.number}" if len(self.record.attempts) > 1 else ""
        both = ", ".join(each for each in (hosts, attempt) if each)
        return (both,) if both else ()

    @property
    def past_attempts(self) -> tuple[str, ...]:
        over = [each for each in self.foreseen.attempts if each.outcome]
        lines = [f"attempt {each.number} in {each.zone}: {each.outcome}: {each.reason}" for each in over[-SHOWN:]]
        return (*([f"{len(over)} attempts are over"] if len(over) > SHOWN else []), *lines)

    def unknown(self) -> Explanation:
        last, status = self.record.last, self.status
        state = f"attempt {last.number} in {last.zone} is {last.state} {last.outcome}".rstrip()
        now = "" if self.blind else f"the job is {status.phase} ({status.native}), {status.reason}"
        evidence = (now, state, *self.past_attempts, *self.messages.states, *self.history[-3:])
        return self.explanation("unknown", evidence=evidence)
