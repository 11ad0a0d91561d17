"""What became of each field of a document that is imported: every one of them is in exactly one class."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as made
from typing import Any, Literal, cast

from accel.diagnostics import messages
from accel.diagnostics.findings import Finding

Kind = Literal["kept", "changed", "decision", "refused"]
KINDS: tuple[Kind, ...] = ("kept", "changed", "decision", "refused")
"""From the lightest to the gravest: a field of which several things are said is in the gravest class."""

DECISIONS = (
    *("gcp.legacy.decision", "ai-platform.tier.size", "ai-platform.k80.none", "ai-platform.runtime.ended"),
    *("ai-platform.runtime.unknown", "ai-platform.runtime.python", "ai-platform.program.local-package"),
    *("ai-platform.tuning", "ai-platform.tuning.resume", "import.variable", "gcp.gpu.small-a3"),
)
"""Rules whose findings are for the author to settle."""

HIDDEN = (
    *("args", "command", "containerCommand", "containerArgs", "commands", "env", "variables", "text", "--args"),
    "password",
)
"""Ends of names whose values are not shown: people put secrets there."""


@dataclass
class Entry:
    """A field and its class. `new` is what stands in its place, None for nothing; `open`: of a decision, whether the
    output lacks what has to be decided."""

    field: str
    kind: Kind = "kept"
    old: Any = None
    new: Any = None
    given: bool = True
    open: bool = False
    why: list[str] = made(default_factory=list[str])
    rules: list[str] = made(default_factory=list[str])

    @property
    def text(self) -> str:
        """One line without the class."""
        old = value_text(self.field, self.old) if self.given else "(not given)"
        arrow = ""
        if self.kind == "kept":
            arrow = f" -> {self.new}" if self.new else ""
        elif self.kind == "changed" or (self.kind == "decision" and not self.open):
            arrow = f" -> {'left out' if self.new is None else value_text(self.field, self.new)}"
        said = f": {'; '.join(self.why)}" if self.why else ""
        rules = f" [{', '.join(self.rules)}]" if self.rules else ""
        return f"{self.field} {old}{arrow}{said}{rules}"


class Report:
    """Entries by field, in the order of the document. A field that nobody spoke of is refused by close()."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """`fields`: the names of the leaves of the document, as its author wrote them, and their values."""
        self.fields = dict(fields)
        self._entries: dict[str, Entry] = {}

    @property
    def entries(self) -> list[Entry]:
        """Those of the document in its order, then what it did not give."""
        given = [self._entries[name] for name in self.fields if name in self._entries]
        return [*given, *(entry for name, entry in self._entries.items() if name not in self.fields)]

    def of(self, *kinds: Kind) -> list[Entry]:
        """The entries of these classes."""
        return [entry for entry in self.entries if entry.kind in kinds]

    @property
    def stops(self) -> list[Entry]:
        """What there is no output with: refusals, and decisions that are open."""
        return [entry for entry in self.entries if entry.kind == "refused" or entry.open]

    def keep(self, name: str, to: str = "", why: str = "") -> None:
        """The value is in the output as it is; `to`: where, if it has another name there."""
        self._say(name, "kept", to, why, "")

    def changed(self, name: str, new: Any, why: str, rule: str = "") -> None:
        """Another value is in the output; None: none."""
        self._say(name, "changed", new, why, rule)

    def decide(self, name: str, why: str, rule: str = "", *, new: Any = None, is_open: bool = True) -> None:
        """Its author has to choose; where it is not open, the output has `new` until then."""
        self._say(name, "decision", new, why, rule)
        self._entries[name].open |= is_open

    def refuse(self, name: str, why: str, rule: str = "") -> None:
        """There is no output with this value."""
        self._say(name, "refused", None, why, rule)

    def note(self, name: str, why: str, rule: str = "") -> None:
        """Says something of a field without changing its class."""
        entry = self._entry(name)
        entry.why += [why] if why not in entry.why else []
        entry.rules += [rule] if rule and rule not in entry.rules else []

    def findings(self, name: str, found: Iterable[Finding]) -> bool:
        """What rules say of a value that is kept otherwise; whether it may stand."""
        stands = True
        for finding in found:
            if finding.rule in DECISIONS:
                is_open = finding.severity == "reject" and finding.replacement is None
                stands = stands and not is_open
                self.decide(name, finding.text, finding.rule, new=finding.replacement, is_open=is_open)
            elif finding.severity == "reject":
                stands = False
                self.refuse(name, finding.text, finding.rule)
            elif finding.severity == "translate":
                self.changed(name, finding.replacement, finding.text, finding.rule)
            else:
                self.note(name, finding.text, finding.rule)
        return stands

    def close(self, known: Iterable[str] = ()) -> None:
        """Refuses each field that was not spoken of. `known`: names of fields, to find the one that was meant."""
        known = list(known)
        for name in self.fields:
            if name not in self._entries:
                last = name.rpartition(".")[2].partition("[")[0]
                self.refuse(
                    name, f"is no field that is known here{messages.did_you_mean(last, known) if known else ''}"
                )

    def as_json(self) -> dict[str, Any]:
        """For machines: a list a class; values that may be secrets are left out."""
        found: dict[str, Any] = {kind: [] for kind in KINDS}
        for entry in self.entries:
            line: dict[str, Any] = {"field": entry.field}
            if entry.given:
                line["value"] = None if _hidden(entry.field) else entry.old
            if entry.kind == "kept":
                line |= {"to": entry.new} if entry.new else {}
            elif entry.kind != "refused":
                line["new"] = None if _hidden(entry.field) else entry.new
            if entry.kind == "decision":
                line["open"] = entry.open
            found[entry.kind].append(line | {"why": entry.why, "rules": entry.rules})
        return found

    def _entry(self, name: str) -> Entry:
        if name not in self._entries:
            self._entries[name] = Entry(name, old=self.fields.get(name), given=name in self.fields)
        return self._entries[name]

    def _say(self, name: str, kind: Kind, new: Any, why: str, rule: str) -> None:
        entry = self._entry(name)
        if KINDS.index(kind) > KINDS.index(entry.kind) or (kind == entry.kind and new is not None):
            entry.kind, entry.new = kind, new
        if why or rule:
            self.note(name, why, rule)


def value_text(name: str, value: Any) -> str:
    """A value as the report shows it."""
    if isinstance(value, list) and not _hidden(name):
        items = cast(list[Any], value)
        return "[" + ", ".join(messages.display(each) for each in items[:4]) + (", ..." if len(items) > 4 else "") + "]"
    if isinstance(value, str) and _PLACE.match(value) and "@" not in value and not _hidden(name):
        return repr(value if len(value) <= _PLACE_MAX else f"{value[: _PLACE_MAX - 3]}...")
    return messages.display(value, hidden=_hidden(name))


_PLACE = re.compile(r"(gs|nfs)://|projects/|[\w.-]+\.(pkg\.dev|io)/")
"""Names of things in a cloud, which are long and no secret."""
_PLACE_MAX = 160


def _hidden(name: str) -> bool:
    parts = name.replace("[", ".").split(".")
    return any(part in HIDDEN for part in parts)
