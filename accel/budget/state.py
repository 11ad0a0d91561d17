"""What is remembered of a stop: enough to go on with it, and to take back exactly what it changed."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from accel.budget.levers import Change
from accel.budget.spending import Crossing

MOST_FINAL = 200


@dataclass(frozen=True)
class State:
    """One stack's. The empty one is a stack that nobody has stopped."""

    stopped: str | None = None
    """Why, in one line; clients show it when they refuse to submit."""
    since: float | None = None
    """Unix seconds."""
    crossings: tuple[Crossing, ...] = ()
    """Of the budgets that are over their lines since the stop."""
    changes: tuple[Change, ...] = ()
    """Recorded before they are made, each with what was there before."""
    finished: tuple[str, ...] = ()
    """Kinds of the levers that are through. What somebody enables again by hand after that stays as it is."""
    failures: tuple[str, ...] = ()
    """Of the last attempt: what the cloud did not take. The next attempt tries it again."""
    running_at: float | None = None
    """Unix seconds at which running work is stopped; None: never."""
    busy_until: float | None = None
    """Unix seconds: somebody is at work on this until then at the latest, and nobody else may be."""
    resumed: tuple[Crossing, ...] = ()
    """What a person has waved through: no reason to stop again in the same period."""

    def recorded(self, changes: list[Change]) -> tuple[Change, ...]:
        """The changes with these too; of one that is there already the first `before` stays, which is the true one.

        Of those that nobody can take back the first are enough: a document of a store has an end.
        """
        found = {(change.kind, change.name): change for change in self.changes}
        final = sum(not change.reversible for change in self.changes)
        for change in changes:
            key = (change.kind, change.name)
            if key in found:
                found[key] = replace(found[key], after=change.after)
            elif change.reversible or final < MOST_FINAL:
                found[key] = change
                final += not change.reversible
        return tuple(found.values())


class StateConflict(Exception):
    """Somebody else has saved the state since it was loaded."""


class Store(Protocol):
    """Where the state of a stack lies: beside its claims, where clients look before they submit."""

    def load(self) -> tuple[State, Any]:
        """The state, the empty one where there is none, and what `save` wants to know of this look."""
        ...

    def save(self, state: State, seen: Any) -> Any:
        """Replaces what was seen, and returns what the next save wants to know. Raises StateConflict."""
        ...


def to_json(state: State) -> str:
    """The state as text."""
    return json.dumps(asdict(state), sort_keys=True)


def of_json(text: str) -> State:
    """The state as another version may have written it; fields that this one does not know are left out."""
    found = _known(State, json.loads(text))
    for field, kind in (("crossings", Crossing), ("resumed", Crossing), ("changes", Change)):
        found[field] = tuple(kind(**_known(kind, each)) for each in found.get(field, ()))
    for field in ("finished", "failures"):
        found[field] = tuple(found.get(field, ()))
    return State(**found)


def _known(kind: Any, document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name in kind.__dataclass_fields__}
