"""One key makes one custom job of Vertex AI, whatever the network does, wherever clients die."""

import itertools
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from accel.clouds.google.api import Google
from accel.contract import claims as columns
from accel.diagnostics.errors import BadInput, CloudSilent, NotFound, OverLimit
from jobs.backends.base import JobRef
from jobs.backends.claims.firestore import FirestoreClaims
from jobs.client.bulk import submit_all
from tests.jobs.backends.google_jobs_cloud import (
    DEFINITE,
    FAULTS,
    TIMES,
    UNREACHABLE,
    check_submits_stop,
    check_unreachable,
)
from tests.jobs.backends.vertex_cloud import JOBS, Cloud
from tests.support.proxy import Chance
from tests.support.soak import SOAK, sampled, soak_only

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.vertex_cloud"]


@pytest.fixture
def cloud(vertex_cloud: Cloud) -> Cloud:
    return vertex_cloud


ROOT = Path(__file__).parents[3]
REPEATS = 3
"""Of the soak: 12 submits for each fault, half of them with each kind of claims; most of a case is waiting."""
RANDOM = 300
PARTS = range(3 if SOAK else 1)
"""Of the soak's long tests: they wait more than they work, and can be run side by side (`-k "create and part1"`)."""


def check(cloud: Cloud, text: str, faults: dict[str, list[str]], chance: Chance | None = None) -> str:
    """The kind of the first answer."""
    return type(cloud.check(text, faults, chance)[0]).__name__


@pytest.mark.parametrize("part", PARTS, ids="part{}".format)
@pytest.mark.parametrize("claims", ["table", "file"])
def test_faults_of_a_create(cloud: Cloud, claims: str, part: int) -> None:
    cloud = cloud if claims == "table" else replace(cloud, claims=None)
    cases = [*product(FAULTS, TIMES)]
    chosen = cases if SOAK else random.Random(claims).sample(cases, 5 if claims == "table" else 3)
    for i, (fault, times) in product(range(REPEATS if SOAK else 1)[part :: len(PARTS)], chosen):
        cloud.proxy.calls.clear()
        told = check(cloud, f"create {claims} {fault} {times} {i}", {"POST create": [fault] * times})
        if fault in DEFINITE:
            assert told == DEFINITE[fault].__name__, fault
        elif times == 1 or fault.startswith("accept"):
            assert told == "JobRef", (fault, times)
        if fault.startswith("accept"):
            assert cloud.proxy.calls["POST create"] == 1, fault
        if (fault, times) == chosen[-1]:
            cloud.clear()


def test_whether_the_job_was_there_is_told(cloud: Cloud) -> None:
    request = cloud.request("there")
    assert [cloud.backend().submit(request).there for _ in range(2)] == [False, True]
    cloud.proxy.faults["POST create"] = ["accept+reset"]
    assert not cloud.backend().submit(cloud.request("lost")).there, "only the answer was lost"


def test_faults_of_the_claim(cloud: Cloud) -> None:
    cases = [*product(["GET claim", "POST claim", "PATCH claim"], FAULTS)]
    for i, (call, fault) in enumerate(cases if SOAK else random.Random(3).sample(cases, 4)):
        check(cloud, f"claim {call} {fault} {i}", {call: [fault] * 4})


def test_faults_of_the_look_after_a_create_that_broke(cloud: Cloud) -> None:
    """What cannot be seen is not known, and never another job."""
    cases = [*product(["reset", "accept+reset", "accept+500"], FAULTS)]
    quick = [(create, look) for create, look in cases if not look.endswith("hang")]
    for i, (create, look) in enumerate(cases if SOAK else random.Random(6).sample(quick, 3)):
        told = check(cloud, f"look {create} {look} {i}", {"POST create": [create], "GET jobs": [look] * 9})
        # Throttled says that surely nothing was made, once the lease is too short to send again.
        assert told in ("JobRef", "CloudSilent") or (told == "Throttled" and create == "reset"), (create, look)


def test_a_job_that_is_listed_late_is_not_made_again(cloud: Cloud) -> None:
    cloud.fake.fault(list_lag_s=0.3)
    for i in range(20 if SOAK else 1):
        assert check(cloud, f"late {i}", {"POST create": ["accept+reset"]}) == "JobRef"
        assert cloud.proxy.calls["POST create"] == i + 1


@pytest.mark.parametrize("part", PARTS, ids="part{}".format)
def test_random_faults_of_every_call(cloud: Cloud, part: int) -> None:
    count, faults = (RANDOM, FAULTS) if SOAK else (4, [fault for fault in FAULTS if not fault.endswith("hang")])
    for i in range(count)[part :: len(PARTS)]:
        check(cloud, f"random {i}", {}, Chance(random.Random(i), 0.01 + 0.29 * i / count, faults))
        if i % 100 < len(PARTS):
            cloud.clear()


@UNREACHABLE
def test_a_cloud_that_cannot_be_reached(cloud: Cloud, where: str) -> None:
    check_unreachable(cloud, where)
    check(cloud, where, {})


def test_a_vertex_that_cannot_be_reached_is_no_doubt(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was sent, so that the claim is given back and nothing is looked for."""
    request = cloud.request("no doubt")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", "http://127.0.0.1:9")
    answer = cloud.submit(request)
    assert isinstance(answer, CloudSilent) and "is not known" not in answer.message
    assert (cloud.proxy.calls["GET jobs"], cloud.proxy.calls["DELETE claim"]) == (0, 1)
    cloud.point(cloud.proxy.endpoint)
    assert isinstance(cloud.submit(request), JobRef)


def test_a_quota_that_is_used_up_is_refused_at_once(cloud: Cloud) -> None:
    """It is told with 429 as well, and waiting does not help."""
    cloud.fake.fault(quota={"aiplatform/us-central1/custom_model_training_nvidia_l4_gpus": 1})
    request = cloud.request("quota", accelerator={"type": "l4", "count": 4})
    answer = cloud.submit(request)
    assert isinstance(answer, OverLimit) and "custom_model_training_nvidia_l4_gpus" in answer.message
    assert cloud.proxy.calls["POST create"] == 1
    cloud.fake.well()
    assert isinstance(cloud.submit(request), JobRef)


def test_the_same_key_with_another_job_is_refused(cloud: Cloud) -> None:
    for claims in (cloud.claims, None):
        ours = replace(cloud, claims=claims)
        request, other = ours.request(f"same {claims}"), ours.request(f"same {claims}", command=["python3", "other.py"])
        ref = ours.submit(request)
        assert isinstance(ref, JobRef)
        said = ours.submit(other)
        assert isinstance(said, BadInput)
        assert said.message == f"key: it was used for another request: {request.name} ({ref.id})"
        assert ours.left(request.name) == [ref.id]
        assert ours.submit(request) == ref


def test_a_job_that_no_claim_knows_is_found_without_a_table(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine made it: it has other files."""
    alone = replace(cloud, claims=None)
    request = alone.request("elsewhere")
    ref = alone.submit(request)
    monkeypatch.setenv("XDG_STATE_HOME", str(cloud.fake.home / "another machine"))
    assert alone.submit(request) == ref
    assert alone.proxy.calls["POST create"] == 1


def test_a_database_that_is_not_there(cloud: Cloud) -> None:
    answer = replace(cloud, claims=cloud.claims and f"{cloud.claims}-gone").submit(cloud.request("gone"))
    assert isinstance(answer, NotFound)
    assert cloud.left(cloud.request("gone").name) == []


@pytest.mark.parametrize("claims", ["table", "file"])
def test_many_clients_at_once_with_one_key_make_one_job(cloud: Cloud, claims: str) -> None:
    cloud = cloud.changed(read_s=5, lease_s=15)
    cloud = cloud if claims == "table" else replace(cloud, claims=None)
    count = 100 if SOAK else 6
    same = [cloud.request(f"at once {claims}")] * count
    others = [cloud.request(f"at once {claims} {n}") for n in range(count)]
    with ThreadPoolExecutor(16) as pool:
        refs = {*pool.map(cloud.settled, same)}
        assert [ref.id for ref in refs if isinstance(ref, JobRef)] == cloud.left(same[0].name)
        assert len(refs) == 1
        assert len({*pool.map(cloud.settled, others)}) == count
    assert cloud.proxy.statuses.count(("POST create", 200)) == count + 1


def test_a_client_that_slept_through_its_lease_stops_its_own_job(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hole that is left open: the duplicate is found and stopped."""
    request = cloud.request("asleep", command=["sleep", "600"], image="local/examples")
    slow, quick = cloud.backend(), cloud.backend()
    post, given = slow._google.post, list[JobRef]()

    def asleep(api: str, path: str, *more: object, **query: object) -> object:
        if path.endswith("/customJobs") and not given:
            claims = FirestoreClaims(quick._google, str(cloud.claims))
            claim = claims.read(request.key)
            assert claim
            claims.end_lease(claim)
            given.append(quick.submit(request))
        return post(api, path, *more, **query)  # type: ignore[arg-type]

    monkeypatch.setattr(slow._google, "post", asleep)
    ref = slow.submit(request)
    assert [ref] == given == [quick.submit(request)]
    states = {
        each["name"].rpartition("/")[2]: each["state"] for each in cloud.all() if each["displayName"] == request.name
    }
    assert len(states) == 2 and "CANCEL" not in states.pop(ref.id)
    assert all("CANCEL" in state for state in states.values()), states


CHILD = """
import sys
from dataclasses import replace
from accel.clouds.google.api import Google
from tests.jobs.backends.vertex_cloud import GROUND, QUICK, request_of
from tests.jobs.backends import vertex_jobs
from jobs.backends.vertex import VertexBackend

lease_s, claims, test, text = sys.argv[1:]
target = vertex_jobs.make_target(**GROUND, claims=claims or None)
VertexBackend("trainer", target, timing=replace(QUICK, lease_s=float(lease_s))).submit(request_of(test, text))
"""
STEPS = {"table": 12, "file": 4}
"""Two for each call of a submit: before it is handed on, and before its answer is."""


@pytest.mark.parametrize("part", PARTS, ids="part{}".format)
@pytest.mark.parametrize("claims", sampled(STEPS, ["table"]))
def test_a_submit_that_is_killed(cloud: Cloud, claims: str, part: int) -> None:
    """kill -9 at each step; then the same key gives one job, once the lease of the dead has ended."""
    cloud = (cloud if claims == "table" else replace(cloud, claims=None)).changed(lease_s=5)
    steps = [step for step in range(1, STEPS[claims] + 1) for _ in range(25)][part :: len(PARTS)]
    for i, step in enumerate(steps if SOAK else random.Random(claims).sample(range(1, STEPS[claims] + 1), 1)):
        text = f"killed {claims} {step} {i}"
        assert killed(cloud, step, text) == -signal.SIGKILL, step
        request = cloud.request(text)
        ref = cloud.settled(request)
        assert isinstance(ref, JobRef), (step, ref)
        assert cloud.left(request.name) == [ref.id], step
        assert cloud.submit(request) == ref


def killed(cloud: Cloud, step: int, text: str) -> int:
    """The end of a client, which is killed at this step."""
    command = [sys.executable, "-c", CHILD, str(cloud.timing.lease_s), cloud.claims or "", cloud.test, text]
    return cloud.killed(step, lambda: subprocess.Popen(command, cwd=ROOT))


def test_a_thousand_jobs_at_the_rate_limit(cloud: Cloud) -> None:
    """No call is rejected."""
    count, minute_s = (1000, 6.0) if SOAK else (70, 2.5)
    cloud.fake.fault(minute_s=minute_s)
    backend = cloud.changed(read_s=30, lease_s=90, window_s=minute_s).backend()
    requests = [cloud.request(f"many {n}") for n in range(count)]
    sent = submit_all([(backend, request) for request in requests], made=lambda number, ref: None)
    assert (len(set(sent.refs.values())), sent.errors) == (count, {})
    assert [answer for answer in cloud.proxy.statuses if answer[0] == "POST create"] == [("POST create", 200)] * count
    names = [each["displayName"] for each in cloud.all()]
    assert all(names.count(request.name) == 1 for request in requests)


@soak_only
def test_a_rejected_call_is_waited_for(cloud: Cloud) -> None:
    """Somebody else uses the region's submissions up."""
    cloud.fake.fault(minute_s=4)
    patient = cloud.changed(lease_s=90)
    body = cloud.request("others").body["customJob"]
    for i in itertools.count():
        while cloud.fake.ask("POST", JOBS, body).status_code != 429:
            pass
        before = cloud.proxy.calls["POST create"]
        assert isinstance(patient.submit(cloud.request(f"waits {i}")), JobRef)
        if cloud.proxy.calls["POST create"] > before + 1:
            break
        assert i < 5, "it was never rejected"  # the minute may be over by then
    assert cloud.proxy.calls["GET jobs"] == 0


def test_submits_stop(cloud: Cloud) -> None:
    check_submits_stop(cloud)


def test_a_submit_that_is_interrupted(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of another kind leaves the call in doubt, and the claim to its lease."""
    backend, request = cloud.backend(), cloud.request("interrupted")

    def broken(*arguments: object, **query: object) -> object:
        raise KeyboardInterrupt

    post: Callable[..., object] = backend._google.post
    monkeypatch.setattr(
        backend._google, "post", lambda api, *a, **q: (broken if "aiplatform" in api else post)(api, *a, **q)
    )
    with pytest.raises(KeyboardInterrupt):
        backend.submit(request)
    claims = FirestoreClaims(Google(), str(cloud.claims))
    claim = claims.read(request.key)
    assert claim and claim.lease_until > claims.now()
    claims.end_lease(claim)
    answer = cloud.settled(request)
    assert isinstance(answer, JobRef) and cloud.left(request.name) == [answer.id]


@pytest.mark.parametrize(
    "column", sampled([columns.SPEC_HASH, columns.LEASE_UNTIL, columns.OWNER], [columns.LEASE_UNTIL])
)
def test_a_damaged_claim_is_named_and_other_keys_go_on(cloud: Cloud, column: str) -> None:
    request = cloud.request("damaged")
    assert isinstance(cloud.submit(request), JobRef)
    document = f"v1/{cloud.claims}/documents/{columns.COLLECTION}/{request.key}"
    Google().patch("firestore", document, {"fields": {}}, **{"updateMask.fieldPaths": column})
    answer = cloud.submit(request)
    assert isinstance(answer, CloudSilent) and f"cannot read claim {request.key}" in answer.message
    assert len(cloud.left(request.name)) == 1
    assert isinstance(cloud.submit(cloud.request("beside it")), JobRef)
