"""JSON Schemas of what people write, for editors: how a model becomes one.

Those of this distribution lie in `schemas`, as `accel-jobs schema` and `stacks schema` print them. They are of draft 7,
the newest that yaml-language-server takes. Source: https://www.npmjs.com/package/yaml-language-server
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

DRAFT = "http://json-schema.org/draft-07/schema#"


class _Written(GenerateJsonSchema):
    """Without titles that repeat a key, and with keys that match no pattern refused, as the models do."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        made = super().dict_schema(schema)
        for pattern, values in made.pop("patternProperties", {}).items():
            made |= {"additionalProperties": values}
            made["propertyNames"] = {**made.get("propertyNames", {}), "pattern": pattern}
        return made


def schema_of(model: Any) -> dict[str, Any]:
    """The schema of a model or another type, with its `$defs`."""
    return TypeAdapter[Any](model).json_schema(schema_generator=_Written)


def document(title: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as a file has it."""
    return {"$schema": DRAFT, **schema, "title": title}


def text(of: Mapping[str, Any]) -> str:
    """As it is printed and kept."""
    return json.dumps(of, indent=1, sort_keys=True, ensure_ascii=False)
