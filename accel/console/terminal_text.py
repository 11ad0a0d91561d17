"""Text for a terminal, without control sequences and with its display width, that of its East Asian Width
(https://www.unicode.org/reports/tr11/): W and F take two columns, combining marks none."""

import re
from dataclasses import dataclass
from datetime import timedelta
from unicodedata import category, east_asian_width

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "dim": 2, "bold": 1}
_SOURCES = ("cyan", "magenta", "yellow", "green", "blue", "red")
_PARTS = re.compile(
    r"(\x1b\[(?:(?:0|1|2|3|4|7|2[2-9]|3[0-79]|4[0-79]|9[0-7]|10[0-7]|[34]8;5;[0-9]{1,3}"
    r"|[34]8;2;[0-9]{1,3};[0-9]{1,3};[0-9]{1,3})(?:;(?=[0-9])|(?=m))){0,8}m)"
)
"""Sequences that set a colour or a weight only; those that hide text or blink are not included. ECMA-48, 8.3.117."""
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,8}[@-~]|[\]PX^_][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)?|[ -/]{0,8}[0-~])?"
)
"""A control sequence, or one that carries a text (a title, a link), to its end. Source: ECMA-48, 5.4 and 5.6."""
RESET = "\x1b[0m"


@dataclass(frozen=True)
class Style:
    """Capabilities of the terminal."""

    colour: bool = False
    unicode: bool = True

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}{RESET}" if self.colour and colour and text else text

    def clean(self, text: str) -> str:
        """Return one line in the terminal's character set, without control characters."""
        shown = plain(text)
        return shown if self.unicode else shown.encode("ascii", "replace").decode()

    @property
    def ellipsis(self) -> str:
        return "…" if self.unicode else "~"


def plain(text: str) -> str:
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)


def colour_of(number: int | None) -> str:
    return "" if number is None else _SOURCES[number % len(_SOURCES)]


def job_text(text: str, style: Style) -> str:
    """Keep a job's colours if the terminal has colours, and remove all other control sequences. Of text overwritten
    with carriage returns, keep the last."""
    line = next((part for part in reversed(text.split("\r")) if part), "")
    if line.isprintable():
        return line
    if not style.colour:
        return _shown(_CONTROL.sub("", line))
    parts = enumerate(_PARTS.split(line))
    kept = "".join(part if place % 2 else _shown(_CONTROL.sub("", part)) for place, part in parts)
    return kept + RESET if "\x1b" in kept else kept


def _shown(text: str) -> str:
    return plain(text.expandtabs(8))


def width(text: str) -> int:
    """Count terminal columns."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def clip(text: str, columns: int, style: Style) -> str:
    if columns <= 0:
        return ""
    if width(text) <= columns:
        return text
    kept, used = "", width(style.ellipsis)
    for character in text:
        used += _columns(character)
        if used > columns:
            break
        kept += character
    return kept + style.ellipsis


def fit(text: str, columns: int, style: Style, *, right: bool = False) -> str:
    """Shorten or pad the text to exactly a width."""
    cut = clip(text, columns, style)
    space = " " * max(0, columns - width(cut))
    return space + cut if right else cut + space


def bar(fraction: float, columns: int, style: Style) -> str:
    full, empty = ("█", "░") if style.unicode else ("#", "-")
    done = int(min(max(fraction, 0.0), 1.0) * columns)
    return full * done + empty * (columns - done)


def number(value: float) -> str:
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def lasting(seconds: float) -> str:
    """Format as 42s, 3m10s, 2h05m, 3d04h."""
    left = max(0, int(min(seconds, timedelta.max.total_seconds())))
    for word, length, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if left >= length:
            return f"{left // length}{word}{left % length // part:02}{smaller}"
    return f"{left}s"
