"""Looking for each resource of a state as if its creation were pending."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from stacks.operations.recover.lookup import Candidate, MadeAgain, NotSought
from stacks.operations.recover.pending import pending
from stacks.operations.recover.recovery import Clouds

from .engine import Engine


def sought(engine: Engine, monkeypatch: pytest.MonkeyPatch, asked: Mapping[str, str]) -> list[str]:
    """What became of the search for each resource of the state: those that were not found as they should be. `asked`
    says of types what a person is told instead."""
    for name, value in engine.variables.items():
        monkeypatch.setenv(name, value)
    state = json.loads(engine.run("stack", "export", "--stack", engine.stack).stdout)["deployment"]
    ids = {(each["type"], each.get("id")) for each in state["resources"]}
    told: list[str] = []
    for each in state["resources"]:
        begun = {name: value for name, value in each.items() if name not in ("id", "outputs", "created", "modified")}
        (operation,) = pending({**state, "pending_operations": [{"type": "creating", "resource": begun}]})
        if not operation.outside:
            continue
        try:
            verdict, found = "", list(Clouds(state).find(operation))
        except MadeAgain:
            continue
        except NotSought:
            verdict, found = "NotSought", []
        verdict = verdict or _verdict(each, found, ids)
        if verdict != asked.get(each["type"], "") and verdict:
            told.append(f"{each['type']} {operation.name} {each['id']}: {verdict}, found {found}")
    return told


def _verdict(entry: dict[str, Any], found: list[Candidate], ids: set[tuple[str, str | None]]) -> str:
    mine = [one for one in found if one.id == entry["id"]]
    if not mine:
        return "other id" if found else "not found"
    if any(one.why and (entry["type"], one.id) not in ids for one in found):
        return "others proven"
    return "" if mine[0].why or mine[0].made else "not proven"
