"""`jobs explain` of jobs that have ended, on the sandbox: each cause set up for real, and named, and no other."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs.backends.base import Explanation

MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json"})

Why = Callable[..., Explanation]


@pytest.fixture(autouse=True)
def healthy(aws: Any) -> Iterator[None]:
    yield
    aws.control("faults", "DELETE")


def strategy(kind: str) -> str:
    return "SPOT_PRICE_CAPACITY_OPTIMIZED" if kind == "SPOT" else "BEST_FIT_PROGRESSIVE"


def failed(aws: Any, queue: str, command: list[str], more: Any = (), **container: Any) -> str:
    job = aws.submit(queue, aws.definition(command, more=more, **container))
    assert aws.ended(job)["status"] == "FAILED"
    return job


CUDA = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\ntorch.OutOfMemoryError: CUDA out of '
    "memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 22.06 GiB"
)
BUS = (
    'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nRuntimeError: DataLoader worker '
    "(pid 42) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory."
)


@pytest.mark.parametrize(
    ("command", "container", "cause", "shown"),
    [
        (["sh", "-c", f"echo '{CUDA}'; exit 1"], {"gpu": 1}, "cuda-out-of-memory", "CUDA out of memory"),
        (["sh", "-c", 'echo "' + BUS.replace('"', "'") + '"; exit 1'], {"gpu": 1}, "shared-memory", "Bus error"),
        (["sh", "-c", "echo 'RuntimeError: No CUDA GPUs are available'; exit 1"], {}, "gpu-not-requested", "No CUDA"),
        (
            ["sh", "-c", "echo 'RuntimeError: No CUDA GPUs are available'; exit 1"],
            {"gpu": 1},
            "gpu-not-visible",
            "No C",
        ),
        (["sh", "-c", "echo 'OSError: [Errno 28] No space left on device'; exit 1"], {}, "disk-full", "No space"),
        (["sh", "-c", "echo loading; kill -9 $$"], {}, "killed", "exit code 137 (SIGKILL)"),
        (["sh", "-c", "no-such-program --now"], {}, "command-not-found", "exit code 127"),
        (["no-such-program"], {}, "command-not-found", "no-such-program"),
        (["sh", "-c", "/etc/passwd"], {}, "command-not-executable", "exit code 126"),
        (["sh", "-c", "echo epoch 1; echo ValueError: no data; exit 3"], {}, "exit-code", "ValueError: no data"),
    ],
)
def test_a_command_that_failed(
    aws: Any, why: Why, queue: str, command: list[str], container: dict[str, Any], cause: str, shown: str
) -> None:
    told = why(failed(aws, queue, command, **container))
    assert told.cause == cause
    assert any(shown in row for row in told.evidence), told.evidence


def test_the_last_words_and_the_code(aws: Any, why: Why, queue: str) -> None:
    told = why(failed(aws, queue, ["sh", "-c", "for i in 1 2 3 4 5 6 7; do echo line $i; done; exit 3"]))
    assert told.evidence == tuple(f"line {at}" for at in range(3, 8))
    assert told.reason == "the command ended by itself with exit code 3"


def test_host_memory_is_not_the_gpus(aws: Any, why: Why, queue: str) -> None:
    told = why(failed(aws, queue, ["sh", "-c", f"echo '{CUDA}'; exit 1"], gpu=1))
    assert "shm_mib is memory of the host and does not help" in told.next_step
    shm = {"linuxParameters": {"sharedMemorySize": 64}}
    told = why(failed(aws, queue, ["sh", "-c", 'echo "' + BUS.replace('"', "'") + '"; exit 1'], gpu=1, **shm))
    assert "shm_mib is 64" in told.evidence and "raise shm_mib" in told.next_step


def test_a_gpu_that_is_not_seen_is_a_matter_of_the_image(aws: Any, why: Why, queue: str) -> None:
    told = why(failed(aws, queue, ["sh", "-c", "echo 'RuntimeError: No CUDA GPUs are available'; exit 1"], gpu=1))
    assert "image type is ECS_AL2023_NVIDIA" in told.next_step and "ECS_AL2_" not in told.next_step


def test_a_handled_error_is_not_the_cause(aws: Any, why: Why, queue: str) -> None:
    # The program caught it, went on for long, and failed of something else.
    script = f"echo '{CUDA}'; for i in $(seq 30); do echo step $i; done; echo AssertionError; exit 1"
    assert why(failed(aws, queue, ["sh", "-c", script], gpu=1)).cause == "exit-code"


def test_an_image_that_cannot_be_pulled(aws: Any, why: Why, queue: str) -> None:
    told = why(failed(aws, queue, ["true"], image="local/nowhere"))
    assert told.cause == "image-pull"
    assert "CannotPullContainerError" in told.evidence[1]
    # ECR itself is asked where ECS's words leave it open.
    ecr = aws.client("ecr")
    image = ecr.create_repository(repositoryName="train")["repository"]["repositoryUri"]
    assert why(failed(aws, queue, ["true"], image=f"{image}:7")).cause == "image-missing"
    assert why(failed(aws, queue, ["true"], image=f"{image}-2:7")).cause == "image-missing"
    ecr.put_image(repositoryName="train", imageManifest=MANIFEST, imageTag="7")
    told = why(failed(aws, queue, ["true"], image=f"{image}:7"))
    assert (told.cause, "ECR has it" in told.evidence) == ("image-pull", True)


def test_a_log_group_that_is_not_there(aws: Any, why: Why, queue: str) -> None:
    log = {"logDriver": "awslogs", "options": {"awslogs-group": "/gone"}}
    assert why(failed(aws, queue, ["true"], logConfiguration=log)).cause == "log-group-missing"


@pytest.mark.parametrize("source", ["arn:aws:secretsmanager:us-east-1:210020003000:secret:gone", "/gone"])
def test_a_secret_that_cannot_be_read(aws: Any, why: Why, queue: str, source: str) -> None:
    secrets: dict[str, Any] = {"secrets": [{"name": "TOKEN", "valueFrom": source}]}
    told = why(failed(aws, queue, ["true"], executionRoleArn="arn:aws:iam::210020003000:role/x", **secrets))
    assert (told.cause, "there is none of that name" in told.reason) == ("secret-unreadable", True)
    assert why(failed(aws, queue, ["true"], **secrets)).cause == "secret-unreadable"


def test_ecs_refuses_the_task(aws: Any, why: Why, queue: str) -> None:
    long = {"environment": [{"name": f"V{at}", "value": "x" * 1000} for at in range(9)]}
    job = aws.submit(queue, aws.definition(["true"]), containerOverrides=long)
    aws.ended(job)
    told = why(job)
    assert (told.cause, told.evidence[0]) == ("refused", "Container Overrides length must be at most 8192")


@pytest.mark.parametrize(("kind", "cause"), [("SPOT", "preempted"), ("EC2", "host-lost")])
def test_the_instance_is_taken_away(aws: Any, why: Why, kind: str, cause: str) -> None:
    queue = aws.queue(aws.environment(type=kind, allocationStrategy=strategy(kind)))
    job = aws.submit(queue, aws.definition(["sleep", "60"]), retryStrategy={"attempts": 2})
    aws.reaches(job, "RUNNING")
    aws.control("faults", kind="reclaim", job_id=job)
    aws.until(lambda: (row := aws.job(job))["status"] == "RUNNING" and row["attempts"])
    aws.control("faults", kind="reclaim", job_id=job)
    aws.ended(job)
    told = why(job)
    assert told.cause == cause
    assert "2 times" in told.reason and told.evidence[0] == "2 of 2 attempts ended so"


def test_a_timeout(aws: Any, why: Why, queue: str) -> None:
    job = aws.submit(
        queue, aws.definition(["sh", "-c", "echo step 1; sleep 600"]), timeout={"attemptDurationSeconds": 60}
    )
    aws.reaches(job, "RUNNING")
    aws.until(lambda: aws.job(job)["container"].get("logStreamName"))
    aws.control("clock", advance_s=61)
    aws.ended(job)
    told = why(job)
    assert (told.cause, told.evidence[0]) == ("timeout", "timeout_s is 60")


def test_one_task_stands_for_an_array(aws: Any, why: Why, queue: str) -> None:
    script = "test $AWS_BATCH_JOB_ARRAY_INDEX -ne 2 || { echo wrong data; exit 5; }"
    job = aws.submit(queue, aws.definition(["sh", "-c", script]), arrayProperties={"size": 3})
    aws.ended(job)
    told = why(job)
    assert told.cause == "exit-code"
    assert told.evidence == ("1 of 3 tasks are FAILED; this is task 2", "wrong data")
    waiting = aws.submit(queue, aws.definition(["true"], gpu=16), arrayProperties={"size": 2})
    try:
        aws.until(lambda: aws.job(f"{waiting}:0").get("statusReason"))
        aws.reaches(f"{waiting}:1", "RUNNABLE")
        told = why(waiting)
    finally:
        aws.batch.terminate_job(jobId=waiting, reason="over")  # or nothing behind it starts, in any test
    assert (told.cause, told.evidence[0]) == ("too-many-gpus", "2 of 2 tasks are RUNNABLE; this is task 0")


def test_the_main_node_stands_for_a_multi_node_job(aws: Any, why: Why, queue: str) -> None:
    container = {
        "image": "local/work",
        "command": ["sh", "-c", "echo no peers; exit 4"],
        "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}],
    }
    nodes = {"numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:", "container": container}]}
    name = aws.name("def")
    aws.batch.register_job_definition(jobDefinitionName=name, type="multinode", nodeProperties=nodes)
    job = aws.submit(queue, name)
    aws.ended(job)
    told = why(job)
    assert told.cause == "exit-code"
    assert "exit code 4" in told.reason


def test_a_job_that_is_not_there(aws: Any, why: Why, queue: str) -> None:
    job = failed(aws, queue, ["false"])
    told = why(job, region="eu-west-1", elsewhere=lambda: ["eu-west-1", "us-west-2", "us-east-1"])
    assert (told.cause, told.next_step) == ("wrong-region", f"`accel-jobs explain aws-batch:us-east-1/{job}`")
    told = why("0" * 8, elsewhere=lambda: ["us-west-2"])
    assert (told.cause, told.evidence) == ("unknown-job", ("us-east-1: no such job", "us-west-2: no such job"))
