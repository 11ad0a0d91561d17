"""A stack's state, and the changes that its providers find: read by Pulumi's own commands, which change nothing."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from accel.clouds.aws.responses import structure, structures
from accel.diagnostics.errors import CloudRefused
from accel.diagnostics.messages import first_of

from ..pulumi_command import ran
from .differences import Drift

NOISE: Mapping[str, tuple[str, ...]] = {
    # Batch changes it as jobs come and go: https://github.com/hashicorp/terraform-provider-aws/issues/4788.
    "aws:batch/computeEnvironment:ComputeEnvironment": (r"computeResources\.desiredVcpus",),
    # The autoscaler's numbers, and GKE's own upgrades: https://docs.cloud.google.com/kubernetes-engine/upgrades
    "gcp:container/nodePool:NodePool": (r"nodeCount", r"initialNodeCount", r"version"),
    "gcp:container/cluster:Cluster": (r"(minM|m)asterVersion", r"nodeVersion", r"nodePools?(\[.*)?"),
    "gcp:compute/reservation:Reservation": (r"specificReservation\.inUseCount",),
    "gcp:vertex/aiPersistentResource:AiPersistentResource": (r"resourcePools\[\d+\]\.(usedR|r)eplicaCount",),
}
"""Paths that the clouds change by themselves, by type, as regular expressions over the whole path."""
EVERYWHERE = (r"etag", r"status(\..*)?", r"(metadata\.)?(resourceVersion|generation|managedFields.*)", r"fingerprint")
"""The same for every type: fields that an API counts up with each change, and Kubernetes' `status`."""
SHOWN = 4
SET_AGAIN = "pulumi up --refresh sets it as the stack has it"
AFTER_BUDGET = f"{SET_AGAIN}; what a budget stopped: stacks budget resume"


@dataclass(frozen=True)
class Resource:
    """A resource of the state; `name` is its name in the program, `parent` that of its component."""

    type: str
    name: str
    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    parent: str


@dataclass(frozen=True)
class State:
    """The stack as last deployed. `pending`: an update is under way or was cut off; the state may be incomplete."""

    resources: tuple[Resource, ...]
    pending: bool = False

    def of(self, *types: str) -> list[Resource]:
        return [each for each in self.resources if each.type in types]

    @cached_property
    def outputs(self) -> Mapping[str, Any]:
        """Return the outputs of the stack; secret ones are not among them in plain text."""
        found = self.of("pulumi:pulumi:Stack")
        return found[0].outputs if found else {}

    @cached_property
    def ids(self) -> frozenset[str]:
        return frozenset(each.id for each in self.resources if each.id)


def read_state(folder: Path, stack: str) -> State:
    """Return an empty state after a destroy. Raise NotFound for no such stack, CloudRefused where Pulumi refuses."""
    exported: dict[str, Any] = json.loads(_pulumi(folder, "stack", "export", "--stack", stack))
    deployment = structure(exported, "deployment")
    resources = tuple(map(_resource, structures(deployment, "resources")))
    return State(resources, bool(deployment.get("pending_operations")))


def changed_properties(folder: Path, stack: str, fix: str = SET_AGAIN) -> list[Drift]:
    """Return what the providers see, without noise(); run no program, change no state. `fix`: for a property."""
    told: dict[str, Any] = json.loads(_pulumi(folder, "refresh", "--preview-only", "--json", "--stack", stack))
    return [drift for step in structures(told, "steps") for drift in _step(step, fix)]


def _step(step: Mapping[str, Any], fix: str) -> Iterator[Drift]:
    type_, name = str(step["urn"]).split("::")[2].rpartition("$")[2], str(step["urn"]).rpartition("::")[2]
    if step["op"] == "delete":
        yield Drift("gone", name, "broken", f"{type_} is not there any more", "pulumi up --refresh makes it again")
    elif step["op"] == "update":
        paths = [path for path in sorted(step.get("detailedDiff") or ()) if not noise(type_, path)]
        if paths:
            told = first_of([_change(path, step) for path in paths], SHOWN)
            yield Drift("property", name, "changed", f"{type_}: {told}", fix)


def noise(type_: str, path: str) -> bool:
    return any(re.fullmatch(each, path) for each in (*NOISE.get(type_, ()), *EVERYWHERE))


def _change(path: str, step: Mapping[str, Any]) -> str:
    """Return numbers and switches with old and new value, but never a text: an unmarked value may be a secret."""
    before, after = (_at(step.get(side) or {}, path) for side in ("oldState", "newState"))
    if all(isinstance(each, bool | int | float) for each in (before, after)):
        return f"{path} {json.dumps(before)} -> {json.dumps(after)}"
    return path


def _at(state: Mapping[str, Any], path: str) -> Any:
    value: Any = state.get("inputs")
    for key in re.findall(r"[^.\[\]]+", path):
        try:
            value = value[int(key) if isinstance(value, list) else key]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value  # pyright: ignore[reportUnknownVariableType]


def _resource(each: Mapping[str, Any]) -> Resource:
    return Resource(
        type=each["type"],
        name=str(each["urn"]).rpartition("::")[2],
        id=str(each.get("id") or ""),
        inputs=each.get("inputs") or {},
        outputs=each.get("outputs") or {},
        parent=str(each.get("parent") or "").rpartition("::")[2],
    )


def _pulumi(folder: Path, *arguments: str) -> str:
    done = ran(*arguments, folder=folder)
    if done.returncode:
        lines = [line.strip() for line in f"{done.stderr}\n{_errors(done.stdout)}".splitlines() if line.strip()]
        why = next((line for line in lines if line.startswith("error:")), lines[0] if lines else "no reason given")
        verb = " ".join(each for each in arguments[:2] if not each.startswith("-"))
        text = f"pulumi {verb}: {why.removeprefix('error: ')}"
        raise CloudRefused(text, "where an update was cut off: stacks recover")
    return done.stdout


def _errors(text: str) -> str:
    try:
        told = json.loads(text)
    except ValueError:
        return text
    return "\n".join(f"error: {each['message']}" for each in told.get("diagnostics") or () if "error" in str(each))
