"""The model of a policy."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .resource import Resource

Level = Literal["advisory", "mandatory", "disabled"]
Weight = Literal["low", "medium", "high", "critical"]
Settings = Mapping[str, Any]
"""Settings from a policy's config, its defaults included."""

LEVELS: tuple[Level, ...] = ("advisory", "mandatory", "disabled")

Check = Callable[[Resource, Settings], Iterable[str]]
"""A function that yields the violations of a resource. Raises UnknownValue where they cannot be determined yet."""
StackCheck = Callable[[list[Resource], Settings], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One policy. `fix` is the remedy. `also` are the ids of other tools' rules about the same matter. `settings` has
    one JSON schema per setting, as Pulumi takes it. A setting without default and value disables the policy."""

    id: str
    severity: Weight
    summary: str
    fix: str
    source: str
    also: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def settled(self, given: Settings) -> Settings | None:
        """Return the settings with their defaults; None where a setting without a default is missing."""
        known = {key: given.get(key, schema.get("default")) for key, schema in self.settings.items()}
        return None if None in known.values() else known


@dataclass(frozen=True, kw_only=True)
class ResourcePolicy(Policy):
    """A policy over each resource of some types."""

    types: tuple[str, ...]
    check: Check


@dataclass(frozen=True, kw_only=True)
class StackPolicy(Policy):
    """A policy over all resources together."""

    check: StackCheck


def texts(default: Iterable[str], description: str) -> Mapping[str, Any]:
    """Return the schema of a setting that is a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "default": list(default), "description": description}
