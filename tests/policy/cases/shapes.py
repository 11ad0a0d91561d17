"""What cases are made of: types, resources, stacks."""

import json
from dataclasses import dataclass, field
from typing import Any

from policy.resource import Resource

OWN = {"accel:owner": "ml", "accel:project": "accel", "accel:stack": "dev"}
OURS = {"accel-owner": "ml", "accel-project": "accel", "accel-stack": "dev"}
AWS = {"region": "us-east-1", "defaultTags": json.dumps({"tags": OWN})}
GOOGLE = {"region": "us-central1", "defaultLabels": json.dumps(OURS)}
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
EC2 = "aws:ec2/instance:Instance"
GCE = "gcp:compute/instance:Instance"
POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
TPU = "gcp:tpu/v2Vm:V2Vm"
QUEUED = "gcp:tpu/v2QueuedResource:V2QueuedResource"
DECLARED = "accel:gcp:QueuedTpu"
POLICY = "aws:iam/policy:Policy"
DEFINITION = "aws:batch/jobDefinition:JobDefinition"
COMPUTE = "aws:batch/computeEnvironment:ComputeEnvironment"
DAEMONS = "kubernetes:apps/v1:DaemonSet"
DIGEST = "repo/train@sha256:" + "0" * 64


def one(kind: str, name: str = "one", /, *, protect: bool = False, **properties: Any) -> Resource:
    provider = {"aws": AWS, "gcp": GOOGLE}.get(kind.partition(":")[0])
    return Resource(kind, name, f"urn:pulumi:dev::accel::{kind}::{name}", properties, protect, None, provider)


def allows(actions: Any, resources: Any, **more: Any) -> Resource:
    statement = {"Effect": "Allow", "Action": actions, "Resource": resources, **more}
    return one(POLICY, policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def trusts(principal: Any, **more: Any) -> Resource:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal, **more}
    return one("aws:iam/role:Role", assumeRolePolicy=json.dumps({"Statement": [statement]}))


def node(**config: Any) -> Resource:
    return one(POOL, nodeConfig=config)


def containers(*images: str, **more: Any) -> Resource:
    return one(DAEMONS, spec={"template": {"spec": {"containers": [{"image": each, **more} for each in images]}}})


def batch(kind: str, types: list[Any], most: Any, name: str = "pool") -> Resource:
    return one(COMPUTE, name, computeResources={"type": kind, "instanceTypes": types, "maxVcpus": most})


def pool(machine: str, most: Any, name: str = "pool", **more: Any) -> Resource:
    config = {"machineType": machine, **more.pop("config", {})}
    scale = {"totalMaxNodeCount": most}
    return one(POOL, name, location="us-central1", nodeConfig=config, autoscaling=scale, **more)


@dataclass(frozen=True)
class Case:
    """`passes` and `fails` are stacks, of one resource for most policies."""

    passes: list[list[Resource]]
    fails: list[tuple[list[Resource], str]]
    unknown: list[tuple[list[Resource], str]]
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


def each(
    passes: list[Resource],
    fails: list[tuple[Resource, str]],
    unknown: list[tuple[Resource, str]],
    **settings: Any,
) -> Case:
    return Case(
        [[ok] for ok in passes], [([bad], said) for bad, said in fails], [([n], p) for n, p in unknown], settings
    )
