"""Values of Kubernetes manifests: quantities, machine types, and text that holds $(NAME). Sources:
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ and
https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/"""

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from accel.catalog import UnknownName
from accel.catalog.machines import NoMachine, machine
from accel.json_values import entries, object_at

from .fields import RequestFields

_SUFFIXES = {
    **{"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "m": -3, "u": -6, "n": -9},
}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?(?:\d{1,18}\.?\d{0,9}|\.\d{1,9}))(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[kMGTPEmun])?)")


def quantity(value: Any) -> Decimal | None:
    """Return the number that a quantity such as `500m`, `16Gi`, `2` or `1e3` denotes, or None if it is none."""
    found = _QUANTITY.fullmatch(str(value).strip()) if isinstance(value, str | int) else None
    if not found or isinstance(value, bool):
        return None
    try:
        number = Decimal(f"{found[1]}{found[2] or ''}")
    except InvalidOperation:
        return None
    suffix = found[3] or ""
    if suffix in _BINARY:
        return number * 2 ** _BINARY[suffix]
    return number.scaleb(_SUFFIXES[suffix])


def ceiling(number: Decimal) -> int:
    return int(number.to_integral_value(rounding="ROUND_CEILING"))


def gpus_of_machine(name: str) -> tuple[str, int] | None:
    """Return a machine type's accelerator, empty for none, and its count; None for an unknown type of AWS or Google."""
    for cloud in ("aws", "gcp"):
        try:
            found = machine(cloud, name)
        except (UnknownName, NoMachine, LookupError):
            continue
        return found.accelerator, found.whole_accelerators
    return None


def at(document: Any, path: str) -> Any:
    """Return the value at a path such as `spec.containers[0]`, or None. Names in the path have no dots."""
    value = document
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        if part.startswith("["):
            items, number = entries(value), int(part[1:-1])
            value = items[number] if number < len(items) else None
        else:
            value = object_at(value).get(part)
    return value


_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")


def expansion(text: str, env: Mapping[str, str]) -> str:
    """Return the text with $(NAME) replaced for the variables in `env`, as Kubernetes does; other references stay."""
    return _REFERENCE.sub(lambda found: "$" if found[0] == "$$" else env.get(found[1], found[0]), text)


def references(text: str) -> list[str]:
    """Return the names of the variables that a text refers to as $(NAME)."""
    return [name for name in _REFERENCE.findall(text) if name]


def as_shell(words: Sequence[str], names: Collection[str], plain: Callable[[str], str] = str) -> str:
    """Return a shell command line, with $(NAME) for `names` left to the shell. `plain` makes the other text."""
    out: list[str] = []
    for word in words:
        at_, parts = 0, list[str]()
        for found in _REFERENCE.finditer(word):
            if found[1] in names:
                before = word[at_ : found.start()]
                parts += [shlex.quote(plain(before)) if before else "", f'"${{{found[1]}}}"']
                at_ = found.end()
        rest = word[at_:]
        parts += [shlex.quote(plain(rest))] if rest or not parts else []
        out.append("".join(parts))
    return " ".join(out)


class ManifestFields(RequestFields):
    """Fields of a manifest. keep() settles only the value at the path itself: those below were not read with it."""

    def keep(self, path: str, to: str = "", why: str = "") -> None:
        self.keep_value(path, to, why)

    def settle(self, path: str, why: str, new: str | None = None) -> None:
        """Leave out the values at a path and below, and let the author decide whether that will do."""
        for each in self.paths(path):
            self.report.decide(self.name(each), why, new=new, is_open=False)

    def refuse(self, path: str, why: str) -> None:
        """Refuse all values at a path and below, or the path itself if there are none, as Report.refuse does."""
        for each in self.paths(path) or [path]:
            self.report.refuse(self.name(each), why)

    def ask(self, path: str, why: str) -> None:
        """Report an open decision on all values at a path and below, or on the path itself if there are none."""
        for each in self.paths(path) or [path]:
            self.report.decide(self.name(each), why)

    def say(self, base: str, table: Mapping[str, tuple[str, str]]) -> None:
        """Report each value below a path that nothing was reported about yet, as `table` says for the beginning of its
        path: `changed`, `decision`, `open` (a decision that is open) or `refused`, and why."""
        for path in self.paths(base):
            name = self.name(path)
            if self.report.is_settled(name):
                continue
            own = re.sub(r"\[\d+\]", "", path[len(base) :].lstrip("."))
            parts = own.split(".")
            for count in range(len(parts), 0, -1):
                if said := table.get(".".join(parts[:count])):
                    kind, why = said
                    if kind == "changed":
                        self.report.changed(name, None, why)
                    elif kind == "decision":
                        self.report.decide(name, why, is_open=False)
                    elif kind == "open":
                        self.report.decide(name, why)
                    else:
                        self.report.refuse(name, why)
                    break
