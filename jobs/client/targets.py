"""Where jobs can run: the targets that a stack exports, and this machine.

A source is the path of a JSON file, as `stacks export` writes it, or a place where the stack publishes them (see
published.py): `ssm:<region>/<path>`, `configmap:<project>/<location>/<cluster>/<namespace>`. Without a source: the
.accel/targets.json of usual_targets.py, else nothing but `local`, which is always there. A relative root of a local
target begins at the folder of the file (for .accel/targets.json: the folder that holds .accel), or else at the working
folder.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from accel.contract.targets import KINDS, AnyTarget, LocalTarget, read_one
from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput, BadInputs, NotFound

from . import published_targets
from .default_targets import USUAL, find
from .published_targets import Documents

VARIABLE = "ACCEL_TARGETS"
LOCAL = "local"
NEWER = ("literal_error", "union_tag_invalid")
"""Faults, as pydantic names them, of a value that is one of a few, and to which a newer accel may have added."""

Target = AnyTarget


@dataclass(frozen=True)
class Entry:
    """One target, or why this version cannot use it."""

    name: str
    kind: str
    target: Target | None
    fault: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """As it was written."""


@dataclass(frozen=True)
class Targets:
    """All targets of one source, in its order."""

    source: str
    """In words."""
    entries: dict[str, Entry]
    age_s: float | None = None
    """Of a copy; None where the source itself was read."""
    warnings: tuple[str, ...] = ()

    def choose(self, name: str | None) -> tuple[str, Target]:
        """The named target; without a name, the only one besides `local`, or `local` if there is no other.

        Raises BadInput for an unknown name, one that cannot be used, or none where there are several.
        """
        usable = [entry.name for entry in self.entries.values() if entry.target]
        if name is None:
            others = [entry.name for entry in self.entries.values() if entry.name != LOCAL] or [LOCAL]
            if len(others) > 1:
                raise BadInput(f"--to: is missing; the targets are {', '.join(usable)}", "name one with --to")
            name = others[0]
        entry = self.entries.get(name)
        if entry is None:
            said = messages.did_you_mean(name, list(self.entries))
            raise BadInput(f"unknown target {messages.name_shown(name)}{said}", f"targets come from {self.source}")
        if entry.target is None:
            raise BadInput(f"target {name}: {entry.fault}")
        return name, entry.target


def load(source: str | None = None, *, refresh: bool = False) -> Targets:
    """The targets of the source, of $ACCEL_TARGETS, or of the usual file.

    Raises NotFound where a file that was asked for is not there, BadInput where it cannot be understood,
    and for a published source NoCredentials, CloudRefused or CloudSilent.
    """
    source = source or os.environ.get(VARIABLE) or None
    if source is None:
        usual, passed = find(Path.cwd())
        documents = _file(usual) if usual else Documents("no source: this machine only", {})
        return _of(replace(documents, warnings=passed), usual.parents[1] if usual else Path.cwd())
    if source.startswith(published_targets.PREFIXES):
        return _of(published_targets.load(source, refresh=refresh), Path.cwd())
    path = Path(source)
    folder = path.absolute().parent
    return _of(_file(path), folder.parent if folder.name == USUAL.parts[0] else folder)


def _file(path: Path) -> Documents:
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"targets: {path}: no such file", "`stacks export` writes it") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}:{error.lineno}: is not JSON: {error.msg}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    # `pulumi stack output --json` has the targets beside other outputs; a target itself always has a kind.
    outputs = cast(dict[str, Any], document) if isinstance(document, dict) else {}
    inner: Any = outputs.get("targets")
    if isinstance(inner, dict) and not isinstance(cast(dict[str, Any], inner).get("kind"), str):
        return Documents(str(path), cast(dict[str, Any], inner))
    if not isinstance(document, dict):
        raise BadInput(f"{path}: must be a mapping from target name to target, is {messages.display(document)}")
    return Documents(str(path), cast(dict[str, Any], document))


def _of(documents: Documents, folder: Path) -> Targets:
    entries = {name: _entry(name, document, folder) for name, document in documents.by_name.items()}
    faults = [f"{documents.source}: {entry.fault}" for entry in entries.values() if entry.fault and not entry.kind]
    if faults:
        raise BadInputs(faults, "the file is written by `stacks export`")
    entries.setdefault(LOCAL, Entry(LOCAL, "local", LocalTarget(root=str(Path.cwd()))))
    return Targets(documents.source, entries, documents.age_s, documents.warnings)


def _entry(name: str, document: Any, folder: Path) -> Entry:
    """An unknown kind, or another word than this version knows, comes from a newer stack. Any other fault is one of the
    file: its kind is empty."""
    if not isinstance(document, Mapping):
        return Entry(name, "", None, f"{name}: must be a mapping, is {messages.display(document)}")
    values = cast(Mapping[str, Any], document)
    kind: Any = values.get("kind")
    if not isinstance(kind, str):
        return Entry(name, "", None, f"{name}.kind: {'must be text' if 'kind' in values else 'is missing'}")
    if kind not in KINDS:
        return Entry(name, kind, None, f"needs a newer accel, which knows targets of kind {messages.name_shown(kind)}")
    try:
        target = read_one(values)
    except ValidationError as error:
        if all(fault["type"] in NEWER for fault in error.errors(include_url=False)):
            return Entry(name, kind, None, f"needs a newer accel: {_first_fault('', error)}")
        return Entry(name, "", None, _first_fault(name, error))
    if isinstance(target, LocalTarget):
        target = target.model_copy(update={"root": str((folder / target.root).resolve())})
    return Entry(name, kind, target, document=values)


def _first_fault(name: str, error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    # The first part of the place is the kind, by which the union was told apart.
    path = [str(part) for part in fault["loc"][1:]]
    said = messages.explained(fault["type"], fault.get("ctx", {}), path, fault["input"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{'.'.join([*([name] if name else []), *path])}: {said}{more}"
