"""Text of a page. Everything that comes from outside is escaped here."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape as _escape

from accel.console.terminal_text import lasting, plain
from accel.diagnostics.redaction import redact

NOT_KNOWN = "not known"
SHOWN_MAX = 2_000
"""Most characters of one text."""
_CODE = re.compile("`([^`]+)`")


def text(value: object) -> str:
    """Escape a value, on one line, redacted and cut to SHOWN_MAX characters."""
    shown = redact(plain(str(value)))
    return _escape(shown if len(shown) <= SHOWN_MAX else shown[:SHOWN_MAX] + "…")


def prose(value: object) -> str:
    """Escape a value as `text`, with code elements for text between backticks."""
    return _CODE.sub(r"<code>\1</code>", text(value))


def tag(name: str, inside: str = "", attributes: Mapping[str, object] | None = None) -> str:
    """Return an element; `inside` is HTML, attributes are not. In their names, a last _ is dropped, others become -."""
    return f"<{name}{attrs(attributes or {})}>{inside}</{name}>"


def attrs(values: Mapping[str, object]) -> str:
    """Return attributes, each with a space before it."""
    return "".join(f' {name.rstrip("_").replace("_", "-")}="{text(value)}"' for name, value in values.items())


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Collection[str] = ()) -> str:
    """Return a table of texts, with a last column that may be long, and columns of `numbers` aligned right."""
    kinds: list[dict[str, object]] = [{"class": "n"} if title in numbers else {} for title in head]
    if head[-1] not in numbers:
        kinds[-1] = {"class": "long"}
    titles = "".join(tag("th", text(title), {"scope": "col", **kind}) for title, kind in zip(head, kinds, strict=True))
    body = "".join(
        tag("tr", "".join(tag("td", text(cell), kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows
    )
    return tag("div", f"<table><thead>{tag('tr', titles)}</thead><tbody>{body}</tbody></table>", {"class": "scroll"})


def facts(rows: Iterable[tuple[str, object]]) -> str:
    return tag("dl", "".join(tag("div", tag("dt", text(name)) + tag("dd", prose(value))) for name, value in rows))


def bullets(rows: Iterable[str]) -> str:
    return tag("ul", "".join(tag("li", prose(row)) for row in rows))


def utc_text(at: datetime | None) -> str:
    return NOT_KNOWN if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(at: datetime | None, day: datetime | None) -> str:
    if at is None:
        return NOT_KNOWN
    here = at.astimezone(UTC)
    same = day is not None and day.astimezone(UTC).date() == here.date()
    return f"{here:%H:%M:%S}" if same else f"{here:%Y-%m-%d %H:%M:%S}"


def span(start: datetime | None, end: datetime | None) -> str:
    """Return the length of a time span in words."""
    return NOT_KNOWN if start is None or end is None else lasting((end - start).total_seconds())
