"""The config files of stacks, read and checked, and the logic of `stacks export`."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.catalog.nearest import nearest
from accel.diagnostics import yaml_positions
from accel.diagnostics.errors import BadInputs, CloudRefused, NotFound
from accel.diagnostics.faults import Fault, format_path, parse_path

from ..environment import images_lock
from .pulumi_command import ran

if TYPE_CHECKING:
    from ..environment.config import Environment

KEY = "accel:environment"
PROJECT_FILES = ("Pulumi.yaml", "Pulumi.yml")


def stack_files(names: list[str], folder: Path) -> list[Path]:
    """Return the config file of each named stack, by name or by path; of every stack in the folder if none is named."""
    known = sorted(folder.glob("Pulumi.*.yaml"))
    if not names:
        if not known:
            raise NotFound(f"no Pulumi.<stack>.yaml in {folder}", "run this where Pulumi.yaml is")
        return known
    return [_stack_file(name, folder, known) for name in names]


def _stack_file(name: str, folder: Path, known: list[Path]) -> Path:
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise NotFound(f"{name}: no such file")
        return path
    path = folder / f"Pulumi.{name}.yaml"
    if path not in known:
        stacks = [file.name.split(".")[1] for file in known]
        near = nearest(name, stacks, 1)
        raise NotFound(f"no stack {name!r} here", f"nearest: {near[0]}" if near else f"known: {', '.join(stacks)}")
    return path


@dataclass(frozen=True)
class ReadStack:
    """A valid config file; `warnings` have file, line and path. `placed` puts file and line before a fault of it."""

    path: Path
    name: str
    environment: "Environment"
    warnings: list[str]
    placed: Callable[[Fault], str]


def read_stacks(paths: list[Path], strict: bool, locks: bool = False) -> list[ReadStack]:
    """Check against lock files too with `locks`. Raise BadInputs with all faults; if strict, with warnings too."""
    faults: list[str] = []
    stacks: list[ReadStack] = []
    for path in paths:
        try:
            stack = _read(path, strict, locks)
        except BadInputs as refused:
            faults += refused.messages
        else:
            stacks.append(stack)
    if faults:
        raise BadInputs(list(dict.fromkeys(faults)))  # stacks of one folder share its lock file
    return stacks


def _read(path: Path, strict: bool, locks: bool) -> ReadStack:
    from ..environment.config import ConfigFaults, load_environment, warnings

    try:
        tree = yaml_positions.read(path.read_bytes())
    except OSError as error:
        raise BadInputs([f"{path}: cannot be read: {error.strerror}"]) from None
    except yaml_positions.Fault as fault:
        raise BadInputs([f"{path}:{fault.line}: {fault.words}"]) from None

    def placed(fault: Fault) -> str:
        return f"{path}:{tree.line(('config', KEY, *parse_path(format_path(fault.path[1:]))))}: {fault}"

    refused = [f"{path}:{fault.line}: {fault.words}" for fault in tree.faults]
    config: Any = tree.value.get("config") if isinstance(tree.value, dict) else None  # pyright: ignore
    if not isinstance(config, dict) or KEY not in config:
        raise BadInputs([*refused, f"{path}: config has no {KEY}, the one key of an environment"])
    try:
        environment = load_environment(config[KEY])
    except ConfigFaults as found:
        raise BadInputs(refused + [placed(fault) for fault in found.faults]) from None
    unlocked = _unlocked(environment, path.parent) if locks else []
    warned = [f"{path}:{note}: Pulumi itself reads none" for note in tree.notes]
    warned += [placed(fault) for fault in warnings(environment) + unlocked]
    strict = strict or environment.strict
    if refused or (strict and warned):
        raise BadInputs(refused + (warned if strict else []))
    name = path.name.split(".")[1] if path.name.count(".") > 1 else path.stem
    return ReadStack(path, name, environment, warned, placed)


def _unlocked(environment: "Environment", folder: Path) -> list[Fault]:
    lock = images_lock.read(folder)
    return images_lock.unlocked_images(environment.aws, lock) if environment.aws else []


def stack_output(name: str, stack: str | None) -> Any:
    return _output([name], stack, f"has no output {name}")


def stack_outputs(stack: str | None) -> dict[str, Any]:
    return _output([], stack, "cannot be read")


def _output(names: list[str], stack: str | None, failed: str) -> Any:
    done = ran("stack", "output", *names, "--json", *(["--stack", stack] if stack else []))
    if done.returncode:
        why = done.stderr.strip().splitlines() or [f"pulumi ended with {done.returncode}"]
        said = f"stack {stack}" if stack else "the selected stack"
        raise CloudRefused(f"{said} {failed}: {why[0].removeprefix('error: ')}", "deploy it first: pulumi up")
    return json.loads(done.stdout)


def export(stack: str | None, out: Path) -> list[str]:
    """Return the names of the targets."""
    targets = stack_output("targets", stack)
    from ..environment.targets_file import write

    write(targets, out)
    return sorted(targets)


def project_of(path: Path) -> str | None:
    """Return the name in the Pulumi.yaml beside a config file; the stack's instances are tagged with it."""
    return project_in(path.parent)


def project_in(folder: Path) -> str | None:
    """Return the name in the folder's Pulumi.yaml; None without such a file that can be read and has one."""
    return next((name for file in PROJECT_FILES if (name := _name(folder / file))), None)


def _name(path: Path) -> str | None:
    try:
        value: Any = yaml_positions.read(path.read_bytes()).value
    except (OSError, yaml_positions.Fault):
        return None
    name = value.get("name") if isinstance(value, dict) else None  # pyright: ignore
    return name if isinstance(name, str) else None
