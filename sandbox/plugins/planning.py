"""Planning that the providers for Google and AWS share: automatic names, changes, and previews."""

from typing import Any

import jmespath

from .mapping import UNKNOWN, changes
from .resource import State

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
