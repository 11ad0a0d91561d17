"""Another team's program on the engine: reads a stack's outputs, adds what is its own, and jobs go there."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pulumi
import pytest
import yaml

from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget
from accel.contract.network import AwsNetwork
from accel.contract.stack import read, read_target, read_targets
from sandbox.environment import project
from tests.support import memory
from tests.support.engine import Engine, Sandbox
from tests.support.project import Stack, environment
from tests.support.soak import SOAK

pytestmark = pytest.mark.engine
CONSUMER = project() / "examples" / "consumer"

PLATFORM = """
import json, pulumi
for name, value in json.loads(OUTPUTS).items():
    pulumi.export(name, value)
"""
GOOGLE_TARGETS = {"gke": "gke"} | (
    {"batch": "google-batch", "vertex": "vertex", "tpu": "tpu-vm", "vm": "gce"} if SOAK else {}
)


def consumer(folder: Path, sandbox: Sandbox, platform: str, **config: Any) -> Engine:
    """The example with a config; AWS's region is the provider's."""
    folder.mkdir(parents=True)
    lines = {"aws:region": "us-east-1", "gcp:project": "accel-sandbox", "consumer:platform": platform}
    lines |= {f"consumer:{name}": value for name, value in config.items()}
    (folder / "Pulumi.test.yaml").write_text(yaml.safe_dump({"config": lines}))
    return Engine(folder, sandbox, CONSUMER)


def lent() -> dict[str, Any]:
    """The sandbox's environment with both clouds; but for `make soak`, with what the team builds on alone."""
    values = {**environment("sandbox", "aws"), **environment("sandbox", "gcp")}
    gcp = copy.deepcopy(values["gcp"])
    if not SOAK:
        for unused in ("vms", "batch", "vertex", "images"):
            del gcp[unused]
        gcp["pools"] = {name: gcp["pools"][name] for name in ("system", "l4-spot")}
        gcp["workloads"]["queueing"]["queues"]["training"]["pools"] = [{"pool": "l4-spot"}, {"pool": "system"}]
    return {**values, "gcp": gcp}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, google: Sandbox) -> Iterator[dict[str, Any]]:
    """The outputs of the platform's stack."""
    stack = Stack(tmp_path_factory.mktemp("platform"), google, lent(), stack="lends")
    yield dict(stack.up().outputs)
    stack.destroy()


@pytest.fixture(scope="module")
def team(
    tmp_path_factory: pytest.TempPathFactory, google: Sandbox, platform: dict[str, Any]
) -> Iterator[tuple[Engine, dict[str, Any]]]:
    """The team's program, deployed, and its outputs."""
    wanted = {"queue": "gpu", "gke": "gke", "like": "l4-spot", "targets": [*GOOGLE_TARGETS]}
    own = consumer(tmp_path_factory.mktemp("team") / "own", google, "organization/accel/lends", **wanted)
    yield own, dict(own.up().outputs)
    own.destroy()


@pytest.fixture
def submitted(google: Sandbox, team: tuple[Engine, dict[str, Any]], tmp_path: Path) -> Callable[[str], str]:
    """What a job printed that was submitted to one of the team's targets."""
    (tmp_path / "targets.json").write_text(json.dumps(team[1]["targets"]))
    at = {
        **os.environ,
        **google.variables,
        "PYTHONPATH": str(project()),
        "ACCEL_TARGETS": str(tmp_path / "targets.json"),
    }

    def jobs(*words: str) -> str:
        run = [sys.executable, "-m", "jobs", *words]
        done = subprocess.run(run, env=at, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def run(target: str, **fields: Any) -> str:
        job = {"name": "seen", "image": "local/examples", "command": ["python", "-c", "print(6 * 7)"], **fields}
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        return jobs("logs", jobs("submit", str(tmp_path / "job.yaml"), "--to", target, "--wait", "-o", "id"))

    return run


def test_a_team_adds_its_queue_and_submits_to_it(
    team: tuple[Engine, dict[str, Any]], platform: dict[str, Any], submitted: Callable[..., str]
) -> None:
    _, seen = team
    assert seen["subnets"] == platform["network"]["subnet_ids"]
    own, theirs = seen["targets"]["team"], platform["targets"]["gpu"]
    assert own["queue_arn"] != theirs["queue_arn"] and own["environments"] == theirs["environments"]
    assert submitted("team") == "42"


def test_a_team_adds_a_node_pool_and_submits_to_it(
    team: tuple[Engine, dict[str, Any]], platform: dict[str, Any], submitted: Callable[..., str]
) -> None:
    engine, seen = team
    (pool,) = [each["outputs"] for each in engine.export() if each["type"] == "gcp:container/nodePool:NodePool"]
    own, theirs = seen["targets"]["team-gke"], platform["targets"]["gke"]
    assert pool["cluster"] == theirs["cluster"] and pool["name"] not in json.dumps(theirs)
    assert {key: each["name"] for key, each in own["pools"].items()} == {"team": pool["name"]}
    assert submitted("team-gke", accelerator={"type": "l4", "count": 1}, cpus=1, memory_mib=1024) == "42"


def test_a_team_reads_every_target_and_makes_nothing_twice(
    team: tuple[Engine, dict[str, Any]], platform: dict[str, Any]
) -> None:
    engine, seen = team
    for name, kind in GOOGLE_TARGETS.items():
        assert seen["targets"][name] == platform["targets"][name] and seen["targets"][name]["kind"] == kind
    assert engine.preview().ops("same") == {}


BATCH = {
    "kind": "google-batch",
    "schema": 1,
    "project": "p",
    "region": "us-central1",
    "service_account": "a@p",
    "bucket": "b",
    "network": "n",
    "subnetwork": "s",
}
OLDER = {key: BATCH[key] for key in BATCH if key != "bucket"}
NEWER = {**BATCH, "schema": 2, "fleet": {"x": 1}}
NEEDS = (
    "targets.batch: is not what this accel reads: bucket: is missing (the other stack writes schema 1 of the contract; "
    "this accel reads schema 1: deploy it with the same version of accel, or install its version here)"
)


def test_an_older_contract_is_refused_in_one_line_by_the_engine(tmp_path: Path, sandbox: Sandbox) -> None:
    platform = Engine(
        tmp_path / "older", sandbox, PLATFORM.replace("OUTPUTS", repr(json.dumps({"targets": {"batch": OLDER}})))
    )
    platform.up()
    name = f"organization/{platform.project}/{platform.stack}"
    refused = consumer(tmp_path / "team", sandbox, name, targets=["batch"]).preview(check=False)
    assert refused.exit_code == 1 and "Traceback" not in refused.text
    assert [line for line in refused.diagnostics if "program exited with non-zero exit code" not in line] == [NEEDS]


class _Told:
    """A stack's outputs, read by a program on the engine in memory."""

    name: ClassVar[str] = "organization/other/dev"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, outputs: dict[str, Any]) -> None:
        monkeypatch.setitem(memory.STACKS, self.name, outputs)
        self.warnings: list[str] = []
        monkeypatch.setattr(pulumi.log, "warn", self.warnings.append)

    def read(self, reader: Callable[[pulumi.StackReference], pulumi.Output[Any]]) -> Any:
        found: list[Any] = []

        def program() -> None:
            reader(pulumi.StackReference(self.name)).apply(found.append)

        memory.run(program)
        return found[0]


def test_a_newer_stack_may_say_more(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _Told(monkeypatch, {"targets": {"batch": NEWER, "quantum": {"kind": "braket", "qubits": 3}}})
    found = told.read(read_targets)
    assert list(found) == ["batch"] and not hasattr(found["batch"], "fleet")
    (said,) = told.warnings
    assert said.startswith("targets.quantum: is left out: this accel knows no kind 'braket', only aws-batch, ")


@pytest.mark.parametrize(
    "outputs, reader, said",
    [
        ({"targets": {"batch": OLDER}}, read_targets, NEEDS),
        (
            {"targets": {"batch": {**NEWER, "region": 3}}},
            read_targets,
            "targets.batch: is not what this accel reads: region: Input should be a valid string (the other stack "
            "writes schema 2 of the contract; this accel reads schema 1: ",
        ),
        ({"other": 1}, read_targets, "targets: the other stack has no such output"),
        ({"targets": ["batch"]}, read_targets, "targets: is not what this accel reads: must be an object"),
        ({"targets": {"batch": "b"}}, read_targets, "targets.batch: is not what this accel reads: must be an object"),
        ({"network": 3}, lambda other: read(AwsNetwork, other, "network"), "network: is not what this accel reads"),
        (
            {"targets": {"batch": BATCH}},
            lambda other: read_target(GoogleBatchTarget, other, "gpu"),
            "targets.gpu: the other stack has no such target; it has batch",
        ),
        (
            {"targets": {"batch": BATCH}},
            lambda other: read_target(GkeTarget, other, "batch"),
            "targets.batch: is of kind google-batch, and GkeTarget was asked for",
        ),
    ],
)
def test_another_contract_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, outputs: dict[str, Any], reader: Any, said: str
) -> None:
    with pytest.raises(pulumi.RunError) as refused:
        _Told(monkeypatch, outputs).read(reader)
    assert str(refused.value).startswith(said) and "\n" not in str(refused.value)
