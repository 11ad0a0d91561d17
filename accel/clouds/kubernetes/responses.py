"""Responses of a Kubernetes API server, and the errors they become.

NoCredentials   401: the server does not know the caller
CloudRefused    400, 403, 409, 422: understood, and refused; AlreadyExists and Conflict are two of these
NotFound        404: no such object, or no such kind of object
CloudSilent     unknown: no connection, no response, 5xx, a response that is not a Kubernetes server's
Throttled       429: certain not to be accepted
"""

import json
from importlib import import_module
from typing import Any

from accel.json_values import mapping, object_at

from ...diagnostics.errors import CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound, Throttled

SHOWN = 500

SIGN_IN = "`kubectl auth whoami` shows who the cluster takes you for; sign in as for `gcloud`"
PERMISSION = "ask whoever owns the cluster for a role that allows it"
REACH = "the network, the proxy's variables and the cluster's authorized networks decide whether it can be reached"


class AlreadyExists(CloudRefused):
    """An object of that name exists."""


class Conflict(CloudRefused):
    """The object has changed in between, or is being deleted."""


class StaleList(CloudRefused):
    """The rest of a list is gone; `token` continues it with what is there now."""

    def __init__(self, message: str, token: str) -> None:
        super().__init__(message, "run it again")
        self.token = token


def object_of(doing: str, answer: Any) -> dict[str, Any]:
    """Raise CloudSilent for anything but a JSON object, such as a proxy's page or a truncated response."""
    failures = import_module("requests.exceptions")
    try:
        body = mapping(json.loads(answer.content))
    except failures.RequestException as error:
        raise CloudSilent(f"{doing}: {line(error)}", REACH) from error
    except ValueError:
        body = None
    if body is None or "kind" not in body:
        raise CloudSilent(f"{doing}: the answer is not a Kubernetes object", REACH)
    return body


def refusal(doing: str, status: int, content: bytes) -> JobsError:
    """Translate an error response. Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ and
    https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md"""
    try:
        body = object_at(json.loads(content))
    except ValueError:
        body = {}
    told = body.get("kind") == "Status"
    message = f"{doing}: {line(body.get('message')) if told else f'HTTP {status}'}"
    if status == 401:
        return NoCredentials(message, SIGN_IN)
    if status == 429:
        return Throttled(message, "the cluster accepts no more calls at the moment; try again in a minute")
    if status == 410 and (token := object_at(body, "metadata").get("continue")):
        return StaleList(message, str(token))
    if not told or status >= 500 or status in (408, 410):
        return CloudSilent(message, REACH)
    if status == 404:
        return NotFound(message)
    if status == 409:
        return (AlreadyExists if body.get("reason") == "AlreadyExists" else Conflict)(message)
    return CloudRefused(message, PERMISSION if status == 403 else None)


def describe_path(path: str) -> str:
    """Return `jobs ml/digits-1` for /apis/batch/v1/namespaces/ml/jobs/digits-1."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        return " ".join([parts[2], "/".join([parts[1], *parts[3:]])])
    return " ".join(parts) or path


def line(value: object) -> str:
    return " ".join(str(value).split())[:SHOWN]
