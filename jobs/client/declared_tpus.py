"""TPUs that a stack declares: for the stack's updates, and for checks whether they exist."""

from dataclasses import dataclass

from accel.clouds.google.api import Google
from accel.contract import buckets

from ..backends.vm import state_machine
from ..backends.vm.queues import Queues
from ..backends.vm.tpu.queued_resources import QueuedResources

PRESENT = (state_machine.WAITING, state_machine.STARTING, state_machine.RUNNING)


@dataclass(frozen=True)
class DeclaredTpus:
    """State of declared TPUs. `ended`: they are requested no more; `why`: reason for that, or for their absence."""

    ended: bool
    present: bool
    why: str


def queues_of(bucket: str) -> Queues:
    return Queues(Google(), bucket)


def look(google: Google, bucket: str, path: str) -> DeclaredTpus | None:
    """Return None where nobody has requested the TPUs declared at the path. Raises CloudRefused and NotFound."""
    key = path.removeprefix(f"{buckets.QUEUES}/").removesuffix(".json")
    record = next((each for each in Queues(google, bucket).records.newest() if each.job_name == key), None)
    if record is None:
        return None
    seen = QueuedResources(google).look(record, record.last)
    if record.ended:
        return DeclaredTpus(True, False, f"{record.outcome} {record.reason}".rstrip())
    before = next((each.reason for each in reversed(record.attempts) if each.reason), "") or seen.reason
    return DeclaredTpus(False, seen.state in PRESENT, before or seen.native)
