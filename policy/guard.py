"""What a policy is."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .resource import Resource

Level = Literal["advisory", "mandatory", "disabled"]
Weight = Literal["low", "medium", "high", "critical"]
Settings = Mapping[str, Any]
"""What a policy's config says, its defaults included."""

LEVELS: tuple[Level, ...] = ("advisory", "mandatory", "disabled")

Check = Callable[[Resource, Settings], Iterable[str]]
"""Yields what is wrong with a resource. Raises UnknownValue where that cannot be told yet."""
StackCheck = Callable[[list[Resource], Settings], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One guard.

    `fix` says what to write instead. `also` are the ids of other tools' rules about the same thing. `settings` is a
    JSON schema a setting, as Pulumi takes it; one without a default that is not given switches the guard off.
    """

    id: str
    severity: Weight
    summary: str
    fix: str
    source: str
    also: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def settled(self, given: Settings) -> Settings | None:
        """The settings with their defaults; None where one is missing that has none."""
        known = {key: given.get(key, schema.get("default")) for key, schema in self.settings.items()}
        return None if None in known.values() else known


@dataclass(frozen=True, kw_only=True)
class ResourcePolicy(Policy):
    """A guard over each resource of some types."""

    types: tuple[str, ...]
    check: Check


@dataclass(frozen=True, kw_only=True)
class StackPolicy(Policy):
    """A guard over all resources together."""

    check: StackCheck
