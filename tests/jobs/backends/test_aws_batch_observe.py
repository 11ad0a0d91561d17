"""Status, listing, cancelling, logs and again, against answers in AWS's own form."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    ConfigParseError,
    ConnectTimeoutError,
    EndpointConnectionError,
    InvalidConfigError,
    InvalidDefaultsMode,
    NoCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    TokenRetrievalError,
)
from botocore.stub import ANY, Stubber

from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import SETTINGS, asking
from accel.diagnostics.errors import (
    BadInput,
    CloudRefused,
    CloudSilent,
    JobsError,
    NoCredentials,
    NotFound,
    Throttled,
)
from jobs.backends.aws_batch import AwsBatchBackend
from jobs.backends.base import JobRef, LogLine, Phase
from jobs.client.waiting import wait_for
from sandbox.aws.batch.jobs import SUMMARY
from tests.jobs.backends.aws_batch_target import CREDENTIALS, QUICK, REGION, make_target

ID = "0f3c2a1b-4d5e-4f60-8a7b-9c0d1e2f3a4b"
REF = JobRef("aws-batch", REGION, ID)
QUEUE = make_target().queue_arn
DEFINITION = "arn:aws:batch:us-east-1:123456789012:job-definition/train"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


def detail(job_id: str = ID, status: str = "RUNNING", **fields: Any) -> dict[str, Any]:
    return {
        "jobId": job_id,
        "jobName": "digits-1a2b",
        "jobQueue": QUEUE,
        "jobDefinition": f"{DEFINITION}:3",
        "status": status,
        "createdAt": 1_700_000_000_000,
        "startedAt": 1_700_000_060_000,
        **fields,
    }


def summary(job: dict[str, Any]) -> dict[str, Any]:
    """What ListJobs has of it: nothing of attempts and sizes, and of an array its size."""
    found = {name: job[name] for name in SUMMARY if name in job}
    if array := job.get("arrayProperties"):
        found["arrayProperties"] = {"size": array["size"]}
    return found


class FakeBatch:
    """DescribeJobs, ListJobs and the others from a dictionary; counts calls."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.jobs = {job["jobId"]: job for job in jobs}
        self.calls: Counter[str] = Counter()
        self.definitions = [f"{DEFINITION}:3"]

    def describe_jobs(self, jobs: list[str]) -> dict[str, Any]:
        self.calls["describe"] += 1
        assert len(jobs) <= 100
        return {"jobs": [self.jobs[job] for job in jobs if job in self.jobs]}

    def terminate_job(self, jobId: str, reason: str) -> None:  # noqa: N803
        self.calls["terminate"] += 1
        assert reason

    def describe_job_definitions(self, **arguments: Any) -> dict[str, Any]:
        return {"jobDefinitions": [{"jobDefinitionArn": arn} for arn in self.definitions]}

    def list_jobs(
        self,
        jobQueue: str,  # noqa: N803
        jobStatus: str | None = None,  # noqa: N803
        filters: list[Any] | None = None,
        maxResults: int = 1000,  # noqa: N803
        nextToken: str = "0",  # noqa: N803
    ) -> dict[str, Any]:
        self.calls["list"] += 1
        size = min(maxResults, 100 if filters else 1000)
        wanted = [job for job in self.jobs.values() if jobStatus is None or job["status"] == jobStatus]
        wanted.sort(key=lambda job: -job["createdAt"] if filters else job["jobId"])
        start = int(nextToken)
        more = {"nextToken": str(start + size)} if start + size < len(wanted) else {}
        return {"jobSummaryList": [summary(job) for job in wanted[start : start + size]], **more}


def backend_of(batch: Any, logs: Any = None) -> AwsBatchBackend:
    backend = AwsBatchBackend("gpu", make_target(), timing=QUICK)
    backend._clients.batch = batch
    if logs:
        backend._clients.logs = logs
    return backend


@pytest.mark.parametrize(
    "native, phase",
    [
        ("SUBMITTED", Phase.QUEUED), ("PENDING", Phase.QUEUED), ("RUNNABLE", Phase.QUEUED),
        ("STARTING", Phase.STARTING), ("RUNNING", Phase.RUNNING), ("SUCCEEDED", Phase.SUCCEEDED),
        ("FAILED", Phase.FAILED),
    ],
)  # fmt: skip
def test_phases(native: str, phase: Phase) -> None:
    status = backend_of(FakeBatch(detail(status=native))).status(REF)
    assert (status.phase, status.native, status.target) == (phase, native, "gpu")


@pytest.mark.parametrize(
    "tasks, phase",
    [
        ({"RUNNABLE": 10}, Phase.QUEUED),
        ({"RUNNABLE": 9, "STARTING": 1}, Phase.STARTING),
        ({"RUNNABLE": 8, "RUNNING": 2}, Phase.RUNNING),
        ({"RUNNABLE": 8, "SUCCEEDED": 2}, Phase.RUNNING),
    ],
)
def test_phase_of_an_array(tasks: dict[str, int], phase: Phase) -> None:
    array = {"size": 10, "statusSummary": {**tasks, "FAILED": 0}}
    status = backend_of(FakeBatch(detail(status="PENDING", arrayProperties=array))).status(REF)
    assert (status.phase, status.tasks) == (phase, tasks)


def test_a_failed_job_says_why() -> None:
    attempts = [
        {
            "container": {"reason": "Host EC2 (instance i-0) terminated."},
            "statusReason": "Host EC2 terminated.",
        },
        {"container": {"exitCode": 137, "reason": "OutOfMemoryError: killed", "logStreamName": "b"}},
    ]
    job = detail(
        status="FAILED",
        statusReason="Essential container in task exited",
        attempts=attempts,
        container={"exitCode": 137, "reason": "OutOfMemoryError: killed", "logStreamName": "b"},
        stoppedAt=1_700_000_100_000,
    )
    status = backend_of(FakeBatch(job)).status(REF)
    assert status.reason == "Essential container in task exited: OutOfMemoryError: killed"
    assert (status.exit_code, status.attempts) == (137, 2)
    assert status.stopped is not None


def test_a_job_that_batch_forgot() -> None:
    with pytest.raises(NotFound) as caught:
        backend_of(FakeBatch()).status(REF)
    assert "seven days" in str(caught.value.hint)


def test_cancel_is_idempotent() -> None:
    batch = FakeBatch(detail())
    backend = backend_of(batch)
    backend.cancel(REF, "")
    batch.jobs[ID]["status"] = "FAILED"
    backend.cancel(REF, "again")
    assert batch.calls["terminate"] == 1


@pytest.mark.parametrize("ended, limit, most_calls", [(True, 50, 1), (False, 50, 12), (True, 12_500, 20)])
def test_listing_is_newest_first_in_few_calls(ended: bool, limit: int, most_calls: int) -> None:
    states = ["RUNNABLE", "RUNNING", "SUCCEEDED", "FAILED"]
    jobs = [
        detail(f"job-{i:05d}", states[i % 4], createdAt=1_700_000_000_000 + i * 7919 % 12_500) for i in range(12_500)
    ]
    batch = FakeBatch(*jobs)
    found = list(backend_of(batch).list(limit=limit, ended=ended))
    assert len(found) == min(limit, 12_500 if ended else 6_250)
    created = [status.created for status in found]
    assert created == sorted(created, key=lambda at: at.timestamp() if at else 0, reverse=True)
    assert batch.calls["list"] <= most_calls
    assert ended or not any(status.phase.ended for status in found)


def test_another_regions_job_is_refused() -> None:
    with pytest.raises(BadInput, match="not a job of aws-batch:us-east-1"):
        backend_of(FakeBatch()).status(JobRef("aws-batch", "eu-west-1", ID))


def test_again_repeats_what_ran() -> None:
    container = {
        "command": ["python", "train.py"],
        "environment": [
            {"name": "EPOCHS", "value": "5"},
            {"name": "ACCEL_JOB_NAME", "value": "digits"},
            {"name": "AWS_BATCH_JQ_NAME", "value": "gpu"},
        ],
        "resourceRequirements": [{"type": "VCPU", "value": "8"}, {"type": "GPU", "value": "1"}],
    }
    job = detail(
        status="FAILED",
        container=container,
        tags={"accel:job": "digits", "accel:key": "old", "accel:spec": "old", "team": "vision"},
        retryStrategy={"attempts": 2},
        timeout={"attemptDurationSeconds": 60},
        arrayProperties={"size": 4, "statusSummary": {"FAILED": 4}},
    )
    batch = FakeBatch(job)
    backend = backend_of(batch)
    request = backend.resubmit_request(REF, "k" * 64)
    submit = request.body["submit"]
    assert (request.name, request.target, request.warnings) == ("digits-kkkkkkkkkkkk", "gpu", ())
    assert submit["jobDefinition"] == f"{DEFINITION}:3"
    assert submit["arrayProperties"] == {"size": 4}
    assert submit["tags"]["accel:key"] == "k" * 64
    assert submit["tags"]["accel:spec"] not in ("", "old")
    assert [each["name"] for each in submit["containerOverrides"]["environment"]] == [
        "ACCEL_JOB_NAME",
        "EPOCHS",
    ]
    with Stubber(boto3.client("batch", region_name=REGION)) as stub:
        stub.add_response("submit_job", {"jobName": "a", "jobId": "b"}, dict.fromkeys(submit, ANY))
        stub.client.submit_job(**submit)
    batch.definitions = [f"{DEFINITION}:4", f"{DEFINITION}:10"]
    later = backend.resubmit_request(REF, "k" * 64)
    assert later.body["submit"]["jobDefinition"] == f"{DEFINITION}:10"
    assert "revision 3 of train is gone; 10 is used" in later.warnings
    batch.definitions = []
    with pytest.raises(NotFound):
        backend.resubmit_request(REF, "k" * 64)
    with pytest.raises(BadInput, match="task of an array"):
        backend.resubmit_request(JobRef("aws-batch", REGION, f"{ID}:3"), "k" * 64)


class Missing(Exception):
    """In the place of logs.exceptions.ResourceNotFoundException."""


class FakeLogs:
    """GetLogEvents over lists of lines, with CloudWatch's tokens, small pages, and faults."""

    class exceptions:  # noqa: N801
        ResourceNotFoundException = Missing

    def __init__(self, streams: dict[str, list[tuple[int, str]]], page: int = 10, faults: float = 0) -> None:
        self.streams = streams
        self.page = page
        self.faults = faults
        self.random = random.Random(1)
        self.given = 0
        """Lines that were asked for in all."""

    def get_log_events(
        self,
        logGroupName: str,  # noqa: N803
        logStreamName: str,  # noqa: N803
        startFromHead: bool,  # noqa: N803
        nextToken: str | None = None,  # noqa: N803
        limit: int = 10_000,
    ) -> dict[str, Any]:
        if self.random.random() < self.faults:
            raise ReadTimeoutError(endpoint_url="x")
        if logGroupName != "/accel/test":
            raise Missing("The specified log group does not exist.")
        if logStreamName not in self.streams:
            raise Missing("The specified log stream does not exist.")
        lines = self.streams[logStreamName]
        # "f/n": from line n on; "b/n": before line n. A token of one direction is not for the other.
        assert nextToken is None or nextToken.startswith("f/" if startFromHead else "b/")
        # Once in a while a page is empty although there is more.
        size = self.random.choice([0, self.page]) if self.random.random() < self.faults else self.page
        size = min(size, limit)
        self.given += size
        at = int(nextToken[2:]) if nextToken else 0 if startFromHead else len(lines)
        first, end = (at, min(at + size, len(lines))) if startFromHead else (max(0, at - size), at)
        return {
            "events": [{"timestamp": when, "message": text} for when, text in lines[first:end]],
            "nextForwardToken": f"f/{end}",
            "nextBackwardToken": f"b/{first}",
        }


def texts(lines: Iterator[LogLine]) -> list[tuple[str, str]]:
    return [(line.source, line.text) for line in lines]


def test_log_of_every_attempt_in_order() -> None:
    attempts = [{"container": {"logStreamName": "a"}}, {"container": {"logStreamName": "b"}}]
    batch = FakeBatch(detail(status="SUCCEEDED", attempts=attempts, container={"logStreamName": "b"}))
    logs = FakeLogs({"a": [(5, "one"), (6, "two")], "b": [(1, "three")]})
    wanted = [("attempt 1", "one"), ("attempt 1", "two"), ("attempt 2", "three")]
    for follow in (False, True):
        assert texts(backend_of(batch, logs).logs(REF, follow=follow)) == wanted


def test_the_last_lines_are_asked_for_from_the_end() -> None:
    attempts = [{"container": {"logStreamName": "a"}}, {"container": {"logStreamName": "b"}}]
    batch = FakeBatch(detail(status="SUCCEEDED", attempts=attempts, container={"logStreamName": "b"}))
    logs = FakeLogs({"a": [(n, f"a {n}") for n in range(5000)], "b": [(n, f"b {n}") for n in range(12)]}, page=10)
    wanted = [("attempt 1", "a 4998"), ("attempt 1", "a 4999"), *(("attempt 2", f"b {n}") for n in range(12))]
    for follow in (False, True):
        assert texts(backend_of(batch, logs).logs(REF, follow=follow, tail=14)) == wanted
        assert texts(backend_of(batch, logs).logs(REF, follow=follow, tail=3)) == wanted[-3:]
    assert logs.given < 200
    assert len(texts(backend_of(batch, logs).logs(REF, tail=10_000))) == 5012


def array_of_three() -> tuple[FakeBatch, FakeLogs]:
    """Its tasks have ended, after two lines each."""
    array = {"size": 3, "statusSummary": {"SUCCEEDED": 3}}
    children = [
        detail(f"{ID}:{i}", "SUCCEEDED", container={"logStreamName": f"s{i}"}, arrayProperties={"index": i})
        for i in range(3)
    ]
    batch = FakeBatch(detail(status="SUCCEEDED", arrayProperties=array), *children)
    logs = FakeLogs({f"s{i}": [(i, f"first {i}"), (10 + i, f"last {i}")] for i in range(3)})
    return batch, logs


def test_the_last_lines_of_all_tasks() -> None:
    batch, logs = array_of_three()
    for follow in (False, True):
        found = texts(backend_of(batch, logs).logs(REF, follow=follow, tail=4))
        assert found == [("task 2", "first 2"), ("task 0", "last 0"), ("task 1", "last 1"), ("task 2", "last 2")]
    assert texts(backend_of(batch, logs).logs(REF, task=1, tail=1)) == [("", "last 1")]


@pytest.mark.parametrize("faults", [0.0, 0.3])
def test_following_from_the_last_lines(faults: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that comes after the last lines is lost or doubled."""
    monkeypatch.setattr("accel.clouds.backoff.time.sleep", lambda s: None)
    job = detail(status="RUNNING", container={"logStreamName": "s"})
    batch, logs = FakeBatch(job), FakeLogs({"s": [(i, f"line {i}") for i in range(1000)]}, page=9, faults=faults)
    looks = Counter[str]()

    def describe_jobs(jobs: list[str]) -> dict[str, Any]:
        looks["n"] += 1
        have = len(logs.streams["s"])
        if looks["n"] > 20:
            logs.streams["s"] += [(i, f"line {i}") for i in range(have, min(3000, have + 100))]
        if len(logs.streams["s"]) == 3000:
            job.update(status="SUCCEEDED")
        return {"jobs": [dict(job)]}

    monkeypatch.setattr(batch, "describe_jobs", describe_jobs)
    found = [text for _, text in texts(backend_of(batch, logs).logs(REF, follow=True, tail=25))]
    assert found == [f"line {i}" for i in range(975, 3000)]


def test_log_before_there_is_one() -> None:
    assert texts(backend_of(FakeBatch(detail(status="RUNNABLE")), FakeLogs({})).logs(REF)) == []
    running = detail(container={"logStreamName": "not-yet"})
    assert texts(backend_of(FakeBatch(running), FakeLogs({})).logs(REF)) == []


def test_log_group_that_is_missing() -> None:
    container = {
        "logStreamName": "a",
        "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/x"}},
    }
    with pytest.raises(NotFound, match="log group /x"):
        list(backend_of(FakeBatch(detail(container=container)), FakeLogs({})).logs(REF))


@pytest.mark.parametrize("faults", [0.0, 0.3])
def test_following_loses_and_doubles_nothing(faults: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines come while they are read, some of them after the job has ended; calls fail."""
    monkeypatch.setattr("accel.clouds.backoff.time.sleep", lambda s: None)
    job = detail(status="RUNNABLE")
    batch, logs = FakeBatch(job), FakeLogs({"s": []}, page=97, faults=faults)
    total, looks = 20_000, Counter[str]()

    def describe_jobs(jobs: list[str]) -> dict[str, Any]:
        looks["n"] += 1
        if looks["n"] == 3:
            job.update(status="RUNNING", container={"logStreamName": "s"})
        if looks["n"] > 3:
            more = logs.random.randint(0, 900)
            have = len(logs.streams["s"])
            logs.streams["s"] += [(i, f"line {i}") for i in range(have, min(total, have + more))]
            if len(logs.streams["s"]) > total - 2000:
                job.update(status="SUCCEEDED")
        return {"jobs": [dict(job)]}

    monkeypatch.setattr(batch, "describe_jobs", describe_jobs)
    assert texts(backend_of(batch, logs).logs(REF, follow=True)) == [("", f"line {i}") for i in range(total)]


def test_log_of_an_array() -> None:
    batch, logs = array_of_three()
    backend = backend_of(batch, logs)
    wanted = [(f"task {i}", f"{word} {i}") for word in ("first", "last") for i in range(3)]
    for follow in (False, True):
        assert texts(backend.logs(REF, follow=follow)) == wanted
    assert texts(backend.logs(REF, task=1)) == [("", "first 1"), ("", "last 1")]
    with pytest.raises(BadInput, match="tasks 0 to 2, not 3"):
        backend.logs(REF, task=3)


@pytest.mark.parametrize(("ago_s", "waits"), [(1, True), (3600, False)])
def test_last_lines_are_waited_for_after_a_job_that_has_just_ended(
    ago_s: float, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("accel.clouds.backoff.time.sleep", slept.append)
    stopped = int((time.time() - ago_s) * 1000)
    job = detail(status="SUCCEEDED", stoppedAt=stopped, container={"logStreamName": "s"})
    found = texts(backend_of(FakeBatch(job), FakeLogs({"s": [(1, "line")]})).logs(REF, follow=True))
    assert found == [("", "line")]
    assert bool(slept) == waits


def test_attempts_that_ended_long_ago_hold_no_running_one_up(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("accel.clouds.backoff.time.sleep", slept.append)
    hour_ago = int((time.time() - 3600) * 1000)
    attempts = [{"container": {"logStreamName": f"s{n}"}, "stoppedAt": hour_ago} for n in (1, 2)]
    job = detail(status="RUNNING", attempts=attempts, container={"logStreamName": "s3"})
    logs = FakeLogs({f"s{n}": [(n, f"line {n}")] for n in (1, 2, 3)})
    found = backend_of(FakeBatch(job), logs).logs(REF, follow=True)
    assert [next(found).text for _ in range(3)] == ["line 1", "line 2", "line 3"]
    assert not slept


def test_a_silent_log_ends_following_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel.clouds.backoff.time.sleep", lambda s: None)
    monkeypatch.setattr("accel.clouds.aws.clients.Timing.silence_s", 0.05)
    backend = backend_of(FakeBatch(detail(container={"logStreamName": "s"})), FakeLogs({}, faults=1))
    backend._clients.timing = type(QUICK)(silence_s=0.05, poll_s=0)
    with pytest.raises(CloudSilent):
        list(backend.logs(REF, follow=True))


@pytest.mark.parametrize(
    "error, kind",
    [
        (NoCredentialsError(), NoCredentials),
        (ProfileNotFound(profile="x"), NoCredentials),
        (TokenRetrievalError(provider="sso", error_msg="expired"), NoCredentials),
        (FileNotFoundError(2, "No such file or directory", "/opt/sign-in"), NoCredentials),
        (ConfigParseError(path="/home/me/.aws/config"), BadInput),
        (InvalidConfigError(error_msg="The source_profile gone does not exist"), BadInput),
        (InvalidDefaultsMode(mode="fast", valid_modes="legacy"), BadInput),
        (ConnectionResetError(104, "Connection reset by peer"), CloudSilent),
        (KeyError("Parameters"), CloudSilent),
        (ConnectTimeoutError(endpoint_url="x"), CloudSilent),
        (ReadTimeoutError(endpoint_url="x"), CloudSilent),
        (EndpointConnectionError(endpoint_url="x"), CloudSilent),
    ],
)
def test_what_botocore_raises(error: Exception, kind: type[JobsError]) -> None:
    with pytest.raises(kind) as caught, asking("ListJobs"):
        raise error
    assert caught.value.message.startswith("ListJobs: ")
    assert caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("endpoint", "config", "kind"),
    [
        ("nowhere", "", BadInput),
        ("http://[::1", "", BadInput),
        ("", "credential_process = echo hello", BadInput),
        ("", "credential_process = /nowhere/sign-in", NoCredentials),
        ("", "web_identity_token_file = /nowhere/token\nrole_arn = arn:aws:iam::123456789012:role/x", NoCredentials),
        ("", "source_profile = gone\nrole_arn = arn:aws:iam::123456789012:role/x", BadInput),
        ("", "[", BadInput),
    ],
)
def test_a_setting_that_is_wrong_is_named(
    endpoint: str, config: str, kind: type[JobsError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(f"[default]\n{config}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    with pytest.raises(kind) as caught, asking("batch in us-east-1"):
        Clients(REGION, QUICK).batch.list_jobs(jobQueue=QUEUE)
    assert caught.value.message.startswith("batch in us-east-1: ")
    assert caught.value.hint == SETTINGS


@pytest.mark.parametrize(
    "code, status, kind",
    [
        ("ExpiredTokenException", 403, NoCredentials),
        ("UnrecognizedClientException", 403, NoCredentials),
        ("AccessDeniedException", 403, CloudRefused),
        ("ClientException", 400, CloudRefused),
        ("TooManyRequestsException", 429, Throttled),
        ("SlowDownPlease", 429, Throttled),  # by its status alone
        ("ServerException", 500, CloudSilent),
    ],
)
def test_what_aws_answers(code: str, status: int, kind: type[JobsError]) -> None:
    client = boto3.client("batch", region_name=REGION)
    with Stubber(client) as stub:
        stub.add_client_error("list_jobs", code, "two\nlines", status)
        with pytest.raises(kind, match=f"ListJobs: {code}: two lines"), asking("ListJobs"):
            client.list_jobs()


def lost(at_ms: int = 3_600_000, **fields: Any) -> dict[str, Any]:
    reason = "Host EC2 (instance i-0123456789abcdef0) terminated."
    return {"container": {}, "startedAt": 1, "stoppedAt": 1 + at_ms, "statusReason": reason, **fields}


NO_CAPACITY = "Canceled by JobStateTimeLimit action due to reason: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
OWN = {
    "container": {"exitCode": 1},
    "startedAt": 1,
    "stoppedAt": 2,
    "statusReason": "Essential container in task exited",
}


@pytest.mark.parametrize(
    ("status", "reason", "attempts", "count", "taken"),
    [
        ("FAILED", lost()["statusReason"], [lost(), lost()], 2, "its host was taken away"),
        ("FAILED", OWN["statusReason"], [lost(), OWN], 1, None),
        ("FAILED", "cancelled by the user", [lost()], 1, None),
        ("FAILED", NO_CAPACITY, [], 0, "there was no capacity"),
        ("FAILED", NO_CAPACITY.replace("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "MISCONFIGURATION:X"), [], 0, None),
        ("FAILED", None, [lost()], 1, "its host was taken away"),
        ("RUNNABLE", None, [lost()], 1, None),
        ("SUCCEEDED", "Essential container in task exited", [lost(), OWN], 1, None),
    ],
)
def test_what_the_platform_took_is_told_from_what_failed(
    status: str, reason: str | None, attempts: list[dict[str, Any]], count: int, taken: str | None
) -> None:
    gpus = {"resourceRequirements": [{"type": "GPU", "value": "4"}]}
    job = detail(status=status, statusReason=reason, attempts=attempts, container=gpus)
    seen = backend_of(FakeBatch(job)).status(REF)
    assert (seen.lost, seen.taken) == (count, taken)
    assert seen.lost_gpu_hours == (4.0 * count if count else None)


def test_many_jobs_are_described_by_the_hundred() -> None:
    jobs = [detail(f"{number:08x}-4d5e-4f60-8a7b-9c0d1e2f3a4b", status="RUNNING") for number in range(250)]
    batch = FakeBatch(*jobs)
    refs = [JobRef("aws-batch", REGION, job["jobId"]) for job in jobs]
    unknown = JobRef("aws-batch", REGION, "ffffffff-4d5e-4f60-8a7b-9c0d1e2f3a4b")
    found = backend_of(batch).statuses([*refs, unknown])
    assert list(found) == refs and batch.calls["describe"] == 3
    assert found[refs[0]] == backend_of(batch).status(refs[0])


def test_waiting_for_many_jobs_asks_by_the_hundred() -> None:
    jobs = [detail(f"{number:08x}-4d5e-4f60-8a7b-9c0d1e2f3a4b", status="RUNNING") for number in range(250)]
    batch, slept = FakeBatch(*jobs), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        ended = [job for job in batch.jobs.values() if job["status"] == "RUNNING"][:100]
        batch.jobs |= {job["jobId"]: {**job, "status": "SUCCEEDED"} for job in ended}

    backend = backend_of(batch)
    waited = wait_for([(JobRef("aws-batch", REGION, job["jobId"]), backend) for job in jobs], None, sleep=sleep)
    assert {status.phase for status in waited} == {Phase.SUCCEEDED} and len(waited) == 250
    assert batch.calls["describe"] == 3 + 3 + 2 + 1
    assert slept[0] >= 1.0, "a round of three calls takes its time"


def test_a_list_tells_how_far_it_is() -> None:
    batch = FakeBatch(*(detail(f"{number}", status="SUCCEEDED", createdAt=number + 1) for number in range(2500)))
    told: list[int] = []
    assert len(list(backend_of(batch).list(limit=10_000, ended=True, progress=told.append))) == 2500
    assert told[-1] == 2500 and told == sorted(told)
    assert batch.calls["list"] == 3 + 6, "pages of a thousand, and one for each other state"


def test_again_is_refused_where_what_the_definition_gave_makes_it_too_large() -> None:
    environment = [{"name": f"E_{number}", "value": "x" * 200} for number in range(45)]
    job = detail(status="FAILED", container={"environment": environment})
    with pytest.raises(BadInput, match=r"request.containerOverrides: has \d+ characters .*, of which ECS takes 8192"):
        backend_of(FakeBatch(job)).resubmit_request(REF, "k" * 64)


def _ended(stream: str) -> dict[str, Any]:
    return {"container": {"logStreamName": stream, "exitCode": 1}, "startedAt": 1, "stoppedAt": 2}


@pytest.mark.parametrize(
    ("status", "ended", "present", "attempts"),
    [
        ("RUNNABLE", [], None, 0),
        ("STARTING", [], None, 1),
        ("RUNNING", [], "a", 1),
        ("RUNNABLE", ["a"], "a", 1),
        ("STARTING", ["a"], None, 2),
        ("STARTING", ["a"], "a", 2),
        ("RUNNING", ["a"], "b", 2),
        ("SUCCEEDED", ["a", "b"], "b", 2),
        # Not yet among those that ended.
        ("SUCCEEDED", ["a"], "b", 2),
    ],
)
def test_attempts_of_a_job_and_of_a_task_are_those_so_far(
    status: str, ended: list[str], present: str | None, attempts: int
) -> None:
    """`attempts` has those that ended, and `container` the present one:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_JobDetail.html"""
    container = {"logStreamName": present} if present else {}
    fields: dict[str, Any] = {"attempts": [_ended(each) for each in ended], "container": container}
    parent = detail(status="PENDING", arrayProperties={"size": 2, "statusSummary": {}})
    tasks = [detail(f"{ID}:{index}", status, **fields) for index in range(2)]
    assert [each.attempts for each in backend_of(FakeBatch(parent, *tasks)).tasks(REF)] == [attempts, attempts]
    alone = backend_of(FakeBatch(detail(status=status, **fields)))
    assert alone.status(REF).attempts == attempts
    assert [each.attempts for each in alone.tasks(REF)] == [attempts]
