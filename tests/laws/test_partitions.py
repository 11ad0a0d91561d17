"""A law for every component on AWS: in each partition of AWS its ARNs and names of services are that partition's."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.catalog.aws_partitions import partition_of
from components.aws.gpu_metrics import cloudwatch_agent_script
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.support import memory
from tests.support.environments import EMAILS, TRAIN

from .components import MAKERS, alone

ROOT = Path(__file__).parents[2]
PLACES = {"us-east-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "eusc-de-east-1": "aws-eusc"}
ARN = re.compile(r"arn:(aws[a-z-]*):[a-z0-9-]*:")
"""Those that are made up in the tests have a type with a slash in the place of a service."""


def everything(region: str, partition: str, egress: str) -> dict[str, Any]:
    """An environment with all components of AWS."""
    secret = f"arn:{partition}:secretsmanager:{region}:210020003000:secret:wandb-AbCdEf"
    image = f"210020003000.dkr.ecr.{region}.{partition_of(region).suffix}/train:1"
    topic = f"arn:{partition}:sns:{region}:210020003000:money"
    volume = {"kind": "efs", "file_system": "fs-0a1b2c3d4e5f60718", "path": "/data"}
    return {
        "owner": "ml",
        "aws": {
            "region": region,
            "network": {"kind": "create", "zones": [f"{region}a"], "egress": egress,
                        "interface_endpoints": ["ecr.api", "ecr.dkr", "logs", "monitoring"]},
            "environments": {
                "first": {"capacity": "spot", "instance_types": ["g4dn"], "max_vcpus": 128,
                          "allocation_strategy": "BEST_FIT", "spot_fleet_role": "fleet",
                          "instance_profile": "ecsInstanceRole", "buckets": {"data": "read-write"}},
                "second": {"capacity": "on-demand", "instance_types": ["g4dn"], "max_vcpus": 128},
            },
            "queues": {"gpu": {"environments": ["first"], "fair_share": {"shares": {"a": 0.5}}},
                       "other": {"environments": ["second"]}},
            "definitions": {"train": {**TRAIN, "image": image, "volumes": [volume],
                                      "secrets": {"KEY": f"{secret}:key::", "NAME": "/by/name"}}},
            "repositories": {"training": {}},
            "roles": {"read_buckets": ["inputs"], "write_buckets": ["outputs"]},
            "monitoring": {"gpu_metrics": True, "emails": ["ml@company.com"]},
            "budgets": {"gpus": {"amount": 1000, "recipients": {**EMAILS, "sns_topic_arn": topic},
                                 "stop": {"running": {"after_min": 5}}}},
        },
        "allowances": {"teams": {"ml": {"usd": 20}}},
    }  # fmt: skip


@pytest.fixture(params=["endpoints", "nat"])
def egress(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A region and its partition, which the engine in memory says too."""
    region = str(request.param)
    monkeypatch.setitem(memory.CALLS, "aws:index/getPartition:getPartition", {"partition": PLACES[region]})
    return region, PLACES[region]


def run(region: str, partition: str, egress: str) -> memory.Recorder:
    environment = load_environment(everything(region, partition, egress))
    return memory.run(lambda: deploy(environment))


def test_every_arn_is_of_the_partition(place: tuple[str, str], egress: str) -> None:
    region, partition = place
    for one in run(region, partition, egress).registrations:
        text = json.dumps(one.inputs, default=str)
        wrong = {found[0] for found in ARN.finditer(text) if found[1] != partition}
        assert not wrong, f"{one.urn}: {wrong}"


def test_every_endpoint_is_of_the_region(place: tuple[str, str]) -> None:
    region, partition = place
    names = {one.inputs["serviceName"] for one in run(region, partition, "endpoints").of("ec2/vpcEndpoint:VpcEndpoint")}
    prefix = "cn.com.amazonaws" if partition == "aws-cn" else "com.amazonaws"
    assert {f"{prefix}.{region}.ecr.api", f"com.amazonaws.{region}.logs", f"com.amazonaws.{region}.s3"} <= names


def test_the_environment_has_every_component_of_aws() -> None:
    def tokens(seen: memory.Recorder) -> set[str]:
        return {one.type for one in seen.registrations if one.type.startswith("accel:aws:")}

    existing = {token for maker in MAKERS.values() for token in tokens(alone(maker)[1])}
    assert tokens(run("us-east-1", "aws", "nat")) == existing


@pytest.mark.parametrize(("region", "partition"), PLACES.items())
def test_a_regions_name_tells_its_partition(region: str, partition: str) -> None:
    assert partition_of(region).name == partition


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module but those that document it."""
    tree = ast.parse(path.read_text())
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.lineno, node.value


def test_no_code_names_one_partition() -> None:
    """But as a sample in a hint: with <region> or <id> in it."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("accel", "components", "jobs", "stacks", "policy")
        for path in (ROOT / folder).rglob("*.py")
        for line, text in texts(path)
        if "arn:aws:" in text and "<" not in text
    ]
    assert found == []


def test_the_agents_script_names_no_host() -> None:
    assert "amazonaws" not in cloudwatch_agent_script("accel/dev/spot", 60)
