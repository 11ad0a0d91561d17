"""Input files: requests and answers of the AWS CLI, distinguished by their keys."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from accel.json_values import object_at

Kind = Literal["environment", "queue", "definition", "subnet"]
Json = dict[str, Any]

ANSWERS: dict[str, Kind] = {
    "computeEnvironments": "environment",
    "jobQueues": "queue",
    "jobDefinitions": "definition",
    "Subnets": "subnet",
}
"""Answers of `aws batch describe-*` and `aws ec2 describe-subnets`, by the key of their list."""

NAMES: dict[Kind, tuple[str, str]] = {
    "environment": ("computeEnvironmentName", "computeEnvironmentArn"),
    "queue": ("jobQueueName", "jobQueueArn"),
    "definition": ("jobDefinitionName", "jobDefinitionArn"),
    "subnet": ("SubnetId", "SubnetArn"),
}
"""The keys of a resource's name and, where AWS answered, of its ARN."""

BYTES_MAX = 20_000_000
_ARN = re.compile(r"arn:[a-z-]+:batch:[a-z0-9-]+:\d{12}:[a-z-]+/\S+")


@dataclass(frozen=True)
class AwsResource:
    """One resource of a file. `exists`: from an answer of AWS, and not from a request."""

    kind: Kind
    name: str
    document: Json
    exists: bool
    place: str
    """File and, in an answer, the path in it."""

    @property
    def arn(self) -> str:
        return str(self.document.get(NAMES[self.kind][1]) or "")


def read(paths: list[str]) -> list[AwsResource]:
    """Read files (`-`: standard input). Raise BadInputs with each file of another kind."""
    found: list[AwsResource] = []
    faults: list[str] = []
    for path in paths:
        try:
            found += _documents(_parsed(path), "stdin" if path == "-" else path)
        except NotFound:
            raise
        except BadInput as fault:
            faults.append(fault.message)
    if faults:
        raise BadInputs(faults, "give what `aws batch describe-...` answers, or what `--cli-input-json` takes")
    return _newest(found)


def _parsed(path: str) -> Any:
    shown = "stdin" if path == "-" else messages.printable_name(path)
    try:
        data = sys.stdin.buffer.read(BYTES_MAX + 1) if path == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"{shown}: no such file") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{shown}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > BYTES_MAX:
        raise BadInput(f"{shown}: is larger than {BYTES_MAX // 1_000_000} MB")
    try:
        return json.loads(data)
    except (UnicodeDecodeError, RecursionError):
        raise BadInput(f"{shown}: is not JSON") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{shown}:{error.lineno}: is not JSON: {error.msg}") from None


def _documents(value: Any, place: str) -> Iterator[AwsResource]:
    if isinstance(value, list):
        for index, entry in enumerate(_list(value)):
            yield from _documents(entry, f"{place}[{index}]")
        return
    document = object_at(value)
    answers = [key for key in ANSWERS if isinstance(document.get(key), list)]
    for key in answers:
        for index, entry in enumerate(document[key]):
            yield _one(entry, ANSWERS[key], f"{place}: {key}[{index}]", answered=True)
    if answers:
        return
    for kind, (name, arn) in NAMES.items():
        if name in document:
            yield _one(document, kind, place, answered=bool(document.get(arn)))
            return
    keys = ", ".join(list(document)[:5])
    known = ", ".join([*ANSWERS, *(name for name, _ in NAMES.values())])
    what = f"holds {messages.printable_name(keys)}" if keys else f"is {messages.display(value)}"
    raise BadInput(f"{place}: {what}, and none of {known}")


def _one(entry: Any, kind: Kind, place: str, *, answered: bool) -> AwsResource:
    key = NAMES[kind][0]
    document = object_at(entry)
    name = document.get(key)
    if not isinstance(name, str) or not name:
        raise BadInput(f"{place}: {key}: must be a name, is {messages.display(name)}")
    found = AwsResource(kind, name, without_empty(document), answered, place)
    if answered and kind != "subnet" and not _ARN.fullmatch(found.arn):
        arn = NAMES[kind][1]
        raise BadInput(f"{place}: {arn}: must be an ARN of AWS Batch, is {messages.display(document.get(arn))}")
    return found


def without_empty(document: Json) -> Json:
    """Drop empty values, of which skeletons and answers are full."""
    return {key: value for key, value in document.items() if value not in (None, "", [], {})}


def block(document: Json, key: str) -> Json:
    """Return an empty object where there is none. Raise BadInput for anything else."""
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        raise BadInput(f"{key}: must be an object, is {messages.display(value)}")
    return without_empty(object_at(value))


def entries(document: Json, key: str) -> list[Json]:
    """Raise BadInput unless the value is a list of objects."""
    value = document.get(key)
    if value is not None and not (isinstance(value, list) and all(isinstance(one, dict) for one in _list(value))):
        raise BadInput(f"{key}: must be a list of objects, is {messages.display(value)}")
    return [without_empty(object_at(one)) for one in _list(value or [])]


def names(document: Json, key: str) -> list[str]:
    """Raise BadInput unless the value is a list of texts."""
    value = document.get(key)
    if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in _list(value))):
        raise BadInput(f"{key}: must be a list of names, is {messages.display(value)}")
    return [str(one) for one in _list(value or [])]


def _list(value: Any) -> list[Any]:
    return value


def _newest(found: list[AwsResource]) -> list[AwsResource]:
    """Return one resource per name: an answer of AWS before a request, and a definition's latest revision."""

    def rank(one: AwsResource) -> tuple[bool, int]:
        revision = one.document.get("revision")
        return one.exists, revision if isinstance(revision, int) else 0

    kept: dict[tuple[Kind, str], AwsResource] = {}
    for one in found:
        if one.document.get("status") in ("INACTIVE", "DELETING", "DELETED"):
            continue
        other = kept.get((one.kind, one.name))
        if other and rank(other) == rank(one) and other.document != one.document:
            raise BadInput(f"{one.place}: {one.name} is in {other.place} too, and differs")
        if other is None or rank(one) > rank(other):
            kept[one.kind, one.name] = one
    return list(kept.values())
