"""Resources as a Terraform plan, which is what Checkov reads."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from policy.resource import UNSEEN, Resource
from tests.support import memory
from tests.support.seen import seen

MAPS = frozenset(
    {"tags", "tagsAll", "labels", "resourceLabels", "userLabels", "metadata", "annotations", "variables", "parameters"}
)
"""Properties that are maps to Terraform too; every other object is a block, of which it has a list."""


@cache
def types() -> dict[str, Any]:
    """types.yaml."""
    return yaml.safe_load(Path(__file__).with_name("types.yaml").read_text())


def plan(run: memory.Recorder) -> dict[str, Any]:
    """A plan that creates what a run registered, as `terraform show -json` writes it. Raises KeyError for a type that
    is not listed.

    Source: https://developer.hashicorp.com/terraform/internals/json-format
    """
    made: list[dict[str, Any]] = []
    expressions: list[dict[str, Any]] = []
    rows = {one.urn: (one, *row) for one in seen(run) if (row := _row(one.type))}
    named = {urn: _named(one, kind) for urn, (one, kind, _) in rows.items()}
    references = {one.urn: one.references for one in run.registrations}
    for urn, (one, _, names) in rows.items():
        values = _block({**one.properties, **_labels(one)}, names)
        made.append({**named[urn], "mode": "managed", "values": values})
        used = {
            _word(key, names): {"references": [named[other]["address"] for other in others if other in named]}
            for key, others in references[urn].items()
        }
        expressions.append(
            {**named[urn], "expressions": {key: each for key, each in used.items() if each["references"]}}
        )
    changes = [
        {**each, "change": {"actions": ["create"], "before": None, "after": each["values"], "after_unknown": {}}}
        for each in made
    ]
    root = {"root_module": {"resources": made}}
    return {
        **{"format_version": "1.2", "terraform_version": "1.9.0"},
        **{"planned_values": root, "resource_changes": changes},
        "configuration": {"root_module": {"resources": expressions}},
    }


def _row(kind: str) -> tuple[str, dict[str, str]] | None:
    if not kind.startswith(("aws:", "gcp:")) or (row := types()[kind]) is None:
        return None
    return (row, {}) if isinstance(row, str) else (row["type"], row["names"])


def _named(one: Resource, kind: str) -> dict[str, str]:
    name = re.sub(r"\W", "_", one.name)
    return {"address": f"{kind}.{name}", "type": kind, "name": name}


def _labels(one: Resource) -> dict[str, Any]:
    """Those of its provider are on it too."""
    provider = one.provider or {}
    if isinstance(tags := provider.get("defaultTags"), str):
        return {"tags": {**json.loads(tags)["tags"], **(one.properties.get("tags") or {})}}
    if isinstance(labels := provider.get("defaultLabels"), str):
        name = "resourceLabels" if one.type == "gcp:container/cluster:Cluster" else "labels"
        return {name: {**json.loads(labels), **(one.properties.get(name) or {})}}
    return {}


def _block(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {_word(key, names): _value(key, value, names) for key, value in given.items() if value is not UNSEEN}


def _word(key: str, names: Mapping[str, str]) -> str:
    return names.get(key) or re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()


def _value(key: str, value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return [_block(each, names) if isinstance(each, Mapping) else each for each in listed if each is not UNSEEN]
    if not isinstance(value, Mapping):
        return value
    given = cast("Mapping[str, Any]", value)
    if key in MAPS:
        return {name: each for name, each in given.items() if each is not UNSEEN}
    return [_block(given, names)]
