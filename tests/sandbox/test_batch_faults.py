"""What goes wrong in a cloud, on purpose: places, time limits, planned faults, and the end of the server."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ReadTimeoutError,
)

from components.aws.budget_function import Environments
from tests.support.soak import sampled

TOO_BIG, OVER_MAX = (
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
)
STOCKOUT = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"


@pytest.fixture(autouse=True)
def healthy(aws: Any) -> Iterator[None]:
    yield
    aws.control("faults", "DELETE")


@pytest.mark.parametrize(
    ("environment", "needs", "reason"),
    [
        ({}, {"gpu": 16}, TOO_BIG),
        ({"instanceTypes": ["g5.2xlarge"]}, {"vcpu": 8, "memory": 32768, "gpu": 1}, TOO_BIG),
        ({"instanceTypes": ["g5.2xlarge"]}, {"vcpu": 8, "memory": 30000, "gpu": 1}, None),
        ({"instanceTypes": ["g5.2xlarge"]}, {"vcpu": 16}, TOO_BIG),
        ({"instanceTypes": ["m6i"]}, {"gpu": 1}, TOO_BIG),
        ({"maxvCpus": 32}, {"gpu": 4}, OVER_MAX),
        ({"maxvCpus": 48}, {"gpu": 4}, None),
    ],
    ids=str,
)
def test_a_job_that_nothing_holds_waits_and_says_why(
    aws: Any, environment: dict[str, Any], needs: dict[str, int], reason: str | None
) -> None:
    queue = aws.queue(aws.environment(**environment))
    job_id = aws.submit(queue, aws.definition(["true"], **needs))
    if reason is None:
        assert aws.ended(job_id)["status"] == "SUCCEEDED"
        return
    shown = aws.until(lambda: (job := aws.job(job_id)).get("statusReason") and job)
    assert (shown["status"], shown["statusReason"].split(" ")[0]) == ("RUNNABLE", reason)
    arns = [row["jobArn"] for row in aws.batch.get_job_queue_snapshot(jobQueue=queue)["frontOfQueue"]["jobs"]]
    assert arns == [shown["jobArn"]]


def test_a_time_limit_cancels_the_head_of_the_queue_and_frees_the_rest(aws: Any) -> None:
    action = {"reason": TOO_BIG, "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
    queue = aws.queue(aws.environment(), jobStateTimeLimitActions=[action])
    head = aws.submit(queue, aws.definition(["true"], gpu=16))
    behind = aws.submit(queue, aws.definition(["true"]))
    aws.until(lambda: aws.job(head).get("statusReason"))
    aws.control("clock", advance_s=590)
    time.sleep(0.3)
    assert [aws.job(job)["status"] for job in (head, behind)] == ["RUNNABLE", "RUNNABLE"]
    aws.control("clock", advance_s=11)
    ended = aws.ended(head)
    assert ended["statusReason"] == f"Canceled by JobStateTimeLimit action due to reason: {TOO_BIG}"
    assert ended["isCancelled"] and ended["attempts"] == []
    assert aws.ended(behind)["status"] == "SUCCEEDED"


def test_disabled_environments_take_no_jobs_and_the_next_one_does(aws: Any) -> None:
    first, second = aws.environment(), aws.environment()
    queue = aws.queue(first, second)
    for name in (first, second):
        aws.batch.update_compute_environment(computeEnvironment=name, state="DISABLED")
    job = aws.submit(queue, aws.definition(["sh", "-c", "echo $AWS_BATCH_CE_NAME"]))
    aws.until(lambda: "are disabled." in aws.job(job).get("statusReason", ""))
    aws.until(lambda: aws.shown_environment(second)["status"] == "VALID")
    aws.batch.update_compute_environment(computeEnvironment=second, state="ENABLED")
    assert aws.lines(aws.ended(job)["container"]["logStreamName"]) == [second]


def test_a_disabled_environment_without_vcpus_is_too_small_all_the_same(aws: Any) -> None:
    """One that is only disabled keeps its jobs; one whose maximum is 0 has them cancelled by the queue's time limit."""
    action = {"reason": OVER_MAX, "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
    kept, cut = aws.environment(), aws.environment()
    queues = {name: aws.queue(name, jobStateTimeLimitActions=[action]) for name in (kept, cut)}
    aws.batch.update_compute_environment(computeEnvironment=kept, state="DISABLED")
    aws.batch.update_compute_environment(
        computeEnvironment=cut, state="DISABLED", computeResources={"minvCpus": 0, "maxvCpus": 0}
    )
    waits, hopeless = (aws.submit(queues[name], aws.definition(["true"])) for name in (kept, cut))
    aws.until(lambda: "are disabled." in aws.job(waits).get("statusReason", ""))
    aws.until(lambda: OVER_MAX in aws.job(hopeless).get("statusReason", ""))
    aws.control("clock", advance_s=601)
    assert aws.ended(hopeless)["statusReason"] == f"Canceled by JobStateTimeLimit action due to reason: {OVER_MAX}"
    assert aws.job(waits)["status"] == "RUNNABLE"


def test_a_stop_by_a_budget_keeps_the_jobs_that_wait(aws: Any) -> None:
    name = aws.environment()
    arn = aws.shown_environment(name)["computeEnvironmentArn"]
    action = {"state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
    limits = [action | {"reason": reason} for reason in (TOO_BIG, OVER_MAX)]
    queue = aws.queue(name, jobStateTimeLimitActions=limits)
    lever = Environments(aws.batch, [arn])
    (change,) = lever.plan()
    lever.pull(change)
    waits = aws.submit(queue, aws.definition(["true"]))
    aws.until(lambda: aws.job(waits).get("statusReason"))
    aws.control("clock", advance_s=601)
    time.sleep(0.3)
    assert aws.job(waits)["status"] == "RUNNABLE"
    aws.until(lambda: aws.shown_environment(name)["status"] == "VALID")
    assert lever.restore(change) is None
    assert aws.ended(waits)["status"] == "SUCCEEDED"


def test_vcpus_of_an_environment_are_a_limit(aws: Any) -> None:
    name = aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=8)
    queue = aws.queue(name)
    definition = aws.definition(["sleep", "60"], vcpu=4)
    jobs = [aws.submit(queue, definition) for _ in range(3)]
    for job in jobs[:2]:
        aws.reaches(job, "RUNNING")
    assert aws.shown_environment(name)["computeResources"]["desiredvCpus"] == 8
    time.sleep(0.3)
    assert aws.job(jobs[2])["status"] == "RUNNABLE" and "statusReason" not in aws.job(jobs[2])
    aws.batch.terminate_job(jobId=jobs[0], reason="room")
    aws.reaches(jobs[2], "RUNNING")
    for job in jobs[1:]:
        aws.batch.terminate_job(jobId=job, reason="done")
        aws.ended(job)
    assert aws.shown_environment(name)["computeResources"]["desiredvCpus"] == 0


def test_a_higher_priority_goes_first(aws: Any, tmp_path: Path) -> None:
    name = aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=4)
    low, high = aws.queue(name, priority=1), aws.queue(name, priority=10)
    both_wait = tmp_path / "both-wait"
    definition = aws.waiting(both_wait, vcpu=4)
    aws.reaches(aws.submit(low, definition), "RUNNING")
    jobs = [aws.submit(low, definition), aws.submit(high, definition)]
    both_wait.touch()
    low_started, high_started = (aws.ended(job)["startedAt"] for job in jobs)
    assert high_started < low_started


def test_a_stockout_blocks_until_it_ends(aws: Any) -> None:
    queue = aws.queue(aws.environment(instanceTypes=["g5.xlarge"]))
    aws.control("faults", kind="stockout", instance_types=["g5.xlarge"])
    job = aws.submit(queue, aws.definition(["true"]))
    aws.until(lambda: STOCKOUT in aws.job(job).get("statusReason", ""))
    aws.control("faults", kind="stockout", instance_types=[])
    assert aws.ended(job)["status"] == "SUCCEEDED"


def test_a_timeout_ends_the_job_and_is_not_retried(aws: Any, queue: str) -> None:
    job = aws.submit(
        queue, aws.definition(["sleep", "120"]), timeout={"attemptDurationSeconds": 60},
        retryStrategy={"attempts": 3},
    )  # fmt: skip
    aws.reaches(job, "RUNNING")
    aws.control("clock", advance_s=61)
    ended = aws.ended(job)
    assert (ended["statusReason"], len(ended["attempts"])) == ("Job attempt duration exceeded timeout", 1)
    assert ended["container"]["exitCode"] == 143


def test_a_reclaimed_instance_ends_its_jobs_and_they_are_retried_as_asked(aws: Any) -> None:
    queue = aws.queue(aws.environment(instanceTypes=["g5.2xlarge"]))
    rules = [{"onStatusReason": "Host EC2*", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]
    sleeps = aws.definition(["sleep", "60"])
    retried = aws.submit(queue, sleeps, retryStrategy={"attempts": 2, "evaluateOnExit": rules})
    beside = aws.submit(queue, sleeps)
    for job in (retried, beside):
        aws.reaches(job, "RUNNING")
    instance = aws.control("faults", kind="reclaim", job_id=retried)["instance"]
    text = f"Host EC2 (instance {instance}) terminated."
    assert aws.ended(beside)["statusReason"] == text
    second = aws.until(lambda: (job := aws.job(retried))["status"] == "RUNNING" and job["attempts"] and job)
    assert [attempt["statusReason"] for attempt in second["attempts"]] == [text]
    aws.batch.terminate_job(jobId=retried, reason="seen")
    with pytest.raises(AssertionError, match="absent is not running"):
        aws.control("faults", kind="reclaim", job_id="absent")


FAULTS: list[tuple[str, type[Exception], int]] = [
    ("throttle", ClientError, 0),
    ("throttle-400", ClientError, 0),
    ("error-500", ClientError, 0),
    ("error-502", ClientError, 0),
    ("error-503", ClientError, 0),
    ("error-503-after", ClientError, 1),
    ("expired-token", ClientError, 0),
    ("reset", ConnectionClosedError, 0),
    ("reset-after", ConnectionClosedError, 1),
    ("hang", ReadTimeoutError, 0),
    ("hang-after", ReadTimeoutError, 1),
]


@pytest.mark.parametrize(("kind", "error", "made"), FAULTS)
def test_a_planned_fault_is_seen_once_and_made_what_it_says(
    aws: Any, queue: str, kind: str, error: type[Exception], made: int
) -> None:
    client = aws.client("batch", retries={"total_max_attempts": 1}, read_timeout=0.3)
    given = {"jobName": f"fault-{kind}", "jobQueue": queue, "jobDefinition": aws.definition(["true"])}
    aws.control("faults", operation="SubmitJob", kind=kind, hang_s=0.6)
    with pytest.raises((error, ConnectionResetError)):
        client.submit_job(**given)
    found = [{"name": "JOB_NAME", "values": [given["jobName"]]}]
    assert len(client.list_jobs(jobQueue=queue, filters=found)["jobSummaryList"]) == made
    assert client.submit_job(**given)["jobId"]
    [plan] = aws.control("faults", "GET")["plans"]
    assert (plan["fired"], plan["count"]) == (1, 0)


@pytest.mark.parametrize("kind", ["truncate", "wrong-schema"])
def test_boto3_takes_a_broken_answer_for_one_without_a_job(aws: Any, queue: str, kind: str) -> None:
    """Why the caller has to look whether there is a jobId: boto3 raises nothing."""
    aws.control("faults", operation="SubmitJob", kind=kind)
    name = aws.name(kind)
    given = {"jobName": name, "jobQueue": queue, "jobDefinition": aws.definition(["true"])}
    assert "jobId" not in aws.batch.submit_job(**given)
    found = [{"name": "JOB_NAME", "values": [name]}]
    assert len(aws.batch.list_jobs(jobQueue=queue, filters=found)["jobSummaryList"]) == 1


def test_boto3_resends_a_submit_that_was_carried_out(aws: Any, queue: str) -> None:
    """Why a submit has to be sent with one attempt only."""
    aws.control("faults", operation="SubmitJob", kind="reset-after")
    aws.submit(queue, aws.definition(["true"]), jobName="resent")
    rows = aws.batch.list_jobs(jobQueue=queue, filters=[{"name": "JOB_NAME", "values": ["resent"]}])
    assert len(rows["jobSummaryList"]) == 2


def test_faults_are_drawn_from_a_seed_and_reach_other_services(aws: Any) -> None:
    ddb = aws.client("dynamodb", retries={"total_max_attempts": 1})

    def drawn(seed: int) -> list[bool]:
        aws.control("faults", operation="ListTables", kind="error-500", count=20, rate=0.4, seed=seed)
        hits: list[bool] = []
        for _ in range(20):
            try:
                ddb.list_tables()
                hits.append(False)
            except ClientError:
                hits.append(True)
        return hits

    assert drawn(1) == drawn(1) != drawn(2)
    with pytest.raises(AssertionError, match="nonsense"):
        aws.control("faults", operation="ListTables", kind="nonsense")


def test_conditional_puts_are_atomic_between_clients(aws: Any) -> None:
    ddb = aws.client("dynamodb", max_pool_connections=16)
    ddb.create_table(
        TableName="atomic", KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}], BillingMode="PAY_PER_REQUEST",
    )  # fmt: skip
    won: list[tuple[int, int]] = []

    def claim(worker: int) -> None:
        for key in range(20):
            try:
                ddb.put_item(
                    TableName="atomic",
                    Item={"k": {"S": str(key)}},
                    ConditionExpression="attribute_not_exists(k)",
                )
                won.append((key, worker))
            except ddb.exceptions.ConditionalCheckFailedException:
                continue

    workers = [threading.Thread(target=claim, args=(worker,)) for worker in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(key for key, _ in won) == list(range(20))


def _job_processes(aws: Any) -> list[psutil.Process]:
    home = str(aws.home)
    return [process for process in psutil.process_iter(["cmdline"]) if home in " ".join(process.info["cmdline"] or [])]


@pytest.mark.parametrize("by", sampled(["terminate", "kill"], ["kill"]))
def test_no_process_outlives_the_server(start_aws: Callable[..., Any], by: str) -> None:
    own = start_aws()
    queue = own.queue(own.environment())
    home = str(own.home)
    jobs = [own.submit(queue, own.definition(["sh", "-c", f"trap '' TERM; sleep 300 & wait; : {home}"])) for _ in "ab"]
    for job in jobs:
        own.reaches(job, "RUNNING")
    assert len(_job_processes(own)) >= 5
    getattr(own.process, by)()
    own.process.wait(60)
    own.until(lambda: not _job_processes(own))
    again = start_aws()
    assert again.batch.describe_job_queues()["jobQueues"] == []
