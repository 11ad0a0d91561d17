"""A row of a table: how one Pulumi type is created, read, changed and removed; tables/*.yaml hold the rows."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

State = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A call, `{operation: parameters}`, or a function, `{do: name}`, of (cloud, new state, old state or {}). In
    parameters "$x" is from the resource's state and "@x" from its description (both JMESPath). `for` names the
    properties that cause the step; `all` sends those, or without `for` every one that the call's input has."""

    op: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    act: Callable[[Any, State, State], Any] | None = None
    on: tuple[str, ...] = ()
    spread: bool = False


@dataclass(frozen=True)
class Wait:
    """Statuses to wait for, in `ready`; any that is in neither set is a failure, as in Terraform."""

    ready: frozenset[str]
    pending: frozenset[str]
    status: str = "State"
    reason: str = "StateReason"
    patience: str = "20m0s"
    """Time that the provider waits, in its own notation; the sandbox's is SANDBOX_WAIT_S. The default is Terraform's
    own: https://github.com/hashicorp/terraform-plugin-sdk/blob/main/helper/schema/resource_data.go"""


@dataclass(frozen=True)
class Autoname:
    limit: int
    prop: str = "name"
    lower: bool = False


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A Pulumi type. `id`, `found`, `outputs` are JMESPath, or formats where they begin with "{" or "arn:"."""

    title: str
    service: str
    create: Step
    id: str  # over the answer of `create`
    read: Step
    found: str = "@"  # over the answer of `read`: the description
    sets: tuple[Step, ...] = ()  # after the creation and on an update: properties that `create` does not accept
    updates: tuple[Step, ...] = ()
    deletes: tuple[Step, ...] = ()
    tag: Step | None = None
    untag: Step | None = None
    wait: Wait | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)  # where Pulumi and the API differ by more than case
    autoname: Autoname | None = None
    replace: frozenset[str] = frozenset()
    replace_if: Callable[[State, State], frozenset[str]] = lambda old, new: frozenset()
    own: frozenset[str] = frozenset()  # properties of Pulumi alone
    computed: frozenset[str] = frozenset()  # optional and computed: to leave one out keeps the cloud's value
    moving: frozenset[str] = frozenset()  # outputs that an update changes, unless only of tags
    texts: frozenset[str] = frozenset()  # JSON to Pulumi, structures to the API
    unknown: frozenset[str] = frozenset()  # properties of the API alone
    arns: frozenset[str] = frozenset()  # properties that the provider accepts only as ARNs, in its own spelling
    tagged: str = ""  # the resource type under which EC2's create call accepts tags
    taggable: bool = True
    regional: bool = True


def load(path: Path, package: str) -> dict[str, Kind]:
    """Return the rows of a table. Its functions are in the module of `package` that has the table's name."""
    rows: dict[str, State] = yaml.load(path.read_text(), yaml.CSafeLoader)
    module, shared = importlib.import_module(f"{package}.{path.stem}"), rows.pop("_")
    return {token: _kind({**shared, **row}, module) for token, row in rows.items()}


def _kind(row: State, module: Any) -> Kind:
    made: State = dict(row)
    for name in ("create", "read", "tag", "untag"):
        if name in row:
            made[name] = _step(row[name], module)
    for name in ("sets", "updates", "deletes"):
        steps = row.get(name, [])
        made[name] = tuple(made["create"] if step == "again" else _step(step, module) for step in steps)
    for name in ("replace", "own", "computed", "moving", "texts", "unknown", "arns"):
        made[name] = frozenset(row.get(name, "").split())
    if "wait" in row:
        sets = {name: frozenset(row["wait"][name].split()) for name in ("ready", "pending")}
        made["wait"] = Wait(**{**row["wait"], **sets})
    if "autoname" in row:
        made["autoname"] = Autoname(**row["autoname"])
    if "replace_if" in row:
        made["replace_if"] = getattr(module, row["replace_if"])
    return Kind(**made)


def _step(row: State, module: Any) -> Step:
    row = dict(row)
    on, spread = tuple(row.pop("for", "").split()), row.pop("all", False)
    ((op, params),) = row.items()
    if op == "do":
        return Step(act=getattr(module, params), on=on)
    return Step(op, {} if params == "all" else params, on=on, spread=spread or params == "all")
