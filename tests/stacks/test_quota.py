"""`stacks quota`: from config files to verdicts, the table, the exit codes and the request."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from accel.catalog.quotas import Quota, quota_for
from accel.clouds.quota_cache import Limit
from accel.diagnostics.errors import CloudSilent
from accel.quota import Use, needs
from stacks.cli.main import stacks
from stacks.environment.config import load_environment
from stacks.operations.quota.aws import Readings, Running, running
from stacks.operations.quota.judgement import aws_pools
from tests.support.memory import run
from tests.support.project import KEY, environment, put
from tests.support.tables import cells

from .test_cli import stacks as command
from .test_config import ROOT

G, G_SPOT, P = "L-DB2E81BA", "L-3819A6DF", "L-417A185B"


def section(values: dict[str, Any]) -> Any:
    return load_environment(values).aws


def test_pools_are_the_environments() -> None:
    found = aws_pools(section(environment("dev")))
    assert [(pool.name, pool.spot, pool.max_vcpus, pool.exceeds, pool.region) for pool in found] == [
        ("spot", True, 128, True, "us-east-1"),
        ("on-demand", False, 64, True, "us-east-1"),
    ]
    assert {need.label: need.amount for need in needs(found)} == {G_SPOT: 128 + 192, G: 64 + 192}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("allocation_strategy", "BEST_FIT", (64, False)),
        ("state", "DISABLED", (0, False)),
        ("instance_types", ["g5.xlarge"], (64, True)),
    ],
)
def test_what_an_environment_can_reach(path: str, value: Any, expected: tuple[int, bool]) -> None:
    changed = put(f"aws.environments.on-demand.{path}", value, environment("dev"))
    (pool,) = [pool for pool in aws_pools(section(changed)) if pool.name == "on-demand"]
    assert (pool.max_vcpus, pool.exceeds) == expected


def instance(kind: str, lifecycle: str | None = None, stack: str | None = None, **more: Any) -> dict[str, Any]:
    tags = [{"Key": "accel:project", "Value": "accel"}, {"Key": "accel:stack", "Value": stack}] if stack else []
    return {"InstanceType": kind, **({"InstanceLifecycle": lifecycle} if lifecycle else {}), "Tags": tags, **more}


def test_what_runs_is_added_up() -> None:
    found = running(
        [
            instance("g5.xlarge", "spot", "dev"),
            instance("g5.12xlarge", "spot", "prod"),
            instance("g6.xlarge", stack="dev"),
            instance("p5.48xlarge", "capacity-block"),
            instance("g5.xlarge", Placement={"Tenancy": "host"}),
            instance("m9x.large", CpuOptions={"CoreCount": 1, "ThreadsPerCore": 2}),
            instance("p3.99xlarge"),
            instance("quantum.large"),
        ],
        "accel",
        "dev",
    )
    assert found == Running({G_SPOT: 52, G: 4, "L-1216C47A": 2}, {G_SPOT: 4, G: 4}, {P: "p3.99xlarge"})
    assert running([instance("g5.xlarge", stack="dev")], None, "dev").own == {}


def test_readings_of_one_quota() -> None:
    def of(code: str) -> Quota:
        return next(q for q in (quota_for("aws", "g5"), quota_for("aws", "p5")) if q and q.code == code)

    read = Readings({G: Limit(64), P: Limit(None, "no")}, Running({G: 8}, {G: 4}, {P: "p3.99xlarge"}))
    assert read.of(of(G)) == (Use(8, 4), 64, "")
    assert read.of(of(P)) == (None, None, "no")
    assert read.of(None) == (None, None, "")
    assert Readings({G: Limit(64)}, None, "denied").of(of(G)) == (None, 64, "denied")


# --- the command


@pytest.fixture
def quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`stacks quota dev` in a folder of its own, with these limits; an error instead is raised."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: accel\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {KEY: environment("dev")}}, sort_keys=False))

    def call(*arguments: str, answer: Any, in_use: Running | None = Running(), why: str = "") -> Result:  # noqa: B008
        def read(region: str, quotas: Any, account: str | None, project: str, stack: str) -> Readings:
            assert (region, account, project, stack) == ("us-east-1", None, "accel", "dev")
            assert {each.code for each in quotas} == {G, G_SPOT}
            if isinstance(answer, Exception):
                raise answer
            return Readings({code: Limit(value, why) for code, value in answer.items()}, in_use, why)

        monkeypatch.setattr("stacks.operations.quota.aws.readings", read)
        return CliRunner().invoke(stacks, ["quota", *arguments])

    return call


def test_enough(quota: Any) -> None:
    told = quota("dev", answer={G: 256, G_SPOT: 400}, in_use=Running({G_SPOT: 100}, {G_SPOT: 20}))
    assert told.exit_code == 0, told.output
    lines = cells(told)
    assert lines[0] == ["STACK", "NAME", "REGION", "NEED", "USE", "LIMIT", "UNIT", "VERDICT", "BY"]
    assert lines[1] == [
        "dev",
        "All G and VT Spot Instance Requests",
        "us-east-1",
        "320",
        "100",
        "400",
        "vCPU",
        "ok",
        "spot:320",
    ]
    assert lines[2] == [
        "dev",
        "Running On-Demand G and VT instances",
        "us-east-1",
        "256",
        "0",
        "256",
        "vCPU",
        "ok",
        "on-demand:256",
    ]
    assert "spot: 192 vCPUs of one g5.48xlarge more than max_vcpus is counted" in told.stderr


def test_too_small(quota: Any) -> None:
    told = quota("dev", "-o", "json", answer={G: 0, G_SPOT: 400}, in_use=Running({G: 4}))
    assert told.exit_code == 5
    rows = {row["quota"]: row for row in json.loads(told.stdout)}
    assert {code: row["verdict"] for code, row in rows.items()} == {G: "over", G_SPOT: "ok"}
    assert (rows[G]["total"], rows[G]["by"], rows[G]["own"]) == (260, {"on-demand": 256}, 0)
    assert rows[G]["source"].startswith("https://docs.aws.amazon.com/")
    assert told.stderr.splitlines() == [
        "error: Running On-Demand G and VT instances (L-DB2E81BA) in us-east-1: 260 of 0 vCPUs: 260 too few",
        "hint: stacks quota --request writes the request; or lower max_vcpus",
    ]


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--strict",), 5)])
def test_not_known(quota: Any, arguments: tuple[str, ...], code: int) -> None:
    told = quota("dev", *arguments, answer={G: None, G_SPOT: 400}, why="AccessDenied")
    assert told.exit_code == code
    assert f"quota unknown: {G} in us-east-1: AccessDenied" in told.stderr
    unseen = quota("dev", *arguments, answer={G: 300, G_SPOT: 400}, in_use=None, why="denied")
    assert unseen.exit_code == code and unseen.stderr.count("quota unknown: ") == 2


def test_silence(quota: Any) -> None:
    assert quota("dev", answer=CloudSilent("DescribeInstances: throttled")).exit_code == 9


def test_a_wrong_environment_is_refused_before_anything_is_asked(quota: Any, tmp_path: Path) -> None:
    wrong = put("aws.environments.spot.max_vcpus", 0, environment("dev"))
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {KEY: wrong}}))
    assert quota("dev", answer=AssertionError()).exit_code == 2
    assert quota("dve", answer=AssertionError()).exit_code == 6


def test_without_credentials(tmp_path: Path) -> None:
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "stacks", "quota", "dev"], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 3 and done.stderr.startswith("error: GetServiceQuota L-"), done.stderr
    assert command("quota", "--sack")[0] == 2


# --- the request


def test_the_request_is_a_program_that_asks(quota: Any) -> None:
    told = quota("dev", "--request", answer={G: 0, G_SPOT: 100}, in_use=Running({G: 10}))
    assert told.exit_code == 0 and told.stderr == ""
    made = run(lambda: exec(told.stdout, {}))  # noqa: S102 - what the command wrote is what is tested
    asked = made.of("servicequotas/serviceQuota:ServiceQuota")
    assert {(each.inputs["quotaCode"], each.inputs["value"], each.inputs["region"]) for each in asked} == {
        (G_SPOT, 320, "us-east-1"),
        (G, 266, "us-east-1"),
    }


def test_nothing_to_ask_for(quota: Any) -> None:
    told = quota("dev", "--request", answer={G: 9999, G_SPOT: 9999})
    assert (told.exit_code, told.stdout) == (0, "")
    assert "nothing to ask for" in told.stderr
