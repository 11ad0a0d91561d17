"""Backend of jobs on machines created for them, without the form of the request and the creation of machines."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Generic, TypeVar

from accel.clouds.google.api import Google
from accel.clouds.timeouts import Timing, pause
from accel.contract.google_vms import VmGround
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NoCredentials, NotFound
from accel.threads import in_threads

from ...model.keys import content_hash, platform_name
from ..base import Attempt as Tried
from ..base import Explanation, JobRef, LogLine, Places, PlatformBackend, Request, Status, Streams
from ..google_budget_gate import refuse
from ..same_key import AGAIN
from . import labels
from .cloud_messages import ReportingMachines
from .logs import logs
from .reconciler import advance, ask, look, take_back
from .record import MADE, PLANNED, Attempt, Record, Result, was_never_made
from .records import Records
from .shell import Shells, places
from .state_machine import MachineState, NoCapacity
from .status import attempts, status_of

CLEAN_S, CLEAN_POLL_S = 90.0, 1.0
"""Time for which a waiting client also waits for machines to go: no other client may remove the last ones."""
_AT_ONCE = 8


VmTargetT = TypeVar("VmTargetT", bound=VmGround)


class VmBackend(PlatformBackend[VmTargetT, str, Timing], Generic[VmTargetT]):
    """Backend whose references are `<kind>:<bucket>/<name>`."""

    @staticmethod
    def _scope_of(target: VmTargetT) -> str:
        return target.bucket

    @staticmethod
    def _parse_scope(text: str) -> str:
        return text

    @property
    def bucket(self) -> str:
        return self._scope

    @cached_property
    def google(self) -> Google:
        return Google(self._timing)

    @cached_property
    def records(self) -> Records:
        known = {self._target_name or "": self._target.model_dump(mode="json")} if self._target else {}
        return Records(self.google, self.bucket, known=known)

    def machines(self) -> ReportingMachines:
        raise NotImplementedError

    def submit(self, request: Request) -> JobRef:
        """Claim the job of request.key in the bucket, then request its machines. Raise BadInput if the key belongs to
        another job; CloudRefused if nothing was created; CloudSilent if that is unknown: submit the same key again."""
        refuse(self.google, self._target)
        wanted = new_record(request)
        refused, generation, there = self._submitted(wanted)
        if refused and generation is None:
            # An earlier submit was refused, and its remains are gone now.
            refused, _, there = self._submitted(wanted)
        if refused:
            raise refused
        return JobRef(self.KIND, self.bucket, wanted.name, there)

    def _submitted(self, wanted: Record) -> tuple[CloudRefused | None, str | None, bool]:
        """Return the refusal of the job, the claim if it is this submit's, and whether the job existed before."""
        try:
            record, generation = self.records.claim(wanted)
        except CloudSilent as error:
            raise CloudSilent(error.message, AGAIN) from error
        try:
            there = generation is None and record.created != wanted.created
            return (self._first(record, generation) if generation else self._later(record)), generation, there
        except NoCredentials as error:
            raise NoCredentials(error.message, f"{error.hint}; then {AGAIN}") from error
        except (CloudSilent, CloudRefused, NotFound) as error:
            # The claim exists, and whether there are machines is unknown.
            raise CloudSilent(error.message, AGAIN) from error

    def _first(self, record: Record, generation: str) -> CloudRefused | None:
        """Create the machines of a job that was just claimed. Cost: three calls without a concurrent client."""
        machines = self.machines()
        refused = ask(machines, self.records, record, generation, _now)
        if refused is None:
            made = record.with_last(state=MADE, made=_now().isoformat())
            if self.records.replace(made, generation) is None:
                take_back(machines, self.records, record)
            return None
        found = self._later(record)
        return refused if found and not isinstance(refused, NoCapacity) else found

    def _later(self, record: Record) -> CloudRefused | None:
        """Advance a job. Return its refusal if the job never had machines, and none are left."""
        timing = self._timing or Timing()
        now = self._advance(record.name)
        for turn in range(timing.attempts):
            if now.ended or not was_never_made(now):
                break
            pause(timing, turn)  # the remains of a refused request go step by step
            now = self._advance(record.name)
        return CloudRefused(now.last.reason) if was_never_made(now) else None

    def status(self, ref: JobRef) -> Status:
        record, _ = self.records.read(self._checked(ref).id)
        return self._status(record)

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        for ref in refs:
            self._checked(ref)
        found = list(in_threads(self._known, refs, _AT_ONCE))
        return {ref: status for ref, status in zip(refs, found, strict=True) if status}

    def _known(self, ref: JobRef) -> Status | None:
        with suppress(NotFound):
            return self.status(ref)
        return None

    def _status(self, record: Record) -> Status:
        seen, results = look(self.machines(), self.records, record)
        return status_of(record, seen, results, _now())

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        shown = 0
        for record in self.records.newest():
            if record.kind != self.KIND or (record.ended and not ended):
                continue
            if shown == limit:
                return
            shown += 1
            progress(shown)
            yield (
                self._status(record) if not record.ended else status_of(record, MachineState("absent", ""), {}, _now())
            )

    def cancel(self, ref: JobRef, reason: str) -> None:
        """End the present attempt, and leave no machine. The record stays."""
        name = self._checked(ref).id
        while True:
            record, generation = self.records.read(name)
            if record.ended or record.cancelled:
                break
            if self.records.replace(replace(record, cancelled=reason or "cancelled"), generation) is not None:
                break
        self._advance(name)

    def tend(self, ref: JobRef, say: Callable[[str], None] = lambda text: None) -> Status:
        """Wait, for an ended job, until its machines are gone, at most CLEAN_S."""
        name = self._checked(ref).id
        record = self._advance(name, lambda text: say(f"{ref}: {text}"))
        status, give_up = self._status(record), time.monotonic() + CLEAN_S
        while status.phase.ended and not record.ended and time.monotonic() < give_up:
            time.sleep(CLEAN_POLL_S)
            record = self._advance(name)
        return self._status(record) if status.phase.ended else status

    def _advance(self, name: str, say: Callable[[str], None] = lambda text: None) -> Record:
        return advance(self.machines(), self.records, name, _now, say)

    def attempts(self, ref: JobRef) -> Sequence[Tried]:
        return attempts(self.records.read(self._checked(ref).id)[0])

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Ignore `elsewhere`: a bucket has no region."""
        from ..diagnosis.vm import explain

        self._checked(ref)
        return explain(self.google, self.records, self.machines(), ref)

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        """Advance a job that is followed, as `tend` does."""
        name = self._checked(ref).id

        def look_at() -> tuple[Record, Mapping[int, Result], bool]:
            record = self._advance(name) if follow else self.records.read(name)[0]
            made = record.last if record.last.state != PLANNED else None
            results: Mapping[int, Result] = self.records.results(record, made) if made else {}
            return record, results, self._status(record).phase.ended

        return logs(self.google, ref, look_at, host=task, follow=follow, tail=tail)

    @cached_property
    def _shells(self) -> Shells:
        return Shells(self.google)

    def places(self, ref: JobRef) -> Places:
        _ = self._shells  # created here: two threads at once would create two
        return places(self._alive(ref))

    def run(
        self, ref: JobRef, command: Sequence[str], streams: Streams, *, task: int | None = None, host: bool = False
    ) -> int:
        record = self._alive(ref)
        if task is None and record.hosts > 1:
            raise BadInput(f"{ref}: --node is missing; it has nodes 0 to {record.hosts - 1}")
        return self._shells.run(record, task or 0, command, streams, outside=host)

    def _alive(self, ref: JobRef) -> Record:
        record, _ = self.records.read(self._checked(ref).id)
        if record.ended or record.last.state != MADE:
            raise BadInput(f"{ref}: it has no machine now", f"`accel-jobs get {ref}` shows its state")
        return record

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        record, _ = self.records.read(self._checked(ref).id)
        name = labels.machine_name(platform_name(record.job_name, key))
        return Request(self.KIND, record.target, name, key, dict(record.body))


def new_record(request: Request) -> Record:
    now = _now().isoformat(timespec="milliseconds")
    name = request.name
    own = labels.attempt_name(name, 1, request.body.get(labels.PREFIX, ""))
    first = Attempt(number=1, zone=request.body["zones"][0], name=own, planned=now)
    return Record(
        kind=request.kind,
        target=request.target,
        name=name,
        job_name=str(request.body["job"]["name"]),
        key=request.key,
        spec_hash=content_hash({key: value for key, value in request.body.items() if key != labels.PREFIX}),
        body=request.body,
        created=now,
        attempts=(first,),
    )


def _now() -> datetime:
    return datetime.now(UTC)
