"""Part of Cloud Logging's query language that the sandbox reads: comparisons, AND, OR (which binds closer), groups.
Source: https://docs.cloud.google.com/logging/docs/view/logging-query-language. Everything else in it (NOT, functions,
and text without a field) is refused, never misread."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .errors import ApiError

Json = dict[str, Any]
SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_RANK = {name: number for number, name in enumerate(SEVERITIES)}
_NAME = r'(?:"(?:[^"\\]|\\.)*"|[A-Za-z_][\w-]*)'
_TERM = re.compile(rf'({_NAME}(?:\.{_NAME})*)\s*(!=|>=|<=|=~|!~|=|>|<|:)\s*("(?:[^"\\]|\\.)*"|[^\s"()]+)')
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


@dataclass(frozen=True)
class Filter:
    """Tests of an entry, all of which have to hold; entries before `since` (nanoseconds) never match."""

    tests: tuple[Callable[[Json], bool], ...] = ()
    since: int = 0

    def holds(self, entry: Json) -> bool:
        return all(test(entry) for test in self.tests)


def nanoseconds(text: str) -> int | None:
    """Return the nanoseconds since 1970 of an RFC 3339 time, or None for other text."""
    found = _TIME.fullmatch(text)
    if not found:
        return None
    try:
        whole = datetime.fromisoformat(found[1] + found[3])
    except ValueError:
        return None
    return int(whole.timestamp()) * 10**9 + int((found[2] or "").ljust(9, "0"))


def parse_filter(text: str) -> Filter:
    """Raise ApiError for what the sandbox cannot read."""
    if len(text) > 20_000:  # https://docs.cloud.google.com/logging/quotas
        raise ApiError(400, f"The filter has {len(text)} characters, the maximum is 20000")
    if not text.strip():
        return Filter()
    reader = _Reader(text)
    found = reader.all_of()
    if not reader.over:
        raise reader.unparseable()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._blank()

    @property
    def over(self) -> bool:
        return self._at == len(self._text)

    def unparseable(self) -> ApiError:
        where = self._text[self._at : self._at + 40].strip()
        return ApiError(
            400, f"Unparseable filter at '{where}'. The sandbox knows comparisons, AND, OR and groups only."
        )

    def all_of(self) -> Filter:
        """Read terms that AND joins, or nothing between them."""
        parts = [self._any_of()]
        while not self.over and self._text[self._at] != ")":
            self._take(r"AND\b")
            parts.append(self._any_of())
        tests = tuple(test for part in parts for test in part.tests)
        return Filter(tests, max(part.since for part in parts))

    def _any_of(self) -> Filter:
        parts = [self._one()]
        while self._take(r"OR\b"):
            parts.append(self._one())
        if len(parts) == 1:
            return parts[0]
        return Filter((lambda entry: any(part.holds(entry) for part in parts),), min(part.since for part in parts))

    def _one(self) -> Filter:
        if self._take(r"\("):
            found = self.all_of()
            if not self._take(r"\)"):
                raise self.unparseable()
            return found
        term = _TERM.match(self._text, self._at)
        if term is None:
            raise self.unparseable()
        self._at = term.end()
        if not self.over and not (self._text[self._at].isspace() or self._text[self._at] == ")"):
            raise self.unparseable()
        self._blank()
        return _compared(_parts(term[1]), term[2], term[3])

    def _take(self, pattern: str) -> bool:
        found = re.compile(pattern).match(self._text, self._at)
        if found:
            self._at = found.end()
            self._blank()
        return found is not None

    def _blank(self) -> None:
        while not self.over and self._text[self._at].isspace():
            self._at += 1


def _compared(path: list[str], operator: str, written: str) -> Filter:
    value = _plain(written)
    if path != ["timestamp"]:
        return Filter((_test(path, operator, value),))
    moment = nanoseconds(value)
    if moment is None or operator not in _COMPARED:
        raise ApiError(400, f"Unparseable filter: timestamp {operator} {written}")
    return Filter((_time(_COMPARED[operator], moment),), moment if operator in (">", ">=", "=") else 0)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _parts(path: str) -> list[str]:
    return [_plain(part) for part in re.findall(_NAME, path)]


def _time(compare: Callable[[Any, Any], bool], moment: int) -> Callable[[Json], bool]:
    return lambda entry: compare(entry["__ns"], moment)


def _test(path: list[str], operator: str, value: str) -> Callable[[Json], bool]:
    """Return a test of one field. A missing field is equal to nothing, and different from everything."""
    if path == ["severity"]:
        if value not in _RANK or operator not in (*_COMPARED, "!="):
            raise ApiError(400, f"Unparseable filter: severity {operator} {value}")
        rank, compare = _RANK[value], _COMPARED.get(operator, lambda a, b: a != b)
        return lambda entry: compare(_RANK[entry.get("severity", "DEFAULT")], rank)
    if operator in ("=~", "!~"):
        try:
            wanted = re.compile(value)
        except re.error as error:
            raise ApiError(400, f"Unparseable filter: {value}: {error}") from None
        return lambda entry: (wanted.search(_text(entry, path) or "") is not None) == (operator == "=~")
    if operator == ":":
        folded = value.lower()
        return lambda entry: (found := _text(entry, path)) is not None and (value == "*" or folded in found.lower())
    if operator == "!=":
        return lambda entry: _text(entry, path) != value
    compare = _COMPARED[operator]
    return lambda entry: (found := _text(entry, path)) is not None and compare(found, value)


def _text(entry: Json, path: list[str]) -> str | None:
    value: Any = entry
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if value is None or isinstance(value, str) else json.dumps(value)
