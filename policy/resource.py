"""Resources as policies see them, from the engine's requests, a preview's JSON, or a stack's state."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

SIGNATURE = "4dabf18193072939515e22adb298388d"
"""Key of an object that stands for a value of a special kind. Source: pulumi.runtime.rpc."""
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
CONCEALED = "1b47061264138c4ac30d75fd1eb44270"
HIDDEN = "[secret]"
"""Text that replaces a secret in a preview's JSON."""
UNKNOWNS = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
"""Texts that the engine sends for a value that is unknown before the update, by its type. Source:
https://github.com/pulumi/pulumi/blob/v3.250.0/sdk/go/common/resource/plugin/rpc.go"""


class UnknownValue(Exception):
    """A value that a policy needs, but that is a secret or unknown before the update."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path)


class NotJson(Exception):
    """A text that should be a JSON object and is not."""


class Unseen:
    """A stand-in for an unknown or secret value: policies never see secrets."""


UNSEEN = Unseen()


def plain(value: Any) -> Any:
    """Return a value without the engine's serialisation, with UNSEEN in place of unknown and secret values."""
    if isinstance(value, str):
        return UNSEEN if value in UNKNOWNS or value == HIDDEN else value
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        match given.get(SIGNATURE):
            case None:
                return {key: plain(each) for key, each in given.items()}
            case str(kind) if kind == OUTPUT and not given.get("secret"):
                return plain(given["value"]) if "value" in given else UNSEEN
            case str(kind) if kind in (CONCEALED, OUTPUT):
                return UNSEEN
            case _:
                return dict(given)  # assets, archives and references to resources
    if isinstance(value, Iterable):
        return [plain(each) for each in cast("Iterable[Any]", value)]
    return value


@dataclass(frozen=True)
class View:
    """An object among a resource's properties. Every access raises UnknownValue for an unknown value."""

    values: Mapping[str, Any]
    where: str = ""
    """Its own path, for messages."""

    def at(self, path: str) -> Any:
        """Return the value at a path such as `nodeConfig.spot`; None where there is none."""
        here: Any = self.values
        for step in path.split("."):
            if not isinstance(here, Mapping):
                return None
            here = cast("Mapping[str, Any]", here).get(step)
            if here is UNSEEN:
                raise UnknownValue(self.path(path))
        return here

    def true(self, path: str) -> bool:
        """Return whether the value is true: launch templates have booleans as text."""
        value = self.at(path)
        return value is True or value == "true"

    def number(self, path: str) -> float | None:
        """Return the number at a path, which some properties of Vertex AI hold as text; None for anything else."""
        value = self.at(path)
        if isinstance(value, str) and value.isdecimal():
            return float(value)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, path: str) -> str:
        """Return the text at a path; empty where there is none."""
        value = self.at(path)
        return "" if value is None else str(value)

    def each(self, path: str) -> list["View"]:
        """Return the objects of a list, or the one object, at a path."""
        found = self.at(path)
        if found is None:
            return []
        listed = cast("list[Any]", found) if isinstance(found, list) else [found]
        return [self._view(value, f"{path}[{index}]") for index, value in enumerate(listed)]

    def texts(self, path: str) -> list[str]:
        """Return the texts of a list, or the one text, at a path."""
        found = self.at(path)
        listed = cast("list[Any]", found) if isinstance(found, list) else [] if found is None else [found]
        if UNSEEN in listed:
            raise UnknownValue(self.path(path))
        return [str(value) for value in listed]

    def document(self, path: str) -> "View":
        """Return the JSON text at a path as an object; empty where there is none. Raise NotJson for other text."""
        found = self.at(path)
        if isinstance(found, str):
            try:
                found = plain(json.loads(found))
            except ValueError:
                raise NotJson(self.path(path)) from None
        return self._view(found, path)

    def inside(self, path: str) -> "View":
        """Return the object at a path; an empty one where there is none."""
        return self._view(self.at(path), path)

    def path(self, path: str) -> str:
        """Return a path below this view relative to the resource."""
        return f"{self.where}.{path}" if self.where else path

    def _view(self, value: Any, path: str) -> "View":
        if value is UNSEEN:
            raise UnknownValue(self.path(path))
        return View(cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}, self.path(path))


def batch_containers(definition: View) -> list[View]:
    """Return the containers of a job definition of AWS Batch, with those of its nodes."""
    groups = definition.document("nodeProperties").each("nodeRangeProperties")
    return [definition.document("containerProperties"), *(part for group in groups for part in group.each("container"))]


@dataclass(frozen=True)
class Resource:
    """One resource. `retained` is None where the source does not contain it, as in the engine's requests."""

    type: str
    name: str
    urn: str
    properties: Mapping[str, Any]
    protect: bool = False
    retained: bool | None = None
    provider: Mapping[str, Any] | None = field(default=None, repr=False)
    """Inputs of its provider; None where the source lacks them."""

    @cached_property
    def view(self) -> View:
        return View(self.properties)


def from_preview(document: Mapping[str, Any]) -> list[Resource]:
    """Return the resources after the update from `pulumi preview --json`; with --show-sames, unchanged ones too."""
    steps = cast("list[Mapping[str, Any]]", document.get("steps") or [])
    return _resources(step["newState"] for step in steps if step.get("newState") and step.get("op") != "delete")


def from_state(document: Mapping[str, Any]) -> list[Resource]:
    """Return the resources in the output of `pulumi stack export`."""
    return _resources(cast("Mapping[str, Any]", document.get("deployment") or {}).get("resources") or [])


def _resources(states: Iterable[Mapping[str, Any]]) -> list[Resource]:
    kept = list({state["urn"]: state for state in states if not state.get("delete")}.values())
    inputs = {state["urn"]: plain(state.get("inputs") or {}) for state in kept}
    return [
        Resource(
            type=state["type"],
            name=state["urn"].rpartition("::")[2],
            urn=state["urn"],
            properties=inputs[state["urn"]],
            protect=bool(state.get("protect")),
            retained=bool(state.get("retainOnDelete")),
            provider=inputs.get(str(state.get("provider") or "").rpartition("::")[0]),
        )
        for state in kept
        if not state["type"].startswith("pulumi:") and not state.get("external")  # read, and somebody else's
    ]
