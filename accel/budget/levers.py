"""The levers of a stack, as data: what each would change, what it changed, and what puts it back."""

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
"""Every stage, in the order in which they are pulled, and what it does."""
RUNNING = "running"
FOREIGN = "is not of this stack"


class LeverError(Exception):
    """The cloud did not take a call of a lever; one plain line. The other levers are pulled all the same."""


@dataclass(frozen=True)
class Change:
    """One thing that a lever changes. `before` and `after` are JSON values; before is null for what nobody can take
    back, as a request that was cancelled."""

    stage: str
    kind: str
    """The lever's: who restores it."""
    name: str
    """As its cloud knows it: an ARN, a self link."""
    before: Any
    after: Any
    text: str
    """One line in words: queue gpu-1a2b: ENABLED to DISABLED."""
    later: bool = False
    """More of it is to come, as a maximum that goes down with what still runs: the lever is looked at again."""

    @property
    def back(self) -> str:
        """The line of what took it back: queue gpu-1a2b: DISABLED to ENABLED."""
        subject, _, rest = self.text.partition(": ")
        parts = rest.split(" to ")
        half, odd = divmod(len(parts), 2)
        other = "as it was before" if odd else " to ".join([*parts[half:], *parts[:half]])
        return f"{subject}: {other}"

    @property
    def reversible(self) -> bool:
        return self.before is not None


class Lever(Protocol):
    """One kind of thing that a stack can stop. Every call may be made twice, and raises LeverError."""

    @property
    def stage(self) -> str:
        """Of STAGES."""
        ...

    @property
    def kind(self) -> str:
        """Told apart by it: aws-queue."""
        ...

    def plan(self) -> list[Change]:
        """What would change now: nothing for what is stopped already. Only reads."""
        ...

    def pull(self, change: Change) -> None:
        """Makes one change that `plan` gave."""
        ...

    def restore(self, change: Change) -> str | None:
        """Puts `before` back where the cloud still has `after`. Otherwise leaves it: None where it is as before, else
        one line of what it is now (somebody has changed it since, it is gone, or FOREIGN: a state that somebody has
        forged must not change what the stack does not have)."""
        ...


def sort_levers(levers: Sequence[Lever]) -> list[Lever]:
    """By stage, and within a stage as they were given."""
    order = list(STAGES)
    return sorted(levers, key=lambda lever: order.index(lever.stage))


SUBMISSIONS = Change(
    "submissions", "submissions", "submissions", False, True, "new submissions: taken to refused (exit code 5)"
)
"""Always the first: it is the state's own flag, which clients read before they submit."""


def drill(levers: Sequence[Lever], *, running: bool) -> list[Change]:
    """What crossing a budget would change now, in order; `running`, with the running work that would be stopped after
    the grace period. Only reads."""
    pulled = [lever for lever in sort_levers(levers) if running or lever.stage != RUNNING]
    return [SUBMISSIONS, *(change for lever in pulled for change in lever.plan())]
