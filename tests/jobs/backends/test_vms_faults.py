"""One key makes one job on machines of its own, whatever the network does."""

import random
from dataclasses import replace
from itertools import product

import pytest

from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NoCredentials, NotFound
from jobs.backends.base import JobRef
from jobs.backends.same_key import AGAIN
from jobs.backends.vm.record import Attempt, Record
from tests.jobs.backends.vm_faults import FIELDS, MADE, Cloud
from tests.support.proxy import BODIES, Chance, GoogleProxy
from tests.support.soak import SOAK, sampled
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.vm_faults"]
pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def cloud(faulty_cloud: Cloud) -> Cloud:
    return faulty_cloud


ACCEPTED = [f"accept+{how}" for how in ("reset", "close", "hang", "truncate", "500", "drip")]
GARBLED = [*(f"body:{name}" for name in BODIES), *(f"accept+body:{name}" for name in BODIES)]
FAULTS = [*GoogleProxy.ANSWERS, "reset", "close", "hang", *ACCEPTED, *GARBLED]
DEFINITE = {"400", "403", "404"}
CALLS = {
    "queue": ["POST queuedResources"],
    "instance": ["POST instances"],
    "group": ["POST instanceTemplates", "POST instanceGroupManagers", "POST createInstances"],
}
"""Besides the record, which is claimed before them, and replaced afterwards."""
MATRIX = [(kind, call, fault) for kind in CALLS for call in ["claim", *CALLS[kind], "replace"] for fault in FAULTS]
TIMES = (1, 9)
REPEATS = {"queue": 3, "instance": 1, "group": 1}
"""Of the soak: 16 submits for each fault on each of the two clouds' sides; most of a case is waiting."""

RANDOM = 300


def check(cloud: Cloud, kind: str, title: str, faults: dict[str, list[str]], chance: Chance | None = None) -> str:
    """Submits with faults, and then without: one job, and what was answered first was true. The first answer's kind."""
    request = cloud.request(kind, title)
    cloud.proxy.faults.update({call: list(each) for call, each in faults.items()})
    cloud.proxy.chance = chance
    answer = cloud.submit(kind, request)
    cloud.proxy.heal()
    told = type(answer).__name__
    if isinstance(answer, CloudSilent):
        assert answer.hint == AGAIN, title
    elif isinstance(answer, NoCredentials):
        assert "claim" in faults or chance or AGAIN in str(answer.hint), title
    elif not isinstance(answer, JobRef):
        assert isinstance(answer, CloudRefused | NotFound), (title, answer)
        assert cloud.left(request.name) == [], title
    ref = cloud.settled(kind, request)
    assert isinstance(ref, JobRef), (title, ref)
    assert answer == ref or not isinstance(answer, JobRef), title
    record, _ = cloud.patient.backend(kind).records.read(ref.id)
    made = [attempt for attempt in record.attempts if attempt.outcome != "refused"]
    assert made == [record.last], title
    assert record.last.state == "made" or isinstance(answer, JobRef), title
    cloud.becomes(request.name, [each.format(record.last.name) for each in MADE[kind]], title)
    return told


@pytest.mark.parametrize("kind", CALLS)
def test_faults_of_each_call(cloud: Cloud, kind: str) -> None:
    cases = [(call, fault, times) for (of, call, fault), times in product(MATRIX, TIMES) if of == kind]
    quick = [case for case in cases if not (case[1].endswith("hang") and case[2] > 1)]
    chosen = cases if SOAK else random.Random(kind).sample(quick, 4)
    repeats = range(REPEATS[kind] if SOAK else 1)
    for count, (i, (call, fault, times)) in enumerate(product(repeats, chosen)):
        told = check(cloud, kind, f"{call} {fault} {times} {i}", {call: [fault] * times})
        if fault in DEFINITE and call.startswith("POST"):
            assert told == "CloudRefused", (call, fault)
        if times == 1 and fault not in DEFINITE and not fault.endswith("body:other"):
            assert told == "JobRef", (call, fault)
        if count % 30 == 29:
            cloud.clear()  # with hundreds of machines the sandbox grows slow


@pytest.mark.parametrize("kind", CALLS)
def test_whether_the_job_was_there_is_told(cloud: Cloud, kind: str) -> None:
    request = cloud.request(kind, "there")
    refs = [cloud.settled(kind, request) for _ in range(2)]
    assert [isinstance(ref, JobRef) and ref.there for ref in refs] == [False, True]
    cloud.proxy.faults["claim"] = ["accept+reset"]
    lost = cloud.settled(kind, cloud.request(kind, "lost"))
    assert isinstance(lost, JobRef) and not lost.there, "only the answer was lost"


@pytest.mark.parametrize("kind", CALLS)
def test_a_look_that_is_refused_refuses_nothing_that_is_under_way(cloud: Cloud, kind: str) -> None:
    """What was asked for comes later: it must not be taken for refused, nor forgotten."""
    looks = ["GET operations", *(f"GET {each.split()[1]}" for each in CALLS[kind])]
    assert check(cloud, kind, "a look", {each: ["403"] * 9 for each in looks}) == "CloudSilent"


@pytest.mark.parametrize(
    ("kind", "create", "look"),
    [
        ("queue", ["accept+reset", *["403"] * 9], "GET queuedResources"),
        ("instance", ["accept+reset", *["403"] * 9], "GET instances"),
        ("group", ["403"] * 9, "GET instanceTemplates"),
    ],
)
def test_an_answer_about_something_else_does_not_say_that_nothing_is_there(
    cloud: Cloud, kind: str, create: list[str], look: str
) -> None:
    """A part of the job is there when the create is refused, and a proxy answers the looks at it."""
    call = next(each for each in CALLS[kind] if each != "POST instanceTemplates")
    assert check(cloud, kind, "something else", {call: create, look: ["body:other"] * 9}) == "CloudSilent"


def test_random_faults_of_every_call(cloud: Cloud) -> None:
    count = RANDOM if SOAK else 3
    for i in range(count):
        kind = [*FIELDS][i % 3]
        check(cloud, kind, f"random {i}", {}, Chance(random.Random(i), 0.01 + 0.29 * i / count, FAULTS))
        if i % 30 == 29:
            cloud.clear()


@pytest.mark.parametrize(
    ("kind", "where"),
    sampled(
        product(["queue", "instance"], ["http://127.0.0.1:9", "http://nohost.invalid:80", "tls"]),
        [("queue", "tls"), ("instance", "http://127.0.0.1:9")],
    ),
)
def test_a_cloud_that_cannot_be_reached(cloud: Cloud, kind: str, where: str) -> None:
    request = cloud.request(kind, where)
    cloud.point(where.replace("tls", cloud.proxy.endpoint.replace("http:", "https:")))
    assert isinstance(cloud.submit(kind, request), CloudSilent)
    cloud.point(cloud.proxy.endpoint)
    assert cloud.left(request.name) == []
    check(cloud, kind, where, {})


def test_a_refusal_that_another_client_overtook_is_none(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first client was refused, and before it says so another with the same key has been given the machines."""
    request = cloud.request("queue", "overtaken")
    slow, quick = cloud.backend("queue"), cloud.backend("queue")
    machines, given = slow.machines(), list[JobRef]()

    class Refused:
        look, remove = machines.look, machines.remove

        def make(self, record: Record, attempt: Attempt) -> None:
            given.append(quick.submit(request))
            raise CloudRefused("a quota that was used up just then")

    monkeypatch.setattr(slow, "machines", Refused)
    assert slow.submit(request) == given[0]
    cloud.becomes(request.name, [f"queuedResources {request.name}"])


def test_machines_of_a_submit_that_slept_are_taken_back(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its claim and its request another client with the same key has had the job made, and cancelled it."""
    request = cloud.request("instance", "slept")
    slow, quick = cloud.backend("instance"), cloud.backend("instance")
    machines = slow.machines()

    class Sleeper:
        look, remove = machines.look, machines.remove

        def make(self, record: Record, attempt: Attempt) -> None:
            ref = quick.submit(request)
            quick.cancel(ref, "enough")
            until(lambda: quick.tend(ref).phase.ended and not cloud.left(request.name))
            machines.make(record, attempt)

    monkeypatch.setattr(slow, "machines", Sleeper)
    ref = slow.submit(request)
    cloud.becomes(request.name, [])
    assert quick.records.read(ref.id)[0].outcome == "cancelled"


def test_a_refused_key_may_be_used_for_another_request(cloud: Cloud) -> None:
    """What was refused is corrected, and submitted again under the key that it had."""
    cloud.proxy.faults["POST instances"] = ["403"]
    request = cloud.request("instance", "corrected")
    assert isinstance(cloud.submit("instance", request), CloudRefused)
    corrected = replace(request, body={**request.body, "retries": 3})
    ref = cloud.submit("instance", corrected)
    assert isinstance(ref, JobRef)
    record, _ = cloud.backend("instance").records.read(ref.id)
    assert record.body["retries"] == 3 and [each.outcome for each in record.attempts] == ["refused", ""]
    assert isinstance(cloud.submit("instance", request), BadInput)
