"""Lists of Vertex AI's jobs: late, filtered, the newest first.

Filter: customJobs.list in the discovery document; of its operators what is there, by https://google.aip.dev/160: AND
binds less than OR, a dash or NOT negates. The order, which is not documented, is from memory.
"""

import re
import time
from collections.abc import Callable
from typing import Any

from .errors import Refused
from .world import Call, Collection, Json

Test = Callable[[Json], bool]
_TOKEN = re.compile(r'\s*(\(|\)|AND\b|OR\b|NOT\b|([\w.-]+)\s*(!=|>=|<=|=|>|<|:)\s*("(?:[^"\\]|\\.)*"|[^\s"()]+))')
_FIELDS = {"display_name": "displayName", "create_time": "createTime", "update_time": "updateTime"}
_COMPARED: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_OPERATORS = {"displayName": "= != :", "state": "= !=", "createTime": "= != < <= > >=", "labels": "= != :"}
_PAGE = 100


def listed(call: Call, collection: Collection) -> Json:
    """A page, under the name that the collection has in its answer."""
    member = collection.id.rpartition(".")[2]
    test = parsed(call.query.get("filter", ""))
    found = [item for item in (_seen(call, key) for key in _below(call)) if item is not None and test(item)]
    found.sort(key=lambda item: (item["createTime"], item["name"]), reverse=True)
    size, start = int(call.query.get("pageSize") or 0), int(call.query.get("pageToken") or 0)
    if size < 0:
        raise Refused(400, f"page_size {size} is negative")
    end = start + (min(size, _PAGE) if size else _PAGE)
    mask = [_camel(path) for path in call.query.get("readMask", "").split(",") if path and path != "*"]
    shown = [{name: item[name] for name in mask if name in item} if mask else item for item in found[start:end]]
    answer: Json = {member: shown} if shown else {}
    return answer | ({"nextPageToken": str(end)} if end < len(found) else {})


def _below(call: Call) -> list[str]:
    parts = (re.escape(part) if part != "-" else "[^/]+" for part in call.key.split("/"))
    wanted = re.compile(f"{call.api}/{'/'.join(parts)}/[^/]+")
    return [key for key in call.world.items if wanted.fullmatch(key)]


def _seen(call: Call, key: str) -> Json | None:
    """A resource as lists have it by now; None: they do not have it yet."""
    rows, now = call.world.history.get(key), time.monotonic()
    if rows is None:
        return call.world.items[key]
    known = [index for index, (since, _) in enumerate(rows) if since <= now]
    if not known:
        return None
    del rows[: known[-1]]
    return rows[0][1]


def _camel(path: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), path).split(".")[0]


def parsed(text: str) -> Test:
    """Raises Refused."""
    tokens: list[re.Match[str]] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unparseable(text[at:])
        tokens.append(found)
        at = found.end()
    if not tokens:
        return lambda item: True
    reader = _Reader(tokens)
    test = reader.all_of()
    if reader.left:
        raise _unparseable(text)
    return test


def _unparseable(text: str) -> Refused:
    return Refused(400, f"Invalid filter: {text.strip()}")  # the sandbox's words


class _Reader:
    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self.left = tokens

    def _take(self, word: str) -> bool:
        taken = bool(self.left) and self.left[0][1] == word
        if taken:
            self.left = self.left[1:]
        return taken

    def all_of(self) -> Test:
        tests = [self._any_of()]
        while self._take("AND") or (self.left and self.left[0][1] != ")"):
            tests.append(self._any_of())
        return lambda item: all(test(item) for test in tests)

    def _any_of(self) -> Test:
        tests = [self._one()]
        while self._take("OR"):
            tests.append(self._one())
        return lambda item: any(test(item) for test in tests)

    def _one(self) -> Test:
        if self._take("NOT"):
            test = self._one()
            return lambda item: not test(item)
        if self._take("("):
            test = self.all_of()
            if not self._take(")"):
                raise _unparseable("(")
            return test
        if not self.left or self.left[0][2] is None:
            raise _unparseable(self.left[0][1] if self.left else "")
        token, self.left = self.left[0], self.left[1:]
        return _compared(token[2], token[3], token[4])


def _compared(path: str, operator: str, written: str) -> Test:
    field, _, rest = path.partition(".")
    field = _FIELDS.get(field, field)
    if operator not in _OPERATORS.get(field, "").split() or (field == "labels") != bool(rest):
        raise _unparseable(f"{path}{operator}{written}")
    wanted = re.sub(r"\\(.)", r"\1", written[1:-1]) if written.startswith('"') else written

    def value(item: Json) -> Any:
        return item.get("labels", {}).get(rest) if rest else item.get(field)

    if operator == "!=":
        return lambda item: value(item) != wanted
    if operator == ":":
        pattern = re.compile(".*".join(map(re.escape, wanted.split("*"))))
        return lambda item: (found := value(item)) is not None and pattern.fullmatch(found) is not None
    compare = _COMPARED[operator]
    return lambda item: (found := value(item)) is not None and compare(found, wanted)
