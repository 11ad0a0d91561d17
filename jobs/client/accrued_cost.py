"""Accrued cost of jobs, from their size at submission and the prices of their target. A job submitted from another
machine has no price here, since no platform reports the machine that a job was meant for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from accel.diagnostics.errors import JobsError

from ..model.job import Job
from . import history
from .observation import Rate
from .targets import known_targets

if TYPE_CHECKING:
    from accel.console.options import Settings

    from ..backends.base import JobRef
    from .targets import Targets

FIELDS = (
    *("accelerator", "cpus", "memory_mib", "shm_mib", "disk_gib", "image", "nodes", "tasks", "parallelism", "spot"),
    *("retries", "lost_retries", "timeout_s", "aws_batch", "gke", "gce", "tpu_vm", "google_batch", "vertex"),
)
"""Fields of a job that determine its price."""
_LONG = {"command", "args", "package", "env", "script", "runnables", "depends_on", "exit_codes"}
"""Keys that the history leaves out: they have no price, may be long, and may hold what others should not read."""


@dataclass(frozen=True)
class JobPrice:
    """Price of a job. With `rate` None the job is free, or `why` says why no price is known."""

    rate: "Rate | None"
    free: bool = False
    why: str = ""
    notes: tuple[str, ...] = ()
    target: str | None = None
    """Target of a job submitted from this machine; a queue of AWS Batch does not say which target it belongs to."""


def size_of(job: "Job") -> dict[str, Any]:
    told = job.model_dump(mode="json", include=set(FIELDS), exclude_defaults=True)
    return {name: _without_long(value) for name, value in told.items()}


def size_in(entries: Iterable[Mapping[str, Any]], ref: str) -> dict[str, Any] | None:
    return next((entry["size"] for entry in entries if entry["ref"] == ref and entry.get("size")), None)


def job_prices(refs: "Iterable[JobRef]", settings: "Settings") -> "dict[JobRef, JobPrice]":
    """Return a price without a rate, rather than raise, where none is known."""
    entries = {str(entry["ref"]): entry for entry in history.recent()}
    found: Targets | str | None = None
    answers: dict[JobRef, JobPrice] = {}
    prices: dict[str, JobPrice] = {}
    for ref in refs:
        entry = entries.get(str(ref))
        target = str(entry["target"]) if entry else None
        if ref.kind == "local":
            answers[ref] = JobPrice(None, free=True, target=target)
        elif entry is None or not entry.get("size"):
            answers[ref] = JobPrice(None, why="it was not submitted from here", target=target)
        else:
            if found is None:
                try:
                    found = known_targets(settings)
                except JobsError as error:
                    found = error.message
            size = f"{target} {entry['size']}"
            if size not in prices:
                prices[size] = JobPrice(None, why=found) if isinstance(found, str) else _priced(entry, found)
            answers[ref] = replace(prices[size], target=target)
    return answers


def _priced(entry: Mapping[str, Any], targets: "Targets") -> JobPrice:
    from pydantic import ValidationError

    from . import cost

    name = str(entry["target"])
    if name not in targets.entries:
        return JobPrice(None, why=f"its target {name} is not among the targets here")
    try:
        job = Job.model_validate({"name": "priced", **entry["size"]})
        found = cost.of(job, *targets.choose(name))
    except (JobsError, ValidationError, TypeError) as error:
        return JobPrice(None, why=str(error).splitlines()[0])
    ranges = [usd for each in found.environments if (usd := each.range(each.capacity)) is not None]
    if not ranges:
        return JobPrice(None, why="; ".join(found.notes) or "no price is known")
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    return JobPrice(Rate(low, high, max(1, found.tasks // job.tasks)), notes=found.notes)


def _without_long(value: Any) -> Any:
    if isinstance(value, dict):
        block = cast(dict[str, Any], value)
        return {name: _without_long(each) for name, each in block.items() if name not in _LONG}
    return value
