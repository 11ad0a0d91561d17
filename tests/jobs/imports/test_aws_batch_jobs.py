"""A job as `aws batch describe-jobs` prints it: what it asked for is a job again, and what happened is left out."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.diagnostics.errors import BadInput
from jobs.importers import recognition
from jobs.importers.aws_batch import fit_targets
from jobs.importers.aws_batch_jobs import KNOWN
from jobs.importers.reading import leaves
from jobs.model.job import Job
from tests.jobs.backends.aws_batch_target import make_target
from tests.jobs.imports.leaf_laws import lost, unread
from tests.jobs.imports.test_aws_batch import members, of, plausible
from tests.jobs.imports.test_aws_batch_ecs import ECS, told, with_one_source
from tests.jobs.imports.test_pasted_batch import DEFINITION, STATED, multi_node, of_aws

ARN = "arn:aws:batch:us-east-1:210987654321"
TASK = "arn:aws:ecs:us-east-1:210987654321:task/b/0f3c"
INSTANCE = "arn:aws:ecs:us-east-1:210987654321:container-instance/b/1a2b"
RUN: dict[str, Any] = {
    "exitCode": 1,
    "reason": "OutOfMemoryError: Container killed due to ${LIMIT}",
    "logStreamName": "train/default/0f3c",
    "taskArn": TASK,
    "containerInstanceArn": INSTANCE,
    "networkInterfaces": [{"attachmentId": "a-1", "privateIpv4Address": "10.0.0.5"}],
}
JOB: dict[str, Any] = {
    "jobArn": f"{ARN}:job/6c1d",
    "jobName": "train",
    "jobId": "6c1d",
    "jobQueue": f"{ARN}:job-queue/gpu",
    "status": "FAILED",
    "statusReason": "Essential container in task exited",
    "attempts": [{"container": RUN, "startedAt": 1, "stoppedAt": 2, "statusReason": "Essential container exited"}],
    "createdAt": 1717000000000,
    "startedAt": 1717000001000,
    "stoppedAt": 1717000002000,
    "shareIdentifier": "research",
    "schedulingPriority": 3,
    "retryStrategy": {"attempts": 2, "evaluateOnExit": []},
    "dependsOn": [],
    "jobDefinition": f"{ARN}:job-definition/train:3",
    "parameters": {"epochs": "5"},
    "container": {
        **DEFINITION["containerProperties"],
        "environment": [{"name": "A", "value": "b"}, {"name": "AWS_BATCH_JOB_ID", "value": "6c1d"}],
        **RUN,
    },
    "timeout": {"attemptDurationSeconds": 600},
    "tags": {"team": "a", "accel:key": "k-1"},
    "propagateTags": True,
    "platformCapabilities": ["EC2"],
    "isCancelled": False,
    "isTerminated": False,
}
PAST = (
    *("jobArn", "jobId", "status", "statusReason", "createdAt", "startedAt", "stoppedAt", "isCancelled"),
    *("isTerminated", *(f"container.{key}" for key in RUN if key != "networkInterfaces")),
    *("attempts[0].startedAt", "attempts[0].container.exitCode", "container.networkInterfaces[0].attachmentId"),
)


def asking(**changes: Any) -> dict[str, Any]:
    return {"jobs": [{**copy.deepcopy(JOB), **changes}]}


def test_a_job_is_what_its_definition_is() -> None:
    found = of({"jobs": [JOB]})
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    block = {"share_identifier": "research", "scheduling_priority": 3}
    assert found.values == {**of(DEFINITION).values, "aws_batch": block}
    Job(**found.values)
    assert found.queue == f"{ARN}:job-queue/gpu"
    assert set(told(found)) >= {name for name, _ in leaves({"jobs": [JOB]})}


def test_what_happened_is_left_out() -> None:
    entries = told(of({"jobs": [JOB]}))
    for path in PAST:
        kind, text = entries[f"jobs[0].{path}"]
        assert kind == "changed" and "-> left out: describes the earlier run" in text, text
    kind, text = entries["jobs[0].jobDefinition"]
    assert kind == "changed" and "-> left out: the job file has its image, command and resources" in text
    assert "is set by the platform" in entries["jobs[0].container.environment[1].name"][1]


def test_one_job_without_the_answer_around_it() -> None:
    found = of(JOB)
    assert found.values == of({"jobs": [JOB]}).values
    assert recognition.recognize("stdin", json.dumps(JOB).encode()).kind == "aws-batch"
    assert "container.image" in told(found)


def test_an_array() -> None:
    summary = {"FAILED": 1, "SUCCEEDED": 9}
    found = of(asking(arrayProperties={"size": 10, "statusSummary": summary, "statusSummaryLastUpdatedAt": 1}))
    assert not found.report.stops and found.values["tasks"] == 10
    kind, text = told(found)["jobs[0].arrayProperties.statusSummary.FAILED"]
    assert kind == "changed" and "describes the earlier run" in text


def test_several_nodes() -> None:
    nodes = multi_node()["nodeProperties"]
    found = of({"jobs": [{key: value for key, value in JOB.items() if key != "container"} | {"nodeProperties": nodes}]})
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert (found.values["nodes"], found.values["image"]) == (4, "acme/train:1")


def test_one_container_of_ecsproperties() -> None:
    ecs = copy.deepcopy(ECS["ecsProperties"])
    task = ecs["taskProperties"][0]
    task |= {"taskArn": TASK, "containerInstanceArn": INSTANCE}
    task["containers"][0] |= {key: value for key, value in RUN.items() if "Arn" not in key}
    found = of({"jobs": [{key: value for key, value in JOB.items() if key != "container"} | {"ecsProperties": ecs}]})
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values == of({"jobs": [JOB]}).values
    assert lost(found, STATED) == []


@pytest.mark.parametrize(
    "changes, field, kind, message",
    [
        ({"arrayProperties": {"index": 3}}, "arrayProperties.index", "refused",
         "is one task of an array; describe the array job, whose id does not end in :3"),
        ({"nodeDetails": {"nodeIndex": 1, "isMainNode": False}}, "nodeDetails.nodeIndex", "refused",
         "is one node of a job of several; describe that job, whose id does not contain #"),
        ({"eksProperties": {"podProperties": {"hostNetwork": True}}}, "eksProperties.podProperties.hostNetwork",
         "refused", "is for a queue on EKS"),
        ({"eksAttempts": [{"podName": "p"}]}, "eksAttempts[0].podName", "changed", "describes the earlier run"),
        ({"consumableResourceProperties": {"consumableResourceList": [{"quantity": 1}]}},
         "consumableResourceProperties.consumableResourceList[0].quantity", "refused", "consumable"),
        ({"dependsOn": [{"jobId": "5b0c"}]}, "dependsOn[0].jobId", "decision",
         "-> left out: is of an earlier job; write it into aws_batch.depends_on if the new job waits for it too"),
        ({"ecsProperties": ECS["ecsProperties"]}, "container.image", "refused", "stands beside ecsProperties"),
        ({"statusReson": "x"}, "statusReson", "refused", "did you mean statusReason"),
        ({"container": {"image": ""}}, "container.image", "refused", "is missing"),
        ({"parameters": {"other": "1"}}, "container.command", "decision", "Ref::epochs has no value"),
    ],
)  # fmt: skip
def test_what_is_not_carried_is_said(changes: dict[str, Any], field: str, kind: str, message: str) -> None:
    found = told(of(asking(**changes)))[f"jobs[0].{field}"]
    assert found[0] == kind and message in found[1], found


@pytest.mark.parametrize("count", [0, 2])
def test_a_file_has_one_job(count: int) -> None:
    with pytest.raises(BadInput) as caught:
        of({"jobs": [JOB] * count})
    assert f"holds {count} jobs: choose one, with `aws batch describe-jobs --jobs ID`" in str(caught.value)


def test_an_item_that_is_no_mapping_is_one_line() -> None:
    with pytest.raises(BadInput, match=r"jobs\[0\]: must be a mapping of fields"):
        of({"jobs": ["6c1d"]})


def test_it_is_recognized() -> None:
    found = recognition.recognize("stdin", json.dumps({"jobs": [JOB]}).encode())
    assert (found.kind, found.by) == ("aws-batch", "jobs")
    with pytest.raises(BadInput, match="a list of jobs of AWS Batch, which is not read yet; import what"):
        recognition.recognize("stdin", b'{"jobSummaryList": [{"jobId": "6c1d"}]}')
    for other in ('{"jobs": [{"jobId": "a", "trainingInput": {}}]}', '{"jobs": {"build": {"steps": []}}}'):
        with pytest.raises(BadInput, match="is none of the kinds"):
            recognition.recognize("stdin", other.encode())


def test_its_queue_names_the_targets() -> None:
    target = make_target()
    found = of(asking(jobQueue=target.queue_arn))
    assert fit_targets(found, {"gpu": target}) == ["gpu"] and "definition" not in found.values["aws_batch"]


def test_every_field_of_the_service_is_known() -> None:
    described = with_one_source(plausible("JobDetail"))
    for without in (
        ("nodeProperties", "ecsProperties"),
        ("container", "nodeProperties"),
        ("container", "ecsProperties"),
    ):
        document = {"jobs": [{key: value for key, value in described.items() if key not in without}]}
        found = of(document)
        assert set(found.report.fields) <= set(told(found))
        assert [entry.text for entry in found.report.entries if "is no field that is known" in entry.text] == []
    assert set(members("JobDetail")) <= set(KNOWN)


def test_nothing_is_lost() -> None:
    document = {"jobs": [JOB]}
    assert lost(of(document), STATED) == []
    assert unread(of, document, ("parameters", "tags", "attempts", "networkInterfaces")) == []


def test_variables_of_a_template_are_not_asked_for_in_what_happened() -> None:
    assert not [entry for entry in of({"jobs": [JOB]}).report.entries if "LIMIT=" in entry.text]
    container = {**JOB["container"], "image": "acme/train:$TAG"}
    assert of_aws(json.dumps(asking(container=container)), TAG="2").values["image"] == "acme/train:2"


def test_the_command(home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "-", text=json.dumps({"jobs": [JOB]}, indent=1))
    assert done.exit_code == 0 and f"queue {ARN}:job-queue/gpu: submit it with --to" in done.stderr, done.stderr
    assert "stdin: is read as aws-batch" in done.stderr and "name: train" in done.stdout
    done = invoke("import", "-", text=json.dumps(asking(arrayProperties={"index": 3}), indent=1))
    assert done.exit_code == 2 and "refused: jobs[0].arrayProperties.index" in done.stderr
    assert any(line.startswith("error: stdin:") and line[13:14].isdecimal() for line in done.stderr.splitlines())
