"""Targets that a stack exports, and this machine.

A source is the path of a JSON file, as `stacks export` writes it, or a place where the stack publishes them (see
published_targets.py). Without a source, the file is .accel/targets.json of the working folder or of a parent, up to the
root of the repository, or outside of one up to the home folder; without such a file there is only `local`, which always
exists. Whoever writes that file decides where jobs go, and with them code and credentials, so a file that somebody else
may have written is ignored. A relative root of a local target begins at the folder of the file (for
.accel/targets.json: the folder that holds .accel), or else at the working folder.
"""

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from accel.console.reporter import Reporter
from accel.contract.targets import KINDS, AnyTarget, LocalTarget, read_one
from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput, BadInputs, NotFound

from . import published_targets
from .published_targets import Documents

VARIABLE = "ACCEL_TARGETS"
LOCAL = "local"
NEWER = ("literal_error", "union_tag_invalid")
"""Pydantic's names of faults in a value that is one of a few, to which a newer accel may have added."""

Target = AnyTarget


@dataclass(frozen=True)
class Entry:
    """A target, or why this version cannot use it."""

    name: str
    kind: str
    target: Target | None
    fault: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """The target as it was written."""


@dataclass(frozen=True)
class Targets:
    """All targets of one source, in its order."""

    source: str
    entries: dict[str, Entry]
    age_s: float | None = None
    """Age of a copy, 0 if it was just made; None for a file."""
    warnings: tuple[str, ...] = ()

    def choose(self, name: str | None) -> tuple[str, Target]:
        """Return the named target; without a name, the only one besides `local`, or `local` if there is no other.
        Raises BadInput for an unknown name, an unusable target, and without a name where there are several."""
        usable = [entry.name for entry in self.entries.values() if entry.target]
        if name is None:
            others = [entry.name for entry in self.entries.values() if entry.name != LOCAL] or [LOCAL]
            if len(others) > 1:
                raise BadInput(f"--to: is missing; the targets are {', '.join(usable)}", "name one with --to")
            name = others[0]
        entry = self.entries.get(name)
        if entry is None:
            said = messages.did_you_mean(name, list(self.entries))
            raise BadInput(f"unknown target {messages.printable_name(name)}{said}", f"targets come from {self.source}")
        if entry.target is None:
            raise BadInput(f"target {name}: {entry.fault}")
        return name, entry.target


def load(source: str | None = None, *, refresh: bool = False) -> Targets:
    """Read the targets of the source, of $ACCEL_TARGETS, or of the usual file. Raises NotFound for a named file that is
    not there, BadInput for one that is wrong, and for a published source NoCredentials, CloudRefused or CloudSilent."""
    source = source or os.environ.get(VARIABLE) or None
    if source is None:
        usual, passed = _default_file(Path.cwd())
        documents = _file(usual) if usual else Documents("no source: this machine only", {})
        return _of(replace(documents, warnings=passed), usual.parents[1] if usual else Path.cwd())
    if source.startswith(published_targets.PREFIXES):
        return _of(published_targets.load(source, refresh=refresh), Path.cwd())
    path = Path(source)
    folder = path.absolute().parent
    return _of(_file(path), folder.parent if folder.name == _DEFAULT.parts[0] else folder)


def known_targets(reporter: Reporter, *, refresh: bool = False) -> Targets:
    found = load(reporter.targets, refresh=refresh)
    for warning in found.warnings:
        reporter.warn(warning)
    return replace(found, warnings=())


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
    """Blame an unknown kind or word on a newer stack; any other fault is the file's, and its kind is empty."""
    if not isinstance(document, Mapping):
        return Entry(name, "", None, f"{name}: must be a mapping, is {messages.display(document)}")
    values = cast(Mapping[str, Any], document)
    kind: Any = values.get("kind")
    if not isinstance(kind, str):
        return Entry(name, "", None, f"{name}.kind: {'must be text' if 'kind' in values else 'is missing'}")
    if kind not in KINDS:
        return Entry(
            name, kind, None, f"needs a newer accel, which knows targets of kind {messages.printable_name(kind)}"
        )
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
    # The first part of the place is the kind, which selects the member of the union.
    path = [str(part) for part in fault["loc"][1:]]
    said = messages.describe_fault(fault["type"], fault.get("ctx", {}), path, fault["input"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{'.'.join([*([name] if name else []), *path])}: {said}{more}"


_DEFAULT = Path(".accel", "targets.json")
_REPOSITORY = ".git"
"""A folder, or a file in a worktree."""


def _default_file(here: Path) -> tuple[Path | None, tuple[str, ...]]:
    """Return the file to use, and a line for each file that is ignored."""
    passed: list[str] = []
    for folder in _searched(here):
        path = folder / _DEFAULT
        if not _there(path):
            continue
        fault = _fault(path)
        if fault is None:
            return path, tuple(passed)
        passed.append(f"targets: {path} is ignored: {fault}; if you trust it, name it: --targets {path}")
    return None, tuple(passed)


def _searched(here: Path) -> list[Path]:
    above = [here, *here.parents]
    ends = [folder for folder in above if _there(folder / _REPOSITORY)]
    ends += [folder for folder in above if folder == Path.home()]
    return above[: above.index(ends[0] if ends else here) + 1]


def _there(path: Path) -> bool:
    """Tell whether a path exists; a path without permission to see it does not."""
    with suppress(PermissionError):
        return path.exists()
    return False


def _fault(path: Path) -> str | None:
    """Return who else may have written the file, its folder, or the folder above; None for nobody."""
    for each in (path, path.parent, path.parents[1]):
        for found in (each.lstat(), each.stat()):
            if found.st_uid not in (os.geteuid(), 0):
                return f"{each} belongs to {_user(found.st_uid)}"
            if not stat.S_ISLNK(found.st_mode) and _others_may_write(found):
                return f"others may write {each} (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def _others_may_write(found: os.stat_result) -> bool:
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return False  # they may add files, and remove none
    return bool(found.st_mode & stat.S_IWOTH) or bool(found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid))


def _own_group(number: int) -> bool:
    """Tell whether the group is the user's private one. Source: https://wiki.debian.org/UserPrivateGroups"""
    import grp
    import pwd

    with suppress(KeyError):
        name, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(number)
        return group.gr_name == name and set(group.gr_mem) <= {name}
    return False


def _user(number: int) -> str:
    import pwd

    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return f"user {number}"
