"""Labels of Google Cloud, which allow less than AWS tags."""

import re
from collections.abc import Mapping

from accel.diagnostics.findings import Finding, Rule

_PAGE = "https://docs.cloud.google.com/compute/docs/labeling-resources#requirements"

SPELLING = Rule(
    "gcp.label.spelling",
    "warn",
    "Keys and values of labels are lower case letters, digits, _ and -, 63 at most; a key begins with a letter",
    _PAGE,
)
CLASH = Rule("gcp.label.clash", "reject", "Two labels whose keys become the same cannot both be kept", _PAGE)
COUNT = Rule("gcp.label.count", "reject", "A resource has at most 64 labels", _PAGE)

KEY = Rule("gcp.label.key", "reject", "A key has at least one character", _PAGE)

RULES = (SPELLING, CLASH, COUNT, KEY)

MOST = 64
_LENGTH = 63


def value(text: str) -> str:
    """Convert a text to a label value: lower case, other characters as -, the first 63 of them."""
    return re.sub(r"[^a-z0-9_-]", "-", text.lower())[:_LENGTH]


def key(text: str) -> str:
    """Convert a text to a label key: as `value`, with a leading letter added if there is none."""
    spelt = re.sub(r"[^a-z0-9_-]", "-", text.lower())
    return (spelt if re.match(r"[a-z]", spelt) else f"x{spelt}")[:_LENGTH]


def to_gcp(labels: Mapping[str, str]) -> dict[str, str]:
    """Convert labels to Google Cloud's form. The keys are distinct if `labels` below finds no clash."""
    return {key(name): value(text) for name, text in labels.items()}


def labels(given: Mapping[str, str], *, own: int = 0, field: str = "labels") -> list[Finding]:
    """Check labels as a person wrote them, for both clouds. Each resource gets `own` more."""
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
