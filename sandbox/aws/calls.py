"""A request to AWS as its service reads it: operation and parameters, in whichever protocol it came."""

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


@dataclass(frozen=True)
class Call:
    """`service`: the name that the request is signed with."""

    service: str
    operation: str
    region: str
    key: str
    """Who calls: the name that the access key begins with."""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])


def scope(environ: Mapping[str, Any]) -> tuple[str, str, str]:
    """Service and region that a request is signed for, and who has the access key."""
    signed = signatures.of(environ)
    return (signed.service, signed.region, signed.caller) if signed else ("", "us-east-1", "")


def parse_call(environ: Mapping[str, Any], body: bytes) -> Call:
    """The call that a request makes; its operation is empty where the service has none like it."""
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
    """A JSON object; what is none, the service refuses itself."""
    try:
        read = json.loads(body or b"{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


@cache
def _routes(service: str) -> list[tuple[str, re.Pattern[str], frozenset[str], str]]:
    """Method, pattern of the path, names in the query, and operation; those that ask for more come first."""
    found: list[tuple[str, re.Pattern[str], frozenset[str], str]] = []
    for name, operation in Loader().load_service_model(service, "service-2")["operations"].items():
        uri, _, query = operation["http"]["requestUri"].partition("?")
        pattern = re.sub(r"\\{(\w+)(\\\+)?\\}", lambda m: f"(?P<{m[1]}>{'.+' if m[2] else '[^/]+'})", re.escape(uri))
        asked = frozenset(parse_qs(query, keep_blank_values=True))
        if not operation.get("deprecated"):
            found.append((operation["http"]["method"], re.compile(pattern + "/?"), asked, name))
    return sorted(found, key=lambda row: (-len(row[2]), row[3]))


def _rest(service: str, environ: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    # As it was sent: an ARN in a path has slashes of its own.
    raw = str(environ.get("RAW_URI") or environ.get("REQUEST_URI") or environ["PATH_INFO"])
    path, asked = raw.partition("?")[0], parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    for method, pattern, needed, name in _routes(service):
        if method == environ["REQUEST_METHOD"] and needed <= asked.keys() and (match := pattern.fullmatch(path)):
            return name, {key: unquote(value) for key, value in match.groupdict().items()}
    return "", {}
