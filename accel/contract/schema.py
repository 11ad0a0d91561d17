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


def loosen(schema: Any) -> Any:
    if isinstance(schema, dict):
        given = cast("dict[str, Any]", schema)
        return {key: loosen(value) for key, value in given.items() if (key, value) != ("additionalProperties", False)}
    if isinstance(schema, list):
        return [loosen(each) for each in cast("list[Any]", schema)]
    return schema


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2, sort_keys=True) + "\n")
