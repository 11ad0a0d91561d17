"""Resolution of what a user typed to a target and a job."""

from collections.abc import Collection, Mapping, Sequence

from accel.console.progress import untold
from accel.console.reporter import Reporter
from accel.diagnostics.errors import BadInput, JobsError, NotFound
from accel.diagnostics.messages import did_you_mean, printable_name

from ..backends.base import Backend, JobRef
from ..backends.registry import of_ref, of_target
from . import history
from .names import job_name, match_rank
from .selection import SCANNED, Choice
from .targets import known_targets

CANDIDATES_SHOWN = 5
LOOKED_AT = 20
"""Most jobs of one name whose status is checked, the newest first."""
NEAR = 100


def reference(text: str, reporter: Reporter) -> JobRef:
    """Resolve a whole reference, or a short id, a name, or the beginning of either. The history of this machine comes
    first, then the lists of the targets. Of several jobs with one name, the only one that has not ended is meant.
    Raises NotFound, BadInput for text that matches several jobs, and the error of a target that cannot be listed."""
    if ":" in text:
        return JobRef.parse(text)
    recent = {JobRef.parse(str(entry["ref"])): str(entry.get("name", "")) for entry in history.recent()}
    found = _best(text, recent)
    if found:
        return found[0] if len(found) == 1 else _only(text, found, _ended(found))
    return _listed(text, list(recent)[:NEAR], reporter)


def _best(text: str, names: Mapping[JobRef, str]) -> list[JobRef]:
    how = {ref: rank for ref, name in names.items() if (rank := match_rank(text, ref, name)) is not None}
    return [ref for ref, rank in how.items() if rank == min(how.values())]


def _only(text: str, found: Sequence[JobRef], ended: Collection[JobRef]) -> JobRef:
    """Raise BadInput where no job, or several, have not ended."""
    live = [ref for ref in found if ref not in ended]
    if len(live) == 1:
        return live[0]
    shown = ", ".join(map(str, found[:CANDIDATES_SHOWN])) + (", ..." if len(found) > CANDIDATES_SHOWN else "")
    raise BadInput(f"{printable_name(text)}: could be any of {len(found)} jobs, newest first: {shown}")


def _ended(refs: Sequence[JobRef]) -> set[JobRef]:
    """Count a job that its platform has forgotten as ended, and leave out one that cannot be seen."""
    ended: set[JobRef] = set()
    for ref in refs[:LOOKED_AT]:
        try:
            if of_ref(ref).status(ref).phase.ended:
                ended.add(ref)
        except NotFound:
            ended.add(ref)
        except JobsError:
            continue
    return ended


def _listed(text: str, recent: Sequence[JobRef], reporter: Reporter) -> JobRef:
    from .listing import gather

    jobs = gather(known_targets(reporter), Choice(), True, SCANNED, reporter, untold)
    found = _best(text, {status.ref: status.name for status in jobs.statuses})
    if len(found) == 1:
        return found[0]
    if found:
        return _only(text, found, {status.ref for status in jobs.statuses if status.phase.ended})
    if jobs.incomplete:
        raise jobs.incomplete
    near = did_you_mean(text, list(dict.fromkeys(each for ref in recent for each in (job_name(ref.id), ref.id))))
    near = near if "mean" in near else ""
    damaged = "".join(f"; {history.path()}: {fault}" for fault in history.faults()[:CANDIDATES_SHOWN])
    raise NotFound(
        f"no job {printable_name(text)} was submitted from here lately, and no target has one{near}",
        f"give the whole reference, as submit prints it, or a name or short id as ls shows it{damaged}",
    )


def job(text: str, reporter: Reporter) -> tuple[JobRef, Backend]:
    ref = reference(text, reporter)
    return ref, of_ref(ref)


def with_target(ref: JobRef, name: str | None, reporter: Reporter) -> Backend:
    """Prefer the backend of the job's target, which may know more than the reference alone gives."""
    if name is None:
        name = next((entry["target"] for entry in history.recent() if entry["ref"] == str(ref)), None)
    if name is None:
        return of_ref(ref)
    known = known_targets(reporter)
    if name not in known.entries:
        return of_ref(ref)
    _, target = known.choose(name)
    return of_target(name, target) if target.kind == ref.kind else of_ref(ref)
