"""Changes of a stack since a file with its targets was written: each target names where the stack publishes it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from accel.contract.target_layout import SOURCE
from accel.contract.targets import read_one
from accel.diagnostics.errors import JobsError
from accel.json_values import mapping

from . import published_targets

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from .targets import Target, Targets

GUARDS = ("allowances", "stop", "budget_stops")
"""Fields that limit spending: the published values apply, whatever the file says."""


def current_targets(targets: "Targets", names: Iterable[str], reporter: "Reporter") -> "Targets":
    newer, lines = compare_targets(targets, names)
    for line in lines:
        reporter.warn(line)
    return newer


def compare_targets(targets: "Targets", names: Iterable[str]) -> "tuple[Targets, list[str]]":
    """Return the targets with the published guards, and a line for each named target that the stack has changed since.
    Targets read within published_targets.NOW_S are not read again. Where nothing can be read, the file stands."""
    entries, lines = dict(targets.entries), list[str]()
    for name in names:
        entry = entries.get(name)
        source = entry.document.get(SOURCE) if entry else None
        if entry is None or not isinstance(source, str) or (there := _there(source)) is None:
            continue
        ours = {key: value for key, value in entry.document.items() if key != SOURCE}
        if (now := there.get(name)) == ours:
            continue
        newer = mapping(now)
        if newer is None:
            lines.append(f"target {name}: the stack no longer has it: {source} has {', '.join(sorted(there))}")
            continue
        fields = sorted(key for key in ours.keys() | newer.keys() if ours.get(key) != newer.get(key))
        lines.append(
            f"target {name}: the stack was updated since {targets.source} was written, which has another "
            f"{', '.join(fields)}: `stacks export` writes it anew, or name it as it is now: --targets {source}"
        )
        if entry.target is not None:
            entries[name] = replace(entry, target=_guarded(entry.target, newer))
    changed = any(entries[name].target != entry.target for name, entry in targets.entries.items())
    return (replace(targets, entries=entries) if changed else targets), lines


def _there(source: str) -> dict[str, Any] | None:
    if not source.startswith(published_targets.PREFIXES):
        return None
    try:
        found = published_targets.load(source, max_age_s=published_targets.NOW_S)
    except JobsError:
        return None
    return None if found.warnings and (found.age_s or 0) > published_targets.NOW_S else found.by_name


def _guarded(target: "Target", now: Mapping[str, Any]) -> "Target":
    try:
        newer = read_one(now)
    except ValidationError:
        return target
    both = [name for name in GUARDS if hasattr(newer, name) and hasattr(target, name)]
    return target.model_copy(update={name: getattr(newer, name) for name in both})
