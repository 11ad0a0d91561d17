"""Translation between a resource's properties as Pulumi spells them and the bodies of Google's discovery schemas."""

import re
from collections.abc import Mapping
from typing import Any

from sandbox.google.discovery import Document

from ..mapping import UnmappedName, member

Json = dict[str, Any]
Names = Mapping[str, str]
"""Renames, by a property's path ("maintenancePolicy.recurringWindow") or its name alone. A value with dots is a path
within the body; one that ends in [key] is a map there, by that property of each block."""


def to_body(document: Document, schema: str, properties: Json, names: Names) -> Json:
    """Return the body of `schema` for these properties. Raises UnmappedName for one that has no place in it."""
    return _object(document, {"$ref": schema}, properties, names, "")


def _resolved(document: Document, schema: Json) -> Json:
    while "$ref" in schema:
        schema = document.schemas[schema["$ref"]]
    return schema


def _target(names: Names, at: str, name: str, members: Json) -> str | None:
    for asked in (f"{at}{name}", name):
        if (found := names.get(asked)) and re.split(r"[.[]", found)[0] in members:
            return found
    return member(name, members, {})


def _object(document: Document, schema: Json, value: Json, names: Names, at: str) -> Json:
    schema = _resolved(document, schema)
    made: Json = {}
    for name, item in value.items():
        place = _target(names, at, name, schema.get("properties", {}))
        if place is None:
            raise UnmappedName(f"property {at}{name} is not mapped to {schema.get('id', 'the API')}")
        into, below = made, schema
        place, _, by = place.rstrip("]").partition("[")
        *outer, last = place.split(".")
        for part in outer:
            into, below = into.setdefault(part, {}), _resolved(document, below["properties"][part])
        if last not in below["properties"]:
            raise UnmappedName(f"property {at}{name} is not mapped: {below.get('id')} has no {last}")
        wanted = below["properties"][last]
        if by:
            each, inside = wanted["additionalProperties"], f"{at}{name}."
            blocks = {block[by]: {n: v for n, v in block.items() if n != by} for block in item}
            into[last] = {k: _value(document, each, block, names, inside) for k, block in blocks.items()}
            continue
        converted = _value(document, wanted, item, names, f"{at}{name}.")
        kept = into.get(last)
        into[last] = {**kept, **converted} if isinstance(kept, dict) and isinstance(converted, dict) else converted
    return made


def _value(document: Document, schema: Json, value: Any, names: Names, at: str) -> Any:
    schema = _resolved(document, schema)
    if schema.get("type") == "array":
        items = value if isinstance(value, list) else [value]
        return [_value(document, schema["items"], item, names, at) for item in items]
    if schema.get("type") == "object" and "properties" in schema:
        if isinstance(value, list):  # a block of at most one that Pulumi keeps as a list
            value = value[0] if value else {}
        return _object(document, schema, value, names, at)
    if schema.get("type") == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if schema.get("type") == "integer" and isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value


def to_names(known: Any, api: Any, names: Names, at: str = "") -> Any:
    """Return the API's answer in the spelling of `known`, so that the two can be compared. Ignores case: Google writes
    a bucket's location in capitals, for example."""
    if isinstance(known, Mapping) and isinstance(api, list) and len(api) == 1:
        api = api[0]
    if isinstance(known, list) and isinstance(api, Mapping):
        api = [api]
    if isinstance(known, Mapping) and isinstance(api, Mapping):
        made: Json = dict(api)
        for name, item in known.items():
            place = next((names[asked] for asked in (f"{at}{name}", name) if asked in names), None)
            seen = _dug(api, place) if place else None
            if seen is None:
                spelt = member(name, api, {})
                seen = api[spelt] if spelt else None
            if seen is not None:
                made[name] = to_names(item, seen, names, f"{at}{name}.")
        return made
    if isinstance(known, list) and isinstance(api, list) and len(known) == len(api):
        return [to_names(a, b, names, at) for a, b in zip(known, api, strict=True)]
    same = isinstance(known, str) and isinstance(api, str) and (_one_link(known, api) or known.lower() == api.lower())
    return known if same else api


def _dug(value: Any, place: str) -> Any:
    place, _, by = place.rstrip("]").partition("[")
    for part in place.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return [{by: name, **block} for name, block in value.items()] if by and isinstance(value, Mapping) else value


def _one_link(a: str, b: str) -> bool:
    """Return whether two texts name one resource, by its name, its path or its link, as the provider's
    CompareSelfLinkOrResourceName does."""
    if "/" not in a and "/" not in b:
        return False
    short, long = sorted((re.sub(r"^https://[^/]+/(compute/)?v1/", "", each) for each in (a, b)), key=len)
    return short == long or long.endswith(f"/{short}")
