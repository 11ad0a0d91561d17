"""What each AWS component sends for the values that it is given."""

import base64
import email
import json
from typing import Any

import pytest

from accel.diagnostics.faults import find
from components.aws.compute_environment import OnDemandSpec, SpotSpec
from components.aws.image_repository import ImageRepository, ImageRepositorySpec
from components.aws.job_definition import JobDefinitionSpec, canonical, container
from components.aws.job_queue import FairShare, JobQueueSpec
from components.aws.launch_template import LaunchTemplate, LaunchTemplateArgs, LaunchTemplateSpec, user_data
from components.aws.network import blocks
from tests.laws import components as make
from tests.support import memory


def inputs(program: Any, kind: str) -> dict[str, Any]:
    return memory.run(program).one(kind).inputs


ENVIRONMENT = "batch/computeEnvironment:ComputeEnvironment"


def test_on_demand_reaches_batch() -> None:
    spec = OnDemandSpec(instance_types=["g5", "g6.12xlarge"], max_vcpus=192)
    sent = inputs(lambda: make.environment("train", spec), ENVIRONMENT)
    resources = sent["computeResources"]
    assert (sent["type"], sent["state"]) == ("MANAGED", "ENABLED")
    assert "serviceRole" not in sent, "the service-linked role is what lets AWS update in place"
    assert resources["type"] == "EC2"
    assert resources["allocationStrategy"] == "BEST_FIT_PROGRESSIVE"
    assert (resources["minVcpus"], resources["maxVcpus"]) == (0, 192)
    assert resources["ec2Configurations"] == [{"imageType": "ECS_AL2023_NVIDIA"}]
    assert resources["launchTemplate"] == {"launchTemplateId": "train-id", "version": "1"}
    assert resources["tags"] == {"accel:owner": "ml"}


def test_spot_reaches_batch_without_a_fleet_role() -> None:
    spec = SpotSpec(capacity="spot", instance_types=["g5"], max_vcpus=64)
    resources = inputs(lambda: make.environment("train", spec), ENVIRONMENT)["computeResources"]
    assert resources["type"] == "SPOT"
    assert resources["allocationStrategy"] == "SPOT_PRICE_CAPACITY_OPTIMIZED"
    assert "spotIamFleetRole" not in resources and "bidPercentage" not in resources


def test_roles_that_are_given_by_name_reach_the_provider_as_arns() -> None:
    iam, values = "arn:aws:iam::111122223333", {"instance_types": ["g5"], "max_vcpus": 64}
    by_name = {"instance_profile": "ecsInstanceRole", "service_role": "batch", "spot_fleet_role": "/fleet/tagging"}
    by_arn = {
        "instance_profile": f"{iam}:instance-profile/ecsInstanceRole",
        "service_role": f"{iam}:role/batch",
        "spot_fleet_role": f"{iam}:role/fleet/tagging",
    }
    for given in (by_name, {name: arn.replace("111122223333", "210020003000") for name, arn in by_arn.items()}):
        spec = SpotSpec.model_validate({**values, **given, "capacity": "spot", "allocation_strategy": "BEST_FIT"})
        sent = inputs(lambda spec=spec: make.environment("train", spec), ENVIRONMENT)
        resources = sent["computeResources"]
        reached = [resources["instanceRole"], sent["serviceRole"], resources["spotIamFleetRole"]]
        assert reached == (list(by_arn.values()) if given is by_name else list(given.values()))


def test_desired_vcpus_are_batchs_own() -> None:
    seen = memory.run(lambda: make.environment("train", OnDemandSpec(instance_types=["g5"], max_vcpus=64)))
    environment = seen.one(ENVIRONMENT)
    assert environment.ignore_changes == ["computeResources.desiredVcpus"]
    assert "desiredVcpus" not in environment.inputs["computeResources"]


def test_no_update_policy_where_aws_cannot_update() -> None:
    fixed = OnDemandSpec(instance_types=["g5"], max_vcpus=64, allocation_strategy="BEST_FIT")
    assert "updatePolicy" not in inputs(lambda: make.environment("train", fixed), ENVIRONMENT)
    free = OnDemandSpec(instance_types=["g5"], max_vcpus=64, update_timeout_min=60)
    policy = inputs(lambda: make.environment("train", free), ENVIRONMENT)["updatePolicy"]
    assert policy == {"jobExecutionTimeoutMinutes": 60, "terminateJobsOnUpdate": False}


def test_an_outdated_image_type_is_translated() -> None:
    old = OnDemandSpec(instance_types=["g5"], max_vcpus=64, image_type="ECS_AL2_NVIDIA")
    resources = inputs(lambda: make.environment("train", old), ENVIRONMENT)["computeResources"]
    assert resources["ec2Configurations"] == [{"imageType": "ECS_AL2023_NVIDIA"}]


def test_queue_tries_environments_in_order_and_ends_hopeless_jobs() -> None:
    sent = inputs(lambda: make.queue("gpu"), "batch/jobQueue:JobQueue")
    assert sent["computeEnvironmentOrders"] == [
        {"order": 1, "computeEnvironment": "arn:1"},
        {"order": 2, "computeEnvironment": "arn:2"},
    ]
    actions = sent["jobStateTimeLimitActions"]
    assert {action["reason"].partition(":")[0] for action in actions} == {"MISCONFIGURATION"}
    assert all((action["state"], action["action"]) == ("RUNNABLE", "CANCEL") for action in actions)


def test_a_fair_share_queue_has_a_policy_and_is_replaced_with_it() -> None:
    fair = FairShare(shares={"team*": 2.0, "research": 0.5}, decay_s=3600, reservation_percent=25)
    seen = memory.run(lambda: make.queue("gpu", fair))
    policy, made = seen.one("batch/schedulingPolicy:SchedulingPolicy"), seen.one("batch/jobQueue:JobQueue")
    assert policy.inputs["fairSharePolicy"] == {
        "computeReservation": 25,
        "shareDecaySeconds": 3600,
        "shareDistributions": [
            {"shareIdentifier": "research", "weightFactor": 0.5},
            {"shareIdentifier": "team*", "weightFactor": 2.0},
        ],
    }
    assert made.inputs["schedulingPolicyArn"] and "name" not in policy.inputs
    assert "schedulingPolicyArn" not in inputs(lambda: make.queue("gpu"), "batch/jobQueue:JobQueue")


@pytest.mark.parametrize(
    ("fair", "fault"),
    [
        ({"shares": {"team-a": 1.0}}, 'fair_share.shares: has "team-a"'),
        ({"shares": {"a": 0.0}}, "fair_share.shares: has the weight 0"),
        ({"decay_s": -1}, "fair_share.decay_s: must be 0 to 604800, is -1"),
        ({"reservation_percent": 100}, "fair_share.reservation_percent: must be 0 to 99"),
    ],
)
def test_a_policy_that_aws_would_refuse_is_refused_with_its_place(fair: dict[str, Any], fault: str) -> None:
    found = find(JobQueueSpec, {"environments": ["spot"], "fair_share": fair})
    assert str(found[0]).startswith(fault)


def test_a_policy_is_the_stacks_or_the_one_that_is_kept() -> None:
    kept = {"name": "old", "keeps": ["scheduling_policy"]}
    both = {"environments": ["spot"], "fair_share": {}, "adopted": kept}
    assert str(find(JobQueueSpec, both)[0]).startswith("fair_share: is set, and adopted.keeps has scheduling_policy")
    assert JobQueueSpec.model_validate({"environments": ["spot"], "adopted": kept}).shares == {}
    assert JobQueueSpec.model_validate({"environments": ["spot"]}).shares is None


DEFINITION = JobDefinitionSpec(
    image="repo/train:1",
    command=["python", "train.py"],
    vcpus=8,
    memory_mib=30_000,
    gpus=1,
    shm_mib=8192,
    env={"B": "2", "A": "1"},
    secrets={"KEY": make.SECRET},
)


def test_container_properties() -> None:
    wired = {"log_group": "jobs", "job_role": "arn:job", "execution_role": "arn:execution"}
    properties = container(DEFINITION, "us-east-1", "train", **wired)
    assert properties["resourceRequirements"] == [
        {"type": "VCPU", "value": "8"},
        {"type": "MEMORY", "value": "30000"},
        {"type": "GPU", "value": "1"},
    ]
    assert properties["linuxParameters"] == {"initProcessEnabled": True, "sharedMemorySize": 8192}
    assert properties["environment"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert properties["secrets"] == [{"name": "KEY", "valueFrom": make.SECRET}]
    assert properties["logConfiguration"]["options"]["awslogs-group"] == "jobs"
    assert properties["privileged"] is False
    reordered = DEFINITION.model_copy(update={"env": {"A": "1", "B": "2"}})
    assert canonical(container(reordered, "us-east-1", "train", **wired)) == canonical(properties)


def test_a_definition_keeps_old_revisions_and_retries_only_lost_hosts() -> None:
    sent = inputs(lambda: make.definition("train"), "batch/jobDefinition:JobDefinition")
    assert sent["deregisterOnNewRevision"] is False
    assert sent["retryStrategy"]["attempts"] == 3
    rules = sent["retryStrategy"]["evaluateOnExits"]
    assert rules[0] == {"action": "RETRY", "onStatusReason": "Host EC2*"}
    assert rules[-1] == {"action": "EXIT", "onReason": "*"}
    json.loads(sent["containerProperties"])


def test_visible_devices_are_left_to_ecs() -> None:
    spec = DEFINITION.model_copy(update={"env": {"NVIDIA_VISIBLE_DEVICES": "all", "A": "1"}})
    assert spec.settled().env == {"A": "1"}


def test_user_data_is_multipart_and_stable() -> None:
    text = user_data(["#!/bin/bash\necho hello\n"])
    assert text == user_data(["#!/bin/bash\necho hello\n"])
    parts = email.message_from_string(text).get_payload()
    assert isinstance(parts, list)
    assert [part.get_content_type() for part in parts] == ["text/x-shellscript"] * 2  # type: ignore[union-attr]
    assert "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true" in str(parts[0])


def test_launch_template_is_encrypted_and_refuses_imdsv1() -> None:
    args = LaunchTemplateArgs(spec=LaunchTemplateSpec(disk_gib=300, user_data=["#!/bin/sh\n"]), tags={"a": "b"})
    sent = inputs(lambda: LaunchTemplate("train", args), "ec2/launchTemplate:LaunchTemplate")
    (disk,) = sent["blockDeviceMappings"]
    assert disk["ebs"]["encrypted"] == "true" and disk["ebs"]["volumeSize"] == 300
    assert sent["metadataOptions"]["httpTokens"] == "required"
    assert sent["metadataOptions"]["httpPutResponseHopLimit"] == 1
    assert base64.b64decode(sent["userData"]).startswith(b"Content-Type: multipart/mixed")
    assert {one["resourceType"] for one in sent["tagSpecifications"]} == {"instance", "volume"}


def test_repository_scans_and_expires() -> None:
    sent = inputs(lambda: ImageRepository("train", ImageRepositorySpec()), "ecr/repository:Repository")
    assert sent["imageScanningConfiguration"] == {"scanOnPush": True}
    assert sent["imageTagMutability"] == "IMMUTABLE"


@pytest.mark.parametrize(
    ("egress", "gateways", "endpoints"),
    [("nat", 1, 4), ("nat-per-zone", 2, 4), ("endpoints", 0, 9)],
)
def test_ways_out(egress: str, gateways: int, endpoints: int) -> None:
    seen = memory.run(lambda: make.network("net", egress))
    assert len(seen.of("ec2/natGateway:NatGateway")) == gateways
    assert len(seen.of("ec2/internetGateway:InternetGateway")) == min(gateways, 1)
    assert len(seen.of("ec2/vpcEndpoint:VpcEndpoint")) == endpoints
    private = [one for one in seen.of("ec2/subnet:Subnet") if "private" in one.name]
    assert len(private) == 2 and not any(one.inputs["mapPublicIpOnLaunch"] for one in seen.of("ec2/subnet:Subnet"))


def test_a_closed_network_lets_out_https_and_nfs_within_itself() -> None:
    """NFS is EFS: its mount targets lie in the VPC, and have no endpoint of any other kind."""
    rules = memory.run(lambda: make.network("net", "endpoints")).of(
        "vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    )
    assert {one.inputs["ipProtocol"] for one in rules} == {"tcp"}
    assert {(one.inputs["fromPort"], one.inputs["toPort"], one.inputs["cidrIpv4"]) for one in rules} == {
        (443, 443, "0.0.0.0/0"),
        (2049, 2049, "10.40.0.0/16"),
    }


@pytest.mark.parametrize("zones", [1, 2, 3, 6])
@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.0.0.0/20"])
def test_blocks_do_not_overlap(cidr: str, zones: int) -> None:
    import ipaddress

    private, public = blocks(cidr, zones)
    assert len(private) == len(public) == zones
    every = [ipaddress.ip_network(block) for block in (*private, *public)]
    assert all(block.subnet_of(ipaddress.ip_network(cidr)) and block.prefixlen <= 28 for block in every)  # type: ignore[arg-type]
    assert not any(one.overlaps(other) for i, one in enumerate(every) for other in every[:i])


def policies(seen: memory.Recorder) -> list[dict[str, Any]]:
    sent = [one.inputs["policy"] for one in seen.of("iam/rolePolicy:RolePolicy")]
    return [statement for text in sent for statement in json.loads(text)["Statement"]]


READ_APIS_WITHOUT_RESOURCES = {"ecr:GetAuthorizationToken"}


def test_no_policy_allows_everything() -> None:
    seen = memory.run(lambda: (make.roles("batch"), make.network("net", "nat")))
    for statement in policies(seen):
        assert not any("*" in action for action in statement["Action"]), statement
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        if "*" in resources:
            assert set(statement["Action"]) <= READ_APIS_WITHOUT_RESOURCES


def test_trust_is_held_to_the_account() -> None:
    roles = memory.run(lambda: make.roles("batch")).of("iam/role:Role")
    trusts = {one.name: json.loads(one.inputs["assumeRolePolicy"])["Statement"][0] for one in roles}
    assert set(trusts) == {"batch-instance", "batch-execution", "batch-job"}
    for name in ("batch-execution", "batch-job"):
        assert trusts[name]["Principal"] == {"Service": "ecs-tasks.amazonaws.com"}
        assert trusts[name]["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}


def test_job_role_reaches_named_buckets_alone() -> None:
    seen = memory.run(lambda: make.roles("batch"))
    job = next(one for one in seen.of("iam/rolePolicy:RolePolicy") if one.name == "batch-job")
    statements = json.loads(job.inputs["policy"])["Statement"]
    by_action = {statement["Action"][0]: statement["Resource"] for statement in statements}
    assert by_action["s3:GetObject"] == ["arn:aws:s3:::data/*", "arn:aws:s3:::models/*"]
    assert by_action["s3:PutObject"] == ["arn:aws:s3:::models/*"]


def test_a_job_role_without_buckets_has_no_policy() -> None:
    from components.aws.batch_roles import BatchRoles, BatchRolesArgs, BatchRolesSpec

    args = BatchRolesArgs(spec=BatchRolesSpec(), log_group_arn="arn:l", repository_arns=[])
    names = {one.name for one in memory.run(lambda: BatchRoles("batch", args)).of("iam/rolePolicy:RolePolicy")}
    assert names == {"batch-execution"}
