"""Which target and which job a user means."""

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
"""Of several jobs of one name, so many are looked at, the newest."""
NEAR = 100


def reference(text: str, reporter: Reporter) -> JobRef:
    """A whole reference, or a short id, a name, or the beginning of either: of a job that was submitted from here
    lately, else of one that the targets list. Of several jobs of one name it is the only one that has not ended.

    Raises NotFound, BadInput where it could be several, and what a target answers that cannot be asked.
    """
    if ":" in text:
        return JobRef.parse(text)
    recent = {JobRef.parse(str(entry["ref"])): str(entry.get("name", "")) for entry in history.recent()}
    found = _best(text, recent)
    if found:
        return found[0] if len(found) == 1 else _only(text, found, _ended(found))
    return _listed(text, list(recent)[:NEAR], reporter)


def _best(text: str, names: Mapping[JobRef, str]) -> list[JobRef]:
    """Those that the text names best, in their order."""
    how = {ref: rank for ref, name in names.items() if (rank := match_rank(text, ref, name)) is not None}
    return [ref for ref, rank in how.items() if rank == min(how.values())]


def _only(text: str, found: Sequence[JobRef], ended: Collection[JobRef]) -> JobRef:
    """The one that has not ended. Raises BadInput where there is no such, or several."""
    live = [ref for ref in found if ref not in ended]
    if len(live) == 1:
        return live[0]
    shown = ", ".join(map(str, found[:CANDIDATES_SHOWN])) + (", ..." if len(found) > CANDIDATES_SHOWN else "")
    raise BadInput(f"{printable_name(text)}: could be any of {len(found)} jobs, newest first: {shown}")


def _ended(refs: Sequence[JobRef]) -> set[JobRef]:
    """Those that have ended, or are forgotten; of one that cannot be seen it is not known."""
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
    """The job of that name or id that the targets have."""
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
    """The job, and the backend that sees it."""
    ref = reference(text, reporter)
    return ref, of_ref(ref)


def with_target(ref: JobRef, name: str | None, reporter: Reporter) -> Backend:
    """The backend of the target that the job was submitted to, which may know more than its reference."""
    if name is None:
        name = next((entry["target"] for entry in history.recent() if entry["ref"] == str(ref)), None)
    if name is None:
        return of_ref(ref)
    known = known_targets(reporter)
    if name not in known.entries:
        return of_ref(ref)
    _, target = known.choose(name)
    return of_target(name, target) if target.kind == ref.kind else of_ref(ref)
