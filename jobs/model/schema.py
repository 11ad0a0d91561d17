"""The JSON Schemas of job files and of targets, for editors."""

from typing import Any, cast

from accel.contract.schema import loosen
from accel.contract.targets import Targets
from accel.schema import document, schema_of

from .document import SPELT
from .job import Job


def job() -> dict[str, Any]:
    made = schema_of(Job)
    for name in SPELT:
        made["properties"][name] = _spelt(made["properties"][name], made["$defs"])
    return document("A job of accel", made)


def targets() -> dict[str, Any]:
    """Accept unknown fields, which a newer stack may publish."""
    return document("Targets of accel", loosen(schema_of(Targets)))


KINDS = {"job": job, "targets": targets}


def _spelt(schema: Any, definitions: dict[str, Any]) -> Any:
    """Allow numbers for text, since the reader of job files keeps them as they are spelt."""
    if isinstance(schema, list):
        return [_spelt(each, definitions) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    made = cast("dict[str, Any]", schema)
    if name := made.get("$ref", "").removeprefix("#/$defs/"):
        definitions[name] = _spelt(definitions[name], definitions)
    kept = {key: value if key == "propertyNames" else _spelt(value, definitions) for key, value in made.items()}
    return {**kept, "type": ["string", "number"]} if made.get("type") == "string" and "enum" not in made else kept
