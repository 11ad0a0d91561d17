"""Command, image and code of a job, read from the body of the request that would run it again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..model import sweep_shell
from .code import shipping

_IMAGE = ("image", "imageUri")
_WORDS = ("entrypoint", "command", "commands", "args")
"""Keys of commands in the APIs of AWS Batch, Kubernetes, Google Batch and Vertex AI, in the order in which they run."""
_ESCAPED = ("gke", "vertex")
"""Kinds whose requests write $ as $$."""


@dataclass(frozen=True)
class RequestSummary:
    """The first container that runs the user's words. None or empty: the request leaves it to its definition."""

    image: str | None
    command: tuple[str, ...]
    code: str | None
    """SHA-256 digest of the code sent with the job."""


def request_summary(kind: str, body: Mapping[str, Any]) -> RequestSummary:
    # On AWS Batch, overrides of the submit take precedence over the definition.
    found = list(_containers([body.get("submit"), {name: each for name, each in body.items() if name != "submit"}]))
    image = next((value for each in found if (value := _text(each, _IMAGE))), None)
    words = next((value for each in found if (value := _words(each))), list[str]())
    if kind in _ESCAPED:
        words = [word.replace("$$", "$") for word in words]
    code, command = shipping.unwrap(sweep_shell.unwrap(words))
    return RequestSummary(image, tuple(command), code)


def _containers(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        if _text(inside, _IMAGE) or _words(inside):
            yield inside
        for name, each in inside.items():
            if name != "initContainers":
                yield from _containers(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _containers(each)


def _text(container: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := container.get(name), str) and value), None)


def _words(container: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name in _WORDS:
        value = container.get(name)
        if isinstance(value, list) and all(isinstance(word, str) for word in cast("list[Any]", value)):
            found += cast("list[str]", value)
        elif isinstance(value, str) and name == "entrypoint":
            found.append(value)
    return found
