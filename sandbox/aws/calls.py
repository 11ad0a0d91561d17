"""A request to AWS as its service reads it: operation and parameters, from any of the protocols."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote

from botocore.loaders import Loader

from . import signatures

REST = ("batch", "lambda", "s3")
_models: dict[Any, Any] = {}
_begin = Loader.__init__


def keep_models() -> None:
    """Give all loaders of botocore one cache; none of them may have a folder of its own. boto3 keeps the models of
    services for one session, and moto and the tests make many: each would list and parse them anew, 0.2 s for four
    clients."""
    Loader.__init__ = _sharing


def _sharing(loader: Loader, *given: Any, **named: Any) -> None:
    _begin(loader, *given, **named)
    loader._cache = _models


@dataclass(frozen=True)
class Call:
    """One call. `service` is the name that the request is signed with."""

    service: str
    operation: str
    region: str
    key: str
    """Caller: the name that the access key begins with."""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])


def scope(environ: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the service and region that a request is signed for, and the owner of the access key."""
    signed = signatures.of(environ)
    return (signed.service, signed.region, signed.caller) if signed else ("", "us-east-1", "")


def parse_call(environ: Mapping[str, Any], body: bytes) -> Call:
    """Leave the operation empty where the service has no such one."""
    service, region, key = scope(environ)
    operation, given = "", {}
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        operation, given = target.rpartition(".")[2], _json(body)
    elif environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        given = dict(parse_qsl(body.decode(), keep_blank_values=True))
        operation = given.get("Action", "")
    elif service in REST:
        operation, given = _rest(service, environ)
        if service != "s3":
            given |= _json(body)
    return Call(service, operation, region, key, given)


def _json(body: bytes) -> dict[str, Any]:
    """Return the body's JSON object, or an empty one: the service itself refuses anything else."""
    try:
        read = json.loads(body or b"{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


@cache
def _routes(service: str) -> list[tuple[str, re.Pattern[str], frozenset[str], str]]:
    """Return method, pattern of the path, names in the query, and operation; the more specific ones come first."""
    found: list[tuple[str, re.Pattern[str], frozenset[str], str]] = []
    for name, operation in Loader().load_service_model(service, "service-2")["operations"].items():
        uri, _, query = operation["http"]["requestUri"].partition("?")
        pattern = re.sub(r"\\{(\w+)(\\\+)?\\}", lambda m: f"(?P<{m[1]}>{'.+' if m[2] else '[^/]+'})", re.escape(uri))
        asked = frozenset(parse_qs(query, keep_blank_values=True))
        if not operation.get("deprecated"):
            found.append((operation["http"]["method"], re.compile(pattern + "/?"), asked, name))
    return sorted(found, key=lambda row: (-len(row[2]), row[3]))


def _rest(service: str, environ: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    # As the client sent it: an ARN in a path has slashes of its own.
    raw = str(environ.get("RAW_URI") or environ.get("REQUEST_URI") or environ["PATH_INFO"])
    path, asked = raw.partition("?")[0], parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    for method, pattern, needed, name in _routes(service):
        if method == environ["REQUEST_METHOD"] and needed <= asked.keys() and (match := pattern.fullmatch(path)):
            return name, {key: unquote(value) for key, value in match.groupdict().items()}
    return "", {}
