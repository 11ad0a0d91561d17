"""Containers, jobs, networks and placeholders."""

from accel.rules import Finding
from accel.rules.aws import jobs, network
from accel.rules.jobs import containers, placeholders

from .case import Case

_LATEST = "registry.example.com/train"


def _overrides(characters: int) -> list[Finding]:
    return jobs.request_size({"containerOverrides": {"command": ["x" * characters]}})


CONTAINERS = [
    Case(
        "container.image.name", "image", ('"my image"',), "registry/repository:tag",
        lambda: containers.image("my image"), lambda: containers.image("quay.io/my/image:1.0"),
    ),
    Case(
        "container.image.latest", "image", (f'"{_LATEST}"',), "digest",
        lambda: containers.image(_LATEST), lambda: containers.image(f"{_LATEST}@sha256:{'0' * 64}"),
    ),
    Case(
        "container.image.gcr", "image", ("Container Registry",),
        "write europe-docker.pkg.dev/proj/eu.gcr.io/a/b:1",
        lambda: containers.image("eu.gcr.io/proj/a/b:1"),
        lambda: containers.image("mirror.gcr.io/library/python:3.11"),
    ),
    Case(
        "container.env.name", "env.A=B", ("not the name",), "letters, digits and _",
        lambda: containers.environment({"A=B": "1"}), lambda: containers.environment({"A_B": "1"}),
    ),
    Case(
        "container.env.value", "env.EPOCHS", ("must be text", "int"), "in quotes",
        lambda: containers.environment({"EPOCHS": 50}), lambda: containers.environment({"EPOCHS": "50"}),
    ),
    Case(
        "aws.env.reserved", "env.AWS_BATCH_MINE", ('"AWS_BATCH_MINE"', "set by Batch"), "another name",
        lambda: containers.aws_environment({"AWS_BATCH_MINE": "1"}, 1),
        lambda: containers.aws_environment({"MY_AWS_BATCH": "1"}, 1),
    ),
    Case(
        "aws.env.visible-devices", "env.NVIDIA_VISIBLE_DEVICES", ("the 2 GPUs that it assigns",),
        "leave it out",
        lambda: containers.aws_environment({"NVIDIA_VISIBLE_DEVICES": "all"}, 2),
        lambda: containers.aws_environment({"NVIDIA_DRIVER_CAPABILITIES": "all"}, 2),
    ),
    Case(
        "aws.env.visible-devices-without-gpu", "env.NVIDIA_VISIBLE_DEVICES", ("reserves no GPU",), "gpus: 1",
        lambda: containers.aws_environment({"NVIDIA_VISIBLE_DEVICES": "all"}, 0),
        lambda: containers.aws_environment({"CUDA_VISIBLE_DEVICES": "0"}, 0),
    ),
]  # fmt: skip

JOBS = [
    Case(
        "aws.job.array-size", "array_size", ("2 to 10000", "is 1"), "plain job",
        lambda: jobs.job(name="j", array_size=1), lambda: jobs.job(name="j", array_size=2),
    ),
    Case(
        "aws.job.dependency-count", "depends_on", ("21 jobs", "20"), "one job",
        lambda: jobs.job(name="j", depends_on=[{"jobId": str(i)} for i in range(21)]),
        lambda: jobs.job(name="j", depends_on=[{"jobId": str(i)} for i in range(20)]),
    ),
    Case(
        "aws.job.dependency", "depends_on[0].type", ("N_TO_N", "array jobs"), "array_size",
        lambda: jobs.job(name="j", depends_on=[{"jobId": "1", "type": "N_TO_N"}]),
        lambda: jobs.job(name="j", array_size=2, depends_on=[{"jobId": "1", "type": "N_TO_N"}]),
    ),
    Case(
        "aws.job.payload", "request", ("bytes", "30720"), "bucket",
        lambda: jobs.request_size({"parameters": {"p": "x" * 30720}}),
        lambda: jobs.request_size({"parameters": {"p": "x" * 30000}}),
    ),
    Case(
        "aws.job.overrides", "request.containerOverrides", ("8193 characters", "8192"), "job definition",
        lambda: _overrides(8193 - 41), lambda: _overrides(100),
    ),
    Case(
        "aws.job.overrides-near", "request.containerOverrides", ("8192 characters", "Batch adds"),
        "job definition",
        lambda: _overrides(8192 - 41), lambda: _overrides(7168 - 41),
    ),
    Case(
        "aws.job.tags", "tags", ("has 51", "50"), "drop some",
        lambda: jobs.job(name="j", tags={str(i): "" for i in range(51)}),
        lambda: jobs.job(name="j", tags={str(i): "" for i in range(50)}),
    ),
]  # fmt: skip

NETWORK = [
    Case(
        "aws.network.cidr", "cidr", ('"10.0.0.1/16"',), "write 10.0.0.0/16",
        lambda: network.network("10.0.0.1/16", 2), lambda: network.network("10.0.0.0/16", 2),
    ),
    Case(
        "aws.network.cidr-size", "cidr", ('"10.0.0.0/15"', "/16 to /28"), "write 10.0.0.0/16",
        lambda: network.network("10.0.0.0/15", 2),
        lambda: network.network("10.0.0.0/26", 4),
    ),
    Case(
        "aws.network.cidr-public", "cidr", ('"8.8.0.0/16"', "public"), "10.0.0.0/16",
        lambda: network.network("8.8.0.0/16", 2), lambda: network.network("172.31.0.0/16", 2),
    ),
    Case(
        "aws.network.zone-count", "zones", ("one zone",), "two or three",
        lambda: network.network("10.0.0.0/16", ["us-east-1a"]),
        lambda: network.network("10.0.0.0/16", ["us-east-1a", "us-east-1b"]),
    ),
    Case(
        "aws.network.zones", "zones", ("twice", "us-east-1a"), "once",
        lambda: network.network("10.0.0.0/16", ["us-east-1a", "us-east-1a"]),
        lambda: network.network("10.0.0.0/16", 2),
    ),
]  # fmt: skip

PLACEHOLDERS = [
    Case(
        "aws.placeholder.resource-id", "subnet_ids[1]", ('"subnet-0abc123"', "no subnet id"), "8 or 17",
        lambda: placeholders.resource_ids("subnet_ids", ["subnet-1a2b3c4d", "subnet-0abc123"], "subnet"),
        lambda: placeholders.resource_ids("subnet_ids", ["subnet-0123456789abcdef0"], "subnet"),
    ),
    Case(
        "aws.placeholder.account", "image", ("123456789012", "sample account"), "your own",
        lambda: placeholders.account("image", "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1"),
        lambda: placeholders.account("image", "210987654321.dkr.ecr.us-east-1.amazonaws.com/1234567890123:1")
        + placeholders.account("role", "arn:aws:iam::123456789012:role/r", allowed=["123456789012"]),
    ),
    Case(
        "placeholder.value", "project", ('"MY_PROJECT" is a placeholder',), "stands for",
        lambda: placeholders.value("project", "projects/MY_PROJECT/locations"),
        lambda: placeholders.value("project", "my-project-17"),
    ),
]  # fmt: skip

CASES = CONTAINERS + JOBS + NETWORK + PLACEHOLDERS
