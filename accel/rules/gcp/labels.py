"""Labels of Google Cloud, which allow less than AWS tags."""

import re
from collections.abc import Mapping

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

SPELLING = rule("gcp.label.spelling")
CLASH = rule("gcp.label.clash")
COUNT = rule("gcp.label.count")

KEY = rule("gcp.label.key")

MOST = 64
_LENGTH = 63


def value(text: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", text.lower())[:_LENGTH]


def key(text: str) -> str:
    spelt = re.sub(r"[^a-z0-9_-]", "-", text.lower())
    return (spelt if re.match(r"[a-z]", spelt) else f"x{spelt}")[:_LENGTH]


def to_gcp(labels: Mapping[str, str]) -> dict[str, str]:
    """Convert labels to distinct keys, if `labels` below finds no clash."""
    return {key(name): value(text) for name, text in labels.items()}


def labels(given: Mapping[str, str], *, own: int = 0, field: str = "labels") -> list[Finding]:
    """Check labels for both clouds. Each resource gets `own` more."""
    found: list[Finding] = []
    first: dict[str, str] = {}
    for name, text in given.items():
        spelt = key(name)
        if not name:
            found.append(KEY.finding(field, f'has no key for "{text}"', "write one"))
        elif spelt in first:
            message = f'"{name}" and "{first[spelt]}" are both {spelt} on Google Cloud'
            found.append(CLASH.finding(field, message, "rename one of them"))
        elif (spelt, value(text)) != (name, text):
            message = f'"{name}: {text}" is "{spelt}: {value(text)}" on Google Cloud'
            found.append(SPELLING.finding(field, message, "write it so, or expect it so in bills and filters"))
        first.setdefault(spelt, name)
    if len(given) + own > MOST:
        message = f"are {len(given)}, with {own} of the stack's own more than {MOST}"
        found.append(COUNT.finding(field, message, "leave some out"))
    return found
