"""The levers of a stack, as data: what each would change, what it changed, and how to undo it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

STAGES = {
    "submissions": "stop new submissions",
    "queues": "disable queues",
    "maximums": "switch off pools and environments",
    "kueue": "hold cluster queues",
    "waiting": "cancel what waits for machines",
    "running": "stop running work",
}
"""Stages in the order in which they are pulled."""
RUNNING = "running"
FOREIGN = "is not of this stack"


class LeverError(Exception):
    """The cloud rejected a call of a lever; one plain line. The other levers are pulled nevertheless."""


@dataclass(frozen=True)
class Change:
    """A change by a lever, in JSON values; `before` is null if it is irreversible, such as a cancelled request."""

    stage: str
    kind: str
    """Kind of the lever, which restores it."""
    name: str
    """Name used by the cloud: an ARN, a self link."""
    before: Any
    after: Any
    text: str
    """Description in one line: queue gpu-1a2b: ENABLED to DISABLED."""
    later: bool = False
    """True if more is to come, such as a maximum that falls with what still runs. The lever is checked again."""

    @property
    def back(self) -> str:
        """The line that describes undoing it: queue gpu-1a2b: DISABLED to ENABLED."""
        subject, _, rest = self.text.partition(": ")
        parts = rest.split(" to ")
        half, odd = divmod(len(parts), 2)
        other = "as it was before" if odd else " to ".join([*parts[half:], *parts[:half]])
        return f"{subject}: {other}"

    @property
    def reversible(self) -> bool:
        return self.before is not None


class Lever(Protocol):
    """One kind of thing that a stack can stop. Every call is idempotent, and raises LeverError."""

    @property
    def stage(self) -> str: ...

    @property
    def kind(self) -> str:
        """Identifier of the kind, such as aws-queue."""
        ...

    def plan(self) -> list[Change]:
        """Return the pending changes; empty for what is already stopped. Read-only."""
        ...

    def pull(self, change: Change) -> None: ...

    def restore(self, change: Change) -> str | None:
        """Restore `before` if the cloud still has `after`. Return None if it is as before, otherwise one line on its
        current state: changed by somebody since, deleted, or FOREIGN (a forged state must not change what the stack
        does not have)."""
        ...


def sort_levers(levers: Sequence[Lever]) -> list[Lever]:
    """Keep the given order within a stage."""
    order = list(STAGES)
    return sorted(levers, key=lambda lever: order.index(lever.stage))


SUBMISSIONS = Change(
    "submissions", "submissions", "submissions", False, True, "new submissions: accepted to refused (exit code 5)"
)
"""Always the first change: the state's own flag, which clients read before they submit."""


def drill(levers: Sequence[Lever], *, running: bool) -> list[Change]:
    """Return, read-only and in order, what crossing a budget would change now. `running`: also running work, which
    would be stopped after the grace period."""
    pulled = [lever for lever in sort_levers(levers) if running or lever.stage != RUNNING]
    return [SUBMISSIONS, *(change for lever in pulled for change in lever.plan())]
