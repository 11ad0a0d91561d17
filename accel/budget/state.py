"""State of a stop: enough to continue it, and to undo exactly what it changed."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from accel.budget.levers import Change
from accel.budget.spending import Crossing

MOST_FINAL = 200


@dataclass(frozen=True)
class State:
    """The state of one stack; an empty one means that the stack is not stopped."""

    stopped: str | None = None
    """Reason in one line; clients show it when they refuse to submit."""
    since: float | None = None
    """Unix seconds."""
    crossings: tuple[Crossing, ...] = ()
    changes: tuple[Change, ...] = ()
    """Recorded before they are made, each with the previous value."""
    finished: tuple[str, ...] = ()
    """Kinds of the levers that are done. Anything enabled by hand afterwards stays enabled."""
    failures: tuple[str, ...] = ()
    """Of the last attempt; the next attempt retries them."""
    running_at: float | None = None
    """Unix seconds at which running work is stopped; None: never."""
    busy_until: float | None = None
    """Unix seconds at which the current worker's exclusive access ends at the latest."""
    resumed: tuple[Crossing, ...] = ()
    """Accepted by a person; they do not stop the stack again in the same period."""

    def recorded(self, changes: list[Change]) -> tuple[Change, ...]:
        """Add changes. One already recorded keeps its first `before`, the true one. Of the irreversible ones only the
        first are kept, since a document of a store has a size limit."""
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
    """Another process has saved the state since it was loaded."""


class Store(Protocol):
    """Store for the state of a stack, next to its claims, where clients look before they submit."""

    def load(self) -> tuple[State, Any]:
        """Return the state, empty if there is none, and a token for `save`."""
        ...

    def save(self, state: State, seen: Any) -> Any:
        """Replace the loaded state and return the token for the next save. Raises StateConflict."""
        ...


def to_json(state: State) -> str:
    return json.dumps(asdict(state), sort_keys=True)


def of_json(text: str) -> State:
    """Ignore unknown fields, which another version may have written."""
    found = _known(State, json.loads(text))
    for field, kind in (("crossings", Crossing), ("resumed", Crossing), ("changes", Change)):
        found[field] = tuple(kind(**_known(kind, each)) for each in found.get(field, ()))
    for field in ("finished", "failures"):
        found[field] = tuple(found.get(field, ()))
    return State(**found)


def _known(kind: Any, document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name in kind.__dataclass_fields__}
