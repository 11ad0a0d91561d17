"""One key makes one job, whatever the network does, wherever clients die, however many there are."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, NoCredentials, Throttled
from jobs.backends.aws_batch import AwsBatchBackend, Timing
from jobs.backends.base import JobRef, Request
from tests.jobs.backends.aws_batch_cloud import ANSWERS, BODIES, Chance, Cloud, Proxy
from tests.jobs.backends.aws_batch_target import CREDENTIALS, QUICK, backend_at, request_of, steady
from tests.support.soak import SOAK, sampled, soak_only

READ_S = 15 if SOAK else 3
"""How long child processes wait for moto, which serves all of them on a few cores."""
ROOT = Path(__file__).parents[3]

LOST = ["reset", "close", "hang"]
ACCEPTED = [f"accept+{how}" for how in ("reset", "close", "hang", "truncate", "500", "drip")]
GARBLED = [f"accept+body:{name}" for name in BODIES]
FAULTS = [*ANSWERS, *LOST, *ACCEPTED, *GARBLED]
SAMPLE = {
    1: ["429", "400", "403 expired", "502", "hang", "accept+close", "accept+truncate", "accept+body:html"],
    9: ["400 throttle", "403", "reset", "accept+reset"],
}
"""Faults of a submission, by how often each comes in a row."""
DEFINITE = {"400": CloudRefused, "403": CloudRefused, "403 expired": NoCredentials}
"""Faults after which nothing was made, and which another try would not cure."""
PATIENT = replace(QUICK, read_s=3, lease_s=90)
"""Where the first answer has to be a job, however slow the machine is."""
BRIEF = QUICK if SOAK else replace(QUICK, lease_s=5)
"""Where the first answer may be a doubt, which ends with the lease."""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        cloud = Cloud()
        yield cloud
        cloud.stop()


@dataclass
class Case:
    """A submit through a proxy that breaks its first calls."""

    title: str
    proxy: Proxy
    backend: AwsBatchBackend
    request: Request

    def submit(self) -> JobRef | JobsError:
        try:
            return self.backend.submit(self.request)
        except JobsError as error:
            return error

    def settled(self) -> JobRef | JobsError:
        """As a user does it who is told to run the same command again."""
        answers = (self.submit() for _ in range(5))
        return next((answer for answer in answers if not isinstance(answer, CloudSilent)), CloudSilent("five times"))


def make_case(
    cloud: Cloud,
    title: str,
    faults: dict[str, list[str]],
    *,
    own: bool = False,
    timing: Timing = BRIEF,
    **changes: object,
) -> Case:
    proxy = Proxy(cloud.endpoint)
    proxy.faults.update(faults)
    backend = backend_at(proxy.endpoint, timing=timing, **changes)
    return Case(title, proxy, backend, request_of(backend, title, own=own))


def check(cloud: Cloud, cases: list[Case]) -> dict[str, JobRef | JobsError]:
    """Submits each case, and once more without faults: one job each, and what was answered first was true."""
    with ThreadPoolExecutor(16) as pool:
        first = dict(zip([case.title for case in cases], pool.map(Case.submit, cases), strict=True))
        for case in cases:
            case.proxy.heal()
        second = list(pool.map(Case.settled, cases))
    for case, ref in zip(cases, second, strict=True):
        assert isinstance(ref, JobRef), (case.title, ref)
        assert cloud.jobs(case.request.name) == [ref.id], case.title
        cloud.forget(case.request.name)
        answer = first[case.title]
        assert isinstance(answer, JobRef | CloudSilent | CloudRefused | NoCredentials), (case.title, answer)
        assert answer == ref or isinstance(answer, JobsError), case.title
        case.proxy.stop()
    return first


def some(cases: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    every = list(cases)
    quick = [case for case in every if not case[1].endswith("hang")]
    return every if SOAK else random.Random(8).sample(quick, 6)


@pytest.mark.parametrize("times", [1, 9])
def test_faults_of_submit_job(cloud: Cloud, times: int) -> None:
    faults = FAULTS if SOAK else SAMPLE[times]
    for i in range(200 if SOAK and times == 1 else 1):
        title = f"SubmitJob x{times} {i}"
        is_made = {fault: fault not in DEFINITE and (times == 1 or fault.startswith("accept")) for fault in faults}
        cases = [
            make_case(
                cloud,
                f"{title} {fault}",
                {"submitjob": [fault] * times},
                timing=PATIENT if is_made[fault] else QUICK if fault in DEFINITE else BRIEF,
            )
            for fault in faults
        ]
        answers = check(cloud, cases)
        for fault, case in zip(faults, cases, strict=True):
            answer = answers[case.title]
            if fault in DEFINITE:
                assert isinstance(answer, DEFINITE[fault]), case.title
            elif is_made[fault]:
                assert isinstance(answer, JobRef), (case.title, answer)
            if fault.startswith("accept"):
                assert case.proxy.calls["submitjob"] == 1, case.title
            if isinstance(answer, CloudSilent):
                assert "again" in str(answer.hint), case.title


def test_faults_of_the_claim(cloud: Cloud) -> None:
    faults = [*ANSWERS, *LOST, "accept+reset", "accept+close", "accept+truncate", "accept+500", *GARBLED]
    check(
        cloud,
        [
            make_case(cloud, f"{operation} {fault}", {operation: [fault] * 4})
            for operation, fault in some(product(("GetItem", "PutItem", "UpdateItem"), faults))
        ],
    )


def test_faults_of_the_definition(cloud: Cloud) -> None:
    check(
        cloud,
        [
            make_case(cloud, f"{operation} {fault}", {operation: [fault]}, own=True)
            for operation, fault in some(product(("registerjobdefinition", "describejobdefinitions"), FAULTS))
        ],
    )


def test_faults_of_looking(cloud: Cloud) -> None:
    check(
        cloud,
        [
            make_case(cloud, f"{operation} {fault}", {"submitjob": ["accept+close"], operation: [fault]})
            for operation, fault in some(product(("listjobs", "describejobs"), FAULTS))
        ],
    )


def test_without_a_claim_table(cloud: Cloud) -> None:
    faults = FAULTS if SOAK else SAMPLE[9]
    cases = [make_case(cloud, f"no table {fault}", {"submitjob": [fault] * 2}, claim_table=None) for fault in faults]
    check(cloud, cases)


def test_random_faults_of_every_call(cloud: Cloud) -> None:
    count, at_once = (10_000, 200) if SOAK else (8, 8)
    faults = FAULTS if SOAK else [fault for fault in FAULTS if not fault.endswith("hang")]
    for start in range(0, count, at_once):
        numbers = range(start, start + at_once)
        cases = [make_case(cloud, f"random {i}", {}, own=i % 2 == 0) for i in numbers]
        for i, case in zip(numbers, cases, strict=True):
            case.proxy.chance = Chance(random.Random(i), 0.01 + 0.29 * i / count, faults)
        check(cloud, cases)


@pytest.mark.parametrize(
    "endpoint",
    sampled(["http://127.0.0.1:9", "http://nohost.invalid:80", "https://{proxy}"], ["https://{proxy}"]),
    ids=["refused", "dns", "tls"],
)
def test_unreachable(cloud: Cloud, endpoint: str) -> None:
    case = make_case(cloud, endpoint, {})
    sick = backend_at(endpoint.replace("{proxy}", case.proxy.endpoint.removeprefix("http://")), timing=BRIEF)
    sick._clients.dynamodb = case.backend._clients.dynamodb
    case.backend, healthy = sick, case.backend
    assert isinstance(case.submit(), CloudSilent)
    case.backend = healthy
    check(cloud, [case])


CHILD = """
import logging, os, sys
from accel.diagnostics.errors import Throttled
from tests.jobs.backends.aws_batch_target import backend_at, request_of, steady

endpoint, read_s, table, *submits = sys.argv[1:]
backend = backend_at(endpoint, timing=steady(float(read_s)), claim_table=table or None)
log = logging.getLogger("accel.jobs")
log.setLevel(logging.DEBUG)

class Kill(logging.Handler):
    def emit(self, record):
        if record.getMessage() == step:
            os.kill(os.getpid(), 9)

children = []
for submit in submits:
    step, _, text = submit.partition("=")
    child = os.fork()
    if child:
        children.append(child)
        continue
    log.addHandler(Kill())
    for _ in range(50):  # a machine with other work may need many
        try:
            answer = backend.submit(request_of(backend, text, own=True))
            break
        except Throttled as error:  # says that it sent nothing: a user submits again
            answer = f"Throttled:{error}"
        except BaseException as error:
            answer = f"{type(error).__name__}:{error}"
            break
    os.write(1, f"{answer}\\n".encode())
    os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


def children(endpoint: str, submits: list[str], table: str = "claims") -> subprocess.Popen[str]:
    """Processes that submit, one a `<step at which it kills itself>=<key text>`."""
    command = [sys.executable, "-c", CHILD, endpoint, str(READ_S), table, *submits]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def end_lease(cloud: Cloud, key: str) -> None:
    """The lease of a claim is over, if there is one."""
    with suppress(ClientError):
        cloud.client("dynamodb").update_item(
            TableName="claims",
            Key={"submission_key": {"S": key}},
            UpdateExpression="SET lease_until = :past",
            ConditionExpression="attribute_exists(lease_until)",
            ExpressionAttributeValues={":past": {"N": str(int(time.time()) - 1)}},
        )


STEPS = ["claiming", "claimed", "registering", "registered", "sending", "sent", "recorded"]


@pytest.mark.parametrize("table", sampled(["claims", ""], ["claims"]), ids=["table", "file"])
def test_killed_at_each_step(cloud: Cloud, table: str) -> None:
    submits: list[str] = []
    for i in range(13 if SOAK else 1):
        group = [f"{step}={step} {table} {i} {j}" for step in STEPS for j in range(2 if SOAK else 1)]
        assert children(cloud.endpoint, group, table).communicate()[0] == ""
        submits += group
    backend = backend_at(cloud.endpoint, timing=steady(READ_S), claim_table=table or None)
    requests = [request_of(backend, submit.partition("=")[2], own=True) for submit in submits]

    def submit(request: Request) -> JobRef:
        for _ in range(49):
            with suppress(Throttled):  # says that it sent nothing: a user submits again
                return backend.submit(request)
        return backend.submit(request)

    if not SOAK:
        for request in requests:
            end_lease(cloud, request.key)
    with ThreadPoolExecutor(32) as pool:
        refs = list(pool.map(submit, requests))
    for request, ref in zip(requests, refs, strict=True):
        assert cloud.jobs(request.name) == [ref.id]


@soak_only
def test_killed_while_the_answer_is_under_way(cloud: Cloud) -> None:
    case = make_case(cloud, "on its way", {"submitjob": ["accept+hang"]}, own=True)
    process = children(case.proxy.endpoint, ["=on its way"])
    assert case.proxy.accepted.wait(30)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert cloud.jobs(case.request.name) == [case.backend.submit(case.request).id]


@pytest.mark.parametrize("table", ["claims", ""], ids=["table", "file"])
def test_many_processes_with_one_key(cloud: Cloud, table: str) -> None:
    count = 100 if SOAK else 8
    text = f"many {table}"
    answers = children(cloud.endpoint, [f"={text}"] * count, table).communicate()[0].splitlines()
    name = request_of(backend_at(cloud.endpoint), text, own=True).name
    assert set(answers) == {f"aws-batch:us-east-1/{job_id}" for job_id in cloud.jobs(name)}
    assert (len(answers), len(set(answers))) == (count, 1)


@soak_only
def test_many_processes_with_many_keys(cloud: Cloud) -> None:
    count = 100
    answers = children(cloud.endpoint, [f"=own key {i}" for i in range(count)]).communicate()[0].splitlines()
    assert len({JobRef.parse(answer) for answer in answers}) == count


def test_a_process_that_slept_through_its_lease_stops_its_own_job(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hole that is left open: the duplicate is found and stopped."""
    slow, quick = make_case(cloud, "asleep", {}), make_case(cloud, "asleep", {})
    table = quick.backend._clients.dynamodb
    once = slow.backend._clients.batch_once
    stopped: list[str] = []
    send = once.submit_job

    def asleep(**arguments: object) -> object:
        table.update_item(
            TableName="claims",
            Key={"submission_key": {"S": slow.request.key}},
            UpdateExpression="SET lease_until = :past",
            ExpressionAttributeValues={":past": {"N": "1"}},
        )
        monkeypatch.setattr("jobs.backends.aws_batch.submit.FORGOTTEN_S", 1e12)
        assert isinstance(quick.submit(), JobRef)
        return send(**arguments)

    monkeypatch.setattr(once, "submit_job", asleep)

    def terminate_job(**arguments: str) -> None:
        stopped.append(arguments["jobId"])

    monkeypatch.setattr(slow.backend._clients.batch, "terminate_job", terminate_job)
    ref = slow.submit()
    assert isinstance(ref, JobRef)
    assert sorted([ref.id, *stopped]) == sorted(cloud.jobs(slow.request.name))
    assert ref == quick.submit()
