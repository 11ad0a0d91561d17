"""Jobs of several nodes: their requests, and what Batch then says of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.contract.targets import AwsBatchTarget
from accel.diagnostics.errors import BadInput
from accel.rules.aws.fit import Size
from jobs.backends.aws_batch import AwsBatchBackend, nodes
from jobs.backends.aws_batch.status import streams
from jobs.backends.base import JobRef
from jobs.client import cost
from jobs.model.job import Job
from tests.jobs.backends.aws_batch_target import REGION, make_target
from tests.jobs.backends.test_aws_batch_observe import FakeBatch, detail
from tests.jobs.backends.test_aws_batch_render import GOLDEN, JOB_ID, OWN, problems, refused, render
from tests.support.golden import check_request


def near(**changes: Any) -> AwsBatchTarget:
    """A queue over one cluster of p4d instances with EFA."""
    (_, steady) = make_target().environments
    cluster = {"instance_types": ["p4d.24xlarge"], "max_vcpus": 384, "close": True, "efa_interfaces": 4}
    return make_target(environments=[steady.model_copy(update={**cluster, **changes})])


JOBS: dict[str, tuple[AwsBatchTarget, dict[str, Any]]] = {
    "nodes_with_efa": (
        near(),
        {
            "nodes": 4,
            "command": ["sh", "-c", "torchrun --nnodes $AWS_BATCH_JOB_NUM_NODES train.py"],
            "accelerator": {"type": "a100", "count": 8},
            "cpus": 90,
            "memory_mib": 900_000,
            "env": {"NCCL_DEBUG": "INFO"},
            "mounts": [{"source": "host:///scratch", "path": "/scratch"}],
            "retries": 2,
            "timeout_s": "48h",
        },
    ),
    "nodes_of_their_own": (
        near(instance_types=["g5.12xlarge"], close=False, efa_interfaces=0),
        {**OWN, "nodes": 2, "accelerator": {"count": 4}},
    ),
}


@pytest.mark.parametrize("case", JOBS)
def test_golden(case: str) -> None:
    target, fields = JOBS[case]
    request = render(target, **fields)
    check_request(GOLDEN / f"{case}.json", request)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.integers(0, 8), st.integers(0, 4), st.booleans())
def test_laws(count: int, gpus: int, efa: int, command: bool) -> None:
    fields: dict[str, Any] = {**OWN, "nodes": count, "command": ["python", "train.py"] if command else []}
    fields |= {"accelerator": {"count": gpus}} if gpus else {}
    request = render(near(efa_interfaces=efa), **fields)
    submit, register = request.body["submit"], request.body["register"]
    assert (problems("SubmitJob", submit), problems("RegisterJobDefinition", register)) == ("", "")
    shape = register["nodeProperties"]
    covered = [i for each in shape["nodeRangeProperties"] for i in spans(each["targetNodes"])]
    assert covered == list(range(count)) and (shape["numNodes"], shape["mainNode"]) == (count, 0)
    assert not submit.keys() & {"containerOverrides", "arrayProperties"}
    (overrides,) = submit["nodeOverrides"]["nodePropertyOverrides"]
    assert overrides["targetNodes"] == shape["nodeRangeProperties"][0]["targetNodes"]
    container = shape["nodeRangeProperties"][0]["container"]
    asked = {each["type"]: int(each["value"]) for each in container["resourceRequirements"]}
    assert asked.get("GPU", 0) == gpus
    assert len(container["linuxParameters"].get("devices", [])) == efa
    sent = {each["name"]: each["value"] for each in overrides["containerOverrides"]["environment"]}
    assert sent["ACCEL_NODE_COUNT"] == str(count)


def spans(target: str) -> range:
    low, high = target.split(":")
    return range(int(low), int(high) + 1)


def test_the_law_of_ranges_can_fail() -> None:
    assert [*spans(nodes.every(3))] == [0, 1, 2] != [*spans("0:3")]


def test_a_job_of_one_node_has_no_variables_of_nodes() -> None:
    sent = render().body["submit"]["containerOverrides"]["environment"]
    assert not [each for each in sent if "NODE" in each["name"] or "MAIN" in each["name"]]


def test_environments_that_differ_in_efa_hand_over_none() -> None:
    (cluster,) = near().environments
    other = cluster.model_copy(update={"name": "other", "efa_interfaces": 0})
    request = render(make_target(environments=[cluster, other]), **{**OWN, "nodes": 2})
    assert any("differ in EFA" in warning for warning in request.warnings)
    (each,) = request.body["register"]["nodeProperties"]["nodeRangeProperties"]
    assert "devices" not in each["container"]["linuxParameters"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nodes": 5}, "nodes: is 5, an instance each, and no environment has the vCPUs for all at once"),
        ({"nodes": 2, "env": {"LONG": "x" * 9000}}, "characters of overrides"),
        ({"nodes": 2, "spot": True}, "spot: true asks for spot only"),
    ],
)
def test_refused(fields: dict[str, Any], message: str) -> None:
    messages = refused(near(), **{**OWN, **fields})
    assert any(message in each for each in messages), messages


def test_every_node_is_paid_and_needs_its_quota() -> None:
    one, four = (Job(**{"name": "n", **OWN, "nodes": count, "timeout_s": "1h"}) for count in (1, 4))
    paid = [cost.of(job, "gpu", near()) for job in (one, four)]
    assert paid[0].worst and paid[1].worst == pytest.approx(4 * paid[0].worst)
    assert any("4 nodes" in note for note in paid[1].notes)


def test_the_smallest_instance_that_holds_a_node() -> None:
    (cluster,) = near(instance_types=["g5"]).environments
    assert nodes.least_vcpus(cluster, Size(4, 14_000, 4)) == 48
    assert nodes.least_vcpus(cluster.model_copy(update={"instance_types": ["g5", "q9"]}), Size(4, 14_000, 4)) is None


PARENT = {
    "nodeProperties": {
        "numNodes": 2,
        "mainNode": 0,
        "nodeRangeProperties": [
            {
                "targetNodes": "0:1",
                "container": {
                    "command": ["train"],
                    "environment": [{"name": "A", "value": "1"}, {"name": "AWS_BATCH_X", "value": "2"}],
                    "resourceRequirements": [{"type": "VCPU", "value": "4"}],
                },
            }
        ],
    }
}


def test_a_running_job_of_nodes_is_in_its_next_attempt() -> None:
    ended = {"container": {"logStreamName": "train/1", "exitCode": 1}}
    assert len(streams(detail(status="RUNNING", attempts=[ended], **PARENT))) == 2
    assert len(streams(detail(status="FAILED", attempts=[ended], **PARENT))) == 1


def test_again_is_the_same_for_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = AwsBatchBackend.of_scope(REGION)
    monkeypatch.setitem(backend._clients.__dict__, "batch", FakeBatch(detail(status="FAILED", **PARENT)))
    submit = backend.resubmit_request(JobRef("aws-batch", REGION, JOB_ID), "k" * 12).body["submit"]
    assert problems("SubmitJob", submit) == "" and "containerOverrides" not in submit
    (each,) = submit["nodeOverrides"]["nodePropertyOverrides"]
    assert each == {
        "targetNodes": "0:1",
        "containerOverrides": {"command": ["train"], "environment": [{"name": "A", "value": "1"}]},
    }
    with pytest.raises(BadInput, match="is a node of a job; give the job"):
        backend.resubmit_request(JobRef("aws-batch", REGION, f"{JOB_ID}#1"), "k" * 12)
