"""Translation between a resource's properties as Pulumi spells them and a service's API as botocore's model does."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jmespath
from botocore.model import ListShape, MapShape, StructureShape

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # pulumi sdk/python/lib/pulumi/runtime/rpc.py
_MARKER = "4dabf18193072939515e22adb298388d"  # the same file: how a secret or an output value is wrapped
_ASSETS = ("0def7320c3a5731c473e5ecbe6d01bc7", "c44067f5952c0a294b673a41bacd8c17")  # there too: archives and assets

# Terraform types these as sets: their order carries no meaning.
SETS = {
    *(
        "attributes",
        "cidrBlocks",
        "egress",
        "ingress",
        "instanceTypes",
        "ipv6CidrBlocks",
        "managedPolicyArns",
    ),
    *(
        "platformCapabilities",
        "prefixListIds",
        "routeTableIds",
        "routes",
        "securityGroupIds",
        "securityGroups",
    ),
    *("securityGroupNames", "subnetIds", "subnets", "vpcSecurityGroupIds"),
}


class UnmappedName(Exception):
    """Property, type or function that the tables do not have."""


def plain(value: Any) -> Any:
    """Return a protobuf value as Python's: integral numbers as int, secrets and outputs unwrapped, nulls dropped."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [plain(item) for item in value]
        case dict() if value.get(_MARKER) in _ASSETS:
            return value
        case dict() if _MARKER in value:
            return plain(value.get("value", UNKNOWN))
        case dict():
            return {key: plain(item) for key, item in value.items() if item is not None}
        case _:
            return value


def has_unknown(value: Any) -> bool:
    match value:
        case dict():
            return any(map(has_unknown, value.values()))
        case list():
            return any(map(has_unknown, value))
        case _:
            return value == UNKNOWN


def _fold(name: str) -> str:
    return name.lower().removesuffix("s")


def member(name: str, members: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    """Return the API's spelling of a property: the table's, else the same letters whatever their case or plural."""
    if names.get(name) in members:
        return names[name]
    return next((m for m in members if m.lower() == name.lower()), None) or next(
        (m for m in members if _fold(m) == _fold(name)), None
    )


def to_api(value: Any, shape: Any, names: Mapping[str, str], at: str = "") -> Any:
    """Return `value` in the form of `shape`. Raises UnmappedName for a property that the shape does not have."""
    match shape:
        case StructureShape():
            members: Any = shape.members
            if isinstance(value, list) and len(value) == 1:
                value = value[0]  # pulumi keeps some blocks of at most one as lists
            if isinstance(value, str):
                value = json.loads(value)
            made: dict[str, Any] = {}
            for key, item in value.items():
                found = member(key, members, names)
                if found is None:
                    raise UnmappedName(f"property {at}{key} is not mapped to {shape.name}")
                made[found] = to_api(item, members[found], names, f"{at}{key}.")
            return made
        case ListShape():
            entry: Any = shape.member
            spelt = {m.lower(): m for m in getattr(entry, "members", ())}
            if isinstance(value, Mapping) and {"key", "value"} <= spelt.keys():
                return [{spelt["key"]: k, spelt["value"]: v} for k, v in value.items()]
            items = value if isinstance(value, list) else [value]
            return [to_api(item, entry, names, at) for item in items]
        case MapShape():
            return {key: to_api(item, shape.value, names, f"{at}{key}.") for key, item in value.items()}
        case _:
            return _scalar(value, shape.type_name)


def _scalar(value: Any, wanted: str) -> Any:
    match wanted:
        case "boolean" if isinstance(value, str):
            return value == "true"
        case "integer" | "long" if isinstance(value, str) and value.lstrip("-").isdigit():
            return int(value)
        case "string" if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        case _:
            return value


def observe(known: Any, api: Any, names: Mapping[str, str]) -> Any:
    """Return the cloud's current values of the properties in `known`, in Pulumi's spelling; `known` itself where equal.
    A property that the API does not report keeps its value: an absent key is no evidence of a change."""
    if isinstance(known, str) and known[:1] in ("{", "["):
        return known if covers(_parsed(known), _parsed(api)) else json.dumps(_parsed(api), default=str)
    if isinstance(known, Mapping):
        if isinstance(api, list) and api and {"key", "value"} <= {k.lower() for k in api[0]}:
            api = {entry.get("Key", entry.get("key")): entry.get("Value", entry.get("value")) for entry in api}
        if isinstance(api, list) and len(api) == 1:
            api = api[0]
        if not isinstance(api, Mapping):
            return known
        pairs = ((key, item, member(key, api, names)) for key, item in known.items())
        return {key: item if found is None else observe(item, api[found], names) for key, item, found in pairs}
    if isinstance(known, list):
        items = api if isinstance(api, list) else [api]
        rest, kept = list(items), []
        for item in known:
            same_one = next((i for i, other in enumerate(rest) if observe(item, other, names) == item), None)
            if same_one is not None:
                kept.append(item)
                del rest[same_one]
        if len(known) == len(items) and len(kept) < len(known):
            return [observe(a, b, names) for a, b in zip(known, items, strict=True)]
        return kept + [to_pulumi(item, names) for item in rest]
    return known if _text(known) == _text(api) else api


def covers(known: Any, api: Any) -> bool:
    """Return whether `api` contains everything in `known`. It may contain more (the service's defaults)."""
    if isinstance(known, Mapping) and isinstance(api, Mapping):
        folded = {key.lower(): item for key, item in api.items()}
        return all(not item or covers(item, folded.get(key.lower())) for key, item in known.items())
    if isinstance(known, list) and isinstance(api, list):
        return len(known) == len(api) and all(map(covers, known, api))
    return _text(known) == _text(api)


def _parsed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps({key.lower(): _text(item) for key, item in value.items()}, sort_keys=True)
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_pulumi(api: Any, names: Mapping[str, str]) -> Any:
    """Return an API value in Pulumi's spelling, where there is no known value to compare it with."""
    back = {spelt: name for name, spelt in names.items()}
    match api:
        case dict():
            return {back.get(k, k[:1].lower() + k[1:]): to_pulumi(v, names) for k, v in api.items()}
        case list():
            return [to_pulumi(item, names) for item in api]
        case _:
            return api


def same(old: Any, new: Any, name: str = "") -> bool:
    """Return whether values are equal but for a set's order, a JSON text's layout and a scalar's spelling."""
    if isinstance(old, list) and isinstance(new, list) and name in SETS:
        return sorted(map(_text, old)) == sorted(map(_text, new))
    if isinstance(old, str) and isinstance(new, str) and old[:1] in ("{", "["):
        return _parsed(old) == _parsed(new)
    if isinstance(old, (Mapping, list)) or isinstance(new, (Mapping, list)):
        return old == new
    return _text(old) == _text(new)


def changes(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each changed property as (path, "ADD" | "UPDATE" | "DELETE"), as deep as both sides have the key."""
    name = re.sub(r"\[\d+\]$", "", path).rpartition(".")[2]
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            below = f"{path}.{key}" if path else key
            if key not in old:
                yield below, "ADD"
            elif key not in new:
                yield below, "DELETE"
            else:
                yield from changes(old[key], new[key], below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and name not in SETS:
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from changes(a, b, f"{path}[{index}]")
    elif not same(old, new, name):
        yield path, "UPDATE"


def fill(template: Any, state: Mapping[str, Any], description: Mapping[str, Any]) -> Any:
    """Return a call's parameters: "$name" is from the resource's state, "@path" from its description; no nulls."""
    match template:
        case dict():
            items = {key: fill(item, state, description) for key, item in template.items()}
            return {key: item for key, item in items.items() if item is not None} or (None if template else {})
        case list():
            return [item for item in (fill(t, state, description) for t in template) if item is not None]
        case str() if template.startswith("$"):
            return plain(jmespath.search(template[1:], state))
        case str() if template.startswith("@"):
            return plain(jmespath.search(template[1:], description))
        case _:
            return template
