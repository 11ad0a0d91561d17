"""What recover does to a state, and when it does nothing."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from accel.diagnostics.errors import CloudRefused, NotFound
from stacks.operations.recover.engine import Engine
from stacks.operations.recover.plan import Decisions
from stacks.operations.recover.recovery import Recovery

from .test_recover_pending import entry, made, state

NOWHERE = "random:index/randomId:RandomId"
"""A type that nothing here looks for."""


@dataclass(frozen=True)
class Kept(Engine):
    """A state in a bucket; its cloud knows nothing of it."""

    states: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    done: list[str] = field(default_factory=list[str])
    preview: dict[str, Any] = field(default_factory=dict[str, Any])

    def backend(self) -> str:
        return "s3://states"

    def export(self) -> dict[str, Any]:
        return copy.deepcopy(self.states[-1])

    def replace(self, state: dict[str, Any]) -> None:
        self.done.append("replace")
        self.states.append(copy.deepcopy(state))

    def history(self) -> list[dict[str, Any]]:
        return []

    def planned(self) -> dict[str, Any]:
        return self.preview

    def refresh(self, urns: Sequence[str] = ()) -> None:
        self.done.append("refresh" if urns else "refresh all")
        after = self.export()
        after["deployment"]["resources"] = [e for e in after["deployment"]["resources"] if e["urn"] not in urns]
        self.states.append(after)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    monkeypatch.chdir(tmp_path)


def recovery(deployment: dict[str, Any], said: Decisions | None = None) -> tuple[Recovery, Kept]:
    found = Recovery("organization/p/dev", said or Decisions(), break_lock=False, settle_s=0, wait_s=1)
    manifest = {"time": "2026-11-01T00:00:00+00:00"}
    kept = Kept("dev", [{"version": 3, "deployment": {"manifest": manifest, **deployment}}])
    found.engine = kept
    return found, kept


@pytest.mark.parametrize("text", ["", "runtime: python\n", "[]\n", "name: [\n"])
def test_without_a_name_of_the_project_no_file_is_looked_for(text: str) -> None:
    Path("Pulumi.yaml").write_text(text)
    found, _ = recovery(state(made("a")))
    with pytest.raises(NotFound, match=r"no Pulumi\.yaml with a name here or above"):
        found.look()


def test_what_nothing_proves_is_not_touched() -> None:
    found, kept = recovery(state(made("a"), creating=[entry("b", NOWHERE)]))
    with pytest.raises(CloudRefused, match=f"nothing was changed: creating {NOWHERE} b: there is no way here") as told:
        list(found.run())
    assert told.value.hint and "--adopt NAME=ID, or --clear NAME" in told.value.hint
    assert (kept.done, len(kept.states)) == ([], 1)


def test_an_id_that_the_cloud_does_not_have_is_said() -> None:
    found, kept = recovery(state(creating=[entry("b", NOWHERE)]), Decisions({"b": "x-1"}))
    with pytest.raises(CloudRefused, match=r"its cloud does not have it: b \(x-1\)"):
        list(found.run())
    assert kept.done == ["replace", "refresh"]
    assert kept.states[-1]["deployment"]["pending_operations"] == []


def test_a_look_changes_nothing() -> None:
    component = {"urn": "urn:pulumi:dev::p::test:Ground::c", "type": "test:Ground", "custom": False}
    found, kept = recovery(state(creating=[component]))
    assert found.look() == ["creating test:Ground c: drop it: nothing outside the state is made of it"]
    assert kept.done == []
    assert list(found.run())[1:] == ["every resource of the state was read again"]
    assert kept.done == ["replace", "refresh all"]
    assert found.look() == []
