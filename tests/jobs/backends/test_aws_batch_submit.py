"""AWS Batch from submit to log against moto, without faults."""

import time
from collections.abc import Iterator

import pytest

from accel.contract import claims
from accel.diagnostics.errors import BadInput, CloudSilent
from jobs.backends.base import Phase
from jobs.model.keys import submission_key
from tests.jobs.backends.aws_batch_cloud import Cloud, running
from tests.jobs.backends.aws_batch_target import LOG_GROUP, backend_at, request_of


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    yield from running()


def test_one_key_is_one_job(cloud: Cloud) -> None:
    backend = backend_at(cloud.endpoint)
    request = request_of(backend, "one")
    ref, again = backend.submit(request), backend.submit(request)
    assert again == ref and (ref.there, again.there) == (False, True)
    assert cloud.jobs(request.name) == [ref.id]
    status = backend.status(ref)
    assert (status.phase, status.target, status.name) == (Phase.SUCCEEDED, "gpu", request.name)


def test_a_key_is_not_taken_for_another_job(cloud: Cloud) -> None:
    backend = backend_at(cloud.endpoint)
    backend.submit(request_of(backend, "two"))
    with pytest.raises(BadInput, match="another request"):
        backend.submit(request_of(backend, "two", command=["python", "other.py"]))


def test_a_damaged_claim_is_named_and_other_keys_go_on(cloud: Cloud) -> None:
    backend, table = backend_at(cloud.endpoint), cloud.client("dynamodb")
    for column in (claims.SPEC_HASH, claims.OWNER, claims.LEASE_UNTIL, claims.JOB_NAME, claims.JOB_ID):
        for wrong in (None, {"BOOL": True}, {"L": []}):
            request = request_of(backend, f"{column} {wrong}")
            backend.submit(request)
            key = {claims.KEY: {"S": request.key}}
            row = table.get_item(TableName="claims", Key=key)["Item"]
            left = {name: value for name, value in row.items() if name != column}
            table.put_item(TableName="claims", Item=left | ({column: wrong} if wrong else {}))
            if column == claims.JOB_ID and not wrong:
                continue  # as of a client that died before it wrote the id
            with pytest.raises(CloudSilent, match=f"cannot read claim {request.key}.*: {column} ") as error:
                backend.submit(request)
            assert "`accel-jobs ls -a` shows whether the job was made" in str(error.value.hint)
            assert len(cloud.jobs(request.name)) == 1
    backend.submit(request_of(backend, "beside a damaged claim"))


def test_own_definition_is_registered_once(cloud: Cloud) -> None:
    backend = backend_at(cloud.endpoint)
    own = {"image": "registry.example/own:2", "cpus": 4, "memory_mib": 8000}
    first, second = (request_of(backend, text, **own) for text in ("three", "four"))
    for request in (first, second):
        backend.submit(request)
    name = first.body["register"]["jobDefinitionName"]
    assert name == second.body["register"]["jobDefinitionName"]
    assert len(cloud.batch.describe_job_definitions(jobDefinitionName=name)["jobDefinitions"]) == 1


def test_log_and_list_of_a_job(cloud: Cloud) -> None:
    backend = backend_at(cloud.endpoint)
    ref = backend.submit(request_of(backend, "five", tasks=2))
    status = backend.status(ref)
    assert (status.phase, status.tasks) == (Phase.SUCCEEDED, {"SUCCEEDED": 2})
    logs = cloud.client("logs")
    for i, task in enumerate(cloud.batch.describe_jobs(jobs=[f"{ref.id}:0", f"{ref.id}:1"])["jobs"]):
        stream = {"logGroupName": LOG_GROUP, "logStreamName": task["container"]["logStreamName"]}
        logs.create_log_stream(**stream)
        now = int(time.time() * 1000)
        logs.put_log_events(**stream, logEvents=[{"timestamp": now + n, "message": f"line {n}"} for n in range(3)])
        assert [line.text for line in backend.logs(ref, task=i)] == ["line 0", "line 1", "line 2"]
        for follow in (False, True):
            assert [line.text for line in backend.logs(ref, task=i, follow=follow, tail=2)] == ["line 1", "line 2"]
    found = [(line.source, line.text) for line in backend.logs(ref, follow=True)]
    assert sorted(found) == [(f"task {i}", f"line {n}") for i in range(2) for n in range(3)]
    assert next(backend.list(limit=1, ended=True)).ref == ref
    assert [status.ref for status in backend.list(limit=10_000, ended=True)].count(ref) == 1
    assert list(backend.list(limit=10, ended=False)) == []


def test_again_is_another_job(cloud: Cloud) -> None:
    backend = backend_at(cloud.endpoint)
    first = backend.submit(request_of(backend, "six", env={"EPOCHS": "5"}))
    request = backend.resubmit_request(first, submission_key("digits", "seven"))
    second = backend.submit(request)
    assert second != first
    assert backend.submit(request) == second
    assert {each["name"] for each in request.body["submit"]["containerOverrides"]["environment"]} >= {"EPOCHS"}


def test_cancelling_an_ended_job_does_nothing(cloud: Cloud) -> None:
    backend = backend_at(cloud.endpoint)
    ref = backend.submit(request_of(backend, "eight"))
    backend.cancel(ref, "no more")
    assert backend.status(ref).phase is Phase.SUCCEEDED
