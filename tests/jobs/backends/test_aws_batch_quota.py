"""Quotas before a submit: what is asked, what is kept, and what is said."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError
from click.testing import Result

from accel import folders
from accel.clouds import quota_cache as kept
from accel.clouds.aws import quotas
from accel.clouds.aws.quotas import limits, read
from accel.clouds.quota_cache import Limit
from accel.contract.targets import AwsBatchEnvironment, write
from accel.diagnostics.errors import CloudSilent, NoCredentials
from accel.rules.aws.fit import Size
from jobs.backends.aws_batch.quota import check
from jobs.backends.base import QuotaAnswer
from tests.jobs.backends.aws_batch_target import make_target

G, G_SPOT, P5_SPOT, P_SPOT = "L-DB2E81BA", "L-3819A6DF", "L-C4BD4855", "L-7212CCBC"
SMALL = Size(4, 8000, 1)
JOB = "name: digits\ncommand: [python, train.py]\n"


class Missing(Exception):
    """NoSuchResourceException of a client."""


class Service:
    """Service Quotas: `applied` and `default` by code, or an error to raise."""

    exceptions = type("exceptions", (), {"NoSuchResourceException": Missing})

    def __init__(self, applied: dict[str, Any], default: Any = None) -> None:
        self.applied, self.default, self.calls = applied, default, list[str]()

    def get_service_quota(self, ServiceCode: str, QuotaCode: str) -> Any:  # noqa: N803
        self.calls.append(f"{ServiceCode} {QuotaCode}")
        return self._answer(self.applied.get(QuotaCode))

    def get_aws_default_service_quota(self, ServiceCode: str, QuotaCode: str) -> Any:  # noqa: N803
        self.calls.append(f"default {QuotaCode}")
        return self._answer(self.default)

    def _answer(self, value: Any) -> Any:
        if value is None:
            raise Missing
        if isinstance(value, Exception):
            raise value
        return value if isinstance(value, dict) else {"Quota": {"Value": float(value)}}


def refusal(code: str, status: int = 400) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetServiceQuota")


@pytest.fixture
def asks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Service], Service]:
    """Makes a service the one that is asked, with a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def use(service: Service) -> Service:
        monkeypatch.setattr(quotas, "client", lambda region, attempts: service)
        return service

    return use


def test_the_applied_limit_and_else_the_default() -> None:
    assert read(Service({G: 64}), G) == Limit(64)
    assert read(Service({}, 0), G) == Limit(0)
    assert read(Service({G: {"Quota": {"ErrorReason": {"ErrorCode": "DEPENDENCY"}}}}, 5), G) == Limit(5)
    assert read(Service({}), G) == Limit(None, f"Service Quotas has no {G}")


def test_what_is_forbidden_is_not_known() -> None:
    limit = read(Service({G: refusal("AccessDeniedException")}), G)
    assert limit.value is None and "AccessDeniedException" in limit.why


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (refusal("TooManyRequestsException"), CloudSilent),
        (refusal("ServiceException", 500), CloudSilent),
        (ReadTimeoutError(endpoint_url="x"), CloudSilent),
        (NoCredentialsError(), NoCredentials),
    ],
)
def test_errors(error: Exception, becomes: type[Exception]) -> None:
    with pytest.raises(becomes):
        read(Service({G: error}), G)


def test_one_call_each_hour(asks: Any) -> None:
    service = asks(Service({G: 64, G_SPOT: 0}))
    assert limits("us-east-1", [G, G], now=1000) == {G: Limit(64)}
    assert limits("us-east-1", [G, G_SPOT], now=2000) == {G: Limit(64), G_SPOT: Limit(0)}
    assert limits("us-east-1", [G, G_SPOT], now=4500) == {G: Limit(64), G_SPOT: Limit(0)}
    assert service.calls == [f"ec2 {G}", f"ec2 {G_SPOT}"]
    limits("us-east-1", [G, G_SPOT], now=4700)
    assert service.calls[2:] == [f"ec2 {G}"]
    limits("eu-west-1", [G], now=4700)
    limits("us-east-1", [G_SPOT], now=500)  # the clock was set back
    assert service.calls[3:] == [f"ec2 {G}", f"ec2 {G_SPOT}"]


def test_another_account_is_asked_again(asks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = asks(Service({G: 64}))
    limits("us-east-1", [G])
    monkeypatch.setenv("AWS_PROFILE", "other")
    limits("us-east-1", [G])
    assert len(service.calls) == 2


SPOILT = (
    "",
    "[]",
    "\x00",
    '{"L-DB2E81BA": 3}',
    '{"L-DB2E81BA": {"at": "x"}}',
    '{"L-DB2E81BA": {"at": 1000, "value": "many", "why": ""}}',
)


@pytest.mark.parametrize("text", SPOILT)
def test_a_spoilt_copy_is_no_copy(asks: Any, text: str) -> None:
    service = asks(Service({G: 64}))
    limits("us-east-1", [G], now=1000)
    (path,) = folders.cache().glob("quotas-*.json")
    path.write_text(text)
    assert limits("us-east-1", [G], now=1000) == {G: Limit(64)}
    assert len(service.calls) == 2


def test_a_cache_that_cannot_be_written_is_done_without(asks: Any, monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    asks(Service({G: 64}))
    assert limits("us-east-1", [G]) == {G: Limit(64)}


# --- check


def environment(name: str, capacity: Any, *types: str, max_vcpus: int = 192) -> AwsBatchEnvironment:
    return AwsBatchEnvironment(
        name=name, arn=f"arn:{name}", capacity=capacity, instance_types=list(types), max_vcpus=max_vcpus, disk_gib=100
    )


def test_enough_says_nothing(asks: Any) -> None:
    asks(Service({G: 4, G_SPOT: 4}))
    assert check(SMALL, make_target()) == QuotaAnswer()


def test_a_limit_below_the_smallest_type(asks: Any) -> None:
    asks(Service({G: 64, G_SPOT: 3}))
    answer = check(SMALL, make_target())
    assert answer == QuotaAnswer(
        (
            "spot: g5.xlarge is the smallest type that holds the job and has 4 vCPUs; the limit of All G and VT Spot "
            "Instance Requests (L-3819A6DF) in us-east-1 is 3",
        )
    )


def test_the_smallest_type_is_the_one_that_holds_the_job(asks: Any) -> None:
    asks(Service({G: 64, G_SPOT: 64}))
    assert check(Size(4, 8000, 4), make_target()) == QuotaAnswer()
    answer = check(Size(4, 8000, 8), make_target())
    assert [text.partition(" is the")[0] for text in answer.over] == ["spot: g5.48xlarge", "steady: g5.48xlarge"]


def test_one_type_that_can_start_is_enough(asks: Any) -> None:
    target = make_target(environments=[environment("big", "spot", "p4d", "p5.48xlarge")])
    asks(Service({P5_SPOT: 192, P_SPOT: 0}))
    assert check(SMALL, target) == QuotaAnswer()


def test_both_quotas_of_an_environment_are_named(asks: Any) -> None:
    target = make_target(environments=[environment("big", "spot", "p4d", "p5.48xlarge")])
    asks(Service({P5_SPOT: 0, P_SPOT: 0}))
    (text,) = check(SMALL, target).over
    assert P5_SPOT in text and P_SPOT in text


def test_what_cannot_be_read_is_said_and_nothing_else(asks: Any) -> None:
    asks(Service({G: refusal("AccessDeniedException"), G_SPOT: 64}))
    answer = check(SMALL, make_target())
    assert answer.over == () and len(answer.unknown) == 1 and "AccessDenied" in answer.unknown[0]


def test_without_credentials_it_is_not_known(asks: Any) -> None:
    asks(Service({G_SPOT: NoCredentialsError()}))
    answer = check(SMALL, make_target())
    assert answer.over == () and "locate credentials" in answer.unknown[0]


def test_a_limit_that_was_raised_is_seen_within_a_minute(asks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(kept.time, "time", lambda: clock[0])
    asks(Service({G: 64, G_SPOT: 0}))
    assert check(SMALL, make_target()).over
    service = asks(Service({G: 64, G_SPOT: 64}))
    assert check(SMALL, make_target()).over and service.calls == []
    clock[0] += 61
    assert check(SMALL, make_target()) == QuotaAnswer()


def test_quotas_and_types_that_are_not_known(asks: Any) -> None:
    asks(Service({G_SPOT: 0}))
    p6 = make_target(environments=[environment("a", "spot", "p6-b200")])
    assert check(SMALL, p6) == QuotaAnswer((), ("none is known that holds p6-b200 with this purchase option",))
    odd = make_target(environments=[environment("a", "spot", "g5.xlarge", "g99")])
    assert check(SMALL, odd) == QuotaAnswer((), ("g99: not in the catalogue",))


# --- the commands


@pytest.fixture
def folder(home: Path, asks: Any) -> Path:
    """A job and a target in the working folder."""
    (home / "j.yaml").write_text(JOB)
    (home / "targets.json").write_text(json.dumps(write({"gpu": make_target()})))
    return home


def test_validate_warns(folder: Path, asks: Any, invoke: Callable[..., Result]) -> None:
    service = asks(Service({G: 0, G_SPOT: 0}))
    arguments = ["validate", "j.yaml", "--to", "gpu", "--targets", "targets.json"]
    told = invoke(*arguments)
    assert told.exit_code == 0 and told.stdout == "j.yaml: ok\n"
    assert told.stderr.count("warning: j.yaml: quota: ") == 2
    refused = invoke("--strict", *arguments)
    assert refused.exit_code == 5 and "hint: ask for more" in refused.stderr
    assert invoke("--strict", *arguments, "--no-quota").stderr == ""
    assert len(service.calls) == 2


def test_what_is_not_known_stops_nothing(folder: Path, asks: Any, invoke: Callable[..., Result]) -> None:
    asks(Service({G: refusal("AccessDeniedException"), G_SPOT: 0}, 0))
    told = invoke("validate", "j.yaml", "--to", "gpu", "--targets", "targets.json")
    assert told.exit_code == 0
    assert "j.yaml: quota unknown: Running On-Demand G and VT instances (L-DB2E81BA): " in told.stderr


def test_submit_refuses_with_strict_before_anything_is_made(folder: Path, asks: Any, invoke: Any) -> None:
    asks(Service({G: 0, G_SPOT: 0}))
    refused = invoke("--strict", "submit", "j.yaml", "--to", "gpu", "--targets", "targets.json")
    assert (refused.exit_code, refused.stdout) == (5, "")


def test_dry_run_asks_nothing(folder: Path) -> None:
    code = (
        "import sys; from jobs.cli.main import jobs\n"
        "try: jobs.main(['submit', 'j.yaml', '--to', 'gpu', '--targets', 'targets.json', '--dry-run'])\n"
        "except SystemExit as done: assert done.code == 0\n"
        "assert not {'boto3', 'botocore'} & set(sys.modules)"
    )
    root = Path(__file__).resolve().parents[3]
    environ = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
