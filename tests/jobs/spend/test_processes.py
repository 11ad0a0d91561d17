"""Clients as processes: several at once, and those that are killed at any step."""

import signal
from collections.abc import Callable, Sequence

import pytest

from accel.contract.allowances import Allowances
from jobs.client.allowances.reservation import Ledger
from tests.jobs.spend.books import KINDS, TEAM, Platform, sums
from tests.jobs.spend.client import Client
from tests.support.soak import SOAK, sampled

pytest_plugins = ["tests.support.google_fake"]
Of = Callable[[float], tuple[Allowances, Ledger]]
SUBMITS = ("holding", "held", "sending", "sent", "recording", "recorded")
TAKES = ("taking over", "taken over")
SETTLES = ("settling", "settled", "found", "releasing")
CLIENTS, EACH = (8, 12) if SOAK else (3, 4)


def cases(steps: Sequence[str]) -> list[tuple[str, str]]:
    """Kinds of ledgers with steps: one of every other step, in turn; of the soak, all with all."""
    every = [(kind, step) for step in steps for kind in KINDS]
    return every if SOAK else [(KINDS[number % len(KINDS)], step) for number, step in enumerate(steps)][::2]


@pytest.mark.parametrize("kind", sampled(KINDS, ["dynamodb"]), indirect=True)
def test_clients_at_once_cannot_hold_more_than_there_is(ledger_of: Of, platform: Platform) -> None:
    """More is asked for than fits, so that the last of it is fought for."""
    allowances, ledger = ledger_of(10 * CLIENTS * EACH / 2 + 5)
    plans = [[[f"{client}-{turn}", 10] for turn in range(EACH)] for client in range(CLIENTS)]
    clients = [Client(allowances, platform, jobs=jobs) for jobs in plans]
    said = [line for each in clients for line in each.end()]
    made = {line.removeprefix("made ") for line in said if line.startswith("made ")}
    assert len(said) == CLIENTS * EACH and len(made) == CLIENTS * EACH // 2
    assert platform.made() == made == {each.key for each in ledger.holds(TEAM)}
    assert sums(ledger) == (10 * len(made), 0)


@pytest.mark.parametrize("kind", sampled(KINDS, ["file", "firestore"]), indirect=True)
def test_clients_at_once_with_one_key_hold_once(ledger_of: Of, platform: Platform) -> None:
    allowances, ledger = ledger_of(15)
    clients = [Client(allowances, platform, jobs=[["same", 10]]) for _ in range(CLIENTS)]
    assert [each.end() for each in clients] == [["made same"]] * CLIENTS
    assert platform.made() == {"same"} and sums(ledger) == (10, 0)
    (hold,) = ledger.holds(TEAM)
    assert hold.ref == "fake:/same"


@pytest.mark.parametrize(("kind", "step"), cases(SUBMITS), indirect=["kind"])
def test_a_client_that_is_killed_and_comes_again(ledger_of: Of, platform: Platform, step: str) -> None:
    """The same command goes on: one job, held for once."""
    allowances, ledger = ledger_of(12)
    Client(allowances, platform, jobs=[["a", 10]], die_at=step).end(-signal.SIGKILL)
    assert sums(ledger) in ((0, 0), (10, 0)) and platform.made() <= {each.key for each in ledger.holds(TEAM)}
    assert Client(allowances, platform, jobs=[["a", 10]]).end() == ["made a"]
    assert platform.made() == {"a"} and sums(ledger) == (10, 0)
    (hold,) = ledger.holds(TEAM)
    assert hold.ref == "fake:/a"


@pytest.mark.parametrize(("kind", "step"), cases(TAKES), indirect=["kind"])
def test_a_client_that_is_killed_while_it_goes_on(ledger_of: Of, platform: Platform, step: str) -> None:
    allowances, ledger = ledger_of(12)
    Client(allowances, platform, jobs=[["a", 10]], die_at="sent").end(-signal.SIGKILL)
    Client(allowances, platform, jobs=[["a", 10]], die_at=step).end(-signal.SIGKILL)
    assert sums(ledger) == (10, 0) and platform.made() == {"a"}
    Client(allowances, platform, settle=True).end()
    (hold,) = ledger.holds(TEAM)
    assert hold.ref == "fake:/a" and sums(ledger) == (10, 0)


@pytest.mark.parametrize(("kind", "step"), cases(SUBMITS[1:] + SUBMITS[:1]), indirect=["kind"])
def test_a_client_that_is_killed_and_does_not(ledger_of: Of, platform: Platform, step: str) -> None:
    """After its lease what it held is let go, or is its job's."""
    allowances, ledger = ledger_of(12)
    Client(allowances, platform, jobs=[["a", 10]], die_at=step).end(-signal.SIGKILL)
    Client(allowances, platform, settle=True).end()
    assert {each.ref for each in ledger.holds(TEAM)} == {f"fake:/{key}" for key in platform.made()}
    assert sums(ledger) == (10.0 * len(platform.made()), 0)


@pytest.mark.parametrize(("kind", "step"), cases(SETTLES), indirect=["kind"])
def test_a_settlement_that_is_killed_is_made_once(ledger_of: Of, platform: Platform, step: str) -> None:
    allowances, ledger = ledger_of(100)
    Client(allowances, platform, jobs=[["ended", 10]]).end()
    platform.end("ended", 1800)
    Client(allowances, platform, jobs=[["never", 10]], die_at="held").end(-signal.SIGKILL)
    Client(allowances, platform, jobs=[["found", 10]], die_at="sent").end(-signal.SIGKILL)
    platform.end("found", 3600)
    Client(allowances, platform, settle=True, die_at=step).end(-signal.SIGKILL)
    sums(ledger)
    Client(allowances, platform, settle=True).end()
    assert sums(ledger) == (0, 15)
    Client(allowances, platform, settle=True).end()
    assert sums(ledger) == (0, 15) and {each.key for each in ledger.holds(TEAM)} == {"ended", "found"}
