"""Result of a search for a resource in its cloud."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .pending import Pending

MOVING = frozenset(
    {"pending", "creating", "updating", "deleting", "provisioning", "staging", "stopping", "reconciling", "repairing"}
)
"""Transitional states, in lower case."""
GONE = frozenset({"deleted"})
"""Without `terminated`, which Google uses for a stopped machine. Source:
https://docs.cloud.google.com/compute/docs/instances/instance-lifecycle"""
_STACK = frozenset({"accel:stack", "accel-stack"})
"""Labels with the name of a resource's stack; any one of them is proof."""


@dataclass(frozen=True)
class Candidate:
    """An existing resource as the operation requested it. `why`: proof that the operation created it, or empty."""

    id: str
    state: str = ""
    why: str = ""
    made: datetime | None = None
    only: bool = False
    """There can be only one, so the one that the state has with the same inputs is this."""
    over: bool = False
    """Creating it again would overwrite it."""
    strange: bool = False
    """It has neither a name of its own nor the labels of this stack."""
    rest: tuple[str, ...] = ()
    """Later calls of its creation, for which no later update would make up."""

    @property
    def moving(self) -> bool:
        return self.state.lower() in MOVING


class NotSought(Exception):
    """The message of why a search is impossible here."""


class MadeAgain(Exception):
    """A sign that no search is needed: creating the resource again changes nothing if it exists."""


Finder = Callable[[Pending], Sequence[Candidate]]


def matching(inputs: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Compare the properties that both have. Raise NotSought where an input is a secret."""
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
    """Return why the operation created the resource, empty without proof, and whether it is strange. `part`, `over`: as
    in its row; `within`: properties that name its container; `wanted`: labels of the operation; `seen`: labels of the
    resource, None where they are unknown."""
    if operation.made_up:
        return f"its {operation.naming} was made up for it", False
    if part and within & operation.own - {operation.naming}:
        return "there can be one only in what this stack has made", False
    if over and operation.sought:
        # The name that the next `up` generates overwrites nothing.
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
    """Parse a time from a cloud: RFC 3339, botocore's datetime, or milliseconds."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    return datetime.fromisoformat(str(value)).astimezone(UTC) if value else None
