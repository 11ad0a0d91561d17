"""The contract as JSON Schema, against which other languages and older versions can check an output.
docs/contract.schema.json is `document()`: `python -m accel.contract.schema > docs/contract.schema.json`."""

import json
import sys
from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter

from .access import AwsAccess
from .allowances import Allowances
from .budgets import Budget
from .gke import GkeCluster
from .model import SCHEMA
from .monitoring import AwsMonitoring
from .network import AwsNetwork, GcpNetwork
from .targets import Targets

MINOR = 4
"""Minor version, increased with every added field. The major version is the outputs' own `schema`, increased when a
field is removed."""

OUTPUTS: Mapping[str, Any] = {
    "targets": Targets,
    "network": AwsNetwork,
    "gcp_network": GcpNetwork,
    "clusters": dict[str, GkeCluster],
    "monitoring": AwsMonitoring,
    "access": AwsAccess,
    "allowances": Allowances,
    "budgets": dict[str, Budget],
    "gcp_budgets": dict[str, Budget],
}


def document() -> dict[str, Any]:
    """Allow unknown fields, since a newer stack may have more."""
    adapters: list[tuple[str, Any, TypeAdapter[Any]]] = [
        (name, "validation", TypeAdapter(of)) for name, of in OUTPUTS.items()
    ]
    schemas, definitions = TypeAdapter.json_schemas(adapters, by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:accel:contract:{SCHEMA}.{MINOR}",
        "title": "Outputs of an accel stack",
        "type": "object",
        "properties": {name: loosen(schemas[name, "validation"]) for name in OUTPUTS},
        "$defs": loosen(definitions.get("$defs", {})),
    }


def version(of: Mapping[str, Any]) -> tuple[int, int]:
    major, _, minor = str(of["$id"]).rpartition(":")[2].partition(".")
    return int(major), int(minor)


def fields(of: Any, here: str = "") -> dict[str, Any]:
    """Return the type of every field by path, without descriptions, which may change."""
    found: dict[str, Any] = {}
    if isinstance(of, dict):
        given = cast("dict[str, Any]", of)
        for name, inner in cast("dict[str, Any]", given.get("properties", {})).items():
            found[f"{here}.{name}"] = {
                key: value for key, value in inner.items() if key not in ("description", "title", "default")
            }
        for name, inner in given.items():
            if name != "properties":
                found |= fields(inner, f"{here}/{name}")
    return found


def required_fields(of: Any, here: str = "") -> set[str]:
    found: set[str] = set()
    if isinstance(of, dict):
        given = cast("dict[str, Any]", of)
        found |= {f"{here}.{name}" for name in given.get("required", ())}
        for name, inner in given.items():
            if name != "properties":
                found |= required_fields(inner, f"{here}/{name}")
    return found


def breaking_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one line for each change that breaks readers; none if the contract only grew."""
    old, new = fields(before), fields(now)
    lines = [f"{path}: is gone" for path in old if path not in new]
    lines += [f"{path}: is of another type" for path in old if path in new and _narrower(old[path], new[path])]
    demanded = required_fields(now) - required_fields(before)
    lines += [f"{path}: was not demanded before" for path in sorted(demanded) if path in old]
    objects = {path.rpartition(".")[0] for path in old}
    return lines + [
        f"{path}: is new, and demanded of stacks that do not have it"
        for path in sorted(demanded)
        if path not in old and path.rpartition(".")[0] in objects
    ]


def _narrower(old: Any, new: Any) -> bool:
    """Return whether a type has changed other than by added union members or enum values."""
    if old == new:
        return False
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return True
    before, now = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
    grown = {"anyOf", "oneOf", "enum"}
    same = all(before.get(key) == now.get(key) for key in (before.keys() | now.keys()) - grown - {"discriminator"})
    return not same or any(value not in now.get(key, ()) for key in grown for value in before.get(key, ()))


def loosen(schema: Any) -> Any:
    if isinstance(schema, dict):
        given = cast("dict[str, Any]", schema)
        return {key: loosen(value) for key, value in given.items() if (key, value) != ("additionalProperties", False)}
    if isinstance(schema, list):
        return [loosen(each) for each in cast("list[Any]", schema)]
    return schema


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2, sort_keys=True) + "\n")
