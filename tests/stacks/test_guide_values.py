"""The values of pages about GPUs on AWS Batch through `stacks validate` and `stacks adopt`: what is said of each."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from click.testing import CliRunner, Result

from stacks.cli.main import stacks
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.support import memory
from tests.support.project import KEY

from .adopt_samples import ASKED
from .guide import IAM, MULTI, ON_DEMAND, OURS, QUEUE, SAMPLE, SOUND, SPOT, TRAINING, VERBATIM, changed

AMI = "ami-0123456789abcdef0"
ECR = "dkr.ecr.us-east-1.amazonaws.com/ml-training"
PROFILE = f"{IAM}:instance-profile/ecsInstanceRole"
ONLY_2XLARGE = {f"{ON_DEMAND}.instance_types": ["g5.2xlarge"], MULTI: None}
ONLY_G5 = {f"{ON_DEMAND}.instance_types": ["g5"]}


@dataclass(frozen=True)
class Row:
    """Values in, by path; what happens; the place of the line about it, and words of that line."""

    name: str
    values: dict[str, Any]
    what: Literal["refused", "warned", "translated"]
    place: str
    words: tuple[str, ...]
    becomes: tuple[str, Any] | None = None
    """Of a translation: a field of the settled spec, and its value then."""

    def __str__(self) -> str:
        return self.name


ROWS = [
    # Instances
    Row("spot-strategy-on-ec2", {f"{ON_DEMAND}.allocation_strategy": "SPOT_CAPACITY_OPTIMIZED"}, "refused",
        f"{ON_DEMAND}.allocation_strategy", ("SPOT_CAPACITY_OPTIMIZED", "SPOT environments only", "BEST_FIT_PROGR")),
    Row("one-and-eight-gpus-mixed", {f"{ON_DEMAND}.instance_types": ["p4d", "p5", "g5", "g6"]}, "warned",
        f"{ON_DEMAND}.instance_types", ("(p5, g5, g6)", "(p4d)", "price of a vCPU", "queue of their own")),
    Row("minimum-bills", {f"{ON_DEMAND}.min_vcpus": 8}, "warned",
        f"{ON_DEMAND}.min_vcpus", ("is 8", "bills without jobs", "DISABLED", "write 0")),
    Row("maximum-below-one-p4d", {f"{ON_DEMAND}.instance_types": ["p4d"], f"{ON_DEMAND}.max_vcpus": 95}, "refused",
        f"{ON_DEMAND}.max_vcpus", ("is 95", "p4d.24xlarge", "96 vCPUs", "write 96 for one of them, 192 for two")),
    Row("maximum-below-one-p5", {f"{ON_DEMAND}.instance_types": ["p5.48xlarge"], f"{ON_DEMAND}.max_vcpus": 128},
        "refused", f"{ON_DEMAND}.max_vcpus", ("is 128", "p5.48xlarge", "192 vCPUs")),
    Row("p3", {f"{ON_DEMAND}.instance_types": ["p3", "g5", "g6"]}, "refused",
        f"{ON_DEMAND}.instance_types[0]", ('"p3"', "ECS_AL2023_NVIDIA does not support", "g5, g6 or p4d")),
    Row("p3-on-spot", {f"{SPOT}.instance_types": ["p3", "g5"]}, "refused",
        f"{SPOT}.instance_types[0]", ('"p3"', "ECS_AL2023_NVIDIA does not support")),
    Row("cpu-type", {f"{ON_DEMAND}.instance_types": ["g5", "m6i"]}, "refused",
        f"{ON_DEMAND}.instance_types[1]", ('"m6i"', "has no GPU", "NVIDIA GPU family")),
    Row("unlisted-cpu-type", {f"{ON_DEMAND}.instance_types": ["g5", "m5"]}, "refused",
        f"{ON_DEMAND}.instance_types[1]", ('"m5"', "no GPU type of the catalogue")),
    Row("optimal", {f"{ON_DEMAND}.instance_types": ["optimal"]}, "refused",
        f"{ON_DEMAND}.instance_types[0]", ('"optimal"', "CPU families only", "GPU families")),
    Row("graviton-beside-x86", {f"{ON_DEMAND}.instance_types": ["g5", "g6", "g5g"]}, "refused",
        f"{ON_DEMAND}.instance_types", ("x86_64 (g5)", "arm64 (g5g)")),
    Row("graviton-on-the-nvidia-image", {f"{ON_DEMAND}.instance_types": ["g5g"]}, "refused",
        f"{ON_DEMAND}.instance_types[0]", ('"g5g"', "Graviton", "no NVIDIA image")),
    Row("architectures-in-one-queue",
        {f"{ON_DEMAND}.instance_types": ["g5g"], f"{ON_DEMAND}.image_id_override": AMI,
         f"{QUEUE}.environments": ["gpu-compute-env", "gpu-spot-compute-env"]}, "refused",
        f"{QUEUE}.environments", ("arm64 (gpu-compute-env)", "x86_64 (gpu-spot-compute-env)", "each architecture")),
    # Images
    Row("al2-nvidia", {f"{ON_DEMAND}.image_type": "ECS_AL2_NVIDIA"}, "translated",
        f"{ON_DEMAND}.image_type", ("is ECS_AL2_NVIDIA", "2026-06-30", "use ECS_AL2023_NVIDIA"),
        ("image_type", "ECS_AL2023_NVIDIA")),
    Row("al2", {f"{ON_DEMAND}.image_type": "ECS_AL2"}, "refused",
        f"{ON_DEMAND}.image_type", ("is ECS_AL2,", "no NVIDIA driver", "use ECS_AL2023_NVIDIA")),
    Row("al1", {f"{ON_DEMAND}.image_type": "ECS_AL1"}, "refused",
        f"{ON_DEMAND}.image_type", ("is ECS_AL1", "ended", "use ECS_AL2023_NVIDIA")),
    Row("image-without-driver", {f"{ON_DEMAND}.image_type": "ECS_AL2023"}, "refused",
        f"{ON_DEMAND}.image_type", ("is ECS_AL2023,", "no NVIDIA driver", "g5 has GPUs", "use ECS_AL2023_NVIDIA")),
    Row("own-image-placeholder", {f"{ON_DEMAND}.image_id_override": "ami-0abc123"}, "refused",
        f"{ON_DEMAND}.image_id_override", ('"ami-0abc123"', "8 or 17 hexadecimal digits")),
    # Roles and ids
    Row("service-role", {f"{ON_DEMAND}.service_role": f"{IAM}:role/AWSBatchServiceRole"}, "warned",
        f"{ON_DEMAND}.service_role", ("AWSBatchServiceRole", "update in place", "AWSServiceRoleForBatch")),
    Row("role-for-a-profile", {f"{ON_DEMAND}.instance_profile": f"{IAM}:role/ecsInstanceRole"}, "refused",
        f"{ON_DEMAND}.instance_profile", ("ARN of a role", PROFILE)),
    Row("sample-subnet", {"aws.network.subnet_ids": ["subnet-0abc123", "subnet-0def456"]}, "refused",
        "aws.network.subnet_ids[1]", ('"subnet-0def456"', "subnet- and 8 or 17 hexadecimal digits")),
    Row("sample-group", {"aws.network.security_group_ids": ["sg-0abc123"]}, "refused",
        "aws.network.security_group_ids[0]", ('"sg-0abc123"', "sg- and 8 or 17 hexadecimal digits")),
    *(Row(f"sample-account-{field}", {f"{place}.{field}": value}, "refused",
          f"{place}.{shown or field}", (f"{SAMPLE} is the sample account", "get-caller-identity"))
      for place, field, value, shown in (
          ("aws", "account_id", SAMPLE, ""),
          (ON_DEMAND, "instance_profile", PROFILE.replace(OURS, SAMPLE), ""),
          (ON_DEMAND, "service_role", f"arn:aws:iam::{SAMPLE}:role/AWSBatchServiceRole", ""),
          (SPOT, "spot_fleet_role", f"arn:aws:iam::{SAMPLE}:role/AmazonEC2SpotFleetRole", ""),
          (TRAINING, "image", f"{SAMPLE}.{ECR}:1.4", ""),
          (TRAINING, "job_role", f"arn:aws:iam::{SAMPLE}:role/job", ""),
          (TRAINING, "execution_role", f"arn:aws:iam::{SAMPLE}:role/ecsTaskExecutionRole", ""),
          (TRAINING, "secrets", {"KEY": f"arn:aws:ssm:us-east-1:{SAMPLE}:parameter/key"}, "secrets.KEY"),
          ("aws.roles", "repositories", [f"arn:aws:ecr:us-east-1:{SAMPLE}:repository/ml-training"], "repositories[0]"),
          ("aws.roles", "secrets", [f"arn:aws:ssm:us-east-1:{SAMPLE}:parameter/key"], "secrets[0]"),
      )),
    # Queue
    Row("too-many-environments", {f"{QUEUE}.environments": ["gpu-compute-env", "gpu-spot-compute-env"] * 2}, "refused",
        f"{QUEUE}.environments", ("4 environments", "1 to 3")),
    Row("environment-twice", {f"{QUEUE}.environments": ["gpu-compute-env", "gpu-compute-env"]}, "refused",
        f"{QUEUE}.environments[1]", ('"gpu-compute-env" a second time',)),
    Row("time-limit-too-short",
        {f"{QUEUE}.time_limits": [{"reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "max_time_s": 300}]}, "refused",
        f"{QUEUE}.time_limits[0].max_time_s", ("600 to 86400", "is 300", "write 600")),
    # Definitions
    Row("latest", {f"{TRAINING}.image": f"{OURS}.{ECR}:latest"}, "warned",
        f"{TRAINING}.image", ("ml-training:latest", "after the next push", "version or a digest")),
    Row("half-a-gpu", {f"{TRAINING}.gpus": 0.5}, "refused", f"{TRAINING}.gpus", ("integer", "is 0.5")),
    Row("full-memory-of-the-only-type", {**ONLY_2XLARGE, f"{TRAINING}.memory_mib": 32768}, "refused",
        f"{TRAINING}.memory_mib", ("8 vCPUs, 32768 MiB and 1 GPUs", "g5.2xlarge has 32768 MiB", "registers about 30146",
                                   "ask for at most 30000 MiB to fit g5.2xlarge")),
    Row("nearly-full-memory", {**ONLY_2XLARGE, f"{TRAINING}.memory_mib": 31000}, "warned",
        f"{TRAINING}.memory_mib", ("is 31000", "30146 to 32276", "depending on the AMI", "30000 MiB")),
    Row("full-memory-takes-the-next-size", {**ONLY_G5, f"{TRAINING}.memory_mib": 32768}, "warned",
        f"{TRAINING}.memory_mib", ("is 32768", "misses g5.2xlarge", "runs on g5.4xlarge or larger", "30000 MiB")),
    Row("full-memory-without-room-for-the-next-size",
        {**ONLY_G5, f"{TRAINING}.memory_mib": 32768, f"{ON_DEMAND}.max_vcpus": 8, MULTI: None}, "refused",
        f"{TRAINING}.memory_mib", ("max_vcpus is 8, g5.4xlarge has 16", "raise max_vcpus of gpu-compute-env to at "
                                   "least 16, or ask for at most 30000 MiB to fit g5.2xlarge")),
    Row("four-gpus-without-room", {f"{ON_DEMAND}.max_vcpus": 40}, "refused",
        f"{MULTI}.gpus", ("32 vCPUs, 131072 MiB and 4 GPUs", "max_vcpus is 40, g5.12xlarge has 48", "at least 48")),
    Row("four-gpus-on-small-types", {f"{ON_DEMAND}.instance_types": ["g5.xlarge", "g5.2xlarge"]}, "refused",
        f"{MULTI}.gpus", ("is 4", "no allowed instance type has more than 1", "g6.12xlarge, g5.12xlarge")),
    Row("sixteen-gpus", {f"{TRAINING}.gpus": 16}, "refused",
        f"{TRAINING}.gpus", ("is 16", "more than 8", "several nodes")),
    Row("queue-that-serves-nothing",
        {"aws.queues.small": {"environments": ["gpu-spot-compute-env"]}, f"{SPOT}.max_vcpus": 4}, "warned",
        "aws.queues.small.environments", ("none of the definitions", "gpu-training-job: vcpus is 8", "leave the q")),
    Row("one-gpu-of-eight", {f"{ON_DEMAND}.instance_types": ["p4d"]}, "warned",
        f"{TRAINING}.gpus", ("is 1", "p4d.24xlarge, has 8", "7 GPUs are idle")),
    Row("dockers-shared-memory", {f"{TRAINING}.shm_mib": 64}, "warned",
        f"{TRAINING}.shm_mib", ("is 64 MiB", "bus error", "at least 2048")),
    Row("shared-memory-over-memory", {f"{TRAINING}.shm_mib": 32768}, "refused",
        f"{TRAINING}.shm_mib", ("is 32768 MiB", "memory_mib 30000")),
    Row("visible-devices", {f"{TRAINING}.env": {"NVIDIA_VISIBLE_DEVICES": "all", "EPOCHS": "50"}}, "translated",
        f"{TRAINING}.env.NVIDIA_VISIBLE_DEVICES", ("ECS sets it to the 1 GPU", "leave it out"),
        ("env", {"EPOCHS": "50"})),
    Row("visible-devices-without-gpu",
        {f"{TRAINING}.env": {"NVIDIA_VISIBLE_DEVICES": "all"}, f"{TRAINING}.gpus": 0}, "refused",
        f"{TRAINING}.env.NVIDIA_VISIBLE_DEVICES", ("reserves no GPU", "GPUs of other jobs", "gpus: 1")),
    Row("number-as-variable", {f"{TRAINING}.env": {"EPOCHS": 50}}, "refused", f"{TRAINING}.env.EPOCHS", ("text",)),
    Row("attempts", {f"{TRAINING}.attempts": 11}, "refused", f"{TRAINING}.attempts", ("1 to 10", "is 11")),
    Row("timeout", {f"{TRAINING}.timeout_s": 59}, "refused", f"{TRAINING}.timeout_s", ("at least 60", "is 59")),
    Row("three-mib", {f"{TRAINING}.memory_mib": 3, f"{TRAINING}.shm_mib": 1}, "refused",
        f"{TRAINING}.memory_mib", ("at least 4 MiB", "is 3")),
    # Spot
    Row("capacity-optimized", {f"{SPOT}.allocation_strategy": "SPOT_CAPACITY_OPTIMIZED"}, "warned",
        f"{SPOT}.allocation_strategy", ("no price", "use SPOT_PRICE_CAPACITY_OPTIMIZED")),
    Row("fleet-role", {f"{SPOT}.spot_fleet_role": f"{IAM}:role/AmazonEC2SpotFleetRole"}, "warned",
        f"{SPOT}.spot_fleet_role", ("does not use", "leave it out")),
    Row("fleet-role-that-cannot-tag", {f"{SPOT}.spot_fleet_role": f"{IAM}:role/AmazonEC2SpotFleetRole"}, "warned",
        f"{SPOT}.spot_fleet_role", ("cannot tag", "AmazonEC2SpotFleetTaggingRole")),
    Row("best-fit-without-fleet-role", {f"{SPOT}.allocation_strategy": "BEST_FIT"}, "refused",
        f"{SPOT}.spot_fleet_role", ("is missing", "AmazonEC2SpotFleetTaggingRole", "SPOT_PRICE_CAPACITY_OPTIMIZED")),
    Row("bid", {f"{SPOT}.bid_percentage": 60}, "warned", f"{SPOT}.bid_percentage", ("60 % of on-demand", "leave it")),
]  # fmt: skip

ACCEPTED: dict[str, dict[str, Any]] = {
    "as-corrected": {},
    "profile-by-name": {f"{ON_DEMAND}.instance_profile": "ecsInstanceRole"},
    "own-image-for-p3": {f"{ON_DEMAND}.instance_types": ["p3"], f"{ON_DEMAND}.image_id_override": AMI},
    "spot-before-on-demand": {f"{QUEUE}.environments": ["gpu-spot-compute-env", "gpu-compute-env"]},
    "memory-that-a-2xlarge-registers": ONLY_2XLARGE,
    "four-gpus-on-the-smallest-types": {f"{ON_DEMAND}.instance_types": ["g5.12xlarge"], f"{ON_DEMAND}.max_vcpus": 48},
}


def validated(folder: Path, values: dict[str, Any], *options: str) -> Result:
    (folder / "Pulumi.guide.yaml").write_text(yaml.safe_dump({"config": {KEY: values}}, sort_keys=False))
    return CliRunner().invoke(stacks, ["validate", *options, str(folder / "Pulumi.guide.yaml")])


def told(text: str, kind: str, place: str) -> list[str]:
    """Lines of a kind about a place, without what is before its path."""
    marked = f": environment.{place}: "
    return [line.partition(marked)[2] for line in text.splitlines() if line.startswith(f"{kind}: ") and marked in line]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_value_has_its_line(tmp_path: Path, row: Row) -> None:
    values = changed(row.values, SOUND)
    done = validated(tmp_path, values)
    refused = row.what == "refused"
    assert done.exit_code == (2 if refused else 0), done.output
    kind, text = ("error", done.stderr) if refused else ("warning", done.stdout)
    found = told(text, kind, row.place)
    assert any(all(word in line for word in row.words) for line in found), (found, done.output)
    if not refused:
        strict = validated(tmp_path, values, "--strict")
        assert strict.exit_code == 2, strict.output
        assert told(strict.stderr, "error", row.place) == found
    if row.becomes:
        field, value = row.becomes
        _, kind, name = row.place.split(".")[:3]
        section: Any = load_environment(values).aws
        assert getattr(getattr(section, kind)[name].settled(), field) == value


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_value_that_works_is_taken_without_a_word(tmp_path: Path, name: str) -> None:
    both = {f"{QUEUE}.environments": ["gpu-compute-env", "gpu-spot-compute-env"]}
    done = validated(tmp_path, changed(both | ACCEPTED[name], SOUND), "--strict")
    assert (done.exit_code, done.stderr) == (0, ""), done.output


@pytest.mark.parametrize("image_type", ["ECS_AL2_NVIDIA", "ECS_AL2"])
def test_an_old_image_stays_where_it_is(tmp_path: Path, image_type: str) -> None:
    there = {f"{ON_DEMAND}.adopted": {"name": "gpu_env"}, f"{ON_DEMAND}.image_type": image_type}
    done = validated(tmp_path, changed({**there, f"{ON_DEMAND}.instance_types": ["p3", "g5"]}, SOUND))
    assert done.exit_code == (0 if "NVIDIA" in image_type else 2), done.output
    assert "2026-06-30" not in done.output


EVERYTHING = {
    "aws.network.subnet_ids[0]": '"subnet-0abc123"',
    "aws.network.subnet_ids[1]": '"subnet-0def456"',
    "aws.network.security_group_ids[0]": '"sg-0abc123"',
    f"{ON_DEMAND}.instance_types[0]": '"p3"',
    f"{ON_DEMAND}.instance_profile": f"{SAMPLE} is the sample account",
    f"{SPOT}.instance_types[0]": '"p3"',
    f"{SPOT}.subnet_ids[0]": '"subnet-0abc123"',
    f"{SPOT}.spot_fleet_role": f"{SAMPLE} is the sample account",
    f"{TRAINING}.image": f"{SAMPLE} is the sample account",
}


def test_all_of_it_at_once(tmp_path: Path) -> None:
    done = validated(tmp_path, VERBATIM)
    assert done.exit_code == 2
    for place, words in {**EVERYTHING, f"{MULTI}.image": f"{SAMPLE} is the sample account"}.items():
        assert any(words in line for line in told(done.stderr, "error", place)), (place, done.stderr)


NOTES = (
    "translated: environments.gpu-compute-env.image_type: is ECS_AL2_NVIDIA",
    "translated: environments.gpu-spot-compute-env.image_type: is ECS_AL2_NVIDIA",
    "translated: definitions.gpu-training-job.env.NVIDIA_VISIBLE_DEVICES: ",
    "warning: environments.gpu-compute-env.service_role: ",
    "warning: environments.gpu-spot-compute-env.allocation_strategy: is SPOT_CAPACITY_OPTIMIZED",
    "warning: environments.gpu-spot-compute-env.spot_fleet_role: ",
)


def test_the_requests_themselves_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Pulumi.yaml").write_text("name: ours\nruntime: python\n")
    Path("asked.json").write_text(json.dumps(list(ASKED.values())))
    done = CliRunner().invoke(stacks, ["adopt", "asked.json", "--region", "us-east-1"])
    assert done.exit_code == 2
    for note in NOTES:
        assert any(line.startswith(note) for line in done.stdout.splitlines()), (note, done.stdout)
    adopted = yaml.safe_load(Path("Pulumi.adopted.yaml").read_text())["config"]["accel:environment"]["aws"][
        "definitions"
    ]
    groups = {name: spec.get("log_group") for name, spec in adopted.items()}
    assert groups["gpu-training-job"] == "/aws/batch/gpu-jobs" and groups["multi-gpu-training"] == "/aws/batch/job"
    for place, words in EVERYTHING.items():
        assert f"error: environment.{place}: is " in done.stderr and words in done.stderr
    again = CliRunner().invoke(stacks, ["validate", "adopted"])
    assert again.exit_code == 2 and "Pulumi.adopted.yaml:" in again.stderr


def test_what_is_sent_of_it() -> None:
    """What nothing on those pages says, or says otherwise, and Batch gets all the same."""
    seen = memory.run(lambda: deploy(load_environment(SOUND)))
    resources = {
        one.name: one.inputs["computeResources"] for one in seen.of("batch/computeEnvironment:ComputeEnvironment")
    }
    for each in resources.values():
        assert [one["imageType"] for one in each["ec2Configurations"]] == ["ECS_AL2023_NVIDIA"]
    assert resources["gpu-compute-env"]["allocationStrategy"] == "BEST_FIT_PROGRESSIVE"
    assert resources["gpu-spot-compute-env"]["allocationStrategy"] == "SPOT_PRICE_CAPACITY_OPTIMIZED"
    assert "spotIamFleetRole" not in resources["gpu-spot-compute-env"]
    assert all("serviceRole" not in one.inputs for one in seen.of("batch/computeEnvironment:ComputeEnvironment"))

    (queue,) = seen.of("batch/jobQueue:JobQueue")
    limits = queue.inputs["jobStateTimeLimitActions"]
    assert {(one["state"], one["action"], one["maxTimeSeconds"]) for one in limits} == {("RUNNABLE", "CANCEL", 600)}

    (group,) = seen.of("cloudwatch/logGroup:LogGroup")
    for one in seen.of("batch/jobDefinition:JobDefinition"):
        container = json.loads(one.inputs["containerProperties"])
        assert container["logConfiguration"]["options"]["awslogs-group"].startswith(group.name)
        assert not container["environment"]
        (retried, *_) = one.inputs["retryStrategy"]["evaluateOnExits"]
        assert (retried["action"], retried["onStatusReason"]) == ("RETRY", "Host EC2*")
