"""The values of pages about GPUs on AWS Batch as job files: what `jobs` says of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from click.testing import Result

Invoke = Callable[..., Result]

OURS, SAMPLE = "210020003000", "123456789012"
IMAGE = f"{OURS}.dkr.ecr.us-east-1.amazonaws.com/ml-training:1.4"
ARN = f"arn:aws:batch:us-east-1:{OURS}"
JOB_ID = "0f3c2a1b-4d5e-4f60-8a7b-9c0d1e2f3a4b"
VARIABLES = {"EPOCHS": 50, "BATCH_SIZE": 64, "LEARNING_RATE": 0.001, "S3_DATA_PATH": "s3://my-bucket/data"}


def environment(name: str, capacity: str, types: list[str], max_vcpus: int = 256) -> dict[str, Any]:
    arn = f"{ARN}:compute-environment/{name}"
    return {"name": name, "arn": arn, "capacity": capacity, "instance_types": types, "max_vcpus": max_vcpus,
            "disk_gib": 200}  # fmt: skip


def target(*environments: dict[str, Any]) -> dict[str, Any]:
    def definition(name: str, vcpus: int, memory_mib: int, gpus: int, shm_mib: int) -> dict[str, Any]:
        return {"arn": f"{ARN}:job-definition/{name}", "image": IMAGE, "vcpus": vcpus, "memory_mib": memory_mib,
                "gpus": gpus, "shm_mib": shm_mib}  # fmt: skip

    return {
        "kind": "aws-batch",
        "schema": 1,
        "region": "us-east-1",
        "queue_arn": f"{ARN}:job-queue/gpu-job-queue",
        "environments": list(environments),
        "definitions": {
            "gpu-training-job": definition("gpu-training-job", 8, 30_000, 1, 8192),
            "multi-gpu-training": definition("multi-gpu-training", 32, 131_072, 4, 16_384),
        },
        "definition_prefix": "accel-guide",
        "log_group": "jobs",
        "job_role_arn": f"arn:aws:iam::{OURS}:role/job",
        "execution_role_arn": f"arn:aws:iam::{OURS}:role/execution",
        "claim_table": "claims",
    }


ON_DEMAND = environment("gpu-compute-env", "on-demand", ["g5", "g6"])
TARGETS = {
    "gpu": target(ON_DEMAND),
    "both": target(environment("gpu-spot-compute-env", "spot", ["g5"]), ON_DEMAND),
    "2xlarge": target(environment("e", "on-demand", ["g5.2xlarge"])),
    "g5": target(environment("e", "on-demand", ["g5"])),
    "small": target(environment("e", "on-demand", ["g5"], 8)),
    "forty": target(environment("e", "on-demand", ["g5", "g6"], 40)),
    "p4d": target(environment("e", "on-demand", ["p4d"])),
}
JOB: dict[str, Any] = {
    "name": "training-run-001",
    "command": ["python3", "train.py"],
    "aws_batch": {"definition": "gpu-training-job"},
}
FOUR: dict[str, Any] = {"aws_batch": {"definition": "multi-gpu-training"}}


@dataclass(frozen=True)
class Row:
    """Fields of a job file, the target, what happens, the field that the line is about, and words of the line."""

    name: str
    fields: dict[str, Any]
    what: Literal["refused", "warned"]
    place: str
    words: tuple[str, ...]
    to: str = "gpu"
    absent: tuple[str, ...] = field(default=())
    """What the request then does not hold."""

    def __str__(self) -> str:
        return self.name


ROWS = [
    Row("sample-account", {"image": f"{SAMPLE}.dkr.ecr.us-east-1.amazonaws.com/ml-training:1"}, "refused",
        "image", (f"{SAMPLE} is the sample account", "12 digit account id")),
    Row("placeholder", {"image": "YOUR_REGISTRY/ml-training:1"}, "refused", "image", ('"YOUR_REGISTRY" is a placeh',)),
    Row("latest", {"image": f"{OURS}.dkr.ecr.us-east-1.amazonaws.com/ml-training:latest"}, "warned",
        "image", ("after the next push", "version or a digest")),
    Row("half-a-gpu", {"accelerator": {"count": 0.5}}, "refused", "accelerator.count", ("integer", "is 0.5")),
    Row("sixteen-gpus", {"accelerator": {"count": 16}}, "refused",
        "accelerator.count", ("is 16", "no allowed instance type has more than 8", "several nodes")),
    Row("full-memory-of-the-only-type", {"memory_mib": 32_768}, "refused",
        "memory_mib", ("8 vCPUs, 32768 MiB and 1 GPUs", "registers about 30146", "at most 30000 MiB"), "2xlarge"),
    Row("nearly-full-memory", {"memory_mib": 31_000}, "warned",
        "memory_mib", ("is 31000", "30146 to 32276", "depending on the AMI"), "2xlarge"),
    Row("full-memory-takes-the-next-size", {"memory_mib": 32_768}, "warned",
        "memory_mib", ("is 32768", "misses g5.2xlarge", "g5.4xlarge or larger"), "g5"),
    Row("full-memory-without-room-for-the-next-size", {"memory_mib": 32_768}, "refused",
        "memory_mib", ("max_vcpus is 8, g5.4xlarge has 16", "raise max_vcpus of e to at least 16"), "small"),
    Row("four-gpus-without-room", FOUR, "refused",
        "accelerator.count", ("max_vcpus is 40, g5.12xlarge has 48", "raise max_vcpus of e to at least 48"), "forty"),
    Row("more-vcpus-than-room", {"cpus": 64}, "refused",
        "cpus", ("is 64", "above max_vcpus of every environment (e 40)", "at most 40"), "forty"),
    Row("four-gpus-on-a-one-gpu-type", FOUR, "refused",
        "accelerator.count", ("is 4", "more than 1", "g4dn.12xlarge, g6.12xlarge, g5.12xlarge"), "2xlarge"),
    Row("one-gpu-of-eight", {}, "warned", "accelerator.count", ("p4d.24xlarge, has 8", "7 GPUs are idle"), "p4d"),
    Row("dockers-shared-memory", {"shm_mib": 64}, "warned", "shm_mib", ("is 64 MiB", "bus error", "at least 2048")),
    Row("shared-memory-over-memory", {"shm_mib": 32_768}, "refused", "shm_mib", ("is 32768 MiB", "memory_mib 30000")),
    Row("visible-devices", {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "warned",
        "env.NVIDIA_VISIBLE_DEVICES", ("ECS sets it to the 1 GPU", "leave it out"), absent=("NVIDIA_VISIBLE_DEVICES",)),
    Row("visible-devices-without-gpu",
        {"image": "registry.example/cpu:1", "cpus": 2, "memory_mib": 4096, "aws_batch": {},
         "env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "refused",
        "env.NVIDIA_VISIBLE_DEVICES", ("reserves no GPU", "GPUs of other jobs")),
    Row("timeout", {"timeout_s": 59}, "refused", "timeout_s", ("at least 60", "is 59")),
    Row("attempts", {"retries": 10}, "refused", "retries", ("0 to 9", "is 10")),
    Row("three-mib", {"memory_mib": 3}, "refused", "memory_mib", ("at least 4", "is 3")),
    Row("array", {"tasks": 10_001}, "refused", "tasks", ("2 to 10000", "is 10001")),
    Row("dependencies", {"aws_batch": {**JOB["aws_batch"], "depends_on": [JOB_ID] * 21}}, "refused",
        "aws_batch.depends_on", ("at most 20", "21")),
    Row("nodes-on-spot", {"nodes": 2}, "refused", "nodes", ("is 2", "SPOT environment", "EC2 environments"), "both"),
    Row("spot-where-there-is-none", {"spot": True}, "refused", "spot", ("gpu-compute-env (on-demand)",)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def targets(home: Path) -> None:
    (home / ".accel").mkdir()
    (home / ".accel" / "targets.json").write_text(json.dumps(TARGETS))


def written(home: Path, **fields: Any) -> str:
    (home / "job.yaml").write_text(yaml.safe_dump({**JOB, **fields}, sort_keys=False))
    return "job.yaml"


def submitted(invoke: Invoke, file: str, to: str) -> Result:
    return invoke("submit", file, "--to", to, "--dry-run", "--no-quota")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_value_has_its_line(home: Path, invoke: Invoke, row: Row) -> None:
    file = written(home, **row.fields)
    done = submitted(invoke, file, row.to)
    refused = row.what == "refused"
    assert done.exit_code == (2 if refused else 0), done.output
    kind = "error: " if refused else "warning: "
    lines = [line for line in done.stderr.splitlines() if line.startswith(kind) and f"{row.place}: " in line]
    assert any(all(word in line for word in row.words) for line in lines), done.stderr
    if not refused:
        sent = json.dumps(json.loads(done.stdout)["body"])
        assert not any(word in sent for word in row.absent)
    checked = invoke("validate", file, "--to", row.to, "--no-quota")
    assert checked.exit_code == done.exit_code, checked.output
    if refused:
        assert any(all(word in line for word in row.words) for line in checked.stderr.splitlines())


@pytest.mark.parametrize("fields", [{}, FOUR], ids=["one-gpu", "four-gpus"])
def test_what_works_is_taken_without_a_word(home: Path, invoke: Invoke, fields: dict[str, Any]) -> None:
    done = submitted(invoke, written(home, **fields, env=VARIABLES), "gpu")
    assert (done.exit_code, done.stderr) == (0, "")
    sent = json.loads(done.stdout)["body"]["submit"]["containerOverrides"]
    values = {each["name"]: each["value"] for each in sent["environment"]}
    assert {name: values[name] for name in VARIABLES} == {name: str(value) for name, value in VARIABLES.items()}


def test_the_types_that_hold_four_gpus_are_these(home: Path, invoke: Invoke) -> None:
    """32 vCPUs, 131072 MiB and 4 GPUs: of each type alone, `jobs validate` says whether it holds the job."""
    from accel.catalog import machines

    known = [machine.name for machine in machines("aws") if machine.family in ("p4d", "p5", "g4dn", "g5", "g6")]
    each = {name: target(environment("e", "on-demand", [name], 10_000)) for name in known}
    (home / ".accel" / "targets.json").write_text(json.dumps(each))
    file = written(home, **FOUR)
    held = {name for name in known if invoke("validate", file, "--to", name, "--no-quota").exit_code == 0}
    assert held == {
        *("g4dn.12xlarge", "g5.12xlarge", "g5.24xlarge", "g6.12xlarge", "g6.24xlarge"),
        *("g4dn.metal", "g5.48xlarge", "g6.48xlarge", "p4d.24xlarge", "p5.48xlarge"),
    }


CUDA = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
BUS = "RuntimeError: DataLoader worker (pid 42) is killed by signal: Bus error."
UNSEEN = "RuntimeError: No CUDA GPUs are available"


@pytest.mark.parametrize(
    ("printed", "cause", "words", "never"),
    [
        (
            CUDA,
            "cuda-out-of-memory",
            ("smaller batch", "GPU with more memory", "shm_mib is memory of the host"),
            "raise",
        ),
        (BUS, "shared-memory", ("raise shm_mib",), "batch"),
        (UNSEEN, "gpu-not-requested", ("accelerator: {count: 1}",), "ECS_AL2_NVIDIA"),
    ],
)
def test_explain_keeps_apart_what_those_pages_mix(
    home: Path, invoke: Invoke, printed: str, cause: str, words: tuple[str, ...], never: str
) -> None:
    (home / "job.yaml").write_text(yaml.safe_dump({"name": "a", "command": ["sh", "-c", f"echo '{printed}'; exit 1"]}))
    ref = invoke("submit", "job.yaml", "--to", "local", "-o", "id").stdout.strip()
    assert invoke("wait", ref).exit_code == 125
    told = json.loads(invoke("explain", ref, "-o", "json").stdout)
    assert told["cause"] == cause
    assert all(word in told["next_step"] for word in words) and never not in told["next_step"]
