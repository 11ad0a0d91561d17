"""Clusters in a whole environment: zones, the network around them, and what the stack then promises to jobs."""

from typing import Any

import pytest

from stacks.environment.config import ConfigFaults, load_environment, warnings
from tests.support import memory

from .test_config import document, put
from .test_environment import ran

NEAR = {
    "capacity": "on-demand",
    "instance_types": ["p5.48xlarge"],
    "max_vcpus": 384,
    "placement": "cluster",
    "efa": True,
    "zone": "us-east-1a",
    "local_nvme": True,
}


def with_near(**changed: Any) -> dict[str, Any]:
    near = {key: value for key, value in {**NEAR, **changed}.items() if value is not None}
    return put("aws.queues.near", {"environments": ["near"]}, put("aws.environments.near", near))


def test_a_target_tells_of_the_cluster() -> None:
    (environment,) = ran(with_near()).exports["targets"]["near"]["environments"]
    assert (environment["close"], environment["efa_interfaces"], environment["local_nvme"]) == (True, 32, "/scratch")
    others = ran(with_near()).exports["targets"]["gpu"]["environments"]
    assert [(one["close"], one["efa_interfaces"], one.get("local_nvme")) for one in others] == [(False, 0, None)] * 2


def test_its_instances_are_in_the_one_zone() -> None:
    seen = ran(with_near())
    subnets = {one.name: one.inputs["computeResources"]["subnets"] for one in environments(seen)}
    assert subnets["near"] == ["network-private-us-east-1a-id"]
    assert len(subnets["spot"]) == 2


def environments(seen: memory.Recorder) -> list[memory.Registration]:
    return seen.of("batch/computeEnvironment:ComputeEnvironment")


def test_the_default_group_is_opened_by_an_environment_with_efa() -> None:
    def opened(values: dict[str, Any]) -> bool:
        return bool(ran(values).one("ec2/defaultSecurityGroup:DefaultSecurityGroup").inputs["ingress"])

    assert opened(with_near()) and not opened(with_near(efa=None)) and not opened(document())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"zone": "us-east-1f"}, "environments.near.zone: 'us-east-1f' is not a zone of the network"),
        ({"subnet_ids": ["subnet-0a1b2c3d"]}, "environments.near.zone: 'us-east-1a' is given beside subnet_ids"),
        ({"placement": None}, "environments.near.efa: is true without a cluster placement group"),
        ({"placement": "spread"}, "environments.near.placement"),
    ],
)
def test_faults(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigFaults) as caught:
        load_environment(with_near(**changed))
    assert any(said in str(fault) for fault in caught.value.faults), caught.value.faults


def test_a_zone_is_of_a_network_that_is_made_here() -> None:
    ids = {"vpc_id": "vpc-0a1b2c3d", "subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
    with pytest.raises(ConfigFaults, match="name subnet_ids instead"):
        load_environment(put("aws.network", {"kind": "existing", **ids}, with_near()))


@pytest.mark.parametrize(("changed", "warned"), [({"zone": None}, True), ({}, False)])
def test_a_cluster_over_several_zones_is_warned_of(changed: dict[str, Any], warned: bool) -> None:
    texts = [str(fault) for fault in warnings(load_environment(with_near(**changed)))]
    assert any("aws.cluster.zones" in text and "near.placement" in text for text in texts) is warned
