"""A SubmitJob request as a job file, and back to an equal request; what it says is lost nowhere."""

import copy
import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore
import pytest
from click.testing import Result

from accel.contract.targets import write
from jobs.backends.aws_batch import retries
from jobs.backends.base import Request
from jobs.importers.aws_batch import KNOWN, fit_targets, import_job
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.reading import leaves
from jobs.model.document import parse
from jobs.model.job import Job
from tests.jobs.backends.aws_batch_target import make_target
from tests.jobs.backends.test_aws_batch_render import JOBS, render

TARGET = make_target(shares={"research": 0.5})

GIVEN: dict[str, Any] = {
    "jobName": "training-run-001",
    "jobQueue": "gpu",
    "jobDefinition": "train:3",
    "containerOverrides": {
        "command": ["python3", "train.py"],
        "environment": [
            {"name": "EPOCHS", "value": "50"},
            {"name": "BATCH_SIZE", "value": "64"},
            {"name": "LEARNING_RATE", "value": "0.001"},
            {"name": "S3_DATA_PATH", "value": "s3://data/train"},
        ],
        "resourceRequirements": [
            {"type": "GPU", "value": "1"},
            {"type": "MEMORY", "value": "30000"},
            {"type": "VCPU", "value": "8"},
        ],
    },
    "arrayProperties": {"size": 4},
    "dependsOn": [{"jobId": "0f3c2a1b-4d5e-4f60-8a7b-9c0d1e2f3a4b"}],
    "retryStrategy": {"attempts": 3},
    "timeout": {"attemptDurationSeconds": 14_400},
    "shareIdentifier": "research",
    "schedulingPriorityOverride": 7,
    "tags": {"team": "vision"},
}


def of(request: dict[str, Any]) -> ImportResult:
    return import_job("submit.json", json.dumps(request).encode(), ImportOptions())


def asking(**changes: Any) -> ImportResult:
    return of({"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train", **changes})


def fields_of(request: dict[str, Any]) -> dict[str, Any]:
    found = of(request)
    fit_targets(found, {"gpu": TARGET})
    return found.values


def test_what_a_request_says_is_what_the_job_asks_for() -> None:
    submit = render(TARGET, **fields_of(GIVEN)).body["submit"]
    overrides, asked = submit["containerOverrides"], GIVEN["containerOverrides"]
    assert submit["jobName"].startswith("training-run-001-")
    assert submit["jobQueue"].endswith("/gpu") and submit["jobDefinition"].endswith("/train")
    assert (overrides["command"], overrides["resourceRequirements"]) == (
        asked["command"],
        asked["resourceRequirements"],
    )
    assert all(one in overrides["environment"] for one in asked["environment"])
    same = ("arrayProperties", "dependsOn", "timeout", "shareIdentifier", "schedulingPriorityOverride")
    assert {name: submit[name] for name in same} == {name: GIVEN[name] for name in same}
    assert submit["retryStrategy"]["attempts"] == 3
    assert submit["tags"] | GIVEN["tags"] == submit["tags"]


def render_of(case: str) -> Request:
    shared = "share_identifier" in JOBS[case].get("aws_batch", {})
    return render(TARGET if shared else None, **JOBS[case])


@pytest.mark.parametrize("case", [case for case in JOBS if render_of(case).body["register"] is None])
def test_our_own_request_comes_back_equal(case: str) -> None:
    submit = render_of(case).body["submit"]
    found = of({**copy.deepcopy(submit), "jobName": "digits"})
    assert fit_targets(found, {"gpu": make_target()}) == ["gpu"]
    whys = {why for entry in found.report.entries if entry.kind != "kept" for why in entry.why}
    assert whys <= {"is set by the platform", "is kept for AWS and accel", "a job file has the name alone"}
    assert render(TARGET if "shareIdentifier" in submit else None, **found.values).body["submit"] == submit


SPOT_ONLY = [{"action": "retry", "onStatusReason": "Host EC2*"}, {"action": "exit", "onReason": "*"}]


@pytest.mark.parametrize(
    "strategy, fields",
    [
        ({"attempts": 3}, {"retries": 2}),
        ({"attempts": 1}, {"retries": 0}),
        (retries.any_failure(2), {"retries": 2}),
        (retries.infrastructure_only(4), {"lost_retries": 3}),
        (retries.failures_only(2), {"retries": 2, "lost_retries": 0}),
        ({"attempts": 5, "evaluateOnExit": SPOT_ONLY}, {"lost_retries": 4}),
    ],
)
def test_retries(strategy: dict[str, Any], fields: dict[str, int]) -> None:
    found = asking(retryStrategy=strategy)
    assert not found.report.stops
    assert {name: found.values[name] for name in found.values if "retries" in name} == fields


def test_retries_by_rules_are_a_decision() -> None:
    rules = [{"onExitCode": "137", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]
    found = asking(retryStrategy={"attempts": 3, "evaluateOnExit": rules})
    assert found.values["retries"] == 2
    lines = [entry.text for entry in found.report.of("decision")]
    assert len(lines) == 4 and all("-> 'retries: 2': a job file has no rules" in line for line in lines)


GPU = {"type": "GPU", "value": "1"}
ANY = {"action": "RETRY", "onReason": "*"}
RESERVED = {"environment": [{"name": "AWS_BATCH_X", "value": "1"}]}


@pytest.mark.parametrize(
    "changed, kind, note",
    [
        ({"parameters": {"epochs": "5"}}, "decision", "parameters.epochs text: is for the definition's own command"),
        ({"parameters": {"n": "5"}, "containerOverrides": {"command": ["a", "--n=Ref::n"]}},
         "decision", "stands inside"),
        ({"parameters": {"n": "5"}, "containerOverrides": {"command": ["a"]}}, "changed", "no word Ref::n"),
        ({"propagateTags": True}, "changed", "propagateTags true -> left out"),
        ({"jobDefinition": "train:3"}, "changed", "revision 3 is not carried"),
        ({"jobDefinition": "arn:aws:batch:us-east-1:1:job-definition/train"}, "changed", "has the name alone"),
        ({"dependsOn": [{"type": "LATER", "jobId": "j"}]}, "refused", "dependsOn[0].type 'LATER': must be one of"),
        ({"dependsOn": [{"type": "N_TO_N"}]}, "refused", "dependsOn[0].type 'N_TO_N': must have a jobId"),
        ({"nodeOverrides": {"numNodes": 2}}, "refused", "nodeOverrides.numNodes '2': is for a definition of several"),
        ({"eksPropertiesOverride": {"podProperties": {"containers": [{"image": "x"}]}}},
         "refused", "is for a queue on EKS"),
        ({"consumableResourcePropertiesOverride": {"consumableResourceList": ["x"]}}, "refused", "consumable"),
        ({"containerOverrides": {"instanceType": "g5.xlarge"}}, "changed", "instanceType 'g5.xlarge' -> left out"),
        ({"containerOverrides": RESERVED}, "changed", "is set by the platform"),
        ({"containerOverrides": {"environment": [{"value": "x"}]}}, "refused", "is of a variable without a name"),
        ({"containerOverrides": {"environment": [{"name": "A", "value": True}]}}, "refused", "must be text"),
        ({"containerOverrides": {"environment": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}}, "refused",
         "environment[1].name text: is set twice, here and in containerOverrides.environment[0]"),
        ({"containerOverrides": {"resourceRequirements": [GPU, GPU]}}, "refused", "is a second GPU, after containerOv"),
        ({"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "4"}], "vcpus": 8}}, "refused",
         "containerOverrides.vcpus '8': is a second VCPU"),
        ({"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "0.5"}]}},
         "refused", "integer from 1"),
        ({"containerOverrides": {"resourceRequirements": [{"type": "TPU", "value": "1"}]}},
         "refused", "must have a type"),
        ({"containerOverrides": {"resourceRequirements": [{"type": "GPU"}]}}, "refused", "must be a number, which GPU"),
        ({"containerOverrides": {"comand": ["x"]}}, "refused", "did you mean command?"),
        ({"containerOverides": {"command": ["x"]}}, "refused", "containerOverides is no field that is known here; did"),
        ({"containerOverrides": "x"}, "refused", "containerOverrides 'x': is no field that is known here, or"),
        ({"environment": [{"name": "A", "value": "1"}]}, "refused",
         "environment is no field that is known here: indent it below containerOverrides"),
        ({"tags": ["x"]}, "refused", "tags ['x']: must be a mapping of texts"),
        ({"dependsOn": [1]}, "refused", "dependsOn ['1']: is no field that is known here, or"),
        ({"retryStrategy": {"attempts": "x"}}, "refused", "retryStrategy.attempts 'x': must be an integer"),
        ({"retryStrategy": {"evaluateOnExit": [ANY]}},
         "refused", "retryStrategy.attempts (not given): must be an integer"),
        ({"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onReason": "*"}]}}, "refused", "must be RETRY or EXIT"),
        ({"retryStrategy": {"attempts": 2, "evaluateOnExit": [ANY]}},
         "decision", "'retries: 1': a job file has no rules"),
        ({"arrayProperties": {"size": 1}}, "refused", "arrayProperties.size '1': must be an integer from 2"),
        ({"tags": {"aws:x": "1"}}, "changed", "is kept for AWS and accel"),
        ({"jobName": "n" * 128}, "changed", "a job's name has at most 100"),
        ({"jobName": None}, "refused", "jobName empty: is empty; must be a name, is empty"),
        ({"jobQueue": ""}, "refused", "must be a name, is empty"),
        ({"jobQueue": "<your-queue>"}, "refused", "jobQueue '<your-queue>': is"),
    ],
)  # fmt: skip
def test_what_is_not_carried_is_said(changed: dict[str, Any], kind: str, note: str) -> None:
    found = asking(**changed)
    lines = [entry.text for entry in found.report.entries if entry.kind == kind]
    assert [line for line in lines if note in line], [(entry.kind, entry.text) for entry in found.report.entries]
    if not found.report.stops:
        Job(**found.values)


@pytest.mark.parametrize(
    "vcpus, cpus, kind",
    [("2", 2, "kept"), ("2.0", 2, "kept"), ("0.25", 1, "changed"), ("2.5", 3, "changed"), ("0.0", None, "refused")],
)
def test_vcpus_of_a_definition(vcpus: str, cpus: int | None, kind: str) -> None:
    # The console writes 2.0, and Fargate has a quarter of a vCPU.
    needs = [{"type": "VCPU", "value": vcpus}, {"type": "MEMORY", "value": "512"}]
    container = {"image": "public.ecr.aws/acme/crops:3", "command": ["crop"], "resourceRequirements": needs}
    found = of(
        {"jobDefinitionName": "crops", "platformCapabilities": ["FARGATE"], "containerProperties": container},
    )
    (said,) = [each for each in found.report.entries if each.field.endswith("resourceRequirements[0].value")]
    assert (found.values.get("cpus"), said.kind) == (cpus, kind), said.text


def test_whole_vcpus_of_a_request() -> None:
    found = asking(containerOverrides={"resourceRequirements": [{"type": "VCPU", "value": "4.0"}]})
    assert found.values["cpus"] == 4 and not found.report.stops


def test_a_definition_without_a_retry_strategy_has_one_attempt() -> None:
    body = {"jobDefinitionName": "crops", "containerProperties": {"image": "public.ecr.aws/acme/crops:3"}}
    found = of(body)
    assert found.values["retries"] == 0
    (said,) = [each for each in found.report.entries if each.field == "retryStrategy.attempts"]
    assert not said.given and said.new == "retries: 0"
    assert of({**body, "retryStrategy": {"attempts": 4}}).values["retries"] == 3
    # What a request does not say is the definition's.
    assert "retries" not in asking().values


def test_shared_memory_of_a_definition_is_part_of_its_memory() -> None:
    needs = [{"type": "MEMORY", "value": "2048"}]
    container = {"image": "public.ecr.aws/acme/crops:3", "resourceRequirements": needs}
    found = of(
        {"jobDefinitionName": "c", "containerProperties": {**container, "linuxParameters": {"sharedMemorySize": 9000}}}
    )
    assert (found.values["memory_mib"], found.values["shm_mib"]) == (2048, 2048)
    assert [each.new for each in found.report.of("changed")] == [2048]
    Job(**found.values)


def test_a_volume_without_a_source_is_said_once() -> None:
    container = {
        "image": "public.ecr.aws/acme/crops:3",
        "volumes": [{"name": "scratch", "host": {}}],
        "mountPoints": [{"sourceVolume": "scratch", "containerPath": "/scratch"}],
    }
    found = of({"jobDefinitionName": "crops", "containerProperties": container})
    said = {each.field.rpartition(".")[2]: each.text for each in found.report.stops}
    assert "stacks adopt" in said["name"] and "is of scratch" in said["containerPath"]


def test_parameters_are_in_the_command() -> None:
    command = ["train", "--epochs", "Ref::epochs", "--data", "Ref::data"]
    found = asking(parameters={"epochs": "5"}, containerOverrides={"command": command})
    assert found.values["command"] == ["train", "--epochs", "5", "--data", "Ref::data"] and not found.report.stops
    (entry,) = found.report.of("changed")
    assert "has the value of Ref::epochs" in entry.text


def test_a_skeleton_that_was_filled_in_part() -> None:
    """Of `aws batch submit-job --generate-cli-skeleton`: what was left empty says nothing."""
    empty = {"name": "", "value": ""}
    found = asking(
        shareIdentifier="",
        parameters={"KeyName": ""},
        containerOverrides={"command": [""], "instanceType": "", "environment": [empty], "resourceRequirements": []},
        nodeOverrides={"nodePropertyOverrides": [{"targetNodes": "", "containerOverrides": {"environment": [empty]}}]},
    )
    assert [entry.field for entry in found.report.stops] == ["containerOverrides.command"]
    without = {"environment": [empty], "resourceRequirements": []}
    found = asking(parameters={"KeyName": ""}, containerOverrides=without, tags={}, timeout={}, dependsOn=[])
    assert [entry.field for entry in found.report.stops] == ["parameters.KeyName"]


def test_a_queue_by_its_arn_is_that_of_its_region() -> None:
    targets = {
        "near": TARGET,
        "far": TARGET.model_copy(update={"queue_arn": TARGET.queue_arn.replace("us-east-1", "eu-west-1")}),
    }
    assert fit_targets(asking(jobQueue="gpu"), targets) == ["near", "far"]
    assert fit_targets(asking(jobQueue=targets["far"].queue_arn), targets) == ["far"]


# -- no field is lost


@cache
def shapes() -> dict[str, Any]:
    (path,) = (Path(botocore.__file__).parent / "data" / "batch").glob("*/service-2.json*")
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["shapes"]


def members(name: str) -> dict[str, str]:
    """The fields of the object at a place of a request, with their shapes; of a map none."""
    shape = shapes()[name]
    while shape["type"] == "list":
        shape = shapes()[shape["member"]["shape"]]
    return {key: each["shape"] for key, each in shape.get("members", {}).items()}


def plausible(name: str) -> Any:
    shape = shapes()[name]
    if shape["type"] == "list":
        return [plausible(shape["member"]["shape"])]
    if shape["type"] == "structure":
        return {key: plausible(each["shape"]) for key, each in shape["members"].items()}
    if shape["type"] == "map":
        return {"team": "vision"}
    values = {"integer": 7, "long": 7, "boolean": True, "double": 1.5}
    return values.get(shape["type"], shape.get("enum", ["plausible"])[0])


def objects(value: Any, shape: str = "SubmitJobRequest") -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Each object of a request, with the fields that Batch knows there."""
    if isinstance(value, list):
        for each in value:
            yield from objects(each, shape)
    elif isinstance(value, dict):
        known = members(shape)
        yield value, known
        for key, inner in value.items():
            if key in known:
                yield from objects(inner, known[key])


WHOLE: dict[str, Any] = {
    **GIVEN,
    "dependsOn": [{"jobId": "j-1"}, {"jobId": "j-2", "type": "N_TO_N"}],
    "retryStrategy": retries.any_failure(2),
}
SMALL = {"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train", "containerOverrides": {"command": ["x"]}}
MULTI = {**SMALL, "nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "0:", "instanceTypes": ["p5"]}]}}


def variants() -> Iterator[tuple[dict[str, Any], str]]:
    """Requests with one key more, and that key."""
    for request in (WHOLE, SMALL, MULTI):
        for number, (_, known) in enumerate(objects(request)):
            # The keys of a map are its author's.
            for key in ("notAField", *known) if known else ():
                changed = copy.deepcopy(request)
                inside = list(objects(changed))[number][0]
                if key not in inside:
                    inside[key] = plausible(known[key]) if key in known else "x"
                    yield changed, key


def output(found: ImportResult) -> Any:
    """What is printed, and what has to be decided; of a request that is refused nothing."""
    decisions = [entry.field for entry in found.report.of("decision")]
    return None if found.report.stops else (found.values, found.queue, found.definition, decisions)


def test_known_names_are_those_of_the_service() -> None:
    top = set(members("SubmitJobRequest"))
    assert top <= set(KNOWN)
    for key in ("containerOverrides", "retryStrategy", "arrayProperties", "timeout", "dependsOn"):
        assert set(members(members("SubmitJobRequest")[key])) <= set(KNOWN)


def test_no_key_is_kept_that_the_job_does_not_have() -> None:
    count = 0
    for request, key in variants():
        found = of(request)
        told = [entry.field for entry in found.report.entries if entry.given]
        assert sorted(told) == sorted(name for name, _ in leaves(request))
        kept = [entry.field for entry in found.report.of("kept") if key in entry.field and not entry.why]
        for field in kept if not found.report.stops else ():
            assert output(of(_lacking(request, field))) != output(found), (field, request)
        if key == "notAField":
            assert [entry for entry in found.report.stops if key in entry.field], request
        count += 1
    assert count > 70


def test_no_value_is_kept_that_the_job_does_not_have() -> None:
    """Values of other types, in requests that are carried all the same."""
    for request in (WHOLE, SMALL):
        for number, (inside, key) in enumerate(list(places(request))):
            for value in ({"x": "y"}, [{"x": "y"}], "y", True):
                changed = copy.deepcopy(request)
                inside, key = list(places(changed))[number]
                inside[key] = value
                found = of(changed)
                kept = [entry.field for entry in found.report.of("kept") if not entry.why]
                assert not [field for field in kept if field.endswith(".x") and not field.startswith("tags.")], changed
                for field in kept if not found.report.stops else ():
                    assert output(of(_lacking(changed, field))) != output(found), (field, changed)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def _lacking(request: dict[str, Any], field: str) -> dict[str, Any]:
    """The request without a field."""
    changed = copy.deepcopy(request)
    inside: Any = changed
    *above, last = field.replace("[", ".").replace("]", "").split(".")
    for part in above:
        inside = inside[int(part)] if isinstance(inside, list) else inside[part]
    del inside[last]
    return changed


def test_the_command(home: Path, invoke: Callable[..., Result]) -> None:
    Path("submit.json").write_text(json.dumps(GIVEN))
    Path("targets.json").write_text(json.dumps(write({"gpu-a": TARGET})))
    done = invoke("import", "aws-batch", "submit.json", "--targets", "targets.json")
    assert done.exit_code == 0
    assert "queue gpu: submit it with --to gpu-a" in done.stderr
    assert "changed: jobDefinition 'train:3' -> 'train': revision 3 is not carried" in done.stderr
    assert parse(done.stdout.encode(), "job", Job).job() == Job(**fields_of(GIVEN))
    Path("job.yaml").write_text(done.stdout)
    assert invoke("validate", "job.yaml", "--to", "gpu-a", "--no-quota", "--targets", "targets.json").exit_code == 0
    as_json = invoke("import", "aws-batch", "-", "-o", "json", text=json.dumps(GIVEN))
    assert json.loads(as_json.stdout)["env"]["EPOCHS"] == "50"
    assert "no known target has it" in as_json.stderr
    assert invoke("import", "aws-batch", "submit.json", "--strict").exit_code == 2


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "bad.json:1: is not JSON"),
        ("[]", "bad.json: must be a mapping of fields, is a list"),
        ('{"jobName": "", "jobQueue": "q", "jobDefinition": "d"}', "bad.json:1: refused: jobName ''"),
        ('{"jobName": "a", "jobQueue": "q", "jobDefinition": "d",\n"arrayProperties": {"size": -1}}',
         "bad.json:2: refused"),
        ('{"jobName": "a", "jobQueue": "q",\n"jobQueue": "r"}',
         "bad.json:2: jobQueue: is set twice, here and in line 1"),
        ('{"jobQueueName": "a", "priority": 1}', "is a resource of AWS Batch and no job (jobQueueName"),
        ('{"computeEnvironments": []}', "`stacks adopt` takes it (docs/adopt.md)"),
        ("a: b", "bad.json: is no SubmitJob request"),
        ('{"jobName": "a", "jobQueue": "q", "jobDefinition": "d", "timeout": {"attemptDurationSeconds": 99999999999}}',
         "bad.json: timeout_s: must be at most"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line(home: Path, invoke: Callable[..., Result], text: str, message: str) -> None:
    Path("bad.json").write_text(text)
    done = invoke("import", "aws-batch", "bad.json")
    assert done.exit_code == 2 and message in done.stderr and done.stdout == ""
    assert len([line for line in done.stderr.splitlines() if line.startswith("error:")]) == 1
