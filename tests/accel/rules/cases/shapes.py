"""Clusters, EFA, reservations, storage and jobs of several nodes."""

from accel.rules import Finding
from accel.rules.aws import clusters, nodes, reservations, storage

from .case import Case

READ_ONLY = {"data": "read-only"}
_GROUP = "arn:aws:resource-groups:us-east-1:210020003000:group/training"


def _cluster(*instance_types: str, **changed: object) -> list[Finding]:
    right = {"kind": "EC2", "placement": "cluster", "efa": True, "instance_types": instance_types}
    return clusters.cluster(**{**right, **changed})  # type: ignore[arg-type]


def _reserved(*instance_types: str, **changed: object) -> list[Finding]:
    right = {"kind": "EC2", "market": "capacity-block", "by_group": False, "instance_types": instance_types}
    return reservations.environment(**{**right, **changed})  # type: ignore[arg-type]


def _place(name: str, least_vcpus: int | None = 96, *, close: bool = True) -> nodes.NodeEnvironment:
    return nodes.NodeEnvironment(name, "EC2", 192, least_vcpus, close)


CASES = [
    Case(
        "aws.cluster.spot", "placement", ("multi-node jobs", "Spot"), "capacity: on-demand",
        lambda: _cluster("p4d.24xlarge", kind="SPOT"),
        lambda: _cluster("p4d.24xlarge", kind="SPOT", placement=None, efa=False),
    ),
    Case(
        "aws.cluster.zones", "placement", ("one availability zone", "has 3"), "name one in zone",
        lambda: clusters.zones(wanted="placement", count=3),
        lambda: clusters.zones(wanted="placement", count=1) + clusters.zones(wanted=None, count=3),
    ),
    Case(
        "aws.efa.unsupported", "instance_types[1]", ('"g5"', "g5.xlarge has no EFA"), "g5.8xlarge",
        lambda: _cluster("g5.48xlarge", "g5"), lambda: _cluster("g5.48xlarge", "g5.24xlarge"),
    ),
    Case(
        "aws.efa.mixed-types", "instance_types", ("p4d.24xlarge has 4", "p5.48xlarge has 32"), "of its own",
        lambda: _cluster("p4d.24xlarge", "p5.48xlarge"), lambda: _cluster("p4d.24xlarge", "p4de.24xlarge"),
    ),
    Case(
        "aws.efa.placement", "efa", ("without a cluster placement group",), "placement: cluster",
        lambda: _cluster("p5.48xlarge", placement=None),
        lambda: _cluster("p5.48xlarge", placement=None, in_block=True),
    ),
    Case(
        "aws.reservation.target", "id", ("neither id nor group_arn",), "give one of them",
        lambda: reservations.target(None, None) + reservations.target("cr-12345678", _GROUP),
        lambda: reservations.target("cr-0a1b2c3d4e5f60718", None) + reservations.target(None, _GROUP),
    ),
    Case(
        "aws.reservation.spot", "capacity_reservation", ("Spot instances are not",), "capacity: on-demand",
        lambda: _reserved("p5.48xlarge", kind="SPOT"), lambda: _reserved("p5.48xlarge"),
    ),
    Case(
        "aws.reservation.one-type", "capacity_reservation", ("one instance type", "means 2"), "the one size",
        lambda: _reserved("p5.48xlarge", "p5e.48xlarge"),
        lambda: _reserved("p5.48xlarge", "p5e.48xlarge", market="on-demand", by_group=True),
    ),
    Case(
        "aws.reservation.block-type", "capacity_reservation.market", ("none is sold of g6.48xlarge",), "on-demand",
        lambda: _reserved("g6.48xlarge"), lambda: _reserved("g6.48xlarge", market="on-demand"),
    ),
    Case(
        "aws.reservation.block-placement", "placement", ("close together already",), "leave it out",
        lambda: _reserved("p5.48xlarge", placement="cluster"),
        lambda: _reserved("p5.48xlarge", placement="cluster", market="on-demand"),
    ),
    Case(
        "aws.storage.no-local-disk", "local_nvme", ("g5g.xlarge of instance_types[1]",), "such as g6",
        lambda: storage.local_nvme("/scratch", ["g6", "g5g"]),
        lambda: storage.local_nvme("/scratch", ["g6", "p5.48xlarge"]) + storage.local_nvme(None, ["g5g"]),
    ),
    Case(
        "aws.storage.access-point-root", "folder", ("is /data", "fsap-12345678"), "leave it out",
        lambda: storage.efs("fs-12345678", "/data", "fsap-12345678"),
        lambda: storage.efs("fs-12345678", "/data", None) + storage.efs("fs-12345678", "/", "fsap-12345678"),
    ),
    Case(
        "aws.storage.bucket", "mounts[0].source", ('"s3://data/train"', "of far do not mount data"), "data: read-only",
        lambda: storage.bucket("mounts[0].source", "s3://data/train", True, {"near": READ_ONLY, "far": {}}),
        lambda: storage.bucket("mounts[0].source", "s3://data/train", True, {"near": READ_ONLY}),
    ),
    Case(
        "aws.storage.bucket-name", "buckets.s3://data", ("is no bucket's name",), "the name alone",
        lambda: storage.bucket_mounts({"s3://data": "read-only"}, "ECS_AL2023_NVIDIA"),
        lambda: storage.bucket_mounts({"my.data-1": "read-only"}, "ECS_AL2023_NVIDIA"),
    ),
    Case(
        "aws.storage.bucket-image", "buckets", ("ECS_AL2_NVIDIA does not have",), "ECS_AL2023_NVIDIA",
        lambda: storage.bucket_mounts(READ_ONLY, "ECS_AL2_NVIDIA"),
        lambda: storage.bucket_mounts(READ_ONLY, "ECS_AL2023") + storage.bucket_mounts({}, "ECS_AL2_NVIDIA"),
    ),
    Case(
        "aws.nodes.too-many", "nodes", ("is 3", "near has 192 of 288"), "max_vcpus",
        lambda: nodes.job(3, [_place("near")]),
        lambda: nodes.job(2, [_place("near")]) + nodes.job(3, [_place("near", None)]),
    ),
    Case(
        "aws.nodes.apart", "nodes", ("is 2", "far"), "placement: cluster",
        lambda: nodes.job(2, [_place("near"), _place("far", close=False)]),
        lambda: nodes.job(2, [_place("near")]) + nodes.job(1, [_place("far", close=False)]),
    ),
    Case(
        "aws.nodes.first-environment", "nodes", ("near is the only environment",), "one environment",
        lambda: nodes.job(2, [_place("near"), _place("other")]), lambda: nodes.job(2, [_place("near")]),
    ),
]  # fmt: skip
