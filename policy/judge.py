"""Findings of the policies about resources, at the level that a config gives them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from accel.catalog.nearest import nearest

from .guard import LEVELS, Level, Policy, ResourcePolicy, Settings, StackPolicy
from .resource import NotJson, Resource, UnknownValue
from .table import POLICIES

ALL = "all"
"""Every policy, in a config. Source: https://www.pulumi.com/docs/insights/policy/policy-packs/configuration/"""
LEVEL = "enforcementLevel"

_KINDS: Mapping[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "array": (list,), "string": (str,)}


class ConfigFault(ValueError):
    """An invalid value in a policy config."""


@dataclass(frozen=True)
class Finding:
    """A violation of a policy, or (`unknown`, with the path) a check that is impossible before the update."""

    policy: Policy
    level: Level
    urn: str
    """Empty for the stack as a whole."""
    name: str
    message: str
    unknown: bool = False

    def document(self) -> dict[str, Any]:
        return {
            "policy": self.policy.id,
            "level": self.level,
            "severity": self.policy.severity,
            "urn": self.urn,
            "name": self.name,
            "message": self.message,
            "fix": self.policy.fix,
            "also": list(self.policy.also),
        }


@dataclass(frozen=True)
class Config:
    """Levels and settings of the policies; by default advisory and the defaults of the settings."""

    levels: Mapping[str, Level] = field(default_factory=dict[str, Level])
    given: Mapping[str, Settings] = field(default_factory=dict[str, Settings])

    def level(self, policy: Policy) -> Level:
        return self.levels.get(policy.id, "advisory")

    @cached_property
    def active(self) -> dict[str, Settings]:
        settled = {
            policy.id: policy.settled(self.given.get(policy.id, {}))
            for policy in POLICIES.values()
            if self.level(policy) != "disabled"
        }
        return {name: settings for name, settings in settled.items() if settings is not None}

    @cached_property
    def by_type(self) -> dict[str, list[tuple[ResourcePolicy, Settings]]]:
        found: dict[str, list[tuple[ResourcePolicy, Settings]]] = {}
        for name, settings in self.active.items():
            policy = POLICIES[name]
            if isinstance(policy, ResourcePolicy):
                for kind in policy.types:
                    found.setdefault(kind, []).append((policy, settings))
        return found


def config(document: Mapping[str, Any]) -> Config:
    """Parse a policy config as Pulumi takes it with --policy-pack-config. Raise ConfigFault with place and choices."""
    levels: dict[str, Level] = {}
    given: dict[str, Settings] = {}
    if ALL in document:
        levels = dict.fromkeys(POLICIES, _level(ALL, _said(ALL, document[ALL]).get(LEVEL)))
    for name, value in document.items():
        if name == ALL:
            continue
        if name not in POLICIES:
            near = nearest(name, list(POLICIES), 1)
            raise ConfigFault(f"{name}: no such policy; nearest: {near[0] if near else ', '.join(POLICIES)}")
        said = _said(name, value)
        if LEVEL in said:
            levels[name] = _level(name, said.pop(LEVEL))
        given[name] = _settings(POLICIES[name], said)
    return Config(levels, given)


def _said(name: str, value: Any) -> dict[str, Any]:
    """Return a policy's entry as an object: it is a level alone, or a level with settings."""
    if isinstance(value, str):
        return {LEVEL: value}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise ConfigFault(f"{name}: must be a level, or an object with {LEVEL} and settings; is {value!r}")


def _level(name: str, value: Any) -> Level:
    for level in LEVELS:
        if value == level:
            return level
    raise ConfigFault(f"{name}.{LEVEL}: must be one of {', '.join(LEVELS)}, is {value!r}")


def _settings(policy: Policy, said: Mapping[str, Any]) -> Settings:
    for key, value in said.items():
        schema = policy.settings.get(key)
        if schema is None:
            known = ", ".join((LEVEL, *policy.settings))
            raise ConfigFault(f"{policy.id}.{key}: no such setting; known: {known}")
        if isinstance(value, bool) or not isinstance(value, _KINDS[schema["type"]]):
            raise ConfigFault(f"{policy.id}.{key}: must be of type {schema['type']}, is {value!r}")
        if isinstance(value, list) and not all(isinstance(each, str) for each in cast("list[Any]", value)):
            raise ConfigFault(f"{policy.id}.{key}: must be a list of texts, is {value!r}")
        least, most = schema.get("minimum"), schema.get("maximum")
        if (least is not None and value < least) or (most is not None and value > most):
            bounds = f"at least {least}" + (f" and at most {most}" if most is not None else "")
            raise ConfigFault(f"{policy.id}.{key}: must be {bounds}, is {value}")
    return said


def resource_findings(resource: Resource, using: Config) -> Iterator[Finding]:
    for policy, settings in using.by_type.get(resource.type, ()):
        level = using.level(policy)
        try:
            for message in policy.check(resource, settings):
                yield Finding(policy, level, resource.urn, resource.name, message)
        except UnknownValue as unseen:
            yield Finding(policy, level, resource.urn, resource.name, unseen.path, unknown=True)
        except NotJson as place:
            yield Finding(policy, level, resource.urn, resource.name, f"{place} is not JSON")


def stack_findings(resources: list[Resource], using: Config) -> Iterator[Finding]:
    for name, settings in using.active.items():
        policy = POLICIES[name]
        if not isinstance(policy, StackPolicy):
            continue
        try:
            for message in policy.check(resources, settings):
                yield Finding(policy, using.level(policy), "", "the stack", message)
        except UnknownValue as unseen:
            yield Finding(policy, using.level(policy), "", "the stack", unseen.path, unknown=True)


def findings(resources: Iterable[Resource], using: Config | None = None) -> list[Finding]:
    listed, using = list(resources), using or Config()
    each = [finding for resource in listed for finding in resource_findings(resource, using)]
    return each + list(stack_findings(listed, using))
