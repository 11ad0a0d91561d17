"""Clusters, EFA, reservations, local disks and EFS: what reaches EC2, Batch and IAM."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from components.aws.batch_roles import BatchRoles, BatchRolesArgs, BatchRolesSpec
from components.aws.bucket_mounts import bucket_mounts_script
from components.aws.compute_environment import OnDemandSpec, SpotSpec, local_nvme_script
from components.aws.job_definition import EfsVolume, JobDefinitionSpec, container
from components.aws.network import Network, NetworkArgs, NetworkSpec
from tests.laws import components as make
from tests.support import memory

CLUSTER: dict[str, Any] = {"max_vcpus": 384, "placement": "cluster", "efa": True}
BLOCK = {"id": "cr-0a1b2c3d4e5f60718", "market": "capacity-block"}
GIVEN = "sg-0a1b2c3d4e5f60718"
ENVIRONMENT = "batch/computeEnvironment:ComputeEnvironment"
TEMPLATE = "ec2/launchTemplate:LaunchTemplate"


def ran(**values: Any) -> memory.Recorder:
    spec = OnDemandSpec.model_validate({"instance_types": ["p4d.24xlarge"], "max_vcpus": 192, **values})
    return memory.run(lambda: make.environment("near", spec))


@pytest.mark.parametrize(
    ("instance_type", "first", "cards"),
    [
        ("g5.48xlarge", "efa", [0]),
        ("p4d.24xlarge", "efa", [0, 1, 2, 3]),
        ("p5.48xlarge", "efa", [*range(32)]),
        ("p6-b300.48xlarge", "interface", [*range(17)]),
    ],
)
def test_every_efa_interface_of_the_type_is_in_the_template(instance_type: str, first: str, cards: list[int]) -> None:
    seen = ran(instance_types=[instance_type], **CLUSTER)
    interfaces = seen.one(TEMPLATE).inputs["networkInterfaces"]
    assert [one["networkCardIndex"] for one in interfaces] == cards
    assert {one["deviceIndex"] for one in interfaces} == {0}
    assert [one["interfaceType"] for one in interfaces] == [first, *["efa-only"] * (len(cards) - 1)]
    assert all(one["securityGroups"] == [GIVEN, "near-nodes-id"] for one in interfaces)
    resources = seen.one(ENVIRONMENT).inputs["computeResources"]
    assert "securityGroupIds" not in resources, "Batch refuses them beside a template's interfaces"


def test_the_nodes_group_lets_its_members_talk_and_nobody_else() -> None:
    seen = ran(placement="cluster")
    for kind in ("vpc/securityGroupIngressRule:SecurityGroupIngressRule",
                 "vpc/securityGroupEgressRule:SecurityGroupEgressRule"):  # fmt: skip
        rule = seen.one(kind).inputs
        assert (rule["referencedSecurityGroupId"], rule["ipProtocol"]) == (rule["securityGroupId"], "-1")
        assert "cidrIpv4" not in rule
    assert seen.one("ec2/securityGroup:SecurityGroup").inputs["vpcId"] == "vpc-0a1b2c3d4e5f60718"


def test_a_cluster_without_efa_names_its_groups_in_the_environment() -> None:
    seen = ran(placement="cluster")
    group, resources = seen.one("ec2/placementGroup:PlacementGroup"), seen.one(ENVIRONMENT).inputs["computeResources"]
    assert group.inputs["strategy"] == "cluster"
    assert resources["placementGroup"] == "near-0a1b2c3"
    assert resources["securityGroupIds"] == [GIVEN, "near-nodes-id"]
    assert "networkInterfaces" not in seen.one(TEMPLATE).inputs


def test_without_a_shape_nothing_is_added() -> None:
    seen = ran()
    assert not seen.of("ec2/placementGroup:PlacementGroup") + seen.of("ec2/securityGroup:SecurityGroup")
    template, resources = seen.one(TEMPLATE).inputs, seen.one(ENVIRONMENT).inputs["computeResources"]
    assert not template.keys() & {"networkInterfaces", "capacityReservationSpecification", "instanceMarketOptions"}
    assert resources["securityGroupIds"] == [GIVEN] and "placementGroup" not in resources


@pytest.mark.parametrize(
    ("reservation", "target", "market"),
    [
        (BLOCK, {"capacityReservationId": BLOCK["id"]}, {"marketType": "capacity-block"}),
        ({"id": BLOCK["id"]}, {"capacityReservationId": BLOCK["id"]}, None),
        (
            {"group_arn": "arn:aws:resource-groups:us-east-1:210020003000:group/training"},
            {"capacityReservationResourceGroupArn": ("arn:aws:resource-groups:us-east-1:210020003000:group/training")},
            None,
        ),
    ],
)
def test_a_reservation_is_targeted_and_a_block_has_its_market(
    reservation: dict[str, Any], target: dict[str, str], market: dict[str, str] | None
) -> None:
    template = ran(capacity_reservation=reservation).one(TEMPLATE).inputs
    assert template["capacityReservationSpecification"] == {"capacityReservationTarget": target}
    assert template.get("instanceMarketOptions") == market


def test_subnets_of_ones_own() -> None:
    resources = ran(subnet_ids=["subnet-0123456789abcdef0"]).one(ENVIRONMENT).inputs["computeResources"]
    assert resources["subnets"] == ["subnet-0123456789abcdef0"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"efa": True}, "without a cluster placement group"),
        ({**CLUSTER, "instance_types": ["g5.xlarge"]}, "has no EFA"),
        ({"capacity_reservation": {}}, "neither id nor group_arn"),
        ({"capacity_reservation": {"id": "cr-1"}}, "no cr id"),
        ({"local_nvme": "/a b"}, "local_nvme"),
        ({"local_nvme": "/x; rm -rf /"}, "local_nvme"),
    ],
)
def test_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        OnDemandSpec.model_validate({"instance_types": ["p4d.24xlarge"], "max_vcpus": 192, **values})


def test_spot_takes_no_cluster() -> None:
    with pytest.raises(ValidationError, match="do not run on Spot"):
        SpotSpec.model_validate(
            {"capacity": "spot", "instance_types": ["p4d.24xlarge"], "max_vcpus": 96, "placement": "cluster"}
        )


def test_local_nvme_is_mounted_before_other_boot_scripts() -> None:
    assert OnDemandSpec(instance_types=["g6"], max_vcpus=96, local_nvme=False).local_nvme is None  # type: ignore[arg-type]
    text = base64.b64decode(ran(local_nvme=True).one(TEMPLATE).inputs["userData"]).decode()
    assert "mkdir -p /scratch" in text and "mdadm --create" in text


RECORD = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
[ "$(basename "$0")" != mountpoint ] || [ -e "$MOUNTED" ]
"""


def booted(folder: Path, disks: int, *, mounted: bool = False) -> tuple[int, list[str]]:
    """Runs the boot script with stand-ins for what only root may do: its exit code, and what it would have called."""
    commands, found = folder / "bin", folder / "by-id"
    for made in (commands, found):
        made.mkdir()
    for name in ("mountpoint", "udevadm", "mdadm", "dnf", "mkfs.xfs", "mkdir", "mount", "chmod"):
        (commands / name).write_text(RECORD)
        (commands / name).chmod(0o755)
    for number in range(disks):
        disk = folder / f"nvme{number}n1"
        disk.touch()
        for suffix in ("", "_1"):  # udev makes two links a disk
            (found / f"nvme-Amazon_EC2_NVMe_Instance_Storage_AWS{number}{suffix}").symlink_to(disk)
    (found / "nvme-Amazon_Elastic_Block_Store_vol0").symlink_to(folder)
    if mounted:
        (folder / "mounted").touch()
    script = local_nvme_script("/scratch", f"{found}/nvme-Amazon_EC2_NVMe_Instance_Storage_*")
    variables = {"PATH": f"{commands}:{os.environ['PATH']}", "CALLS": str(folder / "calls")}
    done = subprocess.run(
        ["bash", "-c", script], env={**variables, "MOUNTED": str(folder / "mounted")}, capture_output=True, text=True
    )
    return done.returncode, [line for line in (folder / "calls").read_text().splitlines() if "udevadm" not in line]


def test_one_disk_is_used_as_it_is(tmp_path: Path) -> None:
    disk = tmp_path / "nvme0n1"
    assert booted(tmp_path, 1) == (
        0,
        [
            "mountpoint -q /scratch",
            f"mkfs.xfs -f {disk}",
            "mkdir -p /scratch",
            f"mount -o noatime {disk} /scratch",
            "chmod 1777 /scratch",
        ],
    )


def test_several_disks_become_one(tmp_path: Path) -> None:
    code, calls = booted(tmp_path, 3)
    disks = " ".join(str(tmp_path / f"nvme{number}n1") for number in range(3))
    assert code == 0
    assert calls[1:3] == [
        f"mdadm --create /dev/md/scratch --run --level=0 --raid-devices=3 {disks}",
        "mkfs.xfs -f /dev/md/scratch",
    ]


def test_without_a_disk_it_fails_and_a_second_boot_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "again").mkdir()
    assert booted(tmp_path / "none", 0) == (1, ["mountpoint -q /scratch"])
    assert booted(tmp_path / "again", 2, mounted=True) == (0, ["mountpoint -q /scratch"])


DATA = {"kind": "efs", "file_system": "fs-0123456789abcdef0", "path": "/data", "read_only": True}
POINT = {"kind": "efs", "file_system": "fs-12345678", "access_point": "fsap-12345678", "path": "/runs"}


def definition(*volumes: dict[str, Any]) -> JobDefinitionSpec:
    return JobDefinitionSpec.model_validate(
        {"image": "repo/train:1", "vcpus": 4, "memory_mib": 14_000, "volumes": list(volumes)}
    )


def test_volumes_of_a_definition() -> None:
    spec = definition(DATA, POINT, {"kind": "host", "folder": "/scratch", "path": "/tmp"})
    properties = container(spec, "us-east-1", "train", log_group="l", job_role="j", execution_role="e")
    data, runs, scratch = properties["volumes"]
    assert data["efsVolumeConfiguration"] == {
        "fileSystemId": "fs-0123456789abcdef0",
        "rootDirectory": "/",
        "transitEncryption": "ENABLED",
        "authorizationConfig": {"iam": "ENABLED"},
    }
    authorization = runs["efsVolumeConfiguration"]["authorizationConfig"]
    assert authorization == {"iam": "ENABLED", "accessPointId": "fsap-12345678"}
    assert scratch["host"] == {"sourcePath": "/scratch"}
    points = [(one["sourceVolume"], one["containerPath"], one["readOnly"]) for one in properties["mountPoints"]]
    assert points == [("volume-0", "/data", True), ("volume-1", "/runs", False), ("volume-2", "/tmp", False)]


def test_a_definition_without_volumes_is_as_before() -> None:
    properties = container(definition(), "us-east-1", "train", log_group="l", job_role="j", execution_role="e")
    assert not properties.keys() & {"volumes", "mountPoints"}


def test_the_job_role_mounts_what_definitions_name_and_writes_where_they_write() -> None:
    volumes = [EfsVolume.model_validate(one) for one in (DATA, POINT, {**POINT, "path": "/elsewhere"})]
    args = BatchRolesArgs(spec=BatchRolesSpec(), log_group_arn="arn:log", repository_arns=[], efs_volumes=volumes)
    policies = memory.run(lambda: BatchRoles("batch", args)).of("iam/rolePolicy:RolePolicy")
    (policy,) = [one.inputs["policy"] for one in policies if one.name == "batch-job"]
    read, write = json.loads(policy)["Statement"]
    assert read["Action"] == ["elasticfilesystem:ClientMount"]
    assert read["Resource"] == "arn:aws:elasticfilesystem:*:111122223333:file-system/fs-0123456789abcdef0"
    assert write["Action"] == ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
    point = "arn:aws:elasticfilesystem:*:111122223333:access-point/fsap-12345678"
    assert write["Condition"] == {"ArnLike": {"elasticfilesystem:AccessPointArn": point}}


def test_buckets_are_mounted_at_boot_and_the_instance_may_read_them() -> None:
    text = base64.b64decode(ran(buckets={"data": "read-only"}).one(TEMPLATE).inputs["userData"]).decode()
    assert "mounted data --read-only" in text
    args = BatchRolesArgs(
        spec=BatchRolesSpec(),
        log_group_arn="arn:log",
        repository_arns=[],
        mounted_buckets={"data": "read-only", "runs": "read-write"},
    )
    policies = memory.run(lambda: BatchRoles("batch", args)).of("iam/rolePolicy:RolePolicy")
    (policy,) = [json.loads(one.inputs["policy"]) for one in policies if one.name == "batch-instance"]
    allowed = {(action, arn) for one in policy["Statement"] for action in one["Action"] for arn in one["Resource"]}
    assert {("s3:GetObject", "arn:aws:s3:::data/*"), ("s3:ListBucket", "arn:aws:s3:::data")} <= allowed
    assert ("s3:PutObject", "arn:aws:s3:::runs/*") in allowed
    assert ("s3:PutObject", "arn:aws:s3:::data/*") not in allowed


@pytest.mark.parametrize(
    ("failing", "code", "last"),
    [("", 0, "mount-s3 runs"), ("mount-s3", 1, "systemctl mask"), ("dnf", 1, "systemctl mask")],
)
def test_an_instance_without_its_buckets_takes_no_jobs(failing: str, code: int, last: str, tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    # Only what the script calls, and no mount-s3 where dnf is to be asked for it.
    for name in ("mountpoint", "mkdir", "systemctl", "dnf", *([] if failing == "dnf" else ["mount-s3"])):
        ends = int(name in ("mountpoint", failing))
        (commands / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"$CALLS"\nexit {ends}\n')
        (commands / name).chmod(0o755)
    script = bucket_mounts_script({"data": "read-only", "runs": "read-write"}, str(tmp_path / "s3"))
    bash = shutil.which("bash")
    assert bash
    environ = {"PATH": f"{commands}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}
    done = subprocess.run([bash, "-c", script], env=environ, capture_output=True, text=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert done.returncode == code, done.stderr
    assert calls[-1].startswith(last)
    if not failing:
        assert f"mount-s3 data {tmp_path}/s3/data --allow-other --read-only" in calls


@pytest.mark.parametrize(
    ("egress", "ways"),
    [("nat", [(0, "0.0.0.0/0")]), ("endpoints", [(443, "0.0.0.0/0"), (2049, "10.40.0.0/16")])],
)
def test_the_default_group_is_open_among_its_like_only_where_nodes_wear_it(
    egress: str, ways: list[tuple[int, str]]
) -> None:
    def rules(opened: bool) -> tuple[Any, Any]:
        spec = NetworkSpec.model_validate({"zones": ["us-east-1a", "us-east-1b"], "egress": egress})
        args = NetworkArgs(spec=spec, region="us-east-1", open_default=opened)
        group = memory.run(lambda: Network("net", args)).one("ec2/defaultSecurityGroup:DefaultSecurityGroup")
        return group.inputs["ingress"], group.inputs["egress"]

    assert rules(opened=False) == ([], [])
    ((among,), (own, *outwards)) = rules(opened=True)
    assert among["self"] and own["self"] and "cidrBlocks" not in among
    assert [(out["fromPort"], *out["cidrBlocks"]) for out in outwards] == ways
