"""Parts that the providers for Google and AWS share: automatic names, changes, previews, and their plugin's steps."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

import jmespath

from .mapping import UNKNOWN, changes
from .resource import State
from .server import ProviderError

OURS = {"region", "tags", "tagsAll", "id", "namePrefix", "bucketPrefix", "timeouts", "__defaults"}


def retained_outputs(kind: Any, outputs: State) -> State:
    return {name: outputs[name] for name in kind.computed | kind.outputs.keys() if name in outputs}


def changed_names(olds: State, news: State) -> set[str]:
    return {path.partition(".")[0].partition("[")[0] for path, _ in changes(olds, news)}


def preview_create(kind: Any, inputs: State) -> State:
    unknown = dict.fromkeys((*kind.outputs, *kind.computed), UNKNOWN)
    return {**unknown, **{name: value for name, value in inputs.items() if name != "__defaults"}}


def preview_update(kind: Any, outputs: State, olds: State, news: State) -> State:
    moving = kind.moving if changed_names(olds, news) - OURS - kind.own else frozenset[str]()
    known = {name: value for name, value in news.items() if name != "__defaults"}
    return {**retained_outputs(kind, outputs), **known, **dict.fromkeys(moving, UNKNOWN)}


def difference(kind: Any, olds: State, news: State) -> tuple[dict[str, str], set[str], bool]:
    """Return (path: kind of change; the paths that force a replacement; whether the old resource has to go first)."""
    old, new = ({k: v for k, v in side.items() if k != "__defaults"} for side in (olds, news))
    found = {path: how for path, how in changes(old, new) if how != "DELETE" or path not in kind.computed}
    rules = kind.replace | kind.replace_if(olds, news) | ({"region"} if kind.regional else set[str]())
    forcing = {path for path in found if _forces(path, rules, old, new)}
    name = kind.autoname.prop if kind.autoname else ""
    # As in pulumi-terraform-bridge: two resources cannot have one name, and this one's is not automatic.
    given = name in new and name not in news.get("__defaults", []) and old.get(name) == new[name]
    return found, forcing, bool(forcing) and given


def _forces(path: str, rules: frozenset[str], old: State, new: State) -> bool:
    bare = "".join(part.rpartition("]")[2] for part in path.split("["))
    inside = {rule for rule in rules if rule.startswith(f"{bare}.")}
    if inside and all(isinstance(side.get(path, {}), dict) for side in (old, new)):  # a block that came or went whole
        return any(jmespath.search(rule, side) for rule in inside for side in (old, new))
    return bool(inside) or any(f"{bare}.".startswith(f"{rule}.") for rule in rules)


def complete_inputs(kind: Any, name: str, olds: State, news: State, seed: str) -> tuple[State, list[str]]:
    """Return the inputs with defaults and an automatic name, and the names of those that were added."""
    inputs = {**kind.defaults, **{key: value for key, value in news.items() if key != "__defaults"}}
    defaulted, rule = sorted(kind.defaults.keys() - news.keys()), kind.autoname
    if rule and rule.prop not in inputs:
        defaulted.append(rule.prop)
        if rule.prop in olds.get("__defaults", []):
            inputs[rule.prop] = olds[rule.prop]
        else:
            stem = str(news.get(f"{rule.prop}Prefix") or f"{name}-")
            made = f"{stem[: rule.limit - 7]}{seed[:7]}"
            inputs[rule.prop] = made.lower() if rule.lower else made
    return inputs, defaulted


KindT = TypeVar("KindT")
FunctionT = TypeVar("FunctionT")
RowT = TypeVar("RowT")


class TablePlugin(Generic[KindT, FunctionT]):
    """Part of a plugin whose resources are rows of a table; a provider adds the calls of its cloud."""

    def __init__(self, cloud: str, kinds: Mapping[str, KindT], functions: Mapping[str, FunctionT]) -> None:
        self._cloud, self._kinds, self._functions = cloud, kinds, functions

    def configured(self, args: State) -> State:
        return {key: _decoded(value) for key, value in args.items()}

    def diff(self, type: str, olds: State, news: State) -> tuple[dict[str, str], set[str], bool]:
        return difference(self.kind(type), olds, news)

    def create(self, type: str, inputs: State, preview: bool) -> tuple[str, State]:
        kind = self.kind(type)
        return ("", preview_create(kind, inputs)) if preview else self._create(kind, inputs)

    def update(self, type: str, id: str, outputs: State, olds: State, news: State, preview: bool) -> State:
        kind = self.kind(type)
        if preview:
            return preview_update(kind, outputs, olds, news)
        return self._update(kind, id, outputs, olds, news)

    def _create(self, kind: KindT, inputs: State) -> tuple[str, State]:
        raise NotImplementedError

    def _update(self, kind: KindT, id: str, outputs: State, olds: State, news: State) -> State:
        raise NotImplementedError

    def kind(self, type: str) -> KindT:
        """Raise ProviderError for a type that the table does not have."""
        return self._known(self._kinds, type, "resource type")

    def function(self, token: str) -> FunctionT:
        """Return a function that reads the cloud. Raise ProviderError for one that the provider does not have."""
        return self._known(self._functions, token, "function")

    def unknown_settings(self, settings: Iterable[str]) -> list[tuple[str, str]]:
        return [
            (key, f"the sandbox's {self._cloud} provider does not know the setting {key}") for key in sorted(settings)
        ]

    def _known(self, rows: Mapping[str, RowT], name: str, what: str) -> RowT:
        if name not in rows:
            raise ProviderError(f"the sandbox's {self._cloud} provider has no {what} {name}")
        return rows[name]


def _decoded(value: Any) -> Any:
    """Return a setting as its JSON says: the engine sends maps and booleans as text."""
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
