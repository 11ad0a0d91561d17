"""The request of a small job, for a target of any kind."""

from collections.abc import Callable
from typing import Any, TypeVar

from jobs.backends.base import Request
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key

TargetT = TypeVar("TargetT")
Render = Callable[[Job, str, str, str, TargetT], Request]


def small_request(render: Render[TargetT], name: str, target: TargetT, text: str, /, **fields: Any) -> Request:
    """Of the job `digits` under the key of a text, for the target of a name."""
    job = Job(**{"name": "digits", "command": ["python3", "train.py"], **fields})
    key = submission_key(job.name, text)
    return render(job, platform_name(job.name, key), key, name, target)
