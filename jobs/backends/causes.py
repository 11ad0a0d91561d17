"""What `jobs explain` may name, and the page that lists it."""

from collections.abc import Mapping
from typing import NamedTuple


class Cause(NamedTuple):
    """What it means, and a page that says so."""

    title: str
    source: str


def table(causes: Mapping[str, Cause]) -> str:
    """The causes as a table in Markdown."""
    rows = "".join(f"| `{name}` | {cause.title} | <{cause.source}> |\n" for name, cause in causes.items())
    return f"| cause | what it means | source |\n| --- | --- | --- |\n{rows}"
