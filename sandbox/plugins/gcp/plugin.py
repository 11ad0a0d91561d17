"""pulumi-gcp as the engine sees it: a table behind the protocol, errors in one line."""

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..mapping import Unmapped, has_unknown
from ..planning import difference, preview_create, preview_update
from ..resource import State
from ..server import PartlyMade, Refused
from . import life
from .functions import FUNCTIONS
from .life import InitFailed, Kind
from .rest import Google, GoogleError, OperationFailed
from .table import load

KINDS: dict[str, Kind] = load()
_SETTINGS = {
    *("project", "region", "zone", "defaultLabels", "addPulumiAttributionLabel", "userProjectOverride"),
    *("billingProject", "pulumiAttributionLabelAdditionStrategy", "version", "disableGooglePartnerName"),
}
_ERRORS = (GoogleError, OperationFailed, Unmapped)


class GcpPlugin:
    """The provider, over the Google of one sandbox: `google_url` of DIR/google.json, `home` with its token."""

    def __init__(self, google_url: str, home: Path) -> None:
        self.version = version("pulumi_gcp")
        self.google = Google(google_url, home)

    def configured(self, args: State) -> State:
        return {key: _decoded(value) for key, value in args.items()}

    def check_config(self, news: State) -> list[tuple[str, str]]:
        unknown = sorted(key for key in news if key not in _SETTINGS)
        return [(key, f"the sandbox's gcp provider does not know the setting {key}") for key in unknown]

    def check(self, type: str, name: str, olds: State, news: State, config: State, seed: str) -> State:
        made, wrong = life.checked(_kind(type), name, olds, news, config, seed)
        if wrong:
            raise Refused(wrong)
        return made

    def diff(self, type: str, olds: State, news: State) -> tuple[dict[str, str], set[str], bool]:
        return difference(_kind(type), olds, news)

    def create(self, type: str, inputs: State, preview: bool) -> tuple[str, State]:
        kind = _kind(type)
        if preview:
            return "", preview_create(kind, inputs)
        try:
            return life.create(self.google, kind, inputs)
        except InitFailed as error:
            raise PartlyMade(error.id, error.outputs, inputs, _said(error)) from error
        except _ERRORS as error:
            raise Refused(f"Error creating {kind.title}: {_said(error)}") from error

    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any:
        kind = _kind(type)
        try:
            return life.read(self.google, kind, id, inputs, outputs)
        except _ERRORS as error:
            raise Refused(f"Error when reading or editing {kind.title} {id}: {_said(error)}") from error

    def update(self, type: str, id: str, outputs: State, olds: State, news: State, preview: bool) -> State:
        kind = _kind(type)
        if preview:
            return preview_update(kind, outputs, olds, news)
        try:
            return life.update(self.google, kind, id, outputs, olds, news)
        except _ERRORS as error:
            raise Refused(f"Error updating {kind.title} {id}: {_said(error)}") from error

    def delete(self, type: str, id: str, outputs: State) -> None:
        kind = _kind(type)
        try:
            life.delete(self.google, kind, id, outputs)
        except _ERRORS as error:
            raise Refused(_said(error)) from error

    def invoke(self, token: str, args: State, config: State) -> State:
        function = FUNCTIONS.get(token)
        if function is None:
            raise Refused(f"the sandbox's gcp provider has no function {token}")
        if has_unknown(args):
            return {}
        try:
            return {**args, **function(self.google, args, config)}
        except _ERRORS as error:
            raise Refused(f"invoking {token}: {_said(error)}") from error


def _kind(type: str) -> Kind:
    if type not in KINDS:
        raise Refused(f"the sandbox's gcp provider has no resource type {type}")
    return KINDS[type]


def _decoded(value: Any) -> Any:
    """A setting as its JSON says: the engine sends maps and booleans as text."""
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


def _said(error: BaseException) -> str:
    return re.sub(r"\s*\n\s*", "; ", str(error).strip())
