"""Unused resources that cost money or quota, in any cloud."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from accel.diagnostics.errors import CloudRefused, NotFound

BY_YES = "--yes deletes it"
NOT_HELD = "the stack's state does not have it (any more)"

Item = TypeVar("Item")
Unread = Callable[[str], object]
"""Callback for what could not be read, and why."""


@dataclass(frozen=True)
class Stacks:
    """The stacks to search: `names` are stacks of the Pulumi project, `held` the ids in their current states, which
    keep resources that a stack still owns from being reported; None where a state could not be read. `targets` are
    those that their states promise."""

    project: str | None = None
    names: frozenset[str] = frozenset()
    held: frozenset[str] | None = None
    targets: tuple[Mapping[str, Any], ...] = ()

    def own(self, tags: Mapping[str, str], separator: str = ":") -> bool:
        project, stack = (tags.get(f"accel{separator}{key}") for key in ("project", "stack"))
        return project is not None and project == self.project and stack in self.names

    def holds(self, *ids: str) -> bool:
        """Return whether a stack has one of the ids, or may have it."""
        return self.held is None or any(each in self.held for each in ids)


@dataclass(frozen=True)
class Orphan:
    """An unused resource, and why it is unused. `place` is a project of Google Cloud or a region of AWS; `usd_a_day` is
    None where no price is known. `delete` is None if `fix` names a command instead. `settled`: its state, or the record
    of its job, suffices as proof, whatever its age."""

    cloud: str
    place: str
    what: str
    name: str
    zone: str
    state: str
    created: datetime | None
    usd_a_day: float | None
    owner: str
    why: str
    delete: Callable[[], object] | None = field(default=None, compare=False)
    fix: str = BY_YES
    settled: bool = False

    def row(self, now: datetime) -> dict[str, Any]:
        hours = self.hours(now)
        shown = {name: value for name, value in vars(self).items() if name not in ("delete", "created", "settled")}
        return shown | {
            "created": self.created.isoformat() if self.created else None,
            "age": None if hours is None else f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days",
            "age_h": None if hours is None else round(hours, 1),
            "usd_a_day": None if self.usd_a_day is None else round(self.usd_a_day, 2),
        }

    def hours(self, now: datetime) -> float | None:
        return (now - self.created).total_seconds() / 3600 if self.created else None

    def younger(self, now: datetime, hours: float) -> bool:
        """Return whether its user may still be in creation. A resource without a date counts as old."""
        age = self.hours(now)
        return not self.settled and age is not None and age < hours


def search_parts(parts: Mapping[str, Callable[[], Iterable[Item]]], unread: Unread) -> Iterator[Item]:
    """Go on past a refused or disabled API."""
    for place, part in parts.items():
        try:
            yield from part()
        except (CloudRefused, NotFound) as refused:
            unread(f"{place}: {refused.message}")
