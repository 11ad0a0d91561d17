"""Previews made by hand, in the form of the engine's digest."""

import json
from typing import Any

from stacks.operations.report.preview import Preview, of_text

PREFIX = "urn:pulumi:dev::accel"


def step(op: str, kind: str, name: str, **state: Any) -> dict[str, Any]:
    """`old`, `new`: inputs; `outputs`: of the old state; `id`, `diffs` and `replaces` besides."""
    urn = f"{PREFIX}::{kind}::{name}"
    old = {"urn": urn, "id": state.get("id", f"{name}-1"), "inputs": state.get("old", {})}
    made: dict[str, Any] = {"op": op, "urn": urn, "replaceReasons": state.get("replaces", [])}
    made["detailedDiff"] = {path: {"kind": "update"} for path in state.get("diffs", [])} or None
    if op != "create":
        made["oldState"] = {**old, "outputs": state.get("outputs", {}), **state.get("flags", {})}
    if op != "delete":
        made["newState"] = {"urn": urn, "inputs": state.get("new", {})}
    return made


def preview(*steps: dict[str, Any], outputs: dict[str, Any] | None = None, **rest: Any) -> Preview:
    """A preview of stack `dev` with these steps."""
    own = {"op": "same", "urn": f"{PREFIX}::pulumi:pulumi:Stack::accel-dev", "oldState": {"outputs": outputs or {}}}
    return of_text(json.dumps({"steps": [own, *steps], "changeSummary": {}, **rest}), "preview.json", "dev")


def environment(values: dict[str, Any]) -> dict[str, Any]:
    """As the `config` of a digest has it."""
    return {"accel:environment": json.dumps(values)}
