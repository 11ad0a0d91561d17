"""The tasks of a job, each as Batch has it."""

from accel.clouds.google.api import Google
from accel.rules.batch.jobs import LOST

from ..base import JobRef, Phase
from ..tasks import TaskStatus
from .labels import Scope
from .lookup import Task, look
from .lookup import tasks as listed
from .status import TAKEN, phase

PHASES = {
    "PENDING": Phase.QUEUED,
    "ASSIGNED": Phase.STARTING,
    "RUNNING": Phase.RUNNING,
    "SUCCEEDED": Phase.SUCCEEDED,
    "FAILED": Phase.FAILED,
    "UNEXECUTED": Phase.FAILED,
}
"""The last one: the job ended before the task began. Source:
https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs.taskGroups.tasks"""


def tasks(google: Google, scope: Scope, ref: JobRef) -> list[TaskStatus]:
    """By index, those that Batch has made. A task that had not ended when its job did has failed. Raises NotFound."""
    job = look(google, scope, ref.id)
    ended = phase(job).ended
    found = [_state(each, ended) for each in listed(google, scope, ref.id, limit=job.count)]
    return sorted(found, key=lambda each: each.index)


def _state(task: Task, ended: bool) -> TaskStatus:
    now = PHASES.get(task.state, Phase.QUEUED)
    last = task.failures[-1] if task.failures else None
    reason = TAKEN if last and last.exit_code in LOST else last.text if last else None
    if ended and not now.ended:
        now = Phase.FAILED
    return TaskStatus(
        task.index, now, task.state, task.attempts, task.exit_code, reason if now is Phase.FAILED else None
    )
