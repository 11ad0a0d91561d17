"""A job as AWS Batch requests: golden files, laws, and every field that is refused with a reason."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.contract.targets import AwsBatchDefinition, AwsBatchTarget
from accel.diagnostics.errors import BadInputs
from accel.rules.aws import retries as aws_retries
from jobs.backends.aws_batch import AwsBatchBackend, retries
from jobs.backends.base import Request
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends.aws_batch_target import ACCOUNT, REGION, make_target
from tests.support.golden import check_request

GOLDEN = Path(__file__).parents[2] / "golden" / "aws_batch"
JOB_ID = "0f3c2a1b-4d5e-4f60-8a7b-9c0d1e2f3a4b"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:wandb-AbCdEf"
OWN = {"image": "registry.example/own:2", "cpus": 4, "memory_mib": 14000}

JOBS: dict[str, dict[str, Any]] = {
    "definition_as_it_is": {},
    "overrides": {
        "command": ["python", "train.py", "--lr", "0.001"],
        "accelerator": {"type": "a10g", "count": 4},
        "cpus": 16,
        "memory_mib": 100_000,
        "env": {"EPOCHS": "50", "BATCH_SIZE": "64", "NVIDIA_VISIBLE_DEVICES": "all"},
        "secrets": {"TOKEN": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:token-AbCdEf"},
        "timeout_s": "4h",
        "retries": 3,
        "labels": {"team": "vision"},
    },
    "array": {
        "tasks": 500,
        "retries": 0,
        "aws_batch": {
            "depends_on": [f"aws-batch:{REGION}/{JOB_ID}", JOB_ID],
            "share_identifier": "research",
            "scheduling_priority": 7,
        },
    },
    "own_definition": {
        **OWN,
        "accelerator": {"count": 1},
        "secrets": {"WANDB_API_KEY": SECRET, "HF_TOKEN": "/ml/hf-token"},
        "mounts": [
            {"source": "efs://fs-0123456789abcdef0/datasets", "path": "/data", "read_only": True},
            {"source": "host:///mnt/nvme", "path": "/scratch"},
        ],
        "disk_gib": 100,
    },
    "own_definition_from_a_base": {
        "shm_mib": 16_384,
        "memory_mib": 60_000,
        "aws_batch": {"definition": "train"},
    },
    "cpu_only": OWN,
    "array_dependencies": {
        "tasks": 10,
        "aws_batch": {"depends_on": [{"job": JOB_ID, "type": "N_TO_N"}, {"type": "SEQUENTIAL"}, JOB_ID]},
    },
}


def render(target: AwsBatchTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    job = Job(**{"name": "digits", **fields})
    key = submission_key(job.name, text)
    return AwsBatchBackend("gpu", target or make_target()).render(job, platform_name(job.name, key), key)


@pytest.mark.parametrize("case", JOBS)
def test_golden(case: str) -> None:
    shares = {"research": 0.5} if "share_identifier" in JOBS[case].get("aws_batch", {}) else None
    request = render(make_target(shares=shares), **JOBS[case])
    check_request(GOLDEN / f"{case}.json", request)


def refused(target: AwsBatchTarget | None = None, **fields: Any) -> list[str]:
    with pytest.raises(BadInputs) as caught:
        render(target, **fields)
    return caught.value.messages


def definition_of(image: str, gpus: int = 1) -> AwsBatchDefinition:
    arn = f"arn:aws:batch:{REGION}:{ACCOUNT}:job-definition/other"
    return AwsBatchDefinition(arn=arn, image=image, vcpus=8, memory_mib=28000, gpus=gpus)


TWO_TYPES = {
    "environments": [each.model_copy(update={"instance_types": ["g5", "g6"]}) for each in make_target().environments]
}
UNKNOWN_TYPE = {
    "environments": [each.model_copy(update={"instance_types": ["q9"]}) for each in make_target().environments]
}
TWO_DEFINITIONS = {"definitions": {"a": definition_of("x:1"), "b": definition_of("x:1", 4)}}


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"nodes": 2}, "nodes: is 2, and the queue tries a SPOT environment"),
        ({"tasks": 10, "parallelism": 2}, "parallelism: 2 of 10 tasks: AWS Batch cannot cap an array"),
        ({"tasks": 10_001}, "tasks: must be 2 to 10000, is 10001"),
        ({"retries": 10}, "retries: must be 0 to 9, is 10"),
        ({"timeout_s": 59}, "timeout_s: must be at least 60"),
        ({"spot": True}, r"spot: true asks for spot only, and the queue also has steady \(on-demand\)"),
        ({"spot": False}, r"spot: false asks for on-demand only, and the queue also has spot \(spot\)"),
        ({"disk_gib": 201}, "disk_gib: 201 is above the disk of every instance"),
        (
            {"accelerator": {"count": 16}},
            "accelerator.count: is 16, and no allowed instance type has more than 8",
        ),
        ({"accelerator": {"type": "l4"}}, "accelerator.type: l4 is on no instance of the queue"),
        ({"accelerator": {"type": "a10q"}}, 'accelerator.type: unknown accelerator "a10q"; nearest: a10g'),
        ({"memory_mib": 800_000, "shm_mib": 8192}, "memory_mib: .* fit no allowed instance type"),
        (
            {"cpus": 193},
            r"cpus: is 193, above max_vcpus of every environment \(spot 192, steady 192\); ask for at most 192",
        ),
        ({"memory_mib": 4000}, "shm_mib: is 8192 MiB, above memory_mib 4000"),
        ({"command": ["python", ""]}, r"command\[1\]: is empty"),
        ({"secrets": {"KEY": "hunter2"}}, "secrets.KEY: must be the ARN"),
        ({"mounts": [{"source": "s3://bucket", "path": "/data"}]}, r'mounts\[0\].source: is "s3://bucket"'),
        ({"mounts": [{"source": "s3://", "path": "/data"}]}, "do not mount it"),
        ({"mounts": [{"source": "gs://bucket", "path": "/data"}]}, "mounts nothing of Google"),
        ({"mounts": [{"source": "nfs://host", "path": "/data"}]}, r'mounts\[0\].source: "nfs://host" is neither'),
        ({"labels": {"aws:x": "y"}}, "begins with aws: or accel:"),
        ({"labels": {"team": "a;b"}}, "labels.team: must be at most 256"),
        ({"labels": {f"l{i}": "x" for i in range(48)}}, "tags: has 52, of which AWS takes 50"),
        ({"env": {"LONG": "x" * 9000}}, "characters of overrides"),
        (
            {"env": {f"V{i}": "x" * 8000 for i in range(4)}},
            "request: has .* bytes, of which Batch takes 30720",
        ),
        (
            {"aws_batch": {"definition": "trian"}},
            'aws_batch.definition: unknown definition "trian"; nearest: train',
        ),
        (
            {"aws_batch": {"depends_on": [f"aws-batch:eu-west-1/{JOB_ID}"]}},
            r"depends_on\[0\]: .* not a job of",
        ),
        (
            {"aws_batch": {"depends_on": [{"job": JOB_ID, "type": "N_TO_N"}]}},
            r"aws_batch.depends_on\[0\].type: is N_TO_N, which is for array jobs",
        ),
        ({"tasks": 2, "aws_batch": {"depends_on": [{}]}}, r"aws_batch.depends_on\[0\]: names no job"),
        ({"aws_batch": {"depends_on": ["nonsense"]}}, r"depends_on\[0\]: .* neither a job reference nor"),
        ({"aws_batch": {"depends_on": [":a/b"]}}, r"aws_batch.depends_on\[0\]: job reference ':a/b': expected"),
        ({"aws_batch": {"depends_on": [f"local:/{JOB_ID}"]}}, r"depends_on\[0\]: .* not a job of"),
        ({"image": "other:1"}, "cpus: is missing, and no definition of the target has the image other:1"),
        ({**OWN, "env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "env.NVIDIA_VISIBLE_DEVICES: .* no GPU"),
        ({**OWN, "image": "not an image"}, "image: .* no image name"),
    ],
)
def test_refused(fields: dict[str, Any], message: str) -> None:
    messages = refused(**fields)
    assert any(re.search(message, each) for each in messages), messages
    assert all("hunter2" not in each and "\n" not in each for each in messages)


@pytest.mark.parametrize(
    "target, fields, message",
    [
        (TWO_TYPES, {"accelerator": {"type": "a10g"}}, "could place the job without a10g on g6"),
        (TWO_DEFINITIONS, {}, "say which of the target's definitions to use: a, b"),
        ({"definitions": {}}, {}, "image: is missing"),
        ({"closed": True}, OWN, 'image: is "registry.example/own:2", and the network has endpoints alone'),
    ],
)
def test_refused_by_a_target(target: dict[str, Any], fields: dict[str, Any], message: str) -> None:
    assert any(message in each for each in refused(make_target(**target), **fields))


def test_all_faults_are_told_together() -> None:
    messages = refused(nodes=2, timeout_s=1, disk_gib=999, labels={"aws:x": "y"}, accelerator={"count": 99})
    assert len(messages) == 5


def test_the_accelerator_picks_among_definitions_of_one_image() -> None:
    target = make_target(**TWO_DEFINITIONS)
    assert render(target, accelerator={"count": 4}, cpus=8, memory_mib=100_000).body["register"] is None


def test_a_type_that_the_catalogue_does_not_know_is_a_warning() -> None:
    request = render(make_target(**UNKNOWN_TYPE), accelerator={"type": "a10g"})
    assert any("q9" in warning for warning in request.warnings)


def test_no_claim_table_is_a_warning() -> None:
    assert "this machine only" in render(make_target(claim_table=None)).warnings[-1]


def test_retry_strategies_keep_the_rules() -> None:
    counts = [(own, lost) for own in range(10) for lost in (None, *range(10 - own))]
    strategies = [retries.of_job(own, lost) for own, lost in counts]
    for strategy in (retries.infrastructure_only(), *filter(None, strategies)):
        words = {"onStatusReason": "on_status_reason", "onReason": "on_reason", "onExitCode": "on_exit_code"}
        rules = [{words.get(k, k): v for k, v in rule.items()} for rule in strategy.get("evaluateOnExit", [])]
        found = aws_retries.retries(strategy["attempts"], rules)
        assert not [finding for finding in found if finding.severity == "reject"]


MODEL = botocore.session.get_session().get_service_model("batch")


def problems(operation: str, arguments: dict[str, Any]) -> str:
    return ParamValidator().validate(arguments, MODEL.operation_model(operation).input_shape).generate_report()


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=20)
GOOD_JOBS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "command": st.lists(TEXT.filter(bool), max_size=4),
        "accelerator": st.fixed_dictionaries({"count": st.integers(1, 8)}),
        "cpus": st.integers(1, 192),
        "memory_mib": st.integers(8192, 700_000),
        "env": st.dictionaries(st.from_regex(r"E_[A-Z0-9_]{1,8}", fullmatch=True), TEXT, max_size=5),
        "tasks": st.integers(1, 10_000),
        "retries": st.integers(0, 9),
        "lost_retries": st.integers(0, 9),
        "timeout_s": st.integers(60, 10**6),
        "shm_mib": st.integers(1, 8192),
        "image": st.sampled_from(["registry.example/train:1.0", "registry.example/other:2"]),
        "secrets": st.sampled_from([{}, {"A": SECRET}]),
        "mounts": st.sampled_from([[], [{"source": "host:///mnt", "path": "/mnt"}]]),
    },
)


@settings(max_examples=int(os.environ.get("ACCEL_EXAMPLES", "150")), deadline=None)
@given(GOOD_JOBS, st.text(max_size=20))
def test_laws(fields: dict[str, Any], text: str) -> None:
    try:
        request = render(text=text, **fields)
    except BadInputs:
        return
    assert render(text=text, **fields) == request
    assert json.loads(json.dumps(request.body)) == request.body
    submit, register = request.body["submit"], request.body["register"]
    assert problems("SubmitJob", submit) == ""
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", submit["jobName"])
    assert request.key[:12] in submit["jobName"]
    asked = {each["type"]: int(each["value"]) for each in submit["containerOverrides"]["resourceRequirements"]}
    if "accelerator" in fields:
        assert asked["GPU"] == fields["accelerator"]["count"]
    assert asked["VCPU"] == fields.get("cpus", 8)
    if register is not None:
        assert problems("RegisterJobDefinition", register) == ""
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,128}", register["jobDefinitionName"])
        assert register["jobDefinitionName"] == submit["jobDefinition"]


def test_the_law_of_valid_requests_can_fail() -> None:
    submit = render().body["submit"]
    assert problems("SubmitJob", {**submit, "timeout": {"attemptDurationSeconds": "60"}})


def test_names_of_own_definitions_follow_their_content() -> None:
    names = {render(text=text, **{**OWN, "memory_mib": size}).body["submit"]["jobDefinition"]
             for text, size in (("a", 1000), ("b", 1000), ("a", 1001))}  # fmt: skip
    assert len(names) == 2


def test_rendering_imports_no_sdk() -> None:
    code = (
        "import sys\n"
        "from tests.jobs.backends.aws_batch_target import make_target, request_of\n"
        "from jobs.backends.aws_batch import AwsBatchBackend\n"
        "request_of(AwsBatchBackend('gpu', make_target()), 'x', own=True)\n"
        "sys.exit(bool({'boto3', 'botocore'} & sys.modules.keys()))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


def test_a_bucket_that_instances_mount_is_a_folder_of_theirs() -> None:
    target = make_target()
    mounting = [one.model_copy(update={"buckets": {"data": "read-only"}}) for one in target.environments]
    target = target.model_copy(update={"environments": mounting})
    mount = {"source": "s3://data/train/", "path": "/data", "read_only": True}
    with pytest.raises(BadInputs, match="instances of spot, steady mount read-only; add read_only: true"):
        render(target, mounts=[{**mount, "read_only": False}])
    request = render(target, mounts=[mount])
    container = request.body["register"]["containerProperties"]
    assert container["volumes"] == [{"host": {"sourcePath": "/mnt/s3/data/train"}, "name": "mount-0"}]
    assert container["mountPoints"] == [{"containerPath": "/data", "readOnly": True, "sourceVolume": "mount-0"}]


def test_a_definitions_image_on_the_wrong_gpu_is_warned_of() -> None:
    target = make_target()
    old = {
        "gpus": AwsBatchDefinition(
            arn=f"arn:aws:batch:{REGION}:{ACCOUNT}:job-definition/old",
            image="nvidia/cuda:11.4.3-runtime-ubuntu20.04",
            vcpus=4,
            memory_mib=14000,
            gpus=1,
        )
    }
    environments = [
        each.model_copy(update={"instance_types": ["p5.48xlarge"], "max_vcpus": 192}) for each in target.environments
    ]
    wrong = target.model_copy(update={"definitions": old, "environments": environments})
    (warning,) = [each for each in render(wrong).warnings if "CUDA 11.4" in each]
    assert warning.startswith("image: ") and "11.8" in warning
