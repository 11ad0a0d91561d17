"""Which target and which job a user means."""

from dataclasses import replace

from accel.words import did_you_mean, name_shown

from ..backend import Backend, JobRef
from ..errors import BadInput, NotFound
from ..registry import of_ref, of_target
from ..targets import Targets, load
from ..voice import Voice
from . import history

CANDIDATES_SHOWN = 5


def targets(voice: Voice, *, refresh: bool = False) -> Targets:
    """The targets, their warnings said."""
    found = load(voice.targets, refresh=refresh)
    for warning in found.warnings:
        voice.warn(warning)
    return replace(found, warnings=())


def reference(text: str) -> JobRef:
    """A whole reference, or the beginning of a reference's id or of a name, if it is of one recent job only.

    Raises NotFound or BadInput.
    """
    if ":" in text:
        return JobRef.parse(text)
    known = {entry["ref"]: str(entry["name"]) for entry in history.recent()}
    ids = {ref: JobRef.parse(ref).id for ref in known}
    whole = [ref for ref in known if text in (ids[ref], known[ref])]
    begun = [ref for ref in known if text and (ids[ref].startswith(text) or known[ref].startswith(text))]
    for found in (whole, begun):
        if len(found) > 1:
            shown = ", ".join(found[:CANDIDATES_SHOWN]) + (", ..." if len(found) > CANDIDATES_SHOWN else "")
            raise BadInput(f"{name_shown(text)}: could be any of {len(found)} jobs, newest first: {shown}")
        if found:
            return JobRef.parse(found[0])
    near = did_you_mean(text, [*ids.values()][:100]) if known else ""
    raise NotFound(
        f"no job {name_shown(text)} was submitted from here lately{near if 'mean' in near else ''}",
        "give the whole reference, as submit and ls print it",
    )


def job(text: str) -> tuple[JobRef, Backend]:
    """The job, and the backend that sees it."""
    ref = reference(text)
    return ref, of_ref(ref)


def with_target(ref: JobRef, name: str | None, voice: Voice) -> Backend:
    """The backend of the target that the job was submitted to, which may know more than its reference."""
    if name is None:
        name = next((entry["target"] for entry in history.recent() if entry["ref"] == str(ref)), None)
    if name is None or name not in targets(voice).entries:
        return of_ref(ref)
    _, target = targets(voice).choose(name)
    return of_target(name, target) if target.kind == ref.kind else of_ref(ref)
