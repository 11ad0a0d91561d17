"""The attempts of a job, as DescribeJobs has them.

Batch tells when an attempt's command began and ended, not when its instance was found: the time before an attempt is
that of the queue, the instance's start and the image's pull together.
Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_AttemptDetail.html
"""

from collections.abc import Mapping
from typing import Any

from accel.clouds.aws.clients import Clients

from ..base import Attempt, JobRef, Phase
from .lookup import describe, part, parts
from .status import PHASES, detail, is_lost, moment

TASKS_MAX = 100
"""Of an array: one call. Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_DescribeJobs.html"""


def attempts(clients: Clients, ref: JobRef) -> list[Attempt]:
    """Of the job, or of the first tasks of an array. Raises NotFound."""
    job = detail(clients, ref)
    size = part(job, "arrayProperties").get("size")
    if not size:
        return of_job(job, None)
    known = {each["jobId"]: each for each in describe(clients.batch, [f"{ref.id}:{i}" for i in range(_first(size))])}
    return [attempt for i in range(_first(size)) if (task := known.get(f"{ref.id}:{i}")) for attempt in of_job(task, i)]


def _first(size: int) -> int:
    return min(size, TASKS_MAX)


def of_job(job: Mapping[str, Any], place: int | None) -> list[Attempt]:
    """Those that have ended, and the one that runs: `attempts` has it only when it is over."""
    found: list[Attempt] = []
    made = moment(job.get("createdAt"))
    for number, each in enumerate(parts(job, "attempts"), 1):
        container = part(each, "container")
        code = container.get("exitCode")
        told = [str(text) for text in (each.get("statusReason"), container.get("reason")) if text]
        found.append(
            Attempt(
                number,
                place,
                # When a later one was asked for is not told; it is when the one before it ended.
                created=made if number == 1 else found[-1].stopped,
                started=moment(each.get("startedAt")),
                stopped=moment(each.get("stoppedAt")),
                exit_code=int(code) if code is not None else None,
                reason=": ".join(dict.fromkeys(told)) or None,
                lost=is_lost(each),
            )
        )
    if not PHASES[job["status"]].ended:
        running = PHASES[job["status"]] is Phase.RUNNING
        started = moment(job.get("startedAt")) if running else None
        found.append(Attempt(len(found) + 1, place, found[-1].stopped if found else made, None, started))
    return found
