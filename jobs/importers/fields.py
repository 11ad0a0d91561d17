"""Typed access to the fields of an imported document. Values of the wrong type are refused in the report."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..model.job import NAME_MAX
from .reading import leaves
from .report import Report, value_text


class _Values(dict[str, Any]):
    """Values by path, indexed by the beginnings of their paths: a document may have fifty thousand of them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._order: dict[str, int] | None = None
        self._sorted: list[str] = []

    def below(self, path: str, signs: str) -> list[str]:
        """Return the paths that begin with `path` and one of the signs, in document order."""
        if self._order is None:
            self._order = {each: number for number, each in enumerate(self)}
            self._sorted = sorted(self)
        found: list[str] = []
        for sign in signs:
            first = bisect_left(self._sorted, f"{path}{sign}")
            found += self._sorted[first : bisect_left(self._sorted, f"{path}{chr(ord(sign) + 1)}")]
        return sorted(found, key=self._order.__getitem__)

    def __setitem__(self, path: str, value: Any) -> None:
        if path not in self:
            self._order = None
        super().__setitem__(path, value)

    def __delitem__(self, path: str) -> None:
        self._order = None
        super().__delitem__(path)

    def pop(self, path: str, *default: Any) -> Any:
        self._order = None
        return super().pop(path, *default)


class RequestFields:
    """Values by path (`trainingInput.masterType`), each with the name by which its author knows it."""

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        under: str = "",
        within: str = "",
        beside: Mapping[str, Any] | None = None,
        nulls: tuple[str, ...] = (),
    ) -> None:
        """Read the document. `under`: beginning of the paths, which the document leaves out; `within`: beginning of the
        document's names, which the paths leave out; `beside`: fields outside it, such as flags, for the report;
        `nulls`: beginnings of paths where null is a value."""
        found = dict(leaves(document)) if document else {}
        self.names: dict[str, str] = {f"{under}{name.removeprefix(within)}": name for name in found}
        self.values: dict[str, Any] = _Values({path: found[name] for path, name in self.names.items()})
        self.report = Report({**found, **(beside or {})}, getattr(document, "places", None))
        empty = [path for path, value in self.values.items() if value is None or value in ([], {})]
        for path in [path for path in empty if self.values[path] is not None or not path.startswith(nulls)]:
            self.report.keep(self.name(path), why="is empty")
            del self.values[path]

    def name(self, path: str) -> str:
        """Return the author's name for a path, or the path itself if it is not given."""
        return self.names.get(path, path)

    def put(self, path: str, name: str, value: Any) -> None:
        """Put a value from elsewhere, such as a flag, in place of the document's."""
        self.values[path] = value
        self.names[path] = name

    def has(self, path: str) -> bool:
        return bool(self.paths(path))

    def paths(self, path: str) -> list[str]:
        """Return the paths of the values at a path and below it, in document order."""
        return [*([path] if path in self.values else []), *self._below(path, ".[")]

    def _below(self, path: str, signs: str) -> list[str]:
        return cast(_Values, self.values).below(path, signs)

    def text(self, path: str) -> str | None:
        """Return the text at a path; a number is returned as it is written."""
        value = self._value(path)
        if value is None or isinstance(value, str):
            return value
        return self._wrong(path, "text")

    def whole(self, path: str, least: int = 0) -> int | None:
        """Return the integer at a path, written as a number or as text. Refuse one below `least`."""
        value = self._value(path)
        if value is None:
            return None
        if not isinstance(value, bool) and re.fullmatch(r"\d{1,18}", str(value)) and int(value) >= least:
            return int(value)
        return self._wrong(path, f"an integer from {least}")

    def number(self, path: str) -> float | None:
        value = self._value(path)
        if value is None:
            return None
        if isinstance(value, str) and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", value):
            return float(value)
        return self._wrong(path, "a number")

    def flag(self, path: str) -> bool | None:
        value = self._value(path)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return self._wrong(path, "true or false")

    def texts(self, path: str) -> list[str]:
        value = self.values.get(path)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(each, str) for each in cast(list[Any], value)):
            return cast(list[str], value)
        self._wrong(path, "a list of texts")
        return []

    def mapping(self, path: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in self._below(path, "."):
            value = self.values[each]
            if isinstance(value, str):
                found[each.removeprefix(f"{path}.")] = value
            else:
                self._wrong(each, "text")
        if path in self.values:
            self._wrong(path, "a mapping of texts")
        return found

    def seconds(self, path: str) -> int | None:
        """Return the duration at a path (`7200s` in the API) in whole seconds, rounded up."""
        value = self._value(path)
        if value is None:
            return None
        found = re.fullmatch(r"(\d{1,12})(\.\d{1,9})?s", value) if isinstance(value, str) else None
        if found is None or not (seconds := int(found[1]) + bool(found[2] and float(found[2]))):
            return self._wrong(path, "seconds such as 7200s")
        if found[2] and float(found[2]):
            self.report.changed(self.name(path), f"{seconds}s", "is rounded up to whole seconds")
        return seconds

    def items(self, path: str) -> list[str]:
        """Return the paths of the items of a list: `pools[0]`, `pools[1]`, ..."""
        found: dict[str, None] = {}
        for each in self._below(path, "["):
            if item := re.match(r"\[\d+\]", each[len(path) :]):
                found[f"{path}{item[0]}"] = None
        return list(found)

    def keep(self, path: str, to: str = "", why: str = "") -> None:
        for each in self.paths(path):
            self.report.keep(self.name(each), to, why)

    def keep_value(self, path: str, to: str = "", why: str = "") -> None:
        """Keep the value at a path alone. Those below were not read if the field should not be an object."""
        if path in self.values:
            self.report.keep(self.name(path), to, why)

    def leave_value(self, path: str, why: str) -> None:
        if path in self.values:
            self.report.changed(self.name(path), None, why)

    def refuse_all(self, tables: Mapping[str, str]) -> None:
        """Refuse what there is at each of the paths, for its reason."""
        for table, why in tables.items():
            for path in self.paths(table):
                self.report.refuse(self.name(path), why)

    def decide_unless_off(self, table: str, why: str) -> None:
        """Let the user decide on what there is at a path, unless it is switched off."""
        for path in self.paths(table):
            if self.values[path] is False:
                self.report.keep(self.name(path), why="is so without it")
            else:
                self.report.decide(self.name(path), why, is_open=False)

    def left_out(self, path: str, why: str, rule: str = "") -> None:
        for each in self.paths(path):
            self.report.changed(self.name(each), None, why, rule)

    def is_stopped(self, path: str) -> bool:
        """Return whether the value at a path is refused, or is one to decide on first, such as an unknown variable."""
        return self.report.stopped_by(self.name(path))

    def _value(self, path: str) -> Any:
        """Treat an empty text as no value."""
        value = self.values.get(path)
        if value == "":
            self.report.keep(self.name(path), why="is empty")
            return None
        return value

    def _wrong(self, path: str, expected: str) -> None:
        name = self.name(path)
        if not self.is_stopped(path):
            self.report.refuse(name, f"must be {expected}, is {value_text(name, self.values[path])}")


def choice(value: Any, names: Sequence[str]) -> Any:
    """Return the name of a choice that a client library wrote as its number, and any other value unchanged. `names`: in
    the order of their numbers, empty for a number that none has."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,2}", value) and int(value) < len(names):
        return names[int(value)] or value
    return value


def job_name(given: RequestFields, path: str) -> str:
    """Return the name at a path as one that a job file accepts. Report a change of it."""
    name = given.text(path) or "imported"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:NAME_MAX] or "imported"
    if path in given.names:
        given.keep(path, "name")
    if plain != name or not given.has(path):
        why = f"a job's name has at most {NAME_MAX} letters, digits, - and _" if path in given.names else "is missing"
        given.report.changed(given.name(path), plain, why)
    return plain
