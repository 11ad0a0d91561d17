"""Steps of tables/batch.yaml that one call does not express."""

import re
from typing import Any

from ..resource import State
from .cloud import Cloud

# Only these can be changed in place, and only under the service-linked role.
_PROGRESSIVE = ("BEST_FIT_PROGRESSIVE", "SPOT_CAPACITY_OPTIMIZED", "SPOT_PRICE_CAPACITY_OPTIMIZED")
_SERVICE_LINKED = re.compile(r"arn:[^:]+:iam::\d{12}:role/aws-service-role/batch\.amazonaws\.com/")
_NETWORK = ["securityGroupIds", "subnets"]
_INFRASTRUCTURE = [
    *("allocationStrategy", "bidPercentage", "ec2Configurations", "ec2KeyPair", "imageId", "instanceRole"),
    *("instanceTypes", "launchTemplate", "tags"),
]
_SCALING = ["type", "minVcpus", "desiredVcpus"]
# What terraform-provider-aws sends for a removed property; for others it sends "".
_CLEARED = {
    "minVcpus": 0,
    "desiredVcpus": 0,
    "bidPercentage": 0,
    "tags": {},
    "launchTemplate": {"launchTemplateId": ""},
}


def fixed_infrastructure(old: State, new: State) -> frozenset[str]:
    """Return the properties whose change replaces the environment, by terraform's isUpdatableComputeEnvironment."""
    resources = [side.get("computeResources", {}) for side in (old, new)]
    roles = [side.get("serviceRole", "") for side in (old, new)]
    linked = all(not role or _SERVICE_LINKED.match(role) for role in roles)
    if linked and all(side.get("allocationStrategy") in _PROGRESSIVE for side in resources):
        return frozenset()
    fargate = resources[1].get("type", "").startswith("FARGATE")
    return frozenset(f"computeResources.{name}" for name in _INFRASTRUCTURE + ([] if fargate else _NETWORK))


def update_environment(cloud: Cloud, new: State, old: State) -> None:
    before, after = old.get("computeResources", {}), new.get("computeResources", {})
    changed: dict[str, Any] = {n: new.get(n) for n in ("state", "serviceRole") if new.get(n) != old.get(n)}
    if new["type"] == "MANAGED":
        names = _INFRASTRUCTURE + _NETWORK + _SCALING
        moved = {name: after.get(name) for name in names if before.get(name) != after.get(name)}
        cleared = {name: _CLEARED.get(name, "") for name, value in moved.items() if value is None}
        changed["computeResources"] = {"maxVcpus": after["maxVcpus"], **moved, **cleared}
    cloud.call("update_compute_environment", computeEnvironment=new["id"], **changed)


def revise_definition(cloud: Cloud, new: State, old: State) -> None:
    sent = {name: value for name, value in new.items() if cloud.spelling("register_job_definition", name)}
    made = cloud.call("register_job_definition", **{**sent, "tags": new.get("tagsAll") or {}})
    if new.get("deregisterOnNewRevision", True):
        cloud.call("deregister_job_definition", jobDefinition=old["arn"])
    new["id"] = new["arn"] = made["jobDefinitionArn"]


def deregister_all(cloud: Cloud, state: State, old: State) -> None:
    for page in cloud.pages("describe_job_definitions", jobDefinitionName=state["name"], status="ACTIVE"):
        for definition in page["jobDefinitions"]:
            cloud.call("deregister_job_definition", jobDefinition=definition["jobDefinitionArn"])
