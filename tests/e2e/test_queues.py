"""Queues of their own kinds, deployed: fair shares, a Spot queue with an on-demand one behind, and many submits."""

import http.client
import json
import signal
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.keys import bearer
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import SOAK, soak_only
from tests.support.waiting import until

from .conftest import QUEUES, Shell, shell_on

REGION = "us-east-2"
SHARES = {"research": 0.5, "team*": 2.0}
FAIR = {"environments": ["on-demand"], "fair_share": {"shares": SHARES, "decay_s": 3600}}
LONG = ["python", "-c", "import time; print('up', flush=True); time.sleep(60)"]


def values() -> dict[str, Any]:
    changed = put("aws.region", REGION, environment("sandbox"))
    changed = put("aws.network.zones", [f"{REGION}a", f"{REGION}b"], changed)
    return put("aws.queues", {"fair": FAIR, **QUEUES}, changed)


@pytest.fixture(scope="module")
def queues(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("queues"), sandbox, values(), stack="queues")
    stack.up_targets()
    yield stack
    stack.destroy()


@pytest.fixture
def shell(queues: Stack, sandbox: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(sandbox, queues.folder / "targets.json", tmp_path)


def control(sandbox: Sandbox, **body: Any) -> None:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(sandbox.variables["AWS_ENDPOINT_URL"]).netloc)
    connection.request("POST", "/sandbox-api/faults", json.dumps(body), bearer(sandbox.home))
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()


def detail(sandbox: Sandbox, ref: str) -> dict[str, Any]:
    return sandbox.client("batch", REGION).describe_jobs(jobs=[ref.rpartition("/")[2]])["jobs"][0]


def names(sandbox: Sandbox, queue: str) -> list[str]:
    batch = sandbox.client("batch", REGION)
    pages = batch.get_paginator("list_jobs").paginate(
        jobQueue=queue, filters=[{"name": "AFTER_CREATED_AT", "values": ["0"]}]
    )
    return [job["jobName"] for page in pages for job in page["jobSummaryList"]]


def arn(queues: Stack, queue: str) -> str:
    return json.loads((queues.folder / "targets.json").read_text())[queue]["queue_arn"]


@soak_only
def test_a_fair_share_queue_takes_jobs_that_name_their_share(
    shell: Shell, queues: Stack, sandbox: Sandbox, job: Callable[..., str]
) -> None:
    targets = json.loads((queues.folder / "targets.json").read_text())
    assert targets["fair"]["shares"] == SHARES and "shares" not in targets["spot"]
    lines = shell.fails("submit", job(), "--to", "fair", code=2)
    assert "aws_batch.share_identifier: is missing" in lines[0] and "research" in lines[0]
    share = ["--set", "aws_batch.share_identifier=research"]
    ref = shell.jobs("submit", job(), "--to", "fair", "--wait", *share)
    told = detail(sandbox, ref)
    assert (told["shareIdentifier"], told["schedulingPriority"]) == ("research", 0)
    assert shell.jobs("wait", shell.jobs("retry", ref, "-o", "id")) == "", "the share goes with the job"
    (error, *_) = shell.fails("submit", job(), "--to", "spot", *share, code=2)
    assert "first in, first out" in error


def test_weights_change_in_place_and_a_policy_comes_and_goes_with_its_queue(queues: Stack, sandbox: Sandbox) -> None:
    def changes(result: Any) -> list[tuple[str, str]]:
        touched = [step for step in result.steps if step.type.startswith("aws:batch") and step.op != "same"]
        return sorted((step.op, step.type.rpartition(":")[2]) for step in touched)

    before = arn(queues, "fair")
    heavier = put("aws.queues.fair.fair_share.shares.research", 0.25, values())
    queues.write_environment(heavier)
    assert changes(queues.up()) == [("update", "SchedulingPolicy")]
    assert queues.up("--expect-no-changes").ops("same") == {}

    fifo = put("aws.queues.fair", {"environments": ["on-demand"]}, heavier)
    fifo = put("aws.queues.steady.fair_share", {}, fifo)
    queues.write_environment(fifo)
    done = queues.up()
    for name in ("fair", "steady"):
        assert done.step(name, "replace").replaces == ("schedulingPolicyArn",)
    targets = done.outputs["targets"]
    assert targets["fair"]["queue_arn"] != before and "shares" not in targets["fair"]
    assert targets["steady"]["shares"] == {}
    assert queues.up("--expect-no-changes").ops("same") == {}

    queues.write_environment(values())
    targets = queues.up_targets()["targets"]
    shown = sandbox.client("batch", REGION).describe_job_queues(jobQueues=[targets["fair"]["queue_arn"]])["jobQueues"]
    assert shown[0]["schedulingPolicyArn"].startswith(f"arn:aws:batch:{REGION}:")


def test_a_job_that_is_reclaimed_too_often_goes_on_elsewhere_once(
    shell: Shell, queues: Stack, sandbox: Sandbox, job: Callable[..., str]
) -> None:
    # The second job must end by itself: it is told apart by the queue that Batch names.
    code = "import os, sys, time; print(os.environ['AWS_BATCH_JQ_NAME'], flush=True); time.sleep(60 if {} else 0)"
    spot = arn(queues, "spot").rpartition("/")[2]
    command = ["python", "-c", code.format(f"os.environ['AWS_BATCH_JQ_NAME'] == {spot!r}")]
    file = job(name="reclaimed", command=command, lost_retries=1)
    submit = ["submit", file, "--to", "spot", "--then-to", "steady", "--key", "k", "-o", "id"]
    clients = [shell.start("jobs", *submit) for _ in range(2)]
    batch = sandbox.client("batch", REGION)

    def running() -> str:
        found = batch.list_jobs(jobQueue=arn(queues, "spot"), jobStatus="RUNNING")["jobSummaryList"]
        return next((one["jobId"] for one in found if one["jobName"].startswith("reclaimed-")), "")

    for attempt in (1, 2):
        job_id = until(running)
        control(sandbox, kind="reclaim", job_id=job_id)
        until(lambda attempt=attempt, job_id=job_id: len(detail(sandbox, f"x/{job_id}")["attempts"]) == attempt)
    told = [client.communicate(timeout=120) for client in clients]
    assert [client.returncode for client in clients] == [0, 0], told
    assert told[0][0] == told[1][0]
    first, second = told[0][0].split()
    assert "its host was taken away (2 of 2 attempts were lost)" in told[0][1]
    assert detail(sandbox, first)["jobQueue"] == arn(queues, "spot")
    assert detail(sandbox, second)["jobQueue"] == arn(queues, "steady")
    assert len([name for name in names(sandbox, arn(queues, "steady")) if name.startswith("reclaimed-")]) == 1
    assert shell.jobs(*submit).split() == [first, second], "the same command again makes no third job"
    status = json.loads(shell.jobs("get", first, "-o", "jsonl"))
    assert (status["attempts"], status["lost"], status["taken"]) == (2, 2, "its host was taken away")
    assert status["lost_gpu_hours"] >= 0


def test_a_job_that_fails_by_itself_stays_where_it_is(
    shell: Shell, queues: Stack, sandbox: Sandbox, job: Callable[..., str]
) -> None:
    file = job(name="broken", command=["python", "-c", "import sys; sys.exit(7)"], lost_retries=3)
    lines = shell.fails("submit", file, "--to", "spot", "--then-to", "steady", code=125)
    assert any("exit code 7" in line for line in lines)
    assert not [name for name in names(sandbox, arn(queues, "steady")) if name.startswith("broken-")]
    found = [one for one in names(sandbox, arn(queues, "spot")) if one.startswith("broken-")]
    assert len(found) == 1
    (error, *_) = shell.fails("submit", file, "--to", "spot", "--then-to", "fair", code=2)
    assert "share_identifier: is missing" in error, "said before the first job is made"


def test_an_interrupted_bulk_submit_goes_on_and_makes_none_twice(
    shell: Shell, queues: Stack, sandbox: Sandbox, tmp_path: Path
) -> None:
    document = "name: many-{}\nimage: local/examples\ncommand: ['true']\n"
    (tmp_path / "many.yaml").write_text("---\n".join(document.format(number) for number in range(30)))
    submit = ["submit", str(tmp_path / "many.yaml"), "--to", "spot", "--no-quota", "--key", "k", "-o", "id"]
    # What a killed client had claimed is free after its lease, 90 seconds.
    for ending in (signal.SIGINT, *([signal.SIGKILL] if SOAK else [])):
        client = shell.start("jobs", *submit, "--rate", "1")  # half a minute in which to interrupt it
        assert client.stdout
        first = client.stdout.readline()
        assert first
        client.send_signal(ending)
        # By the reader of the first line, which may hold the next ones already: communicate() would lose those.
        told = (first + client.stdout.read()).split()
        _, err = client.communicate(timeout=60)
        if ending is signal.SIGINT:
            assert client.returncode == 130, err
            listed = [name for name in names(sandbox, arn(queues, "spot")) if name.startswith("many-")]
            assert len(told) == len(listed) < 30, "each job that was made is told"
            assert f"{len(listed)} of 30 jobs are created" in err and "--key k creates the rest" in err
    refs = shell.jobs(*submit).split()
    assert len(set(refs)) == 30
    assert shell.jobs(*submit).split() == refs
    many = [name for name in names(sandbox, arn(queues, "spot")) if name.startswith("many-")]
    assert len(many) == len(set(many)) == 30
    shell.jobs("wait", *refs)
    shown = json.loads(shell.jobs("get", *refs, "-o", "json"))
    assert {row["phase"] for row in shown} == {"SUCCEEDED"}
