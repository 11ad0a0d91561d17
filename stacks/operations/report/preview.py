"""The output of `pulumi preview --json` as plain values, and the images, drivers and versions that it changes. The
engine's digest: `config`, `steps` (op, urn, oldState, newState, diffReasons, replaceReasons, detailedDiff),
`diagnostics` and `changeSummary`. `steps` omits what did not change, except for the stack itself. Source:
https://github.com/pulumi/pulumi/blob/00d498e306299cb053d93a5c1bbc2566e92b70bc/pkg/backend/display/json.go"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from accel.diagnostics.errors import BadInput, JobsError, NotFound
from accel.json_values import entries, mapping, object_at

from ..pulumi_command import UNKNOWN, ran
from ..stack_files import KEY
from .plain import message_line

STACK = "pulumi:pulumi:Stack"
OPS = {
    "create": "create",
    "update": "update",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "import-replacement": "replace",
    "read-replacement": "replace",
    "delete": "delete",
    "discard": "forget",
    "discard-replaced": "forget",
    "remove-pending-replace": "forget",
    "import": "import",
    "read": "read",
    "refresh": "refresh",
}
"""Our words for the engine's operations; `same` has none. Source:
https://github.com/pulumi/pulumi/blob/00d498e306299cb053d93a5c1bbc2566e92b70bc/sdk/python/lib/pulumi/automation/events.py
"""


FIELDS: Mapping[str, str] = {
    "image": "image",
    "imageId": "image of instances",
    "imageIdOverride": "image of instances",
    "image_id_override": "image of instances",
    "imageType": "image of nodes",
    "image_type": "image of nodes",
    "sourceImage": "image of the boot disk",
    "boot_image": "image of the boot disk",
    "runtimeVersion": "TPU runtime",
    "runtime_version": "TPU runtime",
    "gpuDriverVersion": "GPU driver",
    "driver": "GPU driver",
    "driver_version": "GPU driver",
    "minMasterVersion": "Kubernetes",
    "nodeVersion": "Kubernetes of nodes",
    "release": "release",
    "version": "version",
}
"""Names of properties, at any depth."""
VERSIONED = ("accel:", "gcp:container/")
"""Types whose `version` is that of software; a launch template's is a counter."""


@dataclass(frozen=True)
class Change:
    """One resource that the update would touch. Inputs and outputs are as in the engine's JSON, secrets masked."""

    op: str
    urn: str
    id: str
    old_inputs: Mapping[str, Any]
    old_outputs: Mapping[str, Any]
    new_inputs: Mapping[str, Any]
    diffs: tuple[str, ...] = ()
    """Paths of properties that differ, without their values."""
    replaces: tuple[str, ...] = ()
    """Paths of those that force a replacement."""
    kept: bool = False
    """The resource is dropped from the state and stays in the cloud (retainOnDelete)."""

    @property
    def type(self) -> str:
        """Return the type without those of its parents."""
        return self.urn.split("::")[2].rpartition("$")[2]

    @property
    def name(self) -> str:
        return self.urn.rpartition("::")[2]

    @property
    def is_component(self) -> bool:
        """Return whether it is one of our components, which are nothing in the cloud themselves."""
        return self.type.startswith("accel:")

    @property
    def removes(self) -> bool:
        """Return whether an existing resource would no longer exist. Only the state decides what is kept:
        https://github.com/pulumi/pulumi/issues/13428"""
        return self.op in ("replace", "delete") and not self.kept


@dataclass(frozen=True)
class Preview:
    """One preview. `outputs`: those of the stack as it is deployed now."""

    stack: str
    project: str
    changes: tuple[Change, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    failed: bool
    outputs: Mapping[str, Any]
    config: Mapping[str, Any]

    @cached_property
    def environment(self) -> Any:
        """Return the document of the previewed environment; None where the program has none."""
        text = self.config.get(KEY)
        try:
            return json.loads(text) if isinstance(text, str) else text
        except ValueError:
            return None  # a secret as a whole, which is blinded

    @property
    def empty(self) -> bool:
        """Return whether nothing would change, as far as the program ran."""
        own = (change for change in self.changes if not change.is_component)
        return not self.failed and all(change.op in ("refresh", "read") for change in own)


def run(stack: str, *, refresh: bool, config_file: str | None) -> Preview:
    """Return a failed preview too. Raise NotFound for a stack that does not exist."""
    if config_file and not Path(config_file).is_file():
        raise NotFound(f"{config_file}: no such file")  # Pulumi would take it for an empty one
    more = ["--refresh"] if refresh else []
    more += ["--config-file", config_file] if config_file else []
    done = ran("preview", "--json", "--stack", stack, *more)
    if not done.stdout.strip():
        said = _last(done.stderr) or f"pulumi ended with {done.returncode}"
        raise JobsError(f"pulumi preview printed no report: {message_line(said)}", "run `pulumi preview` to see why")
    return of_text(done.stdout, "pulumi preview", stack, failed=done.returncode != 0)


def read(path: Path, stack: str) -> Preview:
    """Read a stored output of `pulumi preview --json`. Raise NotFound, and BadInput for anything else."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file", f"pulumi preview --json --stack {stack} > {path}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    return of_text(text, str(path), stack)


def of_text(text: str, source: str, stack: str, *, failed: bool = False) -> Preview:
    """Raise BadInput for what is no preview, or half of one, or that of another stack."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise BadInput(
            f"{source}:{line}: is no JSON, or not all of it", "pulumi preview --json writes it; was it cut off?"
        ) from None
    digest = mapping(document)
    if digest is None or not ({"steps", "changeSummary", "diagnostics"} & digest.keys()):
        raise BadInput(f"{source}: is no preview: it has no steps", "pulumi preview --json writes it")
    steps = [step for each in entries(digest.get("steps")) if (step := mapping(each)) is not None]
    urns = [str(step.get("urn", "")) for step in steps]
    whose = next((urn.split("::") for urn in urns if urn.count("::") >= 3), None)
    found_stack = whose[0].removeprefix("urn:pulumi:") if whose else stack.rpartition("/")[2]
    if found_stack != stack.rpartition("/")[2]:
        raise BadInput(f"{source}: is a preview of stack {found_stack}, not of {stack.rpartition('/')[2]}")
    told = [each for item in entries(digest.get("diagnostics")) if (each := mapping(item)) is not None]
    errors = [str(each.get("message", "")) for each in told if each.get("severity") == "error"]
    return Preview(
        stack=found_stack,
        project=whose[1] if whose else "",
        changes=_changes(steps),
        errors=tuple(errors),
        warnings=tuple(str(each.get("message", "")) for each in told if each.get("severity") == "warning"),
        failed=failed or bool(errors),
        outputs=_outputs(steps),
        config=object_at(digest, "config"),
    )


def _changes(steps: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Return one change per resource: of several steps of a replacement, the first of the most informative ones."""
    found: dict[str, Change] = {}
    for step in steps:
        op, urn = OPS.get(str(step.get("op"))), str(step.get("urn", ""))
        if op is None or urn.count("::") < 3 or f"::{STACK}::" in urn or "::pulumi:providers:" in urn:
            continue
        change = _change(op, urn, step)
        known = found.get(urn)
        if known is None or (known.op != "replace" and change.op == "replace"):
            found[urn] = change
    return tuple(found.values())


def _change(op: str, urn: str, step: Mapping[str, Any]) -> Change:
    old, new = object_at(step, "oldState"), object_at(step, "newState")
    detailed = object_at(step, "detailedDiff")
    diffs = detailed.keys() or [str(each) for each in entries(step.get("diffReasons"))]
    return Change(
        op=op,
        urn=urn,
        id=str(old.get("id") or ""),
        old_inputs=object_at(old, "inputs"),
        old_outputs=object_at(old, "outputs"),
        new_inputs=object_at(new, "inputs"),
        diffs=tuple(sorted(diffs)),
        replaces=tuple(sorted(str(each) for each in entries(step.get("replaceReasons")))),
        kept=old.get("retainOnDelete") is True,
    )


def _outputs(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    for step in steps:
        if f"::{STACK}::" in str(step.get("urn")):
            return object_at(step, "oldState", "outputs")
    return {}


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else ""


@dataclass(frozen=True)
class ValueChange:
    """One value that changes."""

    resource: str
    what: str
    before: str
    after: str


def value_changes(preview: Preview) -> tuple[ValueChange, ...]:
    """Return the values that updates and replacements change; each pair once, at the component where it is set."""
    found: dict[tuple[str, str, str], ValueChange] = {}
    for change in sorted(preview.changes, key=lambda each: not each.is_component):
        if change.op not in ("update", "replace"):
            continue
        before, after = dict(_leaves(change.old_inputs)), dict(_leaves(change.new_inputs))
        for path in before.keys() | after.keys():
            name = path[-1]
            if name == "version" and not change.type.startswith(VERSIONED):
                continue
            pair = (before.get(path, ""), after.get(path, ""))
            if pair[0] != pair[1]:
                found.setdefault((name.casefold(), *pair), ValueChange(change.name, FIELDS[name], *pair))
    return tuple(sorted(found.values(), key=astuple))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, inner in cast(dict[str, Any], value).items():
            if key in FIELDS and isinstance(inner, str):
                yield (*path, key), "known after the update" if inner == UNKNOWN else inner
            else:
                yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast(list[Any], value)):
            yield from _leaves(inner, (*path, str(index)))
