"""What every ledger does, over what serves it: writes are whole, conditional, and move the balance with them."""

import threading
from collections.abc import Callable
from dataclasses import replace

from accel.contract.allowances import Allowances
from jobs.client.allowances.reservation import AT_ONCE, MICRO, Balance, Change, Ledger
from tests.jobs.spend.books import TEAM, hold

pytest_plugins = ["tests.support.google_fake"]
MONTH = "2026-11"


def balance(ledger: Ledger) -> tuple[float, float]:
    """USD: used and settled. It is always the sum of the holds."""
    found = ledger.balance(TEAM, MONTH)
    holds = [each for each in ledger.holds(TEAM) if each.period == MONTH]
    assert found == Balance(sum(each.used for each in holds), sum(each.settled or 0 for each in holds))
    return found.used / MICRO, found.settled / MICRO


def test_a_hold_is_written_with_its_balance_once(ledger: Ledger) -> None:
    assert balance(ledger) == (0, 0) and ledger.read(TEAM, ["a"]) == {}
    ledger.add([hold("a", 30.000001)], 100 * MICRO)
    ledger.add([hold("a", 30.000001)], 100 * MICRO)
    assert balance(ledger) == (30.000001, 0)
    assert replace(ledger.read(TEAM, ["a"])["a"], version="") == hold("a", 30.000001)
    assert ledger.now() > 1.7e9


def test_a_hold_above_the_limit_is_not_written(ledger: Ledger) -> None:
    ledger.add([hold("a", 60)], 100 * MICRO)
    ledger.add([hold("b", 40.000001)], 100 * MICRO)
    assert balance(ledger) == (60, 0)
    ledger.add([hold("b", 40)], 100 * MICRO)
    assert balance(ledger) == (100, 0)
    ledger.add([hold("c", 0.01)], 100 * MICRO)
    ledger.add([hold("d", 500)], None)
    assert balance(ledger) == (600, 0)
    ledger.add([hold("e", 200)], 100 * MICRO)
    assert {each.key for each in ledger.holds(TEAM)} == {"a", "b", "d"}


def test_several_are_written_together_or_not_at_all(ledger: Ledger) -> None:
    ledger.add([hold(f"k{n}", 1) for n in range(AT_ONCE)], 100 * MICRO)
    assert balance(ledger) == (AT_ONCE, 0)
    ledger.add([hold("new", 1), hold("k0", 1)], 100 * MICRO)
    ledger.add([hold(f"m{n}", 1) for n in range(AT_ONCE)], 100 * MICRO)
    assert balance(ledger) == (AT_ONCE, 0) and len(ledger.holds(TEAM)) == AT_ONCE
    keys = [f"k{n}" for n in range(AT_ONCE)]
    assert set(ledger.read(TEAM, [*keys, "new"])) == set(keys)
    holds = ledger.holds(TEAM)
    ledger.change([Change(each, None) for each in holds])
    assert balance(ledger) == (0, 0) and ledger.holds(TEAM) == []


def test_only_the_hold_that_was_read_is_changed(ledger: Ledger) -> None:
    ledger.add([hold("a"), hold("b")], None)
    seen = ledger.read(TEAM, ["a", "b"])
    ledger.change([Change(seen["a"], replace(seen["a"], ref="fake:/1"))])
    assert balance(ledger) == (20, 0)
    # By now another version is there: neither of these is carried out, nor what goes with one of them.
    ledger.change([Change(seen["a"], None)])
    ledger.change([Change(seen["b"], None), Change(seen["a"], replace(seen["a"], settled=1))])
    assert balance(ledger) == (20, 0)
    now = ledger.read(TEAM, ["a"])["a"]
    assert now.ref == "fake:/1" and now.version != seen["a"].version
    ledger.change([Change(now, replace(now, settled=4 * MICRO, why="x"))])
    ledger.change([Change(now, replace(now, settled=4 * MICRO, why="x"))])
    assert balance(ledger) == (14, 4)
    ledger.change([Change(ledger.read(TEAM, ["b"])["b"], None)])
    assert balance(ledger) == (4, 4)
    ledger.add([hold("a")], None)
    assert balance(ledger) == (4, 4)


def test_months_and_teams_are_apart(ledger: Ledger) -> None:
    ledger.add([hold("a", 100)], 100 * MICRO)
    ledger.add([hold("b", 100, period="2026-12")], 100 * MICRO)
    ledger.add([hold("c", 100, team="vision")], 100 * MICRO)
    assert balance(ledger) == (100, 0)
    assert ledger.balance(TEAM, "2026-12").used == ledger.balance("vision", MONTH).used == 100 * MICRO
    assert {each.key for each in ledger.holds(TEAM)} == {"a", "b"}
    assert [each.key for each in ledger.holds("vision")] == ["c"]


def test_threads_cannot_write_more_than_the_limit(ledger_of: Callable[[float], tuple[Allowances, Ledger]]) -> None:
    ledgers = [ledger_of(100)[1] for _ in range(4)]
    ledgers[0].balance(TEAM, MONTH)

    def work(number: int) -> None:
        for turn in range(8):
            ledgers[number].add([hold(f"{number}-{turn}", 7)], 100 * MICRO)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used, _ = balance(ledgers[0])
    assert 0 < used <= 98
    for turn in range(15):
        ledgers[0].add([hold(f"last-{turn}", 7)], 100 * MICRO)
    assert balance(ledgers[0]) == (98, 0)
