"""What a person can get wrong in Pulumi.<stack>.yaml, and the line that says so."""

from pathlib import Path
from typing import Any

import pytest

from accel.diagnostics.faults import parse_path, replace_value
from stacks.environment.config import ConfigFaults, Environment, load_environment, warnings
from tests.support import project
from tests.support.project import environment

ROOT = Path(__file__).parents[2]


def document(stack: str = "dev") -> dict[str, Any]:
    return environment(stack)


def put(path: str, value: Any, into: dict[str, Any] | None = None) -> dict[str, Any]:
    """The dev environment with one value changed."""
    return project.put(path, value, into or document())


def faults(of: Any) -> list[str]:
    with pytest.raises(ConfigFaults) as refused:
        load_environment(of)
    return [str(fault) for fault in refused.value.faults]


@pytest.mark.parametrize("stack", ["dev", "prod", "sandbox"])
def test_our_own_environments_are_valid(stack: str) -> None:
    assert isinstance(load_environment(document(stack)), Environment)


def test_production_has_nothing_to_warn_of() -> None:
    assert warnings(load_environment(document("prod"))) == []


SPOT = "aws.environments.spot"
ROLE = "arn:aws:iam::210987654321:role/ecsInstanceRole"

TRAIN = "aws.definitions.training"
GPU = "aws.queues.gpu"


def existing(**ids: Any) -> dict[str, Any]:
    right = {"vpc_id": "vpc-0a1b2c3d", "subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
    return {"kind": "existing", **right, **ids}


ONE_FAULT = [
    (
        f"{TRAIN}.secrets",
        {f"TOKEN_{n}": f"arn:aws:secretsmanager:us-east-1:210020003000:secret:{n:0150}-AbCdEf" for n in range(40)},
        f"{TRAIN}: takes ",
    ),
    ("awz", {}, "awz: unknown key; did you mean aws?"),
    ("aws.quues", {}, "aws.quues: unknown key; did you mean queues?"),
    (f"{SPOT}.max_vcpu", 8, f"{SPOT}.max_vcpu: unknown key; did you mean max_vcpus?"),
    (f"{SPOT}.instance.disk_gb", 8, f"{SPOT}.instance.disk_gb: unknown key; did you mean disk_gib?"),
    (f"{SPOT}.max_vcpus", 0, f"{SPOT}.max_vcpus: must be at least 1, is 0"),
    (f"{SPOT}.max_vcpus", -4, f"{SPOT}.max_vcpus: must be at least 1, is -4"),
    (f"{SPOT}.max_vcpus", "many", f"{SPOT}.max_vcpus: must be an integer, is 'many'"),
    (f"{SPOT}.max_vcpus", 12.5, f"{SPOT}.max_vcpus: must be an integer, is 12.5"),
    (f"{SPOT}.max_vcpus", 2, f"{SPOT}.max_vcpus: is 2; the smallest usable instance, g5.xlarge, has 4"),
    (f"{SPOT}.min_vcpus", -1, f"{SPOT}.min_vcpus: must be at least 0, is -1"),
    (f"{SPOT}.min_vcpus", 129, f"{SPOT}.min_vcpus: is 129, above max_vcpus 128"),
    (f"{SPOT}.instance_types", [], f"{SPOT}.instance_types: must not be empty"),
    (f"{SPOT}.instance_types", "g5", f"{SPOT}.instance_types: must be a list, is 'g5'"),
    (f"{SPOT}.instance_types", ["g5.xlrge"], f"{SPOT}.instance_types[0]:"),
    (f"{SPOT}.instance_types", ["g5", "p3"], f"{SPOT}.instance_types[1]:"),
    (f"{SPOT}.instance_types", ["g5", "c6i.4xlarge"], f"{SPOT}.instance_types[1]:"),
    (f"{SPOT}.instance_types", ["g5", "g5g"], f"{SPOT}.instance_types"),
    (f"{SPOT}.capacity", "sport", f"{SPOT}.capacity: must be one of 'on-demand', 'spot', is 'sport'"),
    (f"{SPOT}.allocation_strategy", "CHEAP", f"{SPOT}.allocation_strategy:"),
    ("aws.environments.on-demand.allocation_strategy", "SPOT_CAPACITY_OPTIMIZED",
     "aws.environments.on-demand.allocation_strategy: is SPOT_CAPACITY_OPTIMIZED, which is for SPOT"),
    (f"{SPOT}.instance_profile", ROLE, f"{SPOT}.instance_profile:"),
    (f"{SPOT}.image_type", "ECS_AL1", f"{SPOT}.image_type:"),
    (f"{SPOT}.instance.disk_gib", 8, f"{SPOT}.instance.disk_gib: must be at least 30, is 8"),
    (f"{SPOT}.instance.metadata_hop_limit", 3, f"{SPOT}.instance.metadata_hop_limit: must be at most 2"),
    (f"{GPU}.environments", ["spto"], f"{GPU}.environments[0]: no environment 'spto'; nearest: spot"),
    (f"{GPU}.environments", ["spot", "spot"], f"{GPU}.environments[1]:"),
    (f"{GPU}.environments", [], f"{GPU}.environments:"),
    (f"{GPU}.priority", -1, f"{GPU}.priority: must be at least 0, is -1"),
    (f"{GPU}.time_limits", [{"reason": "CAPACITY", "max_time_s": 600}], f"{GPU}.time_limits[0].reason:"),
    (f"{GPU}.time_limits",
     [{"reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "max_time_s": 60}],
     f"{GPU}.time_limits[0].max_time_s: must be 600 to 86400 seconds, is 60"),
    (f"{TRAIN}.gpus", 3.5, f"{TRAIN}.gpus: must be an integer, is 3.5"),
    (f"{TRAIN}.gpus", 16, f"{TRAIN}.gpus: is 16, and no allowed instance type"),
    (f"{TRAIN}.memory_mib", 900_000, f"{TRAIN}.memory_mib:"),
    (f"{TRAIN}.shm_mib", 20_000, f"{TRAIN}.shm_mib: is 20000 MiB, above memory_mib"),
    (f"{TRAIN}.attempts", 11, f"{TRAIN}.attempts: must be 1 to 10, is 11"),
    (f"{TRAIN}.timeout_s", 30, f"{TRAIN}.timeout_s: must be at least 60"),
    (f"{TRAIN}.image", "", f"{TRAIN}.image: must not be empty"),
    (f"{TRAIN}.env", {"A": "x\ny"}, f"{TRAIN}.env.A: holds a line break"),
    (f"{TRAIN}.env", {"AWS_BATCH_X": "1"}, f"{TRAIN}.env.AWS_BATCH_X:"),
    ("aws.definitions.Training", {"image": "r/i:1", "vcpus": 1, "memory_mib": 4096}, "aws.definitions.Training: must"),
    ("aws.region", "us-east", 'aws.region: is "us-east", which is no region; use us-east-'),
    ("aws.region", "us-east-1a", 'aws.region: is "us-east-1a", which is a zone; use us-east-1'),
    ("aws.region", "use1-az1", 'aws.region: is "use1-az1", which is a zone; use us-east-1'),
    ("aws.region", "us-central1", 'aws.region: is "us-central1", which is no region; use '),
    ("aws.region", "", 'aws.region: is "", which is no region; write one such as us-east-1'),
    ("aws.network.zones", ["us-east-1", "us-east-1a"],
     "aws.network.zones[0]: 'us-east-1' is not a zone of region us-east-1"),
    ("aws.region", "eu-west-2", "aws.network.zones[0]: 'us-east-1a' is not a zone of region eu-west-2"),
    ("aws.region", "eu-west-1", f'{SPOT}.instance_types[1]: is "g6", which is not offered in eu-west-1; use another'),
    ("aws.account_id", "123456789012", "aws.account_id:"),
    ("aws.network.cidr", "10.40.0.0/24", "aws.network.cidr: is 10.40.0.0/24; write /16 to /20"),
    ("aws.network.cidr", "10.40.0.1/16", "aws.network.cidr:"),
    ("aws.network.cidr", "10.40/16", "aws.network.cidr:"),
    ("aws.network.egress", "internet", "aws.network.egress: must be one of 'nat', 'nat-per-zone' or 'endpoints', is"),
    ("aws.network.zones", [], "aws.network.zones:"),
    ("aws.network", existing(vpc_id="vpc-1"),
     "aws.network.vpc_id:"),
    ("aws.network", existing(subnet_ids=["subnet-0abc123"]),
     "aws.network.subnet_ids[0]:"),
    ("aws.network", {"cidr": "10.0.0.0/16"}, "aws.network.kind: is missing"),
    ("aws.network", {"kind": "made"}, "aws.network.kind: must be one of 'create', 'existing', 'stack', is 'made'"),
    ("aws.monitoring", {"email": []}, "aws.monitoring.email: unknown key; did you mean emails?"),
    ("aws.monitoring", {"emails": ["ml-team"]}, "aws.monitoring.emails[0]: is \"ml-team\", which is no address"),
    ("aws.monitoring", {"https_endpoints": ["http://a.b"]}, "aws.monitoring.https_endpoints[0]: is no plain https"),
    ("aws.monitoring", {"job_states": ["SUBMITTED"]}, "aws.monitoring.job_states[0]: must be one of 'ALL', 'PENDING'"),
    ("aws.monitoring", {"failed_jobs": {"period_s": 90}}, "aws.monitoring.failed_jobs.period_s: must be a multiple"),
    ("aws.monitoring", {"idle_gpus": {"periods": 0}}, "aws.monitoring.idle_gpus.periods: must be at least 1, is 0"),
    ("aws.monitoring", {"retention_days": 31}, "aws.monitoring.retention_days: is 31, which CloudWatch Logs does not"),
    ("aws.logs.retention_days", 100, "aws.logs.retention_days: is 100, which CloudWatch Logs does not know; write 120"),
    ("aws", [], "aws: must be a mapping"),
    ("owner", None, "owner: must be text, is empty"),
    ("owner", "", "owner: must not be empty"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "line"), ONE_FAULT, ids=[f"{path}={value}"[:60] for path, value, _ in ONE_FAULT]
)
def test_one_fault_is_one_line(path: str, value: Any, line: str) -> None:
    found = faults(put(path, value))
    assert [text for text in found if text.startswith(f"environment.{line}")], found
    assert all("\n" not in text for text in found)
    # Lists of types have more than one thing wrong at a time, and a region moves every zone.
    if "instance_types" not in path and "region" not in path:
        assert len(found) == 1, found


def test_several_faults_are_reported_together() -> None:
    wrong = put(f"{SPOT}.max_vcpu", 8)
    wrong = put(f"{SPOT}.instance_types", ["p3"], wrong)
    wrong = put(f"{GPU}.environment", [], wrong)
    wrong = put("ownr", "x", wrong)
    found = faults(wrong)
    for start in (
        f"environment.{SPOT}.max_vcpu: unknown key",
        f"environment.{SPOT}.instance_types[0]: ",
        "environment.aws.queues.gpu.environment: unknown key",
        "environment.ownr: unknown key; did you mean owner?",
    ):
        assert [line for line in found if line.startswith(start)], (start, found)


@pytest.mark.parametrize("path", ["aws.queues", "aws.environments", "aws.network", "aws.region", "owner"])
def test_what_is_required(path: str) -> None:
    found = faults(replace_value(document(), parse_path(path), None))
    assert f"environment.{path}: is missing" in found


@pytest.mark.parametrize("wrong", [None, [], "dev", 3])
def test_an_environment_is_a_mapping(wrong: Any) -> None:
    assert faults(wrong)[0].startswith("environment: must be a mapping")


def test_outdated_values_are_translated_with_a_warning_and_refused_when_strict() -> None:
    old = put(f"{SPOT}.image_type", "ECS_AL2_NVIDIA")
    environment = load_environment(old)
    (warning,) = warnings(environment)
    assert str(warning).startswith(f"environment.{SPOT}.image_type: ")
    assert "ECS_AL2023_NVIDIA" in str(warning)
    assert environment.aws and environment.aws.environments["spot"].settled().image_type == "ECS_AL2023_NVIDIA"
    assert faults({**old, "strict": True})[0].startswith(f"environment.{SPOT}.image_type: ")


def test_what_aws_refuses_half_way_is_refused_before() -> None:
    def script(lines: int) -> dict[str, Any]:
        return put(f"{SPOT}.instance", {"user_data": ["#!/bin/sh\n" + "echo 0123456789\n" * lines]})

    (fault,) = faults(script(1000))
    assert fault.startswith(f"environment.{SPOT}.instance.user_data: is 16,") and "16,384" in fault
    assert load_environment(script(950))
    (fault,) = faults(put("labels", {"team": "a, b"}))
    assert fault.startswith('environment.labels: of "team" is "a, b", and \',\' is no character of a tag')
    queues = {f"queue-of-a-long-name-{number:02}": document()["aws"]["queues"]["gpu"] for number in range(50)}
    stops = {"gpus": {"amount": 1000, "recipients": {"emails": ["ml@company.com"]}, "stop": {"at": 1.0}}}
    (fault,) = faults(put("aws.queues", queues, put("aws.budgets", stops)))
    assert fault.startswith("environment.aws.budget_stop: tells its function 4,") and "4,096" in fault


OWN_IMAGE = "210020003000.dkr.ecr.us-east-1.amazonaws.com/train:1"


@pytest.mark.parametrize(
    "image",
    [
        "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime",
        "public.ecr.aws/deep-learning-containers/pytorch-training:2.6.0-gpu-py312-cu126-ubuntu22.04-ec2",
        "nvcr.io/nvidia/pytorch:25.01-py3",
        "210020003000.dkr.ecr.us-west-2.amazonaws.com/train:1",
    ],
)
def test_an_image_that_a_closed_network_cannot_pull(image: str) -> None:
    closed = put("aws.network.egress", "endpoints")
    (fault,) = faults(put(f"{TRAIN}.image", image, closed))
    assert fault.startswith(f'environment.{TRAIN}.image: is "{image}", ')
    assert "the network has endpoints alone" in fault and "dkr.ecr.us-east-1" in fault


def test_an_image_of_the_regions_own_registry_is_pulled_without_a_way_out() -> None:
    for image in (OWN_IMAGE, "local/examples"):
        assert load_environment(put(f"{TRAIN}.image", image, put("aws.network.egress", "endpoints")))


def test_a_definitions_image_that_no_queue_of_it_can_run() -> None:
    """B200 wants CUDA 12.8; a queue that runs the image elsewhere makes it a matter of the job."""
    blackwell = put(
        "aws.environments", {"b200": {"capacity": "spot", "instance_types": ["p6-b200.48xlarge"], "max_vcpus": 192}}
    )
    only = put("aws.queues", {"gpu": {"environments": ["b200"]}}, blackwell)
    old = put(f"{TRAIN}.image", "nvidia/cuda:11.8.0-runtime-ubuntu22.04", only)
    (warning,) = [each for each in warnings(load_environment(old)) if "container.image.cuda" in str(each)]
    assert str(warning).startswith(f"environment.{TRAIN}.image: is ") and "wants 12.8" in str(warning)
    new = put(f"{TRAIN}.image", "nvidia/cuda:12.8.0-runtime-ubuntu22.04", only)
    assert "container.image.cuda" not in str(warnings(load_environment(new)))
    l4 = {"l4": {"capacity": "spot", "instance_types": ["g6"], "max_vcpus": 96}, **old["aws"]["environments"]}
    both = put("aws.queues.small", {"environments": ["l4"]}, put("aws.environments", l4, old))
    assert "container.image.cuda" not in str(warnings(load_environment(both)))


def test_gpu_metrics_that_would_not_arrive_are_said() -> None:
    shut = put(f"{TRAIN}.image", OWN_IMAGE, put("aws.network.egress", "endpoints"))
    closed = put("aws.monitoring", {"gpu_metrics": True}, shut)
    (warning,) = warnings(load_environment(put("aws.network.zones", ["us-east-1a", "us-east-1b"], closed)))
    assert str(warning).startswith("environment.aws.monitoring.gpu_metrics: ")
    opened = put("aws.network.interface_endpoints", ["logs", "monitoring"], closed)
    assert warnings(load_environment(opened)) == []


def test_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    found = faults(put("aws.definitions.training.env", {"TOKEN": ["hunter2-secret"]}))
    assert found and all("hunter2" not in line for line in found)


def test_an_environment_that_no_queue_names_is_warned_of() -> None:
    spare = {"capacity": "on-demand", "instance_types": ["g5"], "max_vcpus": 16}
    (warning,) = warnings(load_environment(put("aws.environments.spare", spare)))
    assert str(warning).startswith("environment.aws.environments.spare: is in no queue (")
    off = warnings(load_environment(put("aws.environments.spare", {**spare, "state": "DISABLED"})))
    assert not [str(each) for each in off if "in no queue" in str(each)]
