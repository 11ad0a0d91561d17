"""Removal of secrets from a report: passwords, tokens, and values of variables with such names."""

import re
from collections.abc import Iterable
from typing import Any, cast

from accel.diagnostics.redaction import HIDDEN, SECRET_NAME, hide_secrets
from accel.rules.jobs.placeholders import is_placeholder

from .report import Report

_LEAST = 4
"""Length of the shortest value that is hidden; shorter ones are parts of too many words."""


def hide(report: Report, secrets: Iterable[str] = ()) -> None:
    """Remove secrets from the report's values and messages. `secrets`: values that are known to be secret."""
    found = {text for text in secrets if len(text) >= _LEAST}
    found |= {text for name, text in report.fields.items() if _is_secret(name) and _long(text)}
    values = sorted((text for text in found if not is_placeholder(text)), key=len, reverse=True)
    for entry in report.entries:
        whole = _is_secret(entry.field)
        entry.old = HIDDEN if whole and entry.old else _without(entry.old, values)
        entry.new = HIDDEN if whole and entry.new else _without(entry.new, values)
        entry.why = [cast(str, _without(each, values)) for each in entry.why]


def _is_secret(name: str) -> bool:
    if name.startswith("file_mounts."):  # of a path, whose source is one too
        return False
    own = re.sub(r"\[\d+\]$", "", name).rpartition(".")[2]
    return (
        own != "secretName" and SECRET_NAME.search(own) is not None
    )  # of a Kubernetes Secret, which is no value of it


def _long(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= _LEAST


def _without(value: Any, secrets: list[str]) -> Any:
    return hide_secrets(_replaced(value, secrets))


def _replaced(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, list):
        return [_replaced(each, secrets) for each in cast("list[Any]", value)]
    if isinstance(value, str):
        for each in secrets:
            value = value.replace(each, HIDDEN)
    return cast(Any, value)
