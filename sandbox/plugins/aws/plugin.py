"""pulumi-aws as the engine sees it: tables behind the protocol, errors in one line."""

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ..mapping import Unmapped, has_unknown
from ..planning import difference, preview_create, preview_update
from ..resource import Kind, State, load
from ..server import PartlyMade, Refused
from .cloud import Account, Cloud
from .functions import FUNCTIONS, NotOne
from .life import InitFailed, NotAnArn, UnexpectedState, checked, create, delete, read, update

_TABLES = sorted(Path(__file__).with_name("tables").glob("*.yaml"))
KINDS: dict[str, Kind] = {token: kind for path in _TABLES for token, kind in load(path, __package__ or "").items()}
_SETTINGS = {"region", "defaultTags", "version", "allowedAccountIds"}
# allowedAccountIds is taken and not held against the sandbox's own account: any environment can be previewed here.
_ERRORS = (ClientError, BotoCoreError, Unmapped, UnexpectedState, NotOne)


class AwsPlugin:
    def __init__(self, url: str, key: str) -> None:
        self.version = version("pulumi_aws")
        self.account = Account(url, key)

    def configured(self, args: State) -> State:
        return {key: _decoded(value) for key, value in args.items()}

    def check_config(self, news: State) -> list[tuple[str, str]]:
        if not news.get("region"):
            return [("region", "Missing region configuration: set aws:region, or `region` of the provider")]
        unknown = sorted(key for key in news if key not in _SETTINGS and not key.startswith("skip"))
        return [(key, f"the sandbox's aws provider does not know the setting {key}") for key in unknown]

    def check(self, type: str, name: str, olds: State, news: State, config: State, seed: str) -> State:
        try:
            return checked(_kind(type), name, olds, news, config, seed)
        except NotAnArn as error:
            raise Refused(f"{type} resource '{name}' has a problem: {error}") from error

    def diff(self, type: str, olds: State, news: State) -> tuple[dict[str, str], set[str], bool]:
        return difference(_kind(type), olds, news)

    def create(self, type: str, inputs: State, preview: bool) -> tuple[str, State]:
        kind = _kind(type)
        if preview:
            return "", preview_create(kind, inputs)
        try:
            return create(self.account, kind, inputs)
        except InitFailed as error:
            raise PartlyMade(error.id, error.outputs, inputs, _said(error.__cause__)) from error
        except _ERRORS as error:
            raise Refused(f"creating {kind.title} ({_label(kind, inputs)}): {_said(error)}") from error

    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any:
        kind = _kind(type)
        try:
            region = {"region": config["region"]} if kind.regional else {}
            return read(self.account, kind, id, {**region, **inputs}, outputs)
        except _ERRORS as error:
            raise Refused(f"reading {kind.title} ({id}): {_said(error)}") from error

    def update(self, type: str, id: str, outputs: State, olds: State, news: State, preview: bool) -> State:
        kind = _kind(type)
        if preview:
            return preview_update(kind, outputs, olds, news)
        try:
            return update(self.account, kind, id, outputs, olds, news)
        except _ERRORS as error:
            raise Refused(f"updating {kind.title} ({id}): {_said(error)}") from error

    def delete(self, type: str, id: str, outputs: State) -> None:
        kind = _kind(type)
        try:
            delete(self.account, kind, id, outputs)
        except _ERRORS as error:
            raise Refused(f"deleting {kind.title} ({id}): {_said(error)}") from error

    def invoke(self, token: str, args: State, config: State) -> State:
        function = FUNCTIONS.get(token)
        if function is None:
            raise Refused(f"the sandbox's aws provider has no function {token}")
        region = args.get("region") or config["region"]
        if has_unknown(args):
            return {}
        try:
            return {
                **args,
                **function.act(Cloud(self.account, region, function.service), args),
                "region": region,
            }
        except _ERRORS as error:
            raise Refused(f"invoking {token}: {_said(error)}") from error


def _kind(type: str) -> Kind:
    if type not in KINDS:
        raise Refused(f"the sandbox's aws provider has no resource type {type}")
    return KINDS[type]


def _decoded(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


def _label(kind: Kind, inputs: State) -> str:
    return str(inputs.get(kind.autoname.prop if kind.autoname else "name", "no name"))


def _said(error: BaseException | None) -> str:
    """The error in one line, an API's as aws-sdk-go words it."""
    if isinstance(error, ClientError):
        body = error.response.get("Error", {})
        text = f"operation error {error.operation_name}: {body.get('Code')}: {body.get('Message')}"
    else:
        text = str(error)
    return re.sub(r"\s*\n\s*", "; ", text.strip())
