"""Jobs of several nodes as Batch's multi-node parallel jobs: one container per node, on an instance of its own. Source:
https://docs.aws.amazon.com/batch/latest/userguide/multi-node-parallel-jobs.html"""

from collections.abc import Mapping
from typing import Any

from accel.catalog import UnknownName, expand, holding
from accel.contract import variables
from accel.contract.targets import AwsBatchEnvironment, AwsBatchTarget
from accel.rules import Finding
from accel.rules.aws import nodes as aws_nodes
from accel.rules.aws.fit import Size

from ...model.job import Job

MIXED_EFA = "nodes: the queue's environments differ in EFA interfaces, so the containers get none"


def check(job: Job, size: Size, target: AwsBatchTarget) -> list[Finding]:
    return aws_nodes.job(job.nodes, (_place(each, size) for each in target.environments))


def _place(environment: AwsBatchEnvironment, size: Size) -> aws_nodes.NodeEnvironment:
    kind = "SPOT" if environment.capacity == "spot" else "EC2"
    least = least_vcpus(environment, size)
    return aws_nodes.NodeEnvironment(environment.name, kind, environment.max_vcpus, least, environment.close)


def least_vcpus(environment: AwsBatchEnvironment, size: Size) -> int | None:
    """Return None if a name is not in the catalogue, or no instance holds a node."""
    try:
        held = holding(expand(environment.instance_types), size.vcpus, size.memory_mib, size.gpus)
    except UnknownName:
        return None
    return min((machine.vcpus for machine in held.fits or held.tight), default=None)


def efa_interfaces(target: AwsBatchTarget) -> int | None:
    """Return None if the environments differ: Batch may place the job in any of them."""
    counts = {each.efa_interfaces for each in target.environments}
    return counts.pop() if len(counts) == 1 else None


def with_efa(container: Mapping[str, Any], interfaces: int) -> dict[str, Any]:
    """Add each EFA device, and lift the limit on the memory that RDMA pins. Source:
    https://docs.aws.amazon.com/batch/latest/userguide/efa.html"""
    devices = [
        {"hostPath": path, "containerPath": path, "permissions": ["READ", "WRITE", "MKNOD"]}
        for path in (f"/dev/infiniband/uverbs{i}" for i in range(interfaces))
    ]
    unlimited = {"name": "memlock", "softLimit": -1, "hardLimit": -1}
    linux = {**container["linuxParameters"], "devices": devices}
    return {**container, "linuxParameters": linux, "ulimits": [unlimited]}


def every(nodes: int) -> str:
    """Spell the range of all nodes, alike in definition and overrides."""
    return f"0:{nodes - 1}"


def properties(nodes: int, container: Mapping[str, Any]) -> dict[str, Any]:
    ranges = [{"targetNodes": every(nodes), "container": dict(container)}]
    return {"numNodes": nodes, "mainNode": 0, "nodeRangeProperties": ranges}


def overrides(nodes: int, container: Mapping[str, Any]) -> dict[str, Any]:
    """Leave the size to the definition, which is the job's own."""
    kept = {name: value for name, value in container.items() if name != "resourceRequirements"}
    return {"nodePropertyOverrides": [{"targetNodes": every(nodes), "containerOverrides": kept}]}


def environment(nodes: int, kind: str) -> dict[str, str]:
    return {variables.NODE_COUNT: str(nodes), **variables.NODE_VARIABLES[kind]} if nodes > 1 else {}
