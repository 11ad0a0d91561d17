"""Search on AWS for what a killed run may have created, by the rows of aws.yaml."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structure, structures
from accel.diagnostics.errors import NoCredentials

from .lookup import GONE, Candidate, NotSought, matching, parse_cloud_time, proof
from .pending import Json, Pending, resources, setting

_NOT_THERE = re.compile(r"NotFound|NoSuch|\.Unknown$")
_SIGNS_IN = ("accessKey", "profile", "assumeRoles", "assumeRoleWithWebIdentity")
"""Settings of a provider that make it sign in with other credentials than this shell's."""
_ACCOUNT = re.compile(r"arn:aws[^:]*:[^:]*:[^:]*:(\d{12}):")


@dataclass(frozen=True)
class Row:
    """A row of aws.yaml, whose head explains each field."""

    look: Mapping[str, Mapping[str, Any]]
    found: str
    id: str = ""
    part: bool = False
    over: bool = False
    rest: Sequence[Mapping[str, Mapping[str, Any]]] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    holder: Mapping[str, str] = field(default_factory=dict[str, str])
    where: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def of(self, inputs: Json) -> "Row":
        return next((replace(self, **row) for name, row in self.where.items() if name in inputs), self)

    @property
    def within(self) -> frozenset[str]:
        return frozenset(re.findall(r"\$(\w+)", str(self.look)))


@cache
def rows() -> dict[str, Row]:
    import yaml

    table = yaml.safe_load(Path(__file__).with_name("aws.yaml").read_text())
    return {token: Row(**row) for token, row in table.items()}


@dataclass
class Aws:
    """AWS with this shell's credentials. `accounts`: those named in the state."""

    accounts: frozenset[str]
    provider: Callable[[Pending], Json]
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    _account: str = ""

    def find(self, operation: Pending) -> Sequence[Candidate]:
        """Raise NotSought, NoCredentials for another account than the stack's, and what the API raises."""
        row = _row(operation)
        if row is None:
            raise NotSought(f"no row of aws.yaml says how to look for {operation.type}")
        inputs, settings = operation.inputs, self.provider(operation)
        region = str(inputs.get("region") or settings.get("region") or "")
        if not region:
            raise NotSought("neither it nor its provider names a region")
        if other := [name for name in _SIGNS_IN if settings.get(name)]:
            raise NotSought(f"its provider signs in by {other[0]}, and this looks with the shell's credentials")
        values = {**inputs, "account": self._checked(region, frozenset(setting(settings, "allowedAccountIds")))}
        wanted = _tags(inputs, settings)
        found: list[Candidate] = []
        for item in self._items(row, region, values):
            state = str(item.get("state") or "")
            if state.lower() in GONE or operation.unknown & item.keys() or not matching(inputs, item):
                continue
            seen = _pairs(item["tags"]) if "tags" in item else None
            id = str(item.get("id") or row.id.format_map({**values, **item}))
            why, strange = proof(operation, row.part, row.over, row.within, wanted, seen)
            rest = tuple(dict.fromkeys(call.partition(".")[2] for calls in row.rest for call in calls))
            found.append(
                Candidate(id, state, why, parse_cloud_time(item.get("made")), row.part, row.over, strange, rest)
            )
        return found

    def names(self, operation: Pending) -> Sequence[str]:
        """Return the names of all resources of its kind in its region."""
        import jmespath

        row = _row(operation)
        if row is None or not row.names:
            raise NotSought(f"no row of aws.yaml says how {operation.type} are listed")
        ((call, found),) = row.names.items()
        service, _, name = call.partition(".")
        region = str(operation.inputs.get("region") or self.provider(operation).get("region"))
        asked = {key: value for key, value in row.look.get(call, {}).items() if "$" not in str(value)}
        asked |= fill(row.holder, operation.inputs)
        told: list[str] = jmespath.search(found, self._answer(service, name, region, asked) or {}) or []
        return [re.split("[:/]", each)[-1] if each.startswith("arn:") else each for each in told]

    def finish(self, operation: Pending, id: str) -> None:
        """Make the remaining calls of its creation; repeated ones change nothing."""
        region = str(operation.inputs.get("region") or self.provider(operation).get("region"))
        for calls in rows()[operation.type].of(operation.inputs).rest:
            for call, parameters in calls.items():
                service, _, name = call.partition(".")
                self._answer(service, name, region, fill(parameters, {**operation.inputs, "id": id}))

    def _items(self, row: Row, region: str, values: Mapping[str, Any]) -> Iterator[Json]:
        import jmespath

        ((call, parameters),) = row.look.items()
        service, _, operation = call.partition(".")
        answer = self._answer(service, operation, region, fill(parameters, values))
        yield from jmespath.search(Template(row.found).safe_substitute(values), answer) or () if answer else ()

    def _answer(self, service: str, operation: str, region: str, parameters: Any) -> Json | None:
        """Return the whole answer, all pages; None where the requested resource does not exist."""
        from botocore.exceptions import ClientError

        client = self._client(service, region)
        with asking(f"{service} {operation}"):
            try:
                if client.can_paginate(operation):
                    return client.get_paginator(operation).paginate(**parameters).build_full_result()
                return getattr(client, operation)(**parameters)
            except ClientError as error:
                answer: Any = error.response
                told = structure(answer, "Error")
                if _NOT_THERE.search(str(told.get("Code"))):
                    return None
                raise

    def _client(self, service: str, region: str) -> Any:
        if (service, region) not in self._clients:
            with asking(f"{service} in {region}"):
                self._clients[service, region] = client(service, region, connect_s=5, read_s=30, attempts=6)
        return self._clients[service, region]

    def _checked(self, region: str, allowed: frozenset[str]) -> str:
        """Check and return the account: a resource missing from the listing of another account may well exist."""
        if not self._account:
            client = self._client("sts", region)
            with asking("GetCallerIdentity"):
                account = str(client.get_caller_identity()["Account"])
            self._account = account
        theirs = self.accounts | allowed
        if theirs and self._account not in theirs:
            told = ", ".join(sorted(theirs))
            raise NoCredentials(f"these credentials are of account {self._account}, the stack's resources of {told}")
        return self._account


def accounts(deployment: Mapping[str, Any]) -> frozenset[str]:
    found: set[str] = set()
    for each in resources(deployment):
        outputs: Json = each.get("outputs") or {}
        told = _ACCOUNT.match(str(outputs.get("arn") or ""))
        if told and each["type"].startswith("aws:"):
            found.add(told[1])
    return frozenset(found)


def _row(operation: Pending) -> Row | None:
    row = rows().get(operation.type)
    return row and row.of(operation.inputs)


def fill(value: Any, values: Mapping[str, Any]) -> Any:
    """Return `value` with each "$name" replaced. Raise NotSought where the inputs have none, or a secret."""
    inside: Any = value
    if isinstance(value, Mapping):
        return {key: fill(each, values) for key, each in inside.items()}
    if isinstance(value, list):
        return [fill(each, values) for each in inside]
    if not isinstance(value, str) or not value.startswith("$"):
        return inside
    given = values.get(value[1:])
    if not isinstance(given, str):
        raise NotSought(f"its {value[1:]} is not in the state")
    return given


def _tags(inputs: Json, settings: Json) -> dict[str, str]:
    default: dict[str, str] = setting(settings, "defaultTags").get("tags") or {}
    return {**default, **(inputs.get("tagsAll") or {}), **(inputs.get("tags") or {})}


def _pairs(tags: Any) -> dict[str, str]:
    """Return tags as a map, however the service lists them."""
    if not isinstance(tags, list):
        return dict(tags or {})
    return {
        str(tag.get("Key", tag.get("key"))): str(tag.get("Value", tag.get("value")))
        for tag in structures({"": tags}, "")
    }
