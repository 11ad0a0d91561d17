"""The jobs that a job waits for: references of the same region, or ids of Batch."""

import re
from collections.abc import Iterator

from accel.diagnostics.errors import BadInput

from ...model.job import Job
from ..base import JobRef
from .labels import KIND

_JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:\d+)?")


def depends_on(job: Job) -> list[dict[str, str]]:
    """Return `dependsOn` of a submit, each with its type. Expects a job without `faults`."""
    return [
        ({"jobId": _job_id(entry.job)} if entry.job else {}) | ({"type": entry.type} if entry.type else {})
        for entry in (job.aws_batch.depends_on if job.aws_batch else ())
    ]


def faults(job: Job, region: str) -> Iterator[str]:
    """Yield what is wrong with a reference, each `<path>: <words>`."""
    for i, entry in enumerate(job.aws_batch.depends_on if job.aws_batch else ()):
        if entry.job is None:
            continue
        field = f"aws_batch.depends_on[{i}]"
        try:
            job_id = _job_id(entry.job, region)
        except BadInput as fault:
            yield f"{field}: {fault.message}"
            continue
        if not _JOB_ID.fullmatch(job_id):
            yield f'{field}: "{entry.job}" is neither a job reference nor a Batch job id'


def _job_id(text: str, region: str | None = None) -> str:
    """Return the id in a reference, or the text. Raise BadInput for a reference of another place than `region`."""
    if not (":" in text and "/" in text):
        return text
    ref = JobRef.parse(text)
    if region and (ref.kind, ref.scope) != (KIND, region):
        raise BadInput(f"{text} is not a job of {KIND}:{region}, and Batch waits only for those")
    return ref.id
