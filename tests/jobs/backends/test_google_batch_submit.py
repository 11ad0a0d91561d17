"""One key makes one job on Google Batch, whatever the network does."""

import json
import random
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from click.testing import Result

from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound
from jobs.backends.base import JobRef
from jobs.backends.google_batch import GoogleBatchBackend, labels
from jobs.backends.google_batch.labels import Scope
from jobs.backends.google_batch.submit import request_id
from jobs.backends.same_key import AGAIN
from jobs.model.keys import platform_name
from tests.jobs.backends import google_batch_target
from tests.jobs.backends.google_batch_cloud import GROUND, JOBS, Cloud
from tests.jobs.backends.google_jobs_cloud import (
    DEFINITE,
    FAULTS,
    TIMES,
    UNREACHABLE,
    check_scopes,
    check_submits_stop,
    check_unreachable,
)
from tests.jobs.conftest import start
from tests.support.proxy import Chance
from tests.support.soak import SOAK

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.google_batch_cloud"]


@pytest.fixture
def cloud(batch_cloud: Cloud) -> Cloud:
    return batch_cloud


REPEATS = 4
"""Of the soak: 8 submits for each fault. Most of a case is waiting: ten thousand took more than five hours."""
RANDOM = 300


def check(cloud: Cloud, text: str, faults: dict[str, list[str]], chance: Chance | None = None) -> str:
    """The kind of the first answer. The job's id is that of the request, and who hears nothing is told what to do."""
    answer, ref = cloud.check(text, faults, chance)
    if isinstance(answer, CloudSilent):
        assert answer.hint == AGAIN, text
    assert ref.id == cloud.request(text).name, text
    return type(answer).__name__


def test_faults_of_a_create(cloud: Cloud) -> None:
    cases = [*product(FAULTS, TIMES)]
    chosen = cases if SOAK else random.Random(5).sample(cases, 6)
    for count, (i, (fault, times)) in enumerate(product(range(REPEATS if SOAK else 1), chosen)):
        told = check(cloud, f"create {fault} {times} {i}", {"POST create": [fault] * times})
        if fault in DEFINITE:
            assert told == DEFINITE[fault].__name__, fault
        elif times == 1:
            assert told == "JobRef", fault
        if count % 100 == 99:
            cloud.clear()


def test_whether_the_job_was_there_is_told(cloud: Cloud) -> None:
    request = cloud.request("there", command=["sleep", "60"])
    first = cloud.backend().submit(request)
    cloud.becomes(first, lambda status: status.native != "QUEUED")
    assert (first.there, cloud.backend().submit(request).there) == (False, True)
    cloud.proxy.faults["POST create"] = ["accept+reset"]
    assert not cloud.backend().submit(cloud.request("lost")).there, "only the answer was lost"


def test_faults_of_the_look_after_a_create_that_broke(cloud: Cloud) -> None:
    """What cannot be seen is not known, and never another job."""
    cases = [*product(["reset", "accept+reset", "accept+500"], FAULTS)]
    quick = [(create, look) for create, look in cases if not look.endswith("hang")]
    for i, (create, look) in enumerate(cases if SOAK else random.Random(6).sample(quick, 3)):
        told = check(cloud, f"look {create} {look} {i}", {"POST create": [create] * 4, "GET job": [look] * 9})
        assert told in ("JobRef", "CloudSilent"), (create, look)


def test_a_refusal_after_a_create_that_was_not_answered_is_not_the_last_word(cloud: Cloud) -> None:
    """The first create was carried out; those after it are refused, and the job may be looked at, or not."""
    seen = check(cloud, "seen", {"POST create": ["accept+reset", "403"], "GET job": ["503"]})
    unseen = check(cloud, "unseen", {"POST create": ["accept+reset", *["403"] * 9], "GET job": ["503"] * 50})
    assert (seen, unseen) == ("JobRef", "CloudSilent")


def test_random_faults_of_every_call(cloud: Cloud) -> None:
    count = RANDOM if SOAK else 4
    for i in range(count):
        check(cloud, f"random {i}", {}, Chance(random.Random(i), 0.01 + 0.29 * i / count, FAULTS))
        if i % 100 == 99:
            cloud.clear()


def test_faults_of_a_cancel_and_of_a_look(cloud: Cloud) -> None:
    """What is answered is true; what is not is an error of ours; and once they are over the job is stopped."""
    sleep = {"image": None, "command": [], "google_batch": {"runnables": [{"script": "sleep 600"}]}}
    cases = [*product(("POST cancel", "GET job", "GET task"), FAULTS, TIMES)]
    quick = [case for case in cases if not case[1].endswith("hang")]
    for i, (call, fault, times) in enumerate(cases if SOAK else random.Random(7).sample(quick, 4)):
        title = f"cancel {call} {fault} {times} {i}"
        ref = cloud.settled(cloud.request(title, **sleep))
        assert isinstance(ref, JobRef)
        cloud.proxy.faults[call] = [fault] * times
        error = stopped(cloud, ref)
        cloud.proxy.heal()
        if error is not None:
            assert isinstance(error, CloudSilent | CloudRefused | NotFound | NoCredentials), title
            assert times > 1 or fault in DEFINITE or fault.endswith("body:other"), title
            cloud.backend().cancel(ref, "enough")
        assert cloud.becomes(ref, lambda status: status.phase.ended).native == "CANCELLED", title


def stopped(cloud: Cloud, ref: JobRef) -> JobsError | None:
    """Looks at a job that runs, and cancels it; why it could not."""
    try:
        found = cloud.backend().status(ref)
        cloud.backend().cancel(ref, "enough")
    except JobsError as error:
        return error
    assert not found.phase.ended and found.name == "digits"
    return None


@UNREACHABLE
def test_a_cloud_that_cannot_be_reached(cloud: Cloud, where: str) -> None:
    check_unreachable(cloud, where)
    check(cloud, where, {})


def test_the_same_key_with_another_job_is_refused(cloud: Cloud) -> None:
    """Also within the hour in which Batch gives the first job for the request's id, whatever is asked for."""
    request, other = cloud.request("same"), cloud.request("same", command=["python3", "other.py"])
    assert request.name == other.name
    ref = cloud.submit(request)
    said = cloud.submit(other)
    assert isinstance(said, BadInput) and said.message == f"key: it was used for another request: {request.name}"
    assert cloud.left(request.name) == [request.name]
    assert cloud.submit(request) == ref


def test_a_name_that_is_taken_without_the_request_id(cloud: Cloud) -> None:
    """After an hour only the job's id is known: 409."""
    request = cloud.request("an hour later")
    cloud.fake.call("POST", JOBS, request.body["job"], jobId=request.name)
    assert isinstance(cloud.submit(request), JobRef)
    assert isinstance(cloud.submit(cloud.request("an hour later", command=["python3", "other.py"])), BadInput)
    foreign = cloud.request("foreign")
    job = {name: value for name, value in foreign.body["job"].items() if name != "labels"}
    cloud.fake.call("POST", JOBS, job, jobId=foreign.name)
    assert isinstance(cloud.submit(foreign), BadInput)


@pytest.mark.parametrize("known", [True, False])
def test_a_job_that_is_being_deleted_is_waited_for(cloud: Cloud, known: bool) -> None:
    """Whether Batch knows the request's id still, and answers with the job as it is, or not, and says that there is
    one."""
    cloud.control(delete_s=0.1)
    request = cloud.request(f"deleted {known}")
    if known:
        ref = cloud.submit(request)
    else:
        cloud.fake.call("POST", JOBS, request.body["job"], jobId=request.name)
        ref = Scope.of_parent(str(request.body["parent"])).ref(request.name)
    assert isinstance(ref, JobRef)
    cloud.fake.ask("DELETE", f"{JOBS}/{ref.id}")
    assert cloud.settled(request) == ref
    assert cloud.backend().status(ref).native != "DELETION_IN_PROGRESS"
    assert cloud.left(ref.id) == [ref.id]
    cloud.control(delete_s=0)


def test_two_clients_at_once_with_one_key_make_one_job(cloud: Cloud) -> None:
    count = 100 if SOAK else 8
    same = [cloud.request("at once")] * count
    others = [cloud.request(f"at once {n}") for n in range(count)]
    with ThreadPoolExecutor(16) as pool:
        assert len({*pool.map(cloud.settled, same)}) == 1
        assert len({*pool.map(cloud.settled, others)}) == count
    assert len(cloud.left("digits-")) == count + 1


def test_a_hundred_thousand_tasks_are_one_call(cloud: Cloud) -> None:
    request = cloud.request("many", tasks=100_000)
    cloud.proxy.calls.clear()
    ref = cloud.backend().submit(request)
    assert dict(cloud.proxy.calls) == {"POST create": 1}
    found = cloud.becomes(ref, lambda status: sum(status.tasks.values()) == 100_000)
    assert cloud.proxy.calls["GET tasks"] == 0
    assert found.attempts is None, "not known without a call for each task"


def test_submits_keep_to_a_rate_and_stop(cloud: Cloud) -> None:
    check_submits_stop(cloud)


def test_ids() -> None:
    key = "0123456789ab" * 6
    assert labels.job_id(platform_name("Digits_1", key)) == "digits-1-0123456789ab"
    assert labels.job_id(platform_name("9lives", key)) == "j-9lives-0123456789ab"
    long = labels.job_id(platform_name("a" * 100, key))
    assert len(long) == labels.ID_MAX and long.endswith("-0123456789ab")
    assert request_id(key) == request_id(key) != request_id(key[1:])


def test_scopes() -> None:
    check_scopes(GoogleBatchBackend, labels.Scope)


def test_the_hash_is_of_what_was_asked_for() -> None:
    job = {"labels": {"team": "a"}, "taskGroups": [1]}
    first = labels.add_labels(job, "n", "k1", "t")
    assert labels.add_labels(first, "n", "k2", "t")["labels"][labels.SPEC] == first["labels"][labels.SPEC]
    assert labels.add_labels(replaced(job), "n", "k1", "t")["labels"][labels.SPEC] != first["labels"][labels.SPEC]


def replaced(job: dict[str, object]) -> dict[str, object]:
    return {**job, "taskGroups": [2]}


STEPS = 2
"""Before the create was handed on, and before its answer was."""


@pytest.mark.usefixtures("home")
def test_a_submit_that_is_killed(
    cloud: Cloud, home: Path, monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Result]
) -> None:
    """kill -9 at each step; then the same key gives one job."""
    target = google_batch_target.make_target(**GROUND).model_dump(by_alias=True)
    (home / "targets.json").write_text(json.dumps({"batch": target}))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "targets.json"))
    steps = [each for each in range(1, STEPS + 1) for _ in range(25 if SOAK else 1)]
    for i, step in enumerate(steps):
        key = f"killed-{step}-{i}"
        job = {"name": "digits", "image": google_batch_target.IMAGE, "command": ["true"]}
        (home / f"{key}.yaml").write_text(json.dumps(job))
        arguments = ["submit", f"{key}.yaml", "--to", "batch", "--key", key, "--no-quota", "-o", "id"]
        assert cloud.killed(step, partial(start, *arguments), "POST create") == -signal.SIGKILL, step
        first, second = (invoke(*arguments) for _ in range(2))
        assert first.exit_code == second.exit_code == 0, first.output
        assert first.output == second.output
        ref = JobRef.parse(first.output.strip())
        assert cloud.left(ref.id) == [ref.id]
    assert len(cloud.left("digits-")) == len(steps)


def test_a_request_of_another_machine_has_the_same_hash(cloud: Cloud) -> None:
    """What Batch adds to a job does not count."""
    request = cloud.request("elsewhere")
    ref = cloud.submit(request)
    assert cloud.submit(replace(request, warnings=("another",))) == ref
