"""JSON Schemas of the documents that people write, for editors, and their generation from a model. `schemas` has those
of this distribution, as printed by `accel-jobs schema` and `stacks schema`, in draft 7, the newest that
yaml-language-server supports. Source: https://www.npmjs.com/package/yaml-language-server"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

DRAFT = "http://json-schema.org/draft-07/schema#"


class _Written(GenerateJsonSchema):
    """A generator that omits titles that repeat a key, and rejects keys that match no pattern, as the models do."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        made = super().dict_schema(schema)
        for pattern, values in made.pop("patternProperties", {}).items():
            made |= {"additionalProperties": values}
            made["propertyNames"] = {**made.get("propertyNames", {}), "pattern": pattern}
        return made


def schema_of(model: Any) -> dict[str, Any]:
    return TypeAdapter[Any](model).json_schema(schema_generator=_Written)


def document(title: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"$schema": DRAFT, **schema, "title": title}


def text(of: Mapping[str, Any]) -> str:
    return json.dumps(of, indent=1, sort_keys=True, ensure_ascii=False)
