"""No-break spaces, which text copied from a page often contains, read as ordinary ones, except in quotes, where they
may be intended."""

import re
from collections.abc import Iterable
from typing import Any

import yaml

BLANKS = "\u00a0\u2007\u202f"
"""NO-BREAK SPACE, FIGURE SPACE, NARROW NO-BREAK SPACE. Source: https://www.unicode.org/charts/PDF/U2000.pdf"""

_BLANK = re.compile(f"[{BLANKS}]")
_QUOTED = {
    "json": r'"(?:[^"\\]|\\.)*"',
    "shell": r"'[^']*'|\"(?:[^\"\\]|\\.)*\"",
}


def note(lines: Iterable[int]) -> str:
    first, *more = sorted(set(lines))
    also = f" (and in {len(more)} more lines)" if more else ""
    return f"{first}: holds a no-break space{also}, which is read as a space; write spaces"


def in_text(text: str, form: str) -> tuple[str, list[int]]:
    """Return JSON or shell text with ordinary spaces, and the lines of the replaced ones."""
    lines: list[int] = []

    def plain(found: re.Match[str]) -> str:
        if not _BLANK.fullmatch(found[0]):
            return found[0]
        lines.append(text.count("\n", 0, found.start()) + 1)
        return " "

    if not _BLANK.search(text):
        return text, []
    return re.sub(f"{_QUOTED[form]}|[{BLANKS}]", plain, text, flags=re.DOTALL), lines


def in_yaml(text: str) -> tuple[str, list[int]]:
    """Return YAML with ordinary spaces, and the lines of the replaced ones. Text that does not parse with them, so that
    its quotes are unknown, has spaces everywhere."""
    if not _BLANK.search(text):
        return text, []
    plain = _BLANK.sub(" ", text)
    kept: list[tuple[int, int]] = []
    try:
        events: Any = yaml
        for event in events.parse(plain, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.ScalarEvent) and event.style in ("'", '"'):
                kept.append((event.start_mark.index, event.end_mark.index))
    except yaml.YAMLError:
        kept = []
    letters = list(plain)
    for start, end in kept:
        letters[start:end] = text[start:end]
    result = "".join(letters)
    replaced = [i for i, (old, new) in enumerate(zip(text, result, strict=True)) if old != new]
    return result, [text.count("\n", 0, i) + 1 for i in replaced]
