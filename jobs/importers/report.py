"""Report on the fields of an imported document: what became of each. Every field is in exactly one class."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as made
from functools import cache
from typing import Any, Literal, cast

from accel.diagnostics import messages, redaction
from accel.diagnostics.findings import Finding
from accel.rules.jobs import imports, placeholders

from .names import suggestion

Kind = Literal["kept", "changed", "decision", "refused"]
KINDS: tuple[Kind, ...] = ("kept", "changed", "decision", "refused")
"""Classes from the lightest to the gravest. A field with several remarks is in the gravest of their classes."""

DECISIONS = (
    *("gcp.legacy.decision", "ai-platform.tier.size", "ai-platform.k80.none", "ai-platform.runtime.ended"),
    *("ai-platform.runtime.unknown", "ai-platform.runtime.python", "ai-platform.program.local-package"),
    *("ai-platform.tuning", "ai-platform.tuning.resume", imports.VARIABLE.id, "gcp.gpu.small-a3"),
)
"""Rules whose findings the author has to settle."""
_OF_UNKNOWN = (imports.VARIABLE.id, placeholders.VALUE.id)
"""Rules that judge a field although it holds a variable whose value is not known; the first says so."""

HIDDEN = (
    *("args", "command", "containerCommand", "containerArgs", "commands", "env", "variables", "text", "--args"),
    *("environment", "environments", "parameters", "after the command", "password"),
    *("envs", "secrets", "setup", "run", "registry_auth"),
)
"""Parts of names whose values are not shown, because people put secrets there."""

_SECRET = re.compile(r"(?:^|[a-z_-])(?:Key|KEY|Pwd|PWD|PASS)$|(?:^|[_-])(?:key|pwd|pass)$")
"""Endings of names of secrets, in addition to those that every command hides."""
_OPTION = re.compile(r"(?:^|\s)--(?:export|env|container-env|wrap)\b")
"""Options of Slurm and of containers that set variables or hold a script."""
_PUBLIC = re.compile(r"kmsKey|--kms-key|\breservationAffinity\b|secretVariables|secretManager")
"""Names of things in a cloud, which are not secret themselves."""
NAME_MAX = 200


@dataclass
class Entry:
    """Field and its class. `new`: value in its place, None for nothing; `open`: the output lacks it until decided."""

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
        """Line for the user, without the class."""
        old = value_text(self.field, self.old) if self.given else "(not given)"
        name = name_text(self.field)
        arrow = ""
        if self.kind == "kept":
            arrow = f" -> {self.new}" if self.new else ""
        elif self.kind == "changed" or (self.kind == "decision" and not self.open):
            arrow = f" -> {'left out' if self.new is None else value_text(self.field, self.new)}"
        said = f": {'; '.join(self.why)}" if self.why else ""
        rules = f" [{', '.join(self.rules)}]" if self.rules else ""
        return f"{name} {old}{arrow}{said}{rules}"


class Report:
    """Entries by field, in the order of the document. close() refuses each field that nothing was reported about."""

    def __init__(self, fields: Mapping[str, Any], places: Mapping[str, str] | None = None) -> None:
        """Take the leaves of a document by their author's names. `places`: file and line of those that have one."""
        self.fields = dict(fields)
        self.places = dict(places or {})
        self._entries: dict[str, Entry] = {}

    @property
    def entries(self) -> list[Entry]:
        """Entries of the document's fields in its order, then those of fields that it does not give."""
        given = [self._entries[name] for name in self.fields if name in self._entries]
        return [*given, *(entry for name, entry in self._entries.items() if name not in self.fields)]

    def of(self, *kinds: Kind) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind in kinds]

    @property
    def stops(self) -> list[Entry]:
        """Entries that prevent any output: refusals and open decisions."""
        return [entry for entry in self.entries if entry.kind == "refused" or entry.open]

    def stopped_by(self, name: str) -> bool:
        entry = self._entries.get(name)
        return entry is not None and (entry.kind == "refused" or entry.open)

    def is_settled(self, name: str) -> bool:
        """Return whether anything was reported about the field so far."""
        return name in self._entries

    def keep(self, name: str, to: str = "", why: str = "") -> None:
        """Report that the output has the value unchanged. `to`: its name there, if it is another."""
        self._say(name, "kept", to, why, "")

    def changed(self, name: str, new: Any, why: str, rule: str = "") -> None:
        """Report that the output has another value; None if it has no value."""
        self._say(name, "changed", new, why, rule)

    def decide(self, name: str, why: str, rule: str = "", *, new: Any = None, is_open: bool = True) -> None:
        """Report that the author has to choose. Unless the decision is open, the output has `new` until then."""
        self._say(name, "decision", new, why, rule)
        self._entries[name].open |= is_open

    def refuse(self, name: str, why: str, rule: str = "") -> None:
        """Report that there is no output with this value."""
        self._say(name, "refused", None, why, rule)

    def note(self, name: str, why: str, rule: str = "") -> None:
        """Add a remark on a field without changing its class."""
        entry = self._entry(name)
        entry.why += [why] if why not in entry.why else []
        entry.rules += [rule] if rule and rule not in entry.rules else []

    def findings(self, name: str, found: Iterable[Finding]) -> bool:
        """Report the findings of rules on a value that is otherwise kept. Return whether the value may stand."""
        stands = True
        is_unknown = name in self._entries and imports.VARIABLE.id in self._entries[name].rules
        for finding in found:
            if is_unknown and finding.rule not in _OF_UNKNOWN:
                stands = stands and finding.severity != "reject"
            elif finding.rule in DECISIONS:
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
        """Refuse each field that nothing was reported about. `known`: names of fields that may have been meant."""
        known = tuple(known)
        for name in self.fields:
            if name not in self._entries:
                self.refuse(name, _unknown(name, known))

    def as_json(self) -> dict[str, Any]:
        """Return a list of entries for each class, without values that may be secrets."""
        found: dict[str, Any] = {kind: [] for kind in KINDS}
        for entry in self.entries:
            line: dict[str, Any] = {"field": entry.field}
            if entry.given:
                line["value"] = None if _hidden(entry.field) else redaction.hide_secrets(entry.old)
            if entry.kind == "kept":
                line |= {"to": entry.new} if entry.new else {}
            elif entry.kind != "refused":
                line["new"] = None if _hidden(entry.field) else redaction.hide_secrets(entry.new)
            if entry.kind == "decision":
                line["open"] = entry.open
            why = [redaction.redact(each) for each in entry.why]
            found[entry.kind].append(line | {"why": why, "rules": entry.rules})
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


_CONFIGS = "masterConfig|workerConfig|parameterServerConfig|evaluatorConfig"
_PARENTS: tuple[Mapping[str, str], ...] = (
    {
        # Vertex AI: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec
        **dict.fromkeys(("machineSpec", "replicaCount", "containerSpec", "pythonPackageSpec"), "workerPoolSpecs"),
        **dict.fromkeys(("diskSpec", "nfsMounts"), "workerPoolSpecs"),
        **dict.fromkeys(("acceleratorCount", "acceleratorType", "tpuTopology", "reservationAffinity"), "machineSpec"),
        **dict.fromkeys(("packageUris", "pythonModule", "executorImageUri"), "pythonPackageSpec"),
        **dict.fromkeys(("timeout", "strategy", "restartJobOnWorkerRestart", "disableRetries"), "scheduling"),
        "maxWaitDuration": "scheduling",
        "outputUriPrefix": "baseOutputDirectory",
    },
    {
        # AI Platform Training: https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs
        **dict.fromkeys(("acceleratorConfig", "diskConfig", "tpuTfVersion"), _CONFIGS),
        **dict.fromkeys(("maxRunningTime", "maxWaitTime"), "scheduling"),
        **dict.fromkeys(("maxTrials", "hyperparameterMetricTag", "params"), "hyperparameters"),
    },
    {
        # AWS Batch: https://docs.aws.amazon.com/batch/latest/APIReference/API_SubmitJob.html
        **dict.fromkeys(("resourceRequirements", "command", "environment"), "containerOverrides|containers"),
        "attemptDurationSeconds": "timeout",
        **dict.fromkeys(("attempts", "evaluateOnExit"), "retryStrategy"),
    },
)
"""Field below which each field belongs, for each service; `|` separates alternatives."""


def _unknown(name: str, known: tuple[str, ...]) -> str:
    """Return what is wrong with a field that nothing read: its outermost part that is unknown or belongs elsewhere."""
    parts = [part.partition("[")[0] for part in name.split(".")]
    parents = _parents(known)
    above = ""
    for part in parts:
        below = parents.get(part, "").split("|")
        if known and part not in known:
            return f"{_part(part, name)}is no field that is known here{suggestion(part, known)}"
        if below[0] in known and above not in below:
            return f"{_part(part, name)}is no field that is known here: indent it below {below[0]}"
        above = part
    return f"is no field that is known here{', or not in this form' if known else ''}"


@cache
def _parents(known: tuple[str, ...]) -> Mapping[str, str]:
    return max(_PARENTS, key=lambda each: len(each.keys() & {*known}))


def _part(part: str, name: str) -> str:
    return "" if part == name else f"{name_text(part)} "


def name_text(name: str) -> str:
    """Return a field's name as the report shows it: redacted, on one line, and never empty."""
    shown = redaction.redact(name if name and name.isprintable() else repr(name))
    return shown if len(shown) <= NAME_MAX else f"{shown[: NAME_MAX - 3]}..."


def value_text(name: str, value: Any) -> str:
    if isinstance(value, list) and not _hidden(name):
        items = cast(list[Any], redaction.hide_secrets(value))
        return "[" + ", ".join(messages.display(each) for each in items[:4]) + (", ..." if len(items) > 4 else "") + "]"
    if isinstance(value, str) and _PLACE.match(value) and "@" not in value and not _hidden(name):
        value = redaction.redact(value)
        return repr(value if len(value) <= _PLACE_MAX else f"{value[: _PLACE_MAX - 3]}...")
    return messages.display(value, hidden=_hidden(name))


_PLACE = re.compile(r"(gs|nfs)://|projects/|[\w.-]+\.(pkg\.dev|io)/")
"""Names of things in a cloud, which are long and not secret."""
_PLACE_MAX = 160


def _hidden(name: str) -> bool:
    parts = re.split(r"[.\[]", name)
    if any(part in HIDDEN for part in parts) or _OPTION.search(name):
        return True
    if _PUBLIC.search(name):
        return False
    return any(redaction.SECRET_NAME.search(part) or _SECRET.search(part) for part in parts)
