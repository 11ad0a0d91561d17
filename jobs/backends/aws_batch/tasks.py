"""The tasks of an array, each as Batch has it."""

from accel.clouds.aws.clients import Clients

from ..base import JobRef
from ..tasks import TaskStatus
from .lookup import describe, part
from .status import PHASES, detail, status_of


def tasks(clients: Clients, ref: JobRef) -> list[TaskStatus]:
    """By index; of a job that is no array, itself. Those of an array that Batch has not made yet are left out.

    A hundred tasks a call. Raises NotFound.
    """
    job = detail(clients, ref)
    size = part(job, "arrayProperties").get("size")
    if not size:
        return [_state(ref, job, 0)]
    # The id of a child is its parent's with its index: https://docs.aws.amazon.com/batch/latest/userguide/array_jobs.html
    children = describe(clients.batch, [f"{ref.id}:{index}" for index in range(size)])
    return [_state(ref, child, int(child["jobId"].rpartition(":")[2])) for child in children]


def _state(ref: JobRef, job: "dict[str, object]", index: int) -> TaskStatus:
    told = status_of(ref, job, None)
    running = PHASES[told.native].value in ("STARTING", "RUNNING")
    return TaskStatus(index, told.phase, told.native, (told.attempts or 0) + running, told.exit_code, told.reason)
