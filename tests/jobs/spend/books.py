"""Ledgers over what serves them: a file, the sandbox's DynamoDB, and its Firestore. Without pytest: child processes use
it."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3

from accel.contract import allowances as columns
from accel.contract.allowances import Allowances
from accel.diagnostics.errors import CloudSilent, NotFound
from jobs.backends.base import JobRef, Phase, Request, Status
from jobs.client.allowances.price import Price
from jobs.client.allowances.reservation import MICRO, Hold, Ledger
from jobs.client.allowances.reserve import ReservationRequest
from sandbox import keys
from tests.support.forking import Forked
from tests.support.waiting import announced

ROOT = Path(__file__).parents[3]
KINDS = ("file", "dynamodb", "firestore")
TEAM = "research"


def hold(key: str, usd: float = 10, **changes: Any) -> Hold:
    """One of the team's, for a job of an hour on one machine."""
    values: dict[str, Any] = {
        "key": key,
        "team": TEAM,
        "period": "2026-11",
        "usd": int(usd * MICRO),
        "usd_hour": int(usd * MICRO),
        "machines": 1,
        "tasks": 1,
        "attempts": 1,
        "timeout_s": 3600,
        "name": f"job-{key}",
        "target": "gpu",
        "owner": "me",
        "lease_until": 100.0,
        "made": 0.0,
    }
    return Hold(**{**values, **changes})


def allowances(usd: float, **ledger: Any) -> Allowances:
    """Of the one team."""
    return Allowances.model_validate({"teams": {TEAM: {"usd": usd}}, **({"ledger": ledger} if ledger else {})})


def wanted(key: str, usd: float = 10) -> ReservationRequest:
    """A job of an hour."""
    amount = int(usd * MICRO)
    return ReservationRequest(Request("fake", "gpu", f"job-{key}", key, {}), TEAM, Price(amount, amount, 1, 1, 1, 3600))


class Platform:
    """A backend whose jobs are files of a folder, so that processes share them; a key makes one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.refuses: Exception | None = None

    def submit(self, request: Request) -> JobRef:
        if self.refuses:
            raise self.refuses
        (self.folder / request.key).touch()
        return JobRef("fake", "", request.key)

    def status(self, ref: JobRef) -> Status:
        path = self.folder / ref.id
        if not path.exists():
            raise NotFound(f"{ref}: no such job")
        if not path.read_text():
            return Status(ref, ref.id, Phase.RUNNING, "running")
        return ended(ref, float(path.read_text()))

    def end(self, key: str, seconds: float) -> None:
        """The job ends after so long."""
        (self.folder / key).write_text(str(seconds))

    def find(self, hold: Hold, target: Any) -> JobRef | None:
        return JobRef("fake", "", hold.key) if (self.folder / hold.key).exists() else None

    def made(self) -> set[str]:
        """The keys of all jobs."""
        return {path.name for path in self.folder.iterdir()}


def ended(ref: JobRef, seconds: float, **changes: Any) -> Status:
    """A job that ran for so long, at once after it was made."""
    start = datetime(2026, 11, 3, tzinfo=UTC)
    times: dict[str, Any] = {"created": start, "started": start, "stopped": start + timedelta(seconds=seconds)}
    return Status(ref, ref.id, Phase.SUCCEEDED, "ended", **{"attempts": 1, **times, **changes})


class Late:
    """A ledger whose clock is ahead."""

    def __init__(self, inner: Any, ahead_s: float) -> None:
        self._inner, self._ahead_s = inner, ahead_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def now(self) -> float:
        return self._inner.now() + self._ahead_s


def sums(ledger: Ledger) -> tuple[float, float]:
    """USD held and settled; of each month the balance is the sum of its holds."""
    holds = ledger.holds(TEAM)
    months = {each.period for each in holds} | {f"{datetime.fromtimestamp(ledger.now(), UTC):%Y-%m}"}
    found = [ledger.balance(TEAM, month) for month in months]
    assert sum(each.used for each in found) == sum(each.used for each in holds)
    assert sum(each.settled for each in found) == sum(each.settled or 0 for each in holds)
    return sum(each.reserved for each in found) / MICRO, sum(each.settled for each in found) / MICRO


class Unanswered:
    """A ledger whose writes are carried out or not, and not answered, as often as it is told."""

    def __init__(self, inner: Any, plan: list[str]) -> None:
        self._inner, self.plan = inner, plan

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("add", "change"):
            return found

        def call(*arguments: Any) -> None:
            fault = self.plan.pop(0) if self.plan else ""
            if fault != "lost":
                found(*arguments)
            if fault:
                raise CloudSilent(f"ledger: {name}: no answer")

        return call


def make_table(name: str) -> dict[str, str]:
    """A table as the component makes it; the contract's words for it."""
    client: Any = boto3.Session().client("dynamodb", region_name="us-east-1")
    key = {columns.TEAM: "HASH", columns.ENTRY: "RANGE"}
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": column, "KeyType": kind} for column, kind in key.items()],
        AttributeDefinitions=[{"AttributeName": column, "AttributeType": "S"} for column in key],
        BillingMode="PAY_PER_REQUEST",
    )
    return {"kind": "dynamodb", "region": "us-east-1", "table": name}


@contextmanager
def aws(home: Path) -> Generator[dict[str, str]]:
    """The sandbox's AWS as a process; the variables that lead to it."""
    process = Forked(["-m", "sandbox.aws", "--home", home], ROOT, os.environ)
    try:
        url = announced(home / "cloud.json", process)["url"]
        yield {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1", **keys.aws(keys.key(home))}
    finally:
        process.terminate()
        process.wait(120)
