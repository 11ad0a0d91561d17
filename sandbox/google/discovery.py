"""Google's discovery documents, as googleapiclient ships them: methods by path, checks of bodies against schemas."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from .errors import invalid

Json = dict[str, Any]
_COLLECTION_VERBS = {"list", "create", "insert"}


@dataclass(frozen=True)
class Method:
    """One method. `expression` matches the whole path below the host, which has so many slashes, or any number of them
    (None); `key` is the part of it that names the resource, or the collection of a list or creation."""

    id: str
    http: str
    template: str
    key: str
    expression: str
    slashes: int | None
    query: frozenset[str]
    request: str
    response: str
    prefix: str  # of the template: the version

    @property
    def collection(self) -> str:
        return self.id.rpartition(".")[0]

    @property
    def verb(self) -> str:
        return self.id.rpartition(".")[2]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.expression)  # when it is needed: the documents have thousands

    def match(self, path: str) -> re.Match[str] | None:
        return self._pattern.fullmatch(path) if self.slashes in (None, path.count("/")) else None

    def key_of(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the key that a path names, without version, and its parameters."""
        found = self.match(path)
        assert found
        values = {name: unquote(value) for name, value in found.groupdict().items()}
        keyed = re.sub(r"\{(\w+)\}", lambda part: found[part[1]], self.key)
        return keyed.removeprefix(self.prefix), values


@dataclass(frozen=True)
class Document:
    name: str
    host: str
    title: str
    schemas: Mapping[str, Json]
    methods: tuple[Method, ...]
    common: frozenset[str]

    def find(self, http: str, path: str) -> Method | None:
        """Return the method of a path; of several, the one with the most literal text."""
        found = [m for m in self.methods if m.http == http and m.match(path)]
        return max(found, key=lambda m: len(re.sub(r"\{\w+\}", "", m.template)), default=None)

    def has(self, path: str) -> bool:
        return any(method.match(path) for method in self.methods)

    def schema(self, name: str) -> Json:
        return self.schemas[name]


@cache
def document(name: str) -> Document:
    """Return the document of a name like `container.v1`. Raises FileNotFoundError."""
    folder = files("googleapiclient") / "discovery_cache" / "documents"
    read: Json = json.loads((folder / f"{name}.json").read_text())
    host = read["rootUrl"].removeprefix("https://").strip("/")
    methods = tuple(_method(read, method) for method in _methods(read))
    return Document(name, host, read["title"], read["schemas"], methods, frozenset(read["parameters"]))


def _methods(resource: Json) -> Iterator[Json]:
    yield from resource.get("methods", {}).values()
    for below in resource.get("resources", {}).values():
        yield from _methods(below)


_DOCUMENT = "[^/]+/[^/]+(?:/[^/]+/[^/]+)*"
_DEEP = {
    "documentPath": _DOCUMENT,
    "collectionPath": "[^/]+(?:/[^/]+/[^/]+)*",
    "belowDocuments": f"(?:/{_DOCUMENT})?",
}
"""Names of Firestore, which have any number of parts; flatPath has two for them."""


def _template(read: Json, method: Json) -> str:
    template: str = read["servicePath"] + method.get("flatPath", method["path"])
    if read["name"] != "firestore":
        return template
    template = template.replace("documents/{documentsId}/{documentsId1}:", "documents{belowDocuments}:")
    template = template.replace("documents/{documentsId}/{documentsId1}", "documents/{documentPath}")
    return template.replace("documents/{documentsId}/{collectionId}", "documents/{collectionPath}")


def _method(read: Json, method: Json) -> Method:
    template = _template(read, method)
    # An object's name may contain slashes, which come escaped; `:verb` ends a resource's name elsewhere.
    value = "[^/]+" if read["name"] == "storage" else "[^/:]+"
    expressions = (
        re.escape(part) if i % 2 == 0 else f"(?P<{part}>{_DEEP.get(part, value)})" for i, part in _split(template)
    )
    key = template
    if method["id"].rpartition(".")[2] not in _COLLECTION_VERBS:
        key = template[: template.rfind("}") + 1]
    return Method(
        id=method["id"],
        http=method["httpMethod"],
        template=template,
        key=key,
        expression="".join(expressions),
        slashes=None if any(f"{{{deep}}}" in template for deep in _DEEP) else template.count("/"),
        query=frozenset(n for n, p in method.get("parameters", {}).items() if p["location"] == "query"),
        request=method.get("request", {}).get("$ref", ""),
        response=method.get("response", {}).get("$ref", ""),
        prefix=read["servicePath"] or f"{read['version']}/",
    )


def _split(template: str) -> Iterator[tuple[int, str]]:
    return enumerate(re.split(r"\{(\w+)\}", template))


def check(document: Document, schema: str, body: Any) -> None:
    """Raise ApiError for everything in `body` that the schema does not have, all at once."""
    if faults := list(_faults(document, document.schemas[schema], body, "")):
        raise invalid(faults)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), name)


def _faults(document: Document, schema: Json, value: Any, at: str) -> Iterator[tuple[str, str]]:
    while "$ref" in schema:
        schema = document.schemas[schema["$ref"]]
    kind = schema.get("type", "any")
    if value is None or kind == "any":
        return
    if kind == "object" and isinstance(value, dict):
        members, other = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            below = f"{at}.{_snake(name)}" if at else _snake(name)
            if name in members:
                yield from _faults(document, members[name], item, below)
            elif other is not None:
                yield from _faults(document, other, item, f"{at}[{name}]")
            elif members:
                place = f" at '{at}'" if at else ""
                yield at, f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.'
    elif kind == "array" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(document, schema["items"], item, f"{at}[{index}]")
    elif not _fits(schema, kind, value):
        named = schema.get("format", kind)
        wanted = "TYPE_ENUM" if "enum" in schema else _TYPES.get(named, f"TYPE_{named.upper()}")
        shown = json.dumps(value) if isinstance(value, (str, bool, int, float)) else "Starting an object"
        yield at, f"Invalid value at '{at}' ({wanted}), {shown}"


_TYPES = {"boolean": "TYPE_BOOL", "object": "TYPE_MESSAGE", "array": "TYPE_MESSAGE"}


def _fits(schema: Json, kind: str, value: Any) -> bool:
    match kind:
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number":
            return (isinstance(value, (int, float)) and not isinstance(value, bool)) or _number(value)
        case "string" if schema.get("format", "") in ("int64", "uint64"):
            return (isinstance(value, int) and not isinstance(value, bool)) or _number(value)
        case "string":
            return isinstance(value, str) and (value in schema["enum"] if schema.get("enum") else True)
        case _:
            return False


def _number(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
