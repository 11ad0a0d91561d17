"""What an earlier version stored is read as that version did, and changed into what it reads: claims, ledgers, records
of jobs on VMs, the history of a client. The rows, documents, objects and files of tests/golden/records were written by
its own commands (tests/support/records.py)."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from accel.contract import allowances as columns_of_ledgers
from accel.contract import claims as columns
from accel.contract.targets import read_one, write
from accel.diagnostics.errors import BadInput, CloudSilent, OverLimit
from jobs.backends.base import JobRef, Request
from jobs.backends.claims.platform import ClaimedJob
from jobs.backends.claims.submit import submit
from jobs.backends.vm import state_machine as machine
from jobs.backends.vm.record import Result, as_json, of_json
from jobs.client import history
from jobs.client.allowances.price import Price
from jobs.client.allowances.reservation import MICRO, Balance, Hold, Ledger
from jobs.client.allowances.reserve import Holding, ReservationRequest
from jobs.client.allowances.settlement import settle
from tests.jobs.old_stores import SERVICES, Documents, Files, Stores, Table
from tests.jobs.spend import books
from tests.jobs.vm_walk import Walk, vm_records
from tests.support import records
from tests.support.records import Json

pytest_plugins = ["tests.support.google_fake"]
TEAM = "you"


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with books.aws(tmp_path_factory.mktemp("aws")) as variables:
        yield variables


@pytest.fixture(params=records.commits())
def whole(request: pytest.FixtureRequest) -> records.Records:
    return records.read(request.param)


@pytest.fixture(params=SERVICES)
def stores(
    whole: records.Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Stores:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    match request.param:
        case "dynamodb":
            for name, value in request.getfixturevalue("aws").items():
                monkeypatch.setenv(name, value)
            made = Table(whole, "dynamodb")
        case "firestore":
            made = Documents(whole, "firestore")
            made.fake = request.getfixturevalue("fake")
            monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", made.fake.token)
            root = f"{made.fake.url}/firestore.googleapis.com/"
            monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_FIRESTORE", root)
        case _:
            made = Files(whole, "file")
            made.state = tmp_path
    return made


class Pace:
    """Of a service that is quick."""

    lease_s, quiet_s, poll_s, call_s = 20.0, 0.3, 0.1, 0.5


class Service:
    """The platform of an old job, for the request that it was submitted with. `there`: the job that it has made."""

    pace, forgetting = Pace(), None

    def __init__(self, row: Json, there: str = "") -> None:
        self.name, self.key, self.spec = row[columns.JOB_NAME], row[columns.KEY], row[columns.SPEC_HASH]
        self.there, self.sent = there, 0

    def turn(self) -> None: ...

    def prepare(self, lease: Any) -> None: ...

    def send(self) -> str:
        self.sent += 1
        return "new"

    def listed(self) -> list[ClaimedJob]:
        return [ClaimedJob(0, self.there, self.spec)] if self.there else []

    def stop(self, job_id: str, reason: str) -> None:
        raise AssertionError(job_id)


def test_a_claim_with_a_job_gives_that_job(stores: Stores) -> None:
    stores.put_claims(stores.whole.moment)
    for job in ("ended", "runs", "unrecorded") if stores.kind != "file" else ("ended",):
        row = stores.row(job)
        service = Service(row)
        assert submit(service, stores.claims()) == (row[columns.JOB_ID], True)
        assert service.sent == 0


@pytest.mark.parametrize("there", ["", "made"])
def test_a_claim_in_flight_is_waited_for_and_taken_over(stores: Stores, there: str) -> None:
    """Its client has died: before it sent the request, or after, so that the job is there and in no claim."""
    row = stores.row("sent" if there else "claimed")
    assert columns.JOB_ID not in row or row[columns.JOB_ID] is None
    stores.put_claims(int(row[columns.LEASE_UNTIL]) - 3)
    service = Service(row, there)
    until = float(stores.plain(stores.stored(service.key))[columns.LEASE_UNTIL])
    assert submit(service, stores.claims()) == (there or "new", bool(there))
    assert service.sent == (not there)
    assert stores.kind == "file" or time.time() > until, "its lease was not over"
    # The row is as the version would have completed it, so that it reads it too.
    whole = next(row for row in stores.rows() if stores.plain(row).get(columns.JOB_ID))
    assert stores.shape(stores.stored(service.key)).items() >= stores.shape(whole).items()
    assert submit(Service(row), stores.claims()) == (there or "new", True)


def test_a_claim_that_is_damaged_is_named(stores: Stores) -> None:
    row = stores.row("claimed")
    stores.put_claims(stores.whole.moment)
    stores.spoil(row[columns.KEY])
    service = Service(row)
    with pytest.raises(CloudSilent, match=r"cannot read .*: owner is missing or no such value") as named:
        submit(service, stores.claims())
    assert service.sent == 0 and named.value.hint and "then remove the claim and submit again" in named.value.hint
    assert stores.kind == "file" or row[columns.KEY] in named.value.message


def test_the_key_of_another_request_is_refused(stores: Stores) -> None:
    row = stores.row("ended")
    stores.put_claims(stores.whole.moment)
    with pytest.raises(BadInput, match=f"it was used for another request: {row[columns.JOB_NAME]} "):
        submit(Service({**row, columns.SPEC_HASH: "another"}), stores.claims())


def terms(stores: Stores) -> list[Json]:
    """Every hold of a kind, as the version wrote it."""
    match stores.kind:
        case "dynamodb":
            (items,) = [items for name, items in stores.whole.tables.items() if name.startswith("ledger-")]
            texts = [each["terms"]["S"] for each in items if "terms" in each]
        case "firestore":
            texts = [each["fields"]["terms"]["stringValue"] for each in stores.whole.documents
                     if f"/{columns_of_ledgers.HOLDS}/" in each["name"]]  # fmt: skip
        case _:
            (book,) = [text for name, text in stores.whole.files.items() if name.endswith(".sqlite")]
            with closing(sqlite3.connect(":memory:")) as read:
                read.executescript(book)
                texts = [text for (text,) in read.execute("SELECT terms FROM holds")]
    return [json.loads(text) for text in texts]


def balance(ledger: Ledger) -> Balance:
    ledger.holds(TEAM)
    return ledger.balance(TEAM, f"{datetime.fromtimestamp(ledger.now(), UTC):%Y-%m}")


def test_a_ledger_counts_what_it_counted(stores: Stores) -> None:
    stores.put_ledger()
    ledger, wrote = stores.ledger(), terms(stores)
    found = {hold.key: hold for hold in ledger.holds(TEAM)}
    assert found.keys() == {each["key"] for each in wrote} and len(found) >= 3
    for each in wrote:
        now = found[each["key"]]
        assert (now.usd, now.ref, now.settled, now.why) == tuple(
            each[name] for name in ("usd", "ref", "settled", "why")
        )
    used = sum(each["usd"] if each["settled"] is None else each["settled"] for each in wrote)
    assert balance(ledger) == (used, sum(each["settled"] or 0 for each in wrote))


def test_what_was_held_is_settled_and_counts_for_the_next(stores: Stores) -> None:
    """A job that goes on is settled once it has ended; a hold in flight is its next client's, and counts once."""
    stores.put_ledger()
    ledger, before = stores.ledger(), balance(stores.ledger())
    open_holds = [hold for hold in ledger.holds(TEAM) if hold.open]
    hold = next((each for each in open_holds if each.ref), open_holds[0])
    done = books.ended(JobRef.parse(hold.ref) if hold.ref else JobRef("fake", "", "job"), 1800, attempts=1)
    now = settle(ledger, hold, done)
    assert now and now.settled is not None
    assert now.settled == hold.usd_hour * hold.machines // 2
    assert balance(ledger) == (before.used - hold.usd + now.settled, before.settled + now.settled)

    flight = next(each for each in open_holds if not each.ref and each != hold)
    price = Price(flight.usd, flight.usd_hour, flight.machines, flight.tasks, flight.attempts, flight.timeout_s)
    again = ReservationRequest(Request("fake", flight.target, flight.name, flight.key, {}), TEAM, price, flight.known_s)
    left = balance(ledger)
    allowances = books.allowances((left.used + 10 * MICRO) / MICRO).model_copy(update={"teams": {
        TEAM: books.allowances((left.used + 10 * MICRO) / MICRO).teams[books.TEAM]}})  # fmt: skip
    more = replace(books.wanted("more", 10), team=TEAM)
    with Holding(ledger, allowances, [again, more]) as holding:
        for each in (again, more):
            holding.send(AnyBackend(), each.request)  # pyright: ignore[reportArgumentType]
    assert balance(ledger) == (left.used + 10 * MICRO, left.settled)
    found = ledger.read(TEAM, [flight.key])[flight.key]
    assert (found.ref, found.usd, found.open) == (f"fake:/{flight.key}", flight.usd, True)
    with pytest.raises(OverLimit, match=r"has \$0.00 left of "):
        Holding(ledger, allowances, [replace(books.wanted("too much", 1), team=TEAM)]).__enter__()
    assert {*Hold.__dataclass_fields__} >= {*terms(stores)[0]}, "the version would miss what it needs"


class AnyBackend:
    """A backend that makes any job."""

    def submit(self, request: Request) -> JobRef:
        return JobRef("fake", "", request.key)


def test_records_of_vms_are_written_as_they_were(whole: records.Records) -> None:
    """So that an earlier client reads what a later one has replaced: it leaves out what it does not know."""
    for objects in whole.objects.values():
        for name, text in objects.items():
            if name.endswith("/record.json"):
                old, new = json.loads(text), as_json(of_json(json.loads(text), name))
                attempts = zip(old.pop("attempts"), json.loads(json.dumps(new.pop("attempts"))), strict=True)
                assert old.items() <= new.items()
                assert all(before.items() <= after.items() for before, after in attempts)
    states = {name: (each.last.state, each.outcome, len(each.attempts)) for name, each in vm_records(whole).items()}
    assert states == {
        "later": ("made", "", 1),
        "tpu-runs": ("made", "", 1),
        "tpu-slice": ("made", "", 1),
        "tpu-waits": ("made", "", 1),
        "trainer": ("made", "", 1),
        "vm-cancelled": ("gone", "cancelled", 1),
        "vm-ended": ("gone", "succeeded", 1),
        "vm-failed": ("gone", "failed", 1),
        "vm-lost": ("made", "", 1),
        "vm-moved": ("made", "", 2),
        "vm-nodes": ("made", "", 1),
        "vm-planned": ("planned", "", 1),
        "vm-runs": ("made", "", 1),
    }


def test_records_of_vms_are_moved_on(whole: records.Records) -> None:
    found = vm_records(whole)
    assert Walk(found["vm-planned"]).go(machine.ABSENT).steps == ["Make"]
    for name in ("vm-runs", "vm-moved", "tpu-runs"):
        assert Walk(found[name]).go(machine.RUNNING).steps[-1] == "Wait"
    assert Walk(found["tpu-waits"]).go(machine.WAITING).steps == ["Wait"]
    for name in ("vm-ended", "vm-failed", "vm-cancelled"):
        assert Walk(found[name]).go(machine.ABSENT).steps == ["Done"]

    for name, number, zone in (("vm-lost", 2, "us-central1-b"), ("vm-moved", 3, "us-central1-a")):
        lost = Walk(found[name]).go(machine.TAKEN).record
        before, after = lost.attempts[-2:]
        assert (before.outcome, before.state, after.number, after.zone) == ("lost", "gone", number, zone)
        assert after.name == f"{found[name].attempts[0].name}-r{number}" and after.state == "planned"

    said = Result(host=0, exit_code=0, reason="exited", started=None, stopped=None)
    ended = Walk(found["vm-runs"]).go(machine.RUNNING, {0: said}).record
    assert (ended.outcome, ended.last.state, len(ended.attempts)) == ("succeeded", "gone", 1)
    stopped = Walk(replace(found["tpu-runs"], cancelled="enough")).go(machine.RUNNING).record
    assert (stopped.outcome, stopped.reason) == ("cancelled", "enough")


@pytest.fixture
def client(whole: records.Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    records.unpack(whole, tmp_path)


@pytest.mark.usefixtures("client")
def test_the_history_of_a_client_is_read(whole: records.Records) -> None:
    assert history.faults() == []
    found = {entry["key"]: entry for entry in history.recent()}
    assert {key: entry["ref"] for key, entry in found.items()} == {
        key: each.ref for key, each in whole.jobs.items() if each.ref
    }
    kinds = {entry["spend"]["ledger"].partition(":")[0] for entry in found.values()}
    assert kinds == {"file", "dynamodb", "firestore"} and all(entry["size"] for entry in found.values())


def test_published_targets_are_read(whole: records.Records) -> None:
    published = [text for objects in whole.objects.values() for name, text in objects.items() if "-targets/" in name]
    assert len(published) == 4
    for text in published:
        old = json.loads(text)
        assert old.items() <= write({"one": read_one(old)})["one"].items()
