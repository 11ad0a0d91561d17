"""kill -9 of `jobs submit` and `jobs tend` at each of their calls: before it was carried out, and before its answer."""

import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from jobs.backends.base import JobRef, Phase
from jobs.backends.vm.backend import VmBackend
from jobs.backends.vm.record import Record
from tests.jobs.backends import gce_target, tpu_target
from tests.jobs.backends.vm_faults import FIELDS, GROUNDS, MADE, Cloud
from tests.jobs.conftest import start
from tests.support.google_fake import P
from tests.support.google_tpus import preempt
from tests.support.soak import SOAK, sampled
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.vm_faults"]
pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def cloud(faulty_cloud: Cloud) -> Cloud:
    return faulty_cloud


KINDS = ["queue", "instance", "group"]
STEPS = {"queue": 8, "instance": 8, "group": 14}
"""Two for each call that a submit surely makes; more are looks at what it asked for."""
REPEATS = 5
SHORT = ["sh", "-c", 'test "$ACCEL_ATTEMPT" = 2 || sleep 600; echo $ACCEL_ATTEMPT >> "$RUNS"']


class Killer:
    """Kills a process at the step of that number that the proxy sees."""

    def __init__(self, cloud: Cloud, step: int) -> None:
        self._step, self._count = step, 0
        self._known = threading.Event()
        cloud.proxy.watch = self._seen

    def kills(self, process: "subprocess.Popen[str]") -> int:
        """The end of the process."""
        self._process = process
        self._known.set()
        self.output = "".join(text or "" for text in process.communicate(timeout=120))
        return process.returncode

    def _seen(self, operation: str, after: bool) -> None:
        self._count += 1
        if self._count == self._step:
            assert self._known.wait(60)
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(60)
            if not after:
                raise ConnectionAbortedError("it is not handed on")


@pytest.fixture
def jobs_of(cloud: Cloud, home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Writes a job file; the arguments by which it is submitted. Its targets are published."""
    targets = {
        kind: (tpu_target if kind == "queue" else gce_target).make_target(**GROUNDS[kind]).model_dump(by_alias=True)
        for kind in KINDS
    }
    (home / "targets.json").write_text(json.dumps(targets))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "targets.json"))
    for kind, target in targets.items():
        objects = f"storage.googleapis.com/upload/storage/v1/b/{target['bucket']}/o"
        cloud.fake.call("POST", objects, target, uploadType="media", name=f"accel-targets/{kind}.json")

    def write(kind: str, key: str, command: list[str]) -> list[str]:
        job = {"name": "digits", "command": command, "env": {"RUNS": str(home / key)}, "spot": True, **FIELDS[kind]}
        (home / f"{key}.yaml").write_text(json.dumps(job))
        return ["submit", f"{key}.yaml", "--to", kind, "--key", key, "--no-quota", "-o", "id"]

    return write


@pytest.mark.parametrize("kind", sampled(KINDS, ["queue", "group"]))
def test_a_submit_that_is_killed(
    cloud: Cloud, kind: str, jobs_of: Callable[..., list[str]], invoke: Callable[..., Result]
) -> None:
    steps = [step for step in range(1, STEPS[kind] + 1) for _ in range(REPEATS)]
    for i, step in enumerate(steps if SOAK else random.Random(kind).sample(steps, 1)):
        arguments = jobs_of(kind, f"{kind}-{step}-{i}", ["sleep", "600"])
        assert Killer(cloud, step).kills(start(*arguments)) == -signal.SIGKILL, step
        cloud.proxy.watch = lambda operation, after: None
        first, second = (invoke(*arguments) for _ in range(2))
        assert first.exit_code == second.exit_code == 0, first.output
        assert first.output == second.output
        ref = JobRef.parse(first.output.strip())
        cloud.becomes(ref.id, [each.format(ref.id) for each in MADE[kind]])
        record, _ = cloud.backend(kind).records.read(ref.id)
        assert len(record.attempts) == 1 and record.last.state == "made"
        cloud.clear()


def tended(backend: VmBackend, ref: JobRef) -> Record | None:
    """The job after another look, once it has ended and nothing is left to do."""
    backend.tend(ref)
    record, _ = backend.records.read(ref.id)
    return record if record.ended else None


@pytest.mark.parametrize("kind", sampled(KINDS[:2], ["instance"]))
def test_a_tend_that_is_killed(
    cloud: Cloud, kind: str, home: Path, jobs_of: Callable[..., list[str]], invoke: Callable[..., Result]
) -> None:
    """Its job was taken away: another client ends it, with one run, and nothing left."""
    steps = [step for step in range(1, 27) for _ in range(max(1, REPEATS // 8))]
    for i, step in enumerate(steps if SOAK else random.Random(kind).sample(steps[-18:], 1)):
        key = f"tend-{kind}-{step}-{i}"
        ref = JobRef.parse(invoke(*jobs_of(kind, key, SHORT)).output.strip())
        backend = cloud.backend(kind)
        until(lambda backend=backend, ref=ref: backend.tend(ref).phase is Phase.RUNNING)
        place = f"locations/us-central1-a/queuedResources/{ref.id}"
        name = f"{P}/{place if kind == 'queue' else f'zones/us-central1-a/instances/{ref.id}'}"
        assert preempt(cloud.fake, name).ok
        until(lambda backend=backend, ref=ref: backend.status(ref).phase is not Phase.RUNNING)
        killer = Killer(cloud, step)
        code = killer.kills(start("tend", str(ref)))
        assert code == -signal.SIGKILL or (code == 0 and step > 8), killer.output
        cloud.proxy.watch = lambda operation, after: None
        record = until(lambda backend=backend, ref=ref: tended(backend, ref))
        assert [attempt.outcome for attempt in record.attempts] == ["lost", "succeeded"], record
        assert (home / key).read_text() == "2\n"
        cloud.becomes(ref.id, [])
