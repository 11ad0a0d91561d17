"""What looking for a resource in its cloud tells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .pending import Pending

MOVING = frozenset(
    {"pending", "creating", "updating", "deleting", "provisioning", "staging", "stopping", "reconciling", "repairing"}
)
"""States, whatever their case, that end by themselves."""
GONE = frozenset({"deleted"})
"""Not `terminated`: on Google a machine that is stopped is so. Source:
https://docs.cloud.google.com/compute/docs/instances/instance-lifecycle"""
_STACK = frozenset({"accel:stack", "accel-stack"})
"""The labels that say of which stack a resource is; one of them alone proves something."""


@dataclass(frozen=True)
class Candidate:
    """Something that is there, as the pending operation wanted it. `why`: what proves that the operation made it;
    empty: nothing does."""

    id: str
    state: str = ""
    why: str = ""
    made: datetime | None = None
    only: bool = False
    """There can be one only, so what the state has of it with the same inputs is this."""
    over: bool = False
    """To make it again would write over it."""
    strange: bool = False
    """It has no name of its own, and not the labels of this stack."""
    rest: tuple[str, ...] = ()
    """Calls that its creation makes afterwards, and that no later update would make up for."""

    @property
    def moving(self) -> bool:
        return self.state.lower() in MOVING


class NotSought(Exception):
    """There is no way here to look for it. The message says why."""


class MadeAgain(Exception):
    """It need not be looked for: to make it again changes nothing where it is there."""


Finder = Callable[[Pending], Sequence[Candidate]]


def matching(inputs: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Whether a description has the values of the inputs, of those properties that both have. Raises NotSought where
    an input is a secret."""
    compared = [name for name in item.keys() - {"id", "tags", "state", "made"} if inputs.get(name) is not None]
    if hidden := [name for name in compared if isinstance(inputs[name], dict)]:
        raise NotSought(f"its {hidden[0]} is a secret, so that nothing can be compared with it")
    return all(str(item[name]) == str(inputs[name]) for name in compared)


def proof(
    operation: Pending,
    part: bool,
    over: bool,
    within: frozenset[str],
    wanted: Mapping[str, str],
    seen: Mapping[str, str] | None,
) -> tuple[str, bool]:
    """Why what was found is what the operation made, empty where nothing tells; and whether it is strange.

    `part`, `over`: as its row says; `within`: the properties that name what holds it; `wanted`: the labels that it was
    given; `seen`: those that it has, None where they are not told.
    """
    if operation.made_up:
        return f"its {operation.naming} was made up for it", False
    if part and within & operation.own - {operation.naming}:
        return "there can be one only in what this stack has made", False
    if over and operation.sought:
        # Under the name that the next up makes up nothing is written over.
        held = within & operation.own - {operation.naming}
        return "it is in what this stack has made, under a name that was made up for it" if held else "", False
    if over:
        return "to make it again would write over it", False
    if seen is None or not _STACK & wanted.keys():
        return "", False
    if wanted.items() <= seen.items():
        return "it has the labels of this stack", False
    return "", not operation.naming


def parse_cloud_time(value: object) -> datetime | None:
    """A time as clouds tell it: RFC 3339, botocore's datetime, or milliseconds."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    return datetime.fromisoformat(str(value)).astimezone(UTC) if value else None
