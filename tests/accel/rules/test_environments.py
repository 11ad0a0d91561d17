"""What the functions that look at several values together make of whole inputs."""

import pytest

from accel.rules import Finding
from accel.rules.aws import environments, fit, images, places, queues
from accel.rules.aws import types as aws_types


def ids(findings: list[Finding]) -> set[str]:
    return {finding.rule for finding in findings}


def test_a_good_environment_has_no_finding() -> None:
    found = environments.environment(
        environments.EnvironmentValues(
            name="on-demand",
            kind="EC2",
            instance_types=["g5", "g6"],
            max_vcpus=256,
            subnet_ids=["subnet-0123456789abcdef0"],
            security_group_ids=["sg-0123456789abcdef0"],
            instance_profile="arn:aws:iam::210987654321:instance-profile/batch",
        )
    )
    assert found == []


def test_an_environment_of_old_defaults() -> None:
    found = environments.environment(
        environments.EnvironmentValues(
            name="gpu-compute-env",
            kind="EC2",
            allocation_strategy="BEST_FIT_PROGRESSIVE",
            max_vcpus=256,
            instance_types=["p3", "p4d", "p5", "g5", "g6"],
            image_type="ECS_AL2_NVIDIA",
            subnet_ids=["subnet-0abc123", "subnet-0def456"],
            security_group_ids=["sg-0abc123"],
            instance_profile="arn:aws:iam::123456789012:instance-profile/ecsInstanceRole",
            service_role="arn:aws:iam::123456789012:role/AWSBatchServiceRole",
        )
    )
    assert {(finding.rule, finding.field) for finding in found} == {
        ("aws.image.al2-nvidia", "image_type"),
        ("aws.image.old-gpu", "instance_types[0]"),
        ("aws.types.mixed-gpu-counts", "instance_types"),
        ("aws.placeholder.resource-id", "subnet_ids[0]"),
        ("aws.placeholder.resource-id", "subnet_ids[1]"),
        ("aws.placeholder.resource-id", "security_group_ids[0]"),
        ("aws.placeholder.account", "instance_profile"),
        ("aws.placeholder.account", "service_role"),
        ("aws.roles.custom-service-role", "service_role"),
    }


def test_a_spot_environment_of_old_defaults() -> None:
    found = environments.environment(
        environments.EnvironmentValues(
            kind="SPOT",
            allocation_strategy="SPOT_CAPACITY_OPTIMIZED",
            max_vcpus=256,
            instance_types=["g5"],
            spot_fleet_role="arn:aws:iam::210987654321:role/AmazonEC2SpotFleetRole",
        )
    )
    assert ids(found) == {
        "aws.strategy.capacity-optimized",
        "aws.roles.spot-fleet-unused",
        "aws.roles.spot-fleet-cannot-tag",
    }


def test_each_kind_without_a_strategy_gets_the_recommended_one() -> None:
    for kind in environments.KINDS:
        assert (
            environments.environment(environments.EnvironmentValues(kind=kind, instance_types=["g5"], max_vcpus=8))
            == []
        )


def test_an_own_image_lets_p3_g3_and_graviton_in() -> None:
    for types in (["p3"], ["g3.4xlarge"], ["g5g"]):
        found = environments.environment(
            environments.EnvironmentValues(
                kind="EC2", instance_types=types, max_vcpus=64, image_id_override="ami-0123456789abcdef0"
            )
        )
        assert found == []


ON_THE_NVIDIA_IMAGE = {
    "p3.2xlarge p3.8xlarge p3.16xlarge p3dn.24xlarge g3.4xlarge g3s.xlarge p3 g3": "aws.image.old-gpu",
    "g5g.xlarge g5g": "aws.image.graviton",
    "p4d.24xlarge p4de.24xlarge p5.4xlarge p5.48xlarge": "",
    "g4dn.xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.12xlarge g4dn.16xlarge g4dn.metal": "",
    "g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.12xlarge g5.16xlarge g5.24xlarge g5.48xlarge": "",
    "g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.12xlarge g6.16xlarge g6.24xlarge g6.48xlarge": "",
    "g6e.xlarge g6e.2xlarge g6e.4xlarge g6e.8xlarge g6e.12xlarge g6e.16xlarge g6e.24xlarge g6e.48xlarge": "",
}


@pytest.mark.parametrize(
    "name, rule", [(name, rule) for names, rule in ON_THE_NVIDIA_IMAGE.items() for name in names.split()]
)
def test_which_types_the_nvidia_image_takes(name: str, rule: str) -> None:
    assert ids(images.image("ECS_AL2023_NVIDIA", [name])) == ({rule} if rule else set())
    assert ids(images.image("ECS_AL2023_NVIDIA", [name], image_id_override="ami-0123456789abcdef0")) == set()


@pytest.mark.parametrize("name", ["p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p4d"])
def test_one_gpu_on_a_family_that_comes_by_eight(name: str) -> None:
    (finding,) = fit.fit(8, 30000, 1, [name])
    assert (finding.rule, finding.severity) == ("aws.fit.idle-gpus", "warn") and "has 8" in finding.message


@pytest.mark.parametrize("name", ["g6f", "g6f.large", "g6f.xlarge", "g6f.2xlarge", "g6f.4xlarge", "gr6f.4xlarge"])
def test_shares_of_a_gpu_hold_no_gpu_job(name: str) -> None:
    (finding,) = aws_types.instance_types([name])
    assert finding.rule == "aws.types.fractional-gpu"
    (finding,) = fit.fit(1, 1000, 1, [name])
    assert finding.rule == "aws.fit.too-many-gpus"


def test_a_region_that_the_catalogue_does_not_know_offers_anything() -> None:
    assert places.instance_types("us-north-9", ["p5.48xlarge", "g9.huge"]) == []
    assert places.instance_types("eu-west-3", ["g9.huge", "p3"]) == [], "other rules speak of those"
    assert [found.field for found in places.instance_types("eu-west-3", ["g6", "p5", "p5.48xlarge"])] == [
        "instance_types[1]",
        "instance_types[2]",
    ]


def test_p3_is_not_what_makes_a_maximum_large_enough() -> None:
    assert ids(environments.capacity(0, 8, ["p3", "g5.4xlarge"])) == {"aws.capacity.max-too-small"}
    assert environments.capacity(0, 8, ["p3", "g5.4xlarge"], usable_old=True) == []


def test_how_many_instances_fit() -> None:
    assert environments.instances_within(256, ["p4d", "p5.48xlarge"]) == {
        "p4d.24xlarge": 2,
        "p5.48xlarge": 1,
    }


@pytest.mark.parametrize("max_vcpus", [0, -1])
def test_a_maximum_below_one(max_vcpus: int) -> None:
    assert "aws.capacity.bounds" in ids(environments.capacity(0, max_vcpus, ["g5"]))


@pytest.mark.parametrize(
    "name, rule",
    [
        ("optimal", "aws.types.no-gpu"),
        ("default_x86_64", "aws.types.no-gpu"),
        ("trn1", "aws.types.no-gpu"),
        ("g4ad.xlarge", "aws.types.no-gpu"),
        ("c5.large", "aws.types.unknown"),
        ("p4", "aws.types.unknown"),
    ],
)
def test_types_that_batch_would_take_and_gpu_jobs_would_not(name: str, rule: str) -> None:
    assert ids(aws_types.instance_types([name])) == {rule}


def test_ecs_al2_on_gpu_types_is_translated_and_still_without_driver() -> None:
    found = images.image("ECS_AL2", ["g5"])
    assert [finding.rule for finding in found] == ["aws.image.al2", "aws.image.no-driver"]


def test_an_imported_environment_keeps_its_image() -> None:
    assert images.image("ECS_AL2_NVIDIA", ["p3", "g5"], imported=True) == []


def test_a_queue_without_environments() -> None:
    assert ids(queues.queue(environments=[], priority=10)) == {"aws.queue.environment-count"}


def test_a_reason_that_batch_reports_but_does_not_act_on() -> None:
    found = queues.time_limit(reason="MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS", max_time_s=86_401)
    assert ids(found) == {"aws.queue.time-limit-reason", "aws.queue.time-limit-seconds"}
