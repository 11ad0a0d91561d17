"""A submit under an allowance, over every ledger: what is held, refused, recorded, taken back and settled."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from accel.contract.allowances import Allowances
from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NotSent, OverLimit
from jobs.backends.base import JobRef, Request
from jobs.client.allowances import reservation as holds_of
from jobs.client.allowances import reserve as holding
from jobs.client.allowances.reservation import MICRO, Change, Hold, Ledger
from jobs.client.allowances.reserve import Holding
from jobs.client.allowances.settlement import SettlementReport, settle_team
from tests.jobs.spend.books import KINDS, TEAM, Late, Platform, Unanswered, hold, sums, wanted
from tests.support.soak import sampled

pytest_plugins = ["tests.support.google_fake"]
Of = Callable[[float], tuple[Allowances, Ledger]]
each_ledger = pytest.mark.parametrize("kind", KINDS, indirect=True)


@pytest.fixture(params=sampled(KINDS, ["file"]))
def kind(request: pytest.FixtureRequest) -> str:
    """What the ledgers share is proved on one: tests/jobs/spend/test_ledgers.py has what each of them does."""
    return request.param


def sweep(ledger: Ledger, platform: Platform, later_s: float = 0) -> SettlementReport:
    late: Ledger = Late(ledger, later_s) if later_s else ledger  # pyright: ignore[reportAssignmentType]
    return settle_team(late, TEAM, {"gpu": LocalTarget()}, backend_of=lambda ref: platform, find=platform.find)


def only(ledger: Ledger) -> Hold:
    (found,) = ledger.holds(TEAM)
    return found


def send(platform: Platform, book: tuple[Allowances, Ledger], *keys: str, usd: float = 10) -> list[JobRef]:
    allowances, ledger = book
    jobs = [wanted(key, usd) for key in keys]

    def swept(team: str) -> None:
        sweep(ledger, platform)

    with Holding(ledger, allowances, jobs, sweep=swept) as holding:
        return [holding.send(platform, each.request) for each in jobs]


@each_ledger
def test_a_job_is_held_for_recorded_and_settled(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    (ref,) = send(platform, book, "a", usd=30)
    assert sums(book[1]) == (30, 0) and only(book[1]).ref == str(ref)
    assert sweep(book[1], platform).running == 1
    platform.end("a", 1200)
    done = sweep(book[1], platform)
    assert [each.key for each in done.settled] == ["a"] and not done.unseen
    assert sums(book[1]) == (0, 10) and only(book[1]).settled == 10 * MICRO
    again = sweep(book[1], platform)
    assert again == SettlementReport()


def test_a_hold_that_is_settled_before_it_is_recorded_is_complete(ledger_of: Of, platform: Platform) -> None:
    """A short job has ended, and another client's sweep has settled its hold by the key alone."""
    allowances, ledger = ledger_of(100)
    said: list[str] = []

    class Settled(Platform):
        def submit(self, request: Request) -> JobRef:
            ref = super().submit(request)
            seen = only(ledger)
            ledger.change([Change(seen, replace(seen, settled=5 * MICRO))])
            return ref

    with Holding(ledger, allowances, [wanted("a", 10)], say=said.append) as holding:
        holding.send(Settled(platform.folder), wanted("a", 10).request)
    assert said == []
    assert sums(ledger) == (0, 5)
    assert only(ledger).ref is None, "what another client has settled is not written again"


def test_the_same_key_holds_once(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    assert send(platform, book, "a", usd=60) == send(platform, book, "a", usd=60)
    assert sums(book[1]) == (60, 0)
    platform.end("a", 60)
    sweep(book[1], platform)
    assert send(platform, book, "a", usd=60) and sums(book[1]) == (0, 1)


@each_ledger
def test_what_does_not_fit_is_refused_with_the_numbers(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    send(platform, book, "a", usd=70)
    with pytest.raises(OverLimit) as refused:
        send(platform, book, "b", usd=40)
    assert refused.value.exit_code == 5
    assert "team research has $30.00 left of $100.00 for " in refused.value.message
    assert "($70.00 held, $0.00 settled), and job-b may cost $40.00" in refused.value.message
    assert refused.value.hint and refused.value.hint.startswith("timeout_s of at most 2700 would fit (it has 3600)")
    assert platform.made() == {"a"} and sums(book[1]) == (70, 0)
    with pytest.raises(OverLimit, match=r"these 3 jobs may cost \$60.00") as several:
        send(platform, book, "c", "d", "e", usd=20)
    assert several.value.hint and several.value.hint.startswith("1 of them would fit")
    assert platform.made() == {"a"} and sums(book[1]) == (70, 0)
    send(platform, book, "b", usd=30)


def test_room_is_looked_for_before_a_refusal(ledger_of: Of, platform: Platform) -> None:
    """An ended job that nobody looked at does not keep the next one out."""
    book = ledger_of(100)
    send(platform, book, "a", usd=90)
    platform.end("a", 360)
    send(platform, book, "b", usd=90)
    assert sums(book[1]) == (90, 9)


@pytest.mark.parametrize("error", [CloudRefused("no"), OverLimit("quota"), BadInput("no")])
def test_a_definite_refusal_takes_the_hold_back(ledger_of: Of, platform: Platform, error: Exception) -> None:
    book = ledger_of(100)
    platform.refuses = error
    with pytest.raises(type(error)):
        send(platform, book, "a")
    assert book[1].holds(TEAM) == [] and sums(book[1]) == (0, 0)


def test_a_doubt_keeps_the_hold_until_its_lease_is_over(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    platform.refuses = CloudSilent("no answer")
    with pytest.raises(CloudSilent):
        send(platform, book, "a", "b")
    assert {each.key for each in book[1].holds(TEAM)} == {"a"} and sums(book[1]) == (10, 0)
    assert sweep(book[1], platform).running == 1
    done = sweep(book[1], platform, later_s=4000)
    assert [each.key for each in done.released] == ["a"] and book[1].holds(TEAM) == []


def test_a_doubt_in_which_the_job_was_made(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    platform.refuses = CloudSilent("no answer")
    with pytest.raises(CloudSilent):
        send(platform, book, "a")
    (platform.folder / "a").touch()
    done = sweep(book[1], platform, later_s=4000)
    assert done.running == 1 and only(book[1]).ref == "fake:/a"
    platform.end("a", 3600)
    assert sweep(book[1], platform).settled and sums(book[1]) == (0, 10)


def test_another_client_with_the_key_takes_the_hold_over(ledger_of: Of, platform: Platform) -> None:
    """The first one's refusal does not take back what the second one holds."""
    book = ledger_of(100)
    first, second = (Holding(book[1], book[0], [wanted("a")]) for _ in range(2))
    with first:
        platform.refuses = CloudRefused("no")
        with second:
            with pytest.raises(CloudRefused):
                first.send(platform, wanted("a").request)
            assert sums(book[1]) == (10, 0)
            platform.refuses = None
            second.send(platform, wanted("a").request)
    assert sums(book[1]) == (10, 0) and only(book[1]).ref == "fake:/a"


def test_what_the_same_command_holds_elsewhere_is_not_in_its_way(ledger_of: Of, platform: Platform) -> None:
    """It is written between the look for the key and the look at the balance."""
    book = ledger_of(15)

    class Between:
        def __getattr__(self, name: str) -> object:
            return getattr(book[1], name)

        def balance(self, team: str, period: str) -> object:
            if not book[1].holds(TEAM):
                send(platform, book, "a")
            return book[1].balance(team, period)

    second: Ledger = Between()  # pyright: ignore[reportAssignmentType]
    send(platform, (book[0], second), "a")
    assert sums(book[1]) == (10, 0) and platform.made() == {"a"}


def test_a_hold_that_is_gone_is_written_again(ledger_of: Of, platform: Platform) -> None:
    """Of a client that slept past its lease: its job is there, so it counts, whatever the balance."""
    book = ledger_of(12)
    with Holding(book[1], book[0], [wanted("a")]) as holding:
        assert [each.key for each in sweep(book[1], platform, later_s=4000).released] == ["a"]
        send(platform, book, "b")
        holding.send(platform, wanted("a").request)
    assert sums(book[1]) == (20, 0)


def test_a_key_that_holds_for_another_request_is_refused(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    platform.refuses = CloudSilent("no answer")
    with pytest.raises(CloudSilent):
        send(platform, book, "a", usd=10)
    with pytest.raises(BadInput, match=r"key: \$10.00 are held under it for job-a"):
        send(platform, book, "a", usd=20)


def test_nothing_is_sent_once_holds_are_taken_back(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    with Holding(book[1], book[0], [wanted("a")]) as holding:
        pass
    with pytest.raises(NotSent):
        holding.send(platform, Request("fake", "gpu", "a", "a", {}))
    assert platform.made() == set() and book[1].holds(TEAM) == []


@pytest.mark.parametrize("plan", [["lost"], ["made"], ["lost", "made"], ["made", "made", "lost"]])
def test_writes_that_are_not_answered(ledger_of: Of, platform: Platform, plan: list[str]) -> None:
    allowances, ledger = ledger_of(100)
    faulty: Ledger = Unanswered(ledger, list(plan))  # pyright: ignore[reportAssignmentType]
    send(platform, (allowances, faulty), "a", "b")
    assert sums(ledger) == (20, 0) and {each.ref for each in ledger.holds(TEAM)} == {"fake:/a", "fake:/b"}


def test_a_ledger_that_never_answers_sends_nothing(ledger_of: Of, platform: Platform) -> None:
    allowances, ledger = ledger_of(100)
    faulty: Ledger = Unanswered(ledger, ["lost"] * 9)  # pyright: ignore[reportAssignmentType]
    with pytest.raises(NotSent, match="nothing was submitted"):
        send(platform, (allowances, faulty), "a")
    assert platform.made() == set() and ledger.holds(TEAM) == []


@each_ledger
def test_many_jobs_are_held_for_in_a_few_writes(
    ledger_of: Of, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (holds_of, holding):
        monkeypatch.setattr(module, "AT_ONCE", 5)
    book = ledger_of(20)
    refs = send(platform, book, *(f"k{n}" for n in range(12)), usd=1)
    assert len(refs) == 12 and sums(book[1]) == (12, 0)
    # The first five fit, and are taken back with the rest.
    with pytest.raises(OverLimit):
        send(platform, book, *(f"m{n}" for n in range(12)), usd=1)
    assert len(platform.made()) == 12 and sums(book[1]) == (12, 0)


def test_an_allowance_is_used_to_its_last_cent(ledger_of: Of, platform: Platform) -> None:
    """2.3 USD are 2,299,999.99... micro-USD as a product of binary fractions."""
    send(platform, ledger_of(2.3), "a", usd=2.3)


def test_the_key_of_a_job_that_nobody_knows_any_more_is_refused(ledger_of: Of, platform: Platform) -> None:
    """Its platform would make another job, for which nothing is held."""
    book = ledger_of(100)
    send(platform, book, "a")
    platform.end("a", 1800)
    sweep(book[1], platform)
    assert send(platform, book, "a") and sums(book[1]) == (0, 5)
    (platform.folder / "a").unlink()
    with pytest.raises(BadInput, match="key: it was used for job-a, which has ended and is not known any more"):
        send(platform, book, "a")
    assert platform.made() == set() and sums(book[1]) == (0, 5)


@pytest.mark.parametrize(("known_s", "settled"), [(None, 0), (3600, 10), (7200, 0)])
def test_a_hold_whose_job_may_be_forgotten_counts_whole(
    ledger: Ledger, platform: Platform, known_s: int | None, settled: float
) -> None:
    """Of a client that died. Where a platform forgets ended jobs, that there is none does not say that none was."""
    made = ledger.now() - 5400
    ledger.add([hold("a", known_s=known_s, made=made, lease_until=made + 60)], None)
    done = sweep(ledger, platform)
    assert sums(ledger) == (0, settled) and bool(done.settled) == bool(settled) != bool(done.released)


def test_a_job_that_its_platform_forgot_counts_whole(ledger_of: Of, platform: Platform) -> None:
    book = ledger_of(100)
    send(platform, book, "a")
    (platform.folder / "a").unlink()
    (done,) = sweep(book[1], platform).settled
    assert (done.settled, done.why) == (10 * MICRO, "counted whole: its platform does not know it any more")


def test_what_cannot_be_looked_at_stays(ledger_of: Of, platform: Platform) -> None:
    _, ledger = ledger_of(100)
    ledger.add([hold("a", target="elsewhere"), replace(hold("b"), ref="fake:/b")], None)

    class Silent(Platform):
        def status(self, ref: JobRef) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
            raise CloudSilent("out of reach")

    done = sweep(ledger, Silent(platform.folder))
    assert sorted(done.unseen) == ["fake:/b: out of reach", "job-a: its target elsewhere is not among the targets here"]
    assert len(ledger.holds(TEAM)) == 2
