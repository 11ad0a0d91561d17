"""What an earlier version deployed is upgraded to this one without losing what lasts: previews of the real engine over
the states of tests/golden/states."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pytest

from sandbox.environment import environment
from sandbox.processes import stop
from stacks.operations.report.preview import Preview, of_text
from stacks.operations.report.threats import LOSSES
from tests.support import states
from tests.support.engine import Sandbox, start
from tests.support.project import Stack, put
from tests.support.soak import sampled, soak_only
from tests.support.states import State

pytestmark = pytest.mark.engine
ENDED = states.FOLDER.parent / "upgrades.json"
"""What else an upgrade replaces or deletes, by commit; UPGRADING.md tells each. ACCEL_UPDATE_GOLDEN=1 writes it."""
KEPT = ("same", "update")
LASTING = {
    *("aws:cloudwatch/logGroup:LogGroup", "aws:dynamodb/table:Table", "aws:ecr/repository:Repository"),
    *("gcp:container/cluster:Cluster", "gcp:storage/bucket:Bucket", "kubernetes:core/v1:Namespace"),
}
"""Among what every state has."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Without a control plane: that of the states is gone, and a preview needs none."""
    home = tmp_path_factory.mktemp("clouds")
    start(home, ("cloud", "google"))
    yield Stack(tmp_path_factory.mktemp("upgrade"), Sandbox(home, environment(home)), {}, stack=states.STACK)
    stop(home)


@dataclass(frozen=True)
class Upgrade:
    """What this version would do to a state, with the environment that it was deployed with."""

    state: State
    preview: Preview
    steps: dict[str, list[dict[str, Any]]]
    """By the URN that the state has."""

    def lost(self) -> list[str]:
        """What is protected, or would be lost for good, and is not just kept: a line each."""
        return sorted(filter(None, map(self._fate, lasting(self.state))))

    def ended(self) -> list[str]:
        """What else is replaced or deleted."""
        kept = {each["urn"] for each in lasting(self.state)}
        return sorted(
            f"{each.op} {each.type} {each.name} {list(each.replaces)}"
            for each in self.preview.changes
            if each.op in ("replace", "delete", "forget") and each.urn not in kept
        )

    def _fate(self, resource: dict[str, Any]) -> str | None:
        about = f"{resource['type']} {resource['urn'].rpartition('::')[2]}"
        steps = self.steps.get(resource["urn"], [])
        if not steps:
            return f"{about}: the engine did not come to it"
        for step in steps:
            if step["op"] not in KEPT:
                return f"{about}: {step['op']} {step.get('replaceReasons') or ''}".rstrip()
            if resource.get("protect") and not step["newState"].get("protect"):
                return f"{about}: is not protected any more"
        return None


def lasting(state: State) -> list[dict[str, Any]]:
    return [each for each in state.resources if each.get("protect") or each["type"] in LOSSES]


def upgrade(stack: Stack, state: State) -> Upgrade:
    file = stack.folder / "state.json"
    file.write_text(json.dumps(state.export))
    stack.run("stack", "import", "--stack", stack.stack, "--file", str(file))
    stack.write_environment(state.environment)
    shown = ("--json", "--show-sames", "--show-replacement-steps")
    done = stack.run("preview", *shown, "--stack", stack.stack, check=False)
    steps: dict[str, list[dict[str, Any]]] = {}
    for step in json.loads(done.stdout)["steps"]:
        if old := step.get("oldState"):
            steps.setdefault(old["urn"], []).append(step)
    return Upgrade(state, of_text(done.stdout, "preview", stack.stack, failed=done.returncode != 0), steps)


@pytest.mark.parametrize("commit", sampled(states.commits(), [states.commits()[0]]))
def test_an_upgrade_keeps_what_lasts(stack: Stack, commit: str) -> None:
    state = states.read(commit)
    done = upgrade(stack, state)
    changes = "\n".join(f"{each.op} {each.type} {each.name} {list(each.diffs)}" for each in done.preview.changes)
    assert not done.preview.failed, done.preview.errors
    assert {each["type"] for each in lasting(state)} >= LASTING
    assert done.lost() == [], f"give it an alias, or the name that it had; of\n{changes}"
    golden = json.loads(ENDED.read_text())
    if os.environ.get("ACCEL_UPDATE_GOLDEN"):
        golden[commit] = done.ended()
        ENDED.write_text(json.dumps(golden, indent=2, sort_keys=True) + "\n")
    else:
        assert done.ended() == golden[commit], changes


def other(state: State, inputs: Mapping[str, tuple[str, str]], urns: Mapping[str, str]) -> State:
    """A copy with one property of some resources, by the end of their URNs, changed, and parts of URNs."""
    export = json.loads(reduce(lambda text, parts: text.replace(*parts), urns.items(), json.dumps(state.export)))
    for end, (name, value) in inputs.items():
        (found,) = [each for each in export["deployment"]["resources"] if each["urn"].endswith(end)]
        found["inputs"][name] = found["outputs"][name] = value
    return replace(state, export=export)


def test_what_would_be_lost_is_seen(stack: Stack) -> None:
    """By another value of what cannot be changed, another name, another type token of a component."""
    changed = other(
        states.read(states.commits()[0]),
        {"accel:gcp:VmJobs$gcp:storage/bucket:Bucket::jobs": ("location", "EUROPE-WEST4")},
        {"Eip::network-nat-us-east-1a": "Eip::nat-us-east-1a", "accel:aws:JobLog": "accel:aws:Log"},
    )
    done = upgrade(stack, changed)
    assert not done.preview.failed
    assert done.lost() == [
        "aws:cloudwatch/logGroup:LogGroup jobs: delete",
        "aws:ec2/eip:Eip nat-us-east-1a: delete",
        "gcp:storage/bucket:Bucket jobs: create-replacement ['location']",
    ]


@soak_only
def test_what_is_protected_is_seen_too(stack: Stack) -> None:
    """The engine refuses, and says so for the first; the lines have them all."""
    changed = other(
        states.read(states.commits()[0]),
        {"aws:dynamodb/table:Table::claims": ("hashKey", "key")},
        {"aws:ecr/repository:Repository::training": "aws:ecr/repository:Repository::images"},
    )
    done = upgrade(stack, changed)
    assert done.preview.failed
    assert done.lost() == [
        "aws:dynamodb/table:Table claims: create-replacement ['hashKey']",
        "aws:ecr/repository:Repository images: delete",
    ]


@soak_only
def test_protection_that_goes_is_seen(stack: Stack) -> None:
    state = states.read(states.commits()[0])
    values = put("gcp.workloads.namespaces.jobs.protect", False, put("aws.claims.protect", False, state.environment))
    assert upgrade(stack, replace(state, environment=values)).lost() == [
        "aws:dynamodb/table:Table claims: is not protected any more",
        "kubernetes:core/v1:Namespace jobs: is not protected any more",
    ]
