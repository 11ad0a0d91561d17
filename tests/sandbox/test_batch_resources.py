"""Compute environments, queues and definitions of the sandbox's Batch, through plain boto3."""

import time
from typing import Any

import pytest

OWN_ROLE = "arn:aws:iam::210020003000:role/AWSBatchServiceRole"


def test_an_environment_settles_and_is_filled_as_on_aws(aws: Any) -> None:
    with aws.unsettled():
        name = aws.environment(wait=False)
        assert aws.shown_environment(name)["status"] == "CREATING"
    aws.until(lambda: aws.shown_environment(name)["status"] == "VALID")
    shown = aws.shown_environment(name)
    assert shown["serviceRole"].endswith("aws-service-role/batch.amazonaws.com/AWSServiceRoleForBatch")
    assert shown["ecsClusterArn"].split("/")[-1].startswith("AWSBatch-")
    assert (shown["state"], shown["containerOrchestrationType"]) == ("ENABLED", "ECS")
    assert shown["computeResources"]["ec2Configuration"] == [{"imageType": "ECS_AL2023_NVIDIA"}]
    assert (shown["computeResources"]["minvCpus"], shown["computeResources"]["desiredvCpus"]) == (0, 0)
    assert shown["uuid"] and "updatePolicy" not in shown


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"instanceRole": "ecsInstanceRole"}, "CLIENT_ERROR - Invalid IamInstanceProfile: ecsInstanceRole"),
        ({"instanceRole": "arn:aws:iam::210020003000:instance-profile/absent"}, "Invalid IamInstanceProfile"),
        ({"subnets": ["subnet-0123456789abcdef0"]}, "subnet-0123456789abcdef0"),
        ({"securityGroupIds": ["sg-0123456789abcdef0"]}, "sg-0123456789abcdef0"),
        ({"launchTemplate": {"launchTemplateName": "absent"}}, "absent"),
        ({"launchTemplate": {"launchTemplateId": "lt-0123456789abcdef0"}}, "lt-0123456789abcdef0"),
        ({"launchTemplate": {"launchTemplateName": "gpu", "version": "7"}}, "7"),
    ],
    ids=str,
)
def test_an_environment_that_names_what_is_not_there_is_invalid(aws: Any, changes: dict[str, Any], reason: str) -> None:
    kept = aws.client("ec2").describe_launch_templates()["LaunchTemplates"]
    if "gpu" not in [each["LaunchTemplateName"] for each in kept]:
        aws.client("ec2").create_launch_template(LaunchTemplateName="gpu", LaunchTemplateData={"EbsOptimized": True})
    shown = aws.shown_environment(aws.environment(**changes))
    assert (shown["status"], reason in shown["statusReason"]) == ("INVALID", True)


def test_an_environment_takes_a_profile_by_name_and_a_launch_template(aws: Any) -> None:
    aws.client("ec2").create_launch_template(LaunchTemplateName="known", LaunchTemplateData={"EbsOptimized": True})
    template = {"launchTemplateName": "known", "version": "$Latest"}
    name = aws.environment(instanceRole="instances", launchTemplate=template, securityGroupIds=None)
    assert aws.shown_environment(name)["status"] == "VALID"


SPOT_BEST_FIT = {"type": "SPOT", "allocationStrategy": None}
IMAGE = "ec2Configuration"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"minvCpus": 65}, "minvCpus 65"),
    ({"maxvCpus": None}, "maxvCpus"),
    ({"desiredvCpus": 65}, "desiredvCpus 65"),
    ({"instanceTypes": ["g5.3xlarge"]}, "Instance type can only be one of"),
    ({"instanceTypes": ["nope"]}, "nope"),
    ({"instanceTypes": ["g5", "g5g"], IMAGE: [{"imageType": "ECS_AL2023"}]}, "mixes x86_64 and arm64"),
    ({"instanceTypes": []}, "instanceTypes"),
    ({"subnets": []}, "subnets"),
    ({"securityGroupIds": None}, "securityGroupIds"),
    ({"instanceRole": OWN_ROLE}, "should be an ECS Instance Profile ARN"),
    ({"allocationStrategy": "SPOT_CAPACITY_OPTIMIZED"}, "SPOT_CAPACITY_OPTIMIZED requires type SPOT"),
    ({"allocationStrategy": "SPOT_PRICE_CAPACITY_OPTIMIZED"}, "requires type SPOT"),
    ({"allocationStrategy": "CHEAPEST"}, "allocationStrategy"),
    (SPOT_BEST_FIT, "spotIamFleetRole"),
    ({"type": "FARGATE"}, "FARGATE"),
    ({IMAGE: [{"imageType": "ECS_AL2_NVIDIA"}]}, "ECS_AL2_NVIDIA is blocked"),
    ({IMAGE: [{"imageType": "ECS_AL2"}]}, "ECS_AL2 is blocked"),
    ({IMAGE: [{"imageType": "ECS_AL2O23"}]}, "ECS_AL2O23"),
    ({IMAGE: [{"imageType": "ECS_AL2023"}] * 3}, "one or two"),
    ({"instanceTypes": ["p3"], IMAGE: [{"imageType": "ECS_AL2023_NVIDIA"}]}, "p3"),
    ({"instanceTypes": ["g3.4xlarge"], IMAGE: [{"imageType": "ECS_AL2023_NVIDIA"}]}, "g3.4xlarge"),
    ({"instanceTypes": ["g5g"], IMAGE: [{"imageType": "ECS_AL2023_NVIDIA"}]}, "Graviton"),
    ({"launchTemplate": {"launchTemplateName": "a", "launchTemplateId": "b"}}, "exactly one"),
]


@pytest.mark.parametrize(("changes", "text"), REFUSED, ids=str)
def test_create_compute_environment_refuses(aws: Any, changes: dict[str, Any], text: str) -> None:
    unchecked = aws.client("batch", parameter_validation=False)
    resources = {key: value for key, value in aws.resources(**changes).items() if value is not None}
    given = {"computeEnvironmentName": "refused", "type": "MANAGED", "computeResources": resources}
    assert text in aws.refusal(unchecked.create_compute_environment, **given)
    assert aws.shown_environment("refused") == {}


def test_an_image_of_ones_own_lifts_the_image_rules(aws: Any) -> None:
    own = [{"imageType": "ECS_AL2_NVIDIA", "imageIdOverride": "ami-0123456789abcdef0"}]
    assert aws.shown_environment(aws.environment(instanceTypes=["p3"], ec2Configuration=own))["status"] == "VALID"


def test_names_are_taken_once(aws: Any) -> None:
    name = aws.environment()
    given = {"computeEnvironmentName": name, "type": "MANAGED", "computeResources": aws.resources()}
    assert aws.refusal(aws.batch.create_compute_environment, **given) == "Object already exists"
    given["computeEnvironmentName"] = "a b"
    assert "a b" in aws.refusal(aws.batch.create_compute_environment, **given)


def test_an_update_scales_or_replaces_as_the_role_and_strategy_allow(aws: Any) -> None:
    def update(name: str, **resources: Any) -> None:
        with aws.unsettled():
            aws.batch.update_compute_environment(computeEnvironment=name, computeResources=resources)
            assert aws.shown_environment(name)["status"] == "UPDATING"
        aws.until(lambda: aws.shown_environment(name)["status"] == "VALID")

    name = aws.environment()
    update(name, maxvCpus=128)
    update(name, instanceTypes=["g6"], updateToLatestImageVersion=True, bidPercentage=50)
    shown = aws.shown_environment(name)["computeResources"]
    assert (shown["maxvCpus"], shown["instanceTypes"], shown["subnets"]) == (
        128,
        ["g6"],
        [aws.made["subnet"]],
    )
    assert "updateToLatestImageVersion" not in shown
    fixed: list[tuple[dict[str, Any], str]] = [
        ({"allocationStrategy": None}, "BEST_FIT"),
        ({"service_role": OWN_ROLE}, "service-linked role"),
    ]
    for made, text in fixed:
        name = aws.environment(**made)
        update(name, maxvCpus=96)
        given = {"computeEnvironment": name, "computeResources": {"instanceTypes": ["g6"]}}
        assert text in aws.refusal(aws.batch.update_compute_environment, **given)
    assert "minvCpus 99" in aws.refusal(
        aws.batch.update_compute_environment, computeEnvironment=name, computeResources={"minvCpus": 99}
    )


def test_desired_vcpus_are_not_lowered_by_hand(aws: Any) -> None:
    name = aws.environment(minvCpus=4, desiredvCpus=8)
    update = aws.batch.update_compute_environment
    text = aws.refusal(update, computeEnvironment=name, computeResources={"desiredvCpus": 4})
    assert text.startswith("Manually scaling down compute environment is not supported.")
    update(
        computeEnvironment=name,
        computeResources={"desiredvCpus": 16, "launchTemplate": {"launchTemplateId": ""}},
    )
    shown = aws.shown_environment(name)["computeResources"]
    assert (shown["desiredvCpus"], "launchTemplate" in shown) == (16, False)


def test_an_update_mends_an_invalid_environment_and_sets_a_policy(aws: Any) -> None:
    name = aws.environment(instanceRole="absent")
    update = aws.batch.update_compute_environment
    with aws.unsettled():
        update(
            computeEnvironment=name,
            computeResources={"instanceRole": "instances"},
            updatePolicy={"terminateJobsOnUpdate": True},
        )
        text = aws.refusal(update, computeEnvironment=name, state="DISABLED")
        assert text == "Cannot update, resource is being modified"
    aws.until(lambda: aws.shown_environment(name)["status"] == "VALID")
    policy = {"terminateJobsOnUpdate": True, "jobExecutionTimeoutMinutes": 30}
    assert aws.shown_environment(name)["updatePolicy"] == policy


def test_an_infrastructure_update_can_end_the_jobs(aws: Any) -> None:
    name = aws.environment()
    job = aws.submit(aws.queue(name), aws.definition(["sleep", "60"]))
    aws.reaches(job, "RUNNING")
    aws.batch.update_compute_environment(
        computeEnvironment=name,
        computeResources={"instanceTypes": ["g6"]},
        updatePolicy={"terminateJobsOnUpdate": True},
    )
    assert aws.ended(job)["statusReason"].startswith("Host EC2 (instance i-")


def test_an_infrastructure_update_waits_for_the_jobs_until_its_time_is_over(aws: Any) -> None:
    name = aws.environment()
    job = aws.submit(aws.queue(name), aws.definition(["sleep", "300"]))
    aws.reaches(job, "RUNNING")
    policy = {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": 15}
    aws.batch.update_compute_environment(
        computeEnvironment=name, computeResources={"instanceTypes": ["g6"]}, updatePolicy=policy
    )
    aws.control("clock", advance_s=14 * 60)
    time.sleep(0.3)
    assert (aws.job(job)["status"], aws.shown_environment(name)["status"]) == ("RUNNING", "UPDATING")
    aws.control("clock", advance_s=61)
    assert aws.ended(job)["statusReason"].startswith("Host EC2 (instance i-")
    aws.until(lambda: aws.shown_environment(name)["status"] == "VALID")


def test_what_is_in_use_or_enabled_is_not_deleted(aws: Any) -> None:
    name = aws.environment()
    queue = aws.queue(name)
    delete, update = aws.batch.delete_compute_environment, aws.batch.update_compute_environment
    assert "DISABLED" in aws.refusal(delete, computeEnvironment=name)
    with aws.unsettled():
        update(computeEnvironment=name, state="DISABLED")
        assert aws.refusal(delete, computeEnvironment=name) == "Cannot delete, resource is being modified"
    aws.until(lambda: aws.shown_environment(name)["status"] == "VALID")
    assert aws.refusal(delete, computeEnvironment=name) == "Cannot delete, found existing JobQueue relationship"
    job = aws.submit(queue, aws.definition(["true"]))
    assert "DISABLED" in aws.refusal(aws.batch.delete_job_queue, jobQueue=queue)
    with aws.unsettled():
        aws.batch.update_job_queue(jobQueue=queue, state="DISABLED")
        assert aws.refusal(aws.batch.delete_job_queue, jobQueue=queue) == "Cannot delete, resource is being modified"
    aws.until(lambda: aws.shown_queue(queue)["status"] == "VALID")
    assert "DISABLED" in aws.refusal(
        aws.batch.submit_job, jobName="late", jobQueue=queue, jobDefinition=aws.definition(["true"])
    )
    with aws.unsettled():
        aws.batch.delete_job_queue(jobQueue=queue)
        assert aws.shown_queue(queue)["status"] == "DELETING"
    assert aws.ended(job)["status"] == "FAILED"
    aws.until(lambda: aws.shown_queue(queue) == {})
    delete(computeEnvironment=aws.shown_environment(name)["computeEnvironmentArn"])
    aws.until(lambda: aws.shown_environment(name) == {})
    delete(computeEnvironment=name)


def test_a_queue_keeps_its_time_limits_and_its_order(aws: Any) -> None:
    actions = [
        {
            "reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
            "state": "RUNNABLE",
            "maxTimeSeconds": 600,
            "action": "CANCEL",
        }
    ]
    first, second = aws.environment(), aws.environment()
    queue = aws.queue(first, second, jobStateTimeLimitActions=actions, tags={"a": "b"})
    shown = aws.shown_queue(queue)
    assert (shown["jobStateTimeLimitActions"], shown["tags"], shown["priority"]) == (actions, {"a": "b"}, 1)
    assert [row["computeEnvironment"].split("/")[1] for row in shown["computeEnvironmentOrder"]] == [
        first,
        second,
    ]
    aws.batch.update_job_queue(
        jobQueue=queue, priority=9, jobStateTimeLimitActions=[],
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": second}],
    )  # fmt: skip
    aws.until(lambda: aws.shown_queue(queue)["status"] == "VALID")
    shown = aws.shown_queue(queue)
    assert (shown["priority"], shown["jobStateTimeLimitActions"], len(shown["computeEnvironmentOrder"])) == (
        9,
        [],
        1,
    )


def test_create_job_queue_refuses(aws: Any) -> None:
    good, creating, invalid = (
        aws.environment(),
        aws.environment(wait=False),
        aws.environment(instanceRole="absent"),
    )
    arm = aws.environment(instanceTypes=["m6g"])
    unsettled = aws.environment(wait=False)
    action = {"reason": "r", "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
    for environments, more, text in (
        ([unsettled], {}, "is not valid"),
        ([invalid], {}, "is not valid"),
        (["absent"], {}, "absent does not exist"),
        ([], {}, "one to three"),
        ([good] * 4, {}, "one to three"),
        ([good, arm], {}, "same architecture"),
        ([good], {"jobStateTimeLimitActions": [action | {"maxTimeSeconds": 599}]}, "600"),
        ([good], {"jobStateTimeLimitActions": [action | {"action": "TERMINATE"}]}, "CANCEL"),
        (
            [good],
            {"schedulingPolicyArn": "arn:aws:batch:us-east-1:210020003000:scheduling-policy/none"},
            "none",
        ),
    ):
        order = [{"order": at, "computeEnvironment": row} for at, row in enumerate(environments)]
        given = {"jobQueueName": "refused", "priority": 1, "computeEnvironmentOrder": order} | more
        assert text in aws.refusal(aws.batch.create_job_queue, **given), text
    order = [{"order": 1, "computeEnvironment": good}] * 2
    given = {"jobQueueName": "refused", "priority": 1, "computeEnvironmentOrder": order}
    assert "repeats an order" in aws.refusal(aws.batch.create_job_queue, **given)
    assert aws.shown_environment(creating)


def test_revisions_count_on_and_every_property_is_kept(aws: Any, queue: str) -> None:
    name = aws.name("kept")
    properties = {
        "image": "local/work",
        "command": ["true"],
        "vcpus": 1,
        "memory": 64,
        "linuxParameters": {"sharedMemorySize": 8192},
        "secrets": [{"name": "A", "valueFrom": "/a"}],
        "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/g"}},
        "environment": [{"name": "A", "value": "b"}, {"name": "EMPTY", "value": ""}],
    }
    given: dict[str, Any] = {
        "jobDefinitionName": name,
        "type": "container",
        "containerProperties": properties,
        "retryStrategy": {"attempts": 3, "evaluateOnExit": [{"onReason": "*", "action": "EXIT"}]},
        "timeout": {"attemptDurationSeconds": 600},
        "propagateTags": True,
        "schedulingPriority": 5,
        "tags": {"a": "b"},
        "platformCapabilities": ["EC2"],
        "parameters": {"p": "q"},
    }
    register = aws.batch.register_job_definition
    assert [register(**given)["revision"] for _ in range(3)] == [1, 2, 3]
    [shown] = aws.batch.describe_job_definitions(jobDefinitions=[f"{name}:1"])["jobDefinitions"]
    kept = {key: value for key, value in given.items() if key != "containerProperties"}
    assert {key: shown[key] for key in kept} == kept
    container = shown["containerProperties"]
    assert container["environment"] == [{"name": "A", "value": "b"}]
    same = properties.keys() - {"environment"}
    assert {key: container[key] for key in same} == {key: properties[key] for key in same}
    aws.batch.deregister_job_definition(jobDefinition=f"{name}:3")
    rows = aws.batch.describe_job_definitions(jobDefinitionName=name)["jobDefinitions"]
    assert [(row["revision"], row["status"]) for row in rows] == [
        (3, "INACTIVE"),
        (2, "ACTIVE"),
        (1, "ACTIVE"),
    ]
    whole = rows[1]["jobDefinitionArn"].rpartition(":")[0]
    for reference in (name, whole, f"{name}:2", rows[1]["jobDefinitionArn"]):
        job = aws.job(aws.submit(queue, reference))
        assert job["jobDefinition"] == rows[1]["jobDefinitionArn"]
        aws.batch.terminate_job(jobId=job["jobId"], reason="done")
    given = {"jobName": "j", "jobQueue": queue, "jobDefinition": f"{name}:3"}
    assert "is not in ACTIVE status" in aws.refusal(aws.batch.submit_job, **given)
    aws.batch.deregister_job_definition(jobDefinition=f"{name}:2")
    aws.batch.deregister_job_definition(jobDefinition=f"{name}:1")
    assert register(jobDefinitionName=name, type="container", containerProperties=properties)["revision"] == 4


def test_multi_node_definitions_are_kept_whole(aws: Any) -> None:
    node = {"image": "local/work", "command": ["true"], "vcpus": 1, "memory": 64}
    nodes = {"numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:", "container": node}]}
    arn = aws.batch.register_job_definition(jobDefinitionName="nodes", type="multinode", nodeProperties=nodes)
    [shown] = aws.batch.describe_job_definitions(jobDefinitions=[arn["jobDefinitionArn"]])["jobDefinitions"]
    assert shown["nodeProperties"] == nodes


@pytest.mark.parametrize(
    "properties",
    [
        {"image": "i", "vcpus": 1},
        {"image": "i", "vcpus": 1, "memory": 3},
        {"vcpus": 1, "memory": 64},
        {
            "image": "i",
            "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "lots"}],
        },
        {"image": "i", "vcpus": 1, "memory": 64, "resourceRequirements": [{"type": "GPU", "value": "0"}]},
    ],
    ids=str,
)
def test_register_refuses(aws: Any, properties: dict[str, Any]) -> None:
    given = {"jobDefinitionName": "refused", "type": "container", "containerProperties": properties}
    assert aws.refusal(aws.batch.register_job_definition, **given)


def test_lists_have_pages(aws: Any, queue: str) -> None:
    definition = aws.definition(["true"])
    name = definition.split("/")[1].split(":")[0]
    for _ in range(4):
        aws.batch.register_job_definition(
            jobDefinitionName=name, type="container",
            containerProperties={"image": "i", "vcpus": 1, "memory": 64},
        )  # fmt: skip
    aws.environment()
    jobs = [aws.submit(queue, definition, jobName=f"Paged-{at}") for at in range(5)]
    seen: dict[str, list[str]] = {}
    paged = {"jobQueue": queue, "filters": [{"name": "JOB_NAME", "values": ["paged-*"]}]}
    # Rows are told by their ARN: what else they show (a job's state, an environment's vCPUs) may change between looks.
    for operation, key, arn, given in (
        ("describe_compute_environments", "computeEnvironments", "computeEnvironmentArn", {}),
        ("describe_job_queues", "jobQueues", "jobQueueArn", {}),
        ("describe_job_definitions", "jobDefinitions", "jobDefinitionArn", {"jobDefinitionName": name}),
        ("list_jobs", "jobSummaryList", "jobArn", paged),
    ):
        paginator = aws.batch.get_paginator(operation)
        pages, long = (list(paginator.paginate(**given, PaginationConfig={"PageSize": size})) for size in (2, 100))
        seen[operation] = [row[arn] for page in pages for row in page[key]]
        assert [len(page[key]) for page in pages[:-1]] == [2] * (len(pages) - 1)
        assert seen[operation] == [row[arn] for page in long for row in page[key]]
    assert [arn.rsplit(":", 1)[1] for arn in seen["describe_job_definitions"]] == list("54321")
    assert [arn.rsplit("/", 1)[1] for arn in seen["list_jobs"]] == jobs[::-1]


def test_list_jobs_filters(aws: Any, queue: str) -> None:
    definition = aws.definition(["true"])
    name = definition.split("/")[1].split(":")[0]
    first = aws.ended(aws.submit(queue, definition, jobName="Filter-A"))
    second = aws.ended(aws.submit(queue, definition, jobName="filter-b"))

    def listed(filter_: str, value: str) -> list[str]:
        rows = aws.batch.list_jobs(jobQueue=queue, filters=[{"name": filter_, "values": [value]}])["jobSummaryList"]
        return [row["jobId"] for row in rows if row["jobId"] in (first["jobId"], second["jobId"])]

    assert listed("JOB_NAME", "filter-a") == [first["jobId"]]
    assert listed("JOB_NAME", "FILTER-*") == [second["jobId"], first["jobId"]]
    assert (
        listed("JOB_DEFINITION", name)
        == listed("JOB_DEFINITION", f"{name[:-1]}*")
        == listed("JOB_DEFINITION", definition)
    )
    assert listed("BEFORE_CREATED_AT", str(second["createdAt"])) == [first["jobId"]]
    assert listed("AFTER_CREATED_AT", str(first["createdAt"])) == [second["jobId"]]
    running = aws.submit(queue, aws.definition(["sleep", "60"]))
    aws.reaches(running, "RUNNING")
    assert [row["jobId"] for row in aws.batch.list_jobs(jobQueue=queue)["jobSummaryList"]] == [running]
    aws.batch.terminate_job(jobId=running, reason="done")
    failed = aws.batch.list_jobs(jobQueue=queue, jobStatus="FAILED")["jobSummaryList"]
    assert {row["status"] for row in failed} <= {"FAILED"}
    assert "Only one filter" in aws.refusal(
        aws.batch.list_jobs, jobQueue=queue, filters=[{"name": "JOB_NAME", "values": ["a"]}] * 2
    )
    assert aws.refusal(aws.batch.list_jobs, jobStatus="FAILED")


def test_tags_are_read_and_written_on_every_kind(aws: Any, queue: str) -> None:
    definition = aws.definition(["true"], more={"tags": {"one": "1"}})
    job = aws.job(aws.submit(queue, definition, tags={"one": "1"}))
    arns = [definition, job["jobArn"], aws.shown_queue(queue)["jobQueueArn"]]
    for arn in arns:
        aws.batch.tag_resource(resourceArn=arn, tags={"one": "1", "two": "2"})
        aws.batch.untag_resource(resourceArn=arn, tagKeys=["one"])
        assert aws.batch.list_tags_for_resource(resourceArn=arn)["tags"] == {"two": "2"}
    assert aws.job(job["jobId"])["tags"] == {"two": "2"}
