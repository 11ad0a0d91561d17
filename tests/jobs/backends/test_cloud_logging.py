"""Entries of Cloud Logging whose writers do not number them: each once, however late, mixed up and broken off."""

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accel.clouds.google.api import Google
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudSilent, Throttled
from jobs.backends import google_logging as module
from jobs.backends.base import LogLine
from jobs.backends.google_logging import MANY, SURELY_LATE, Entry, Tail, last, list_entries, log_lines, parse_time
from tests.jobs.backends.memory_logging import MemoryLogging
from tests.support.soak import SOAK

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
QUERY = 'labels.job="j"'
QUICK = Timing(attempts=2, backoff_s=0.01, longest_wait_s=0.02, poll_s=1, silence_s=20, drain_s=5)


def stamp(at: float) -> str:
    return f"{START + timedelta(seconds=at):%Y-%m-%dT%H:%M:%S.%f}Z"


def entry(name: str, at: float, received: float | None = None) -> Entry:
    return {
        "labels": {"job": "j"}, "insertId": name, "textPayload": name,
        "timestamp": stamp(at), "receiveTimestamp": stamp(at if received is None else received),
    }  # fmt: skip


class Logging(MemoryLogging):
    PROJECT_ID, TIMING = "p", QUICK


def tail(google: Google) -> Tail:
    return Tail(google, "p", QUERY, START - timedelta(days=1))


def line(each: Entry) -> LogLine | None:
    at = parse_time(each["timestamp"])
    assert at is not None
    return None if each["textPayload"].startswith("-") else LogLine(at, each["textPayload"])


def texts(found: Iterator[LogLine]) -> list[str]:
    return [each.text for each in found]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Time goes on by sleeping alone."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(module.time, "sleep", sleep)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return lambda: now[0]


def test_what_there_is_comes_in_the_order_of_its_time() -> None:
    google = Logging([entry("b", 2), entry("-", 3), entry("a", 1)], page=1)
    assert texts(log_lines(tail(google), line)) == ["a", "b"]
    assert [each["insertId"] for each in list_entries(google, "p", QUERY)] == ["a", "b", "-"]
    assert [each["insertId"] for each in last(google, "p", QUERY, 2)] == ["b", "-"]


class Backwards(Logging):
    """Answers the newest first in every respect: also those of one time."""

    def post(
        self, api: str, path: str, body: Mapping[str, Any], *, repeat: bool = False, **query: object
    ) -> dict[str, Any]:
        answer = super().post(api, path, body, repeat=repeat, **query)
        if body["orderBy"].endswith("desc"):
            answer["entries"].sort(key=lambda each: (each["timestamp"], each["insertId"]), reverse=True)
        return answer


@pytest.mark.parametrize("kind", [Logging, Backwards])
def test_a_traceback_of_one_time_stands_upright(kind: type[Logging]) -> None:
    google = kind([entry("a", 1), entry("b", 2), entry("c", 2), entry("d", 2)])
    assert [each["insertId"] for each in last(google, "p", QUERY, 9)] == ["a", "b", "c", "d"]


def follow(google: Logging, rounds_to_end: int) -> list[str]:
    """All lines of writers that stop after so many rounds."""
    left = [rounds_to_end]

    def stopped() -> datetime | None:
        left[0] -= 1
        return datetime.now(UTC) if left[0] <= 0 else None

    return texts(log_lines(tail(google), line, stopped))


def test_late_and_mixed_up_lines_come_once(clock: Callable[[], float]) -> None:
    """One has an old time of its own; one is shown long after it was received; ids alone are not unique."""
    first = [entry("a", 1), entry("c", 3)]
    old = entry("b", -3600, received=10)
    slow = entry("d", 2, received=2)
    google = Logging(first, [entry("e", 9), old], [slow, entry("a", 10)], [entry("f", 11)])
    assert follow(google, 4) == ["a", "c", "b", "e", "d", "a", "f"]
    assert "receiveTimestamp" not in google.filters[0]
    assert f'receiveTimestamp>="{stamp(3 - 60)}"' in google.filters[1]


def test_lines_after_the_end_are_waited_for(clock: Callable[[], float]) -> None:
    begun = clock()
    google = Logging([entry("a", 1)], [], [], [entry("z", 2)])
    assert follow(google, 1) == ["a", "z"]
    assert clock() - begun >= QUICK.drain_s


def test_a_job_that_ended_long_ago_is_read_once(clock: Callable[[], float]) -> None:
    google = Logging([entry("a", 1)])
    assert texts(log_lines(tail(google), line, lambda: START - timedelta(days=30))) == ["a"]
    assert len(google.filters) == 1


@pytest.mark.parametrize("ahead_s", [0, 45])
def test_the_clock_of_a_client_that_is_ahead_ends_no_log(ahead_s: float, clock: Callable[[], float]) -> None:
    stopped = datetime.now(UTC) - timedelta(seconds=ahead_s)
    google = Logging([entry("a", 1)], [], [], [entry("z", 2)])
    assert texts(log_lines(tail(google), line, lambda: stopped)) == ["a", "z"]


def test_what_breaks_off_is_read_again_and_told_once(clock: Callable[[], float]) -> None:
    google = Logging([entry(f"{n}", n) for n in range(6)], page=2)
    google.failing = [None, CloudSilent("cut"), None, Throttled("too many"), None]
    assert follow(google, 2) == [f"{n}" for n in range(6)]


def test_an_answer_that_is_not_loggings_is_no_end(clock: Callable[[], float], monkeypatch: pytest.MonkeyPatch) -> None:
    google = Logging([entry("a", 1)])
    asked, answers = google.post, [{"foo": 1}, {"foo": 1}, {}]
    monkeypatch.setattr(google, "post", lambda *given, **more: answers.pop() if answers else asked(*given, **more))
    assert follow(google, 1) == ["a"]


def test_a_log_that_cannot_be_reached_for_long_is_an_error(clock: Callable[[], float]) -> None:
    google = Logging([entry("a", 1)])
    google.failing = [CloudSilent("gone")] * 100_000
    with pytest.raises(CloudSilent, match="gone"):
        follow(google, 1)


def test_what_is_known_is_forgotten_when_it_cannot_come_again(clock: Callable[[], float]) -> None:
    rounds = [[entry(f"{n}.{m}", n * 30 + m) for m in range(5)] for n in range(40)]
    google = Logging(*rounds)
    found = tail(google)
    for n in range(40):
        assert [each["insertId"] for each in found.read()] == [f"{n}.{m}" for m in range(5)]
        assert len(found._seen) <= 15
    assert google.shown < 40 * 20


def test_many_lines_are_not_read_again_and_again(clock: Callable[[], float]) -> None:
    """10,000 a second. Each round asks for ten seconds that it knows, not for sixty."""
    rate, rounds = 10_000 if SOAK else 100, 12
    many = MANY * rate // 10_000
    patched = pytest.MonkeyPatch()
    patched.setattr(module, "MANY", many)
    numbers = iter(range(10**9))
    shown = [
        [entry(f"{next(numbers)}", n * 5 + m / rate / 1.0001, received=n * 5 + m / rate) for m in range(5 * rate)]
        for n in range(rounds)
    ]
    google = Logging(*shown)
    found = tail(google)
    assert sum(len([*found.read()]) for _ in range(rounds)) == rounds * 5 * rate
    assert google.shown <= rounds * (5 + SURELY_LATE.total_seconds() + 1) * rate
    patched.undo()


@pytest.mark.parametrize("seed", range(200 if SOAK else 3))
def test_random_lateness_and_faults(clock: Callable[[], float], seed: int) -> None:
    """Lines have times of their own, are received later, shown up to half a minute after that, and calls break."""
    chance = random.Random(seed)
    rounds: list[list[Entry]] = [[] for _ in range(60)]
    names = [f"{n}" for n in range(300)]
    for n, name in enumerate(names):
        received = n / 10 * 2  # 60 rounds of a second: two lines of the last are never early
        rounds[min(int(n / 10) + chance.randrange(25), 59)].append(
            entry(name, received - chance.choice([0, 0, 1, 50, 3000]), received)
        )
    google = Logging(*rounds, page=chance.choice([1, 7, 1000]))
    google.failing = [CloudSilent("cut") if chance.random() < 0.1 else None for _ in range(400)]
    assert sorted(follow(google, 60), key=int) == names


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-22T12:00:01Z", 1.0),
        ("2026-11-22T12:00:01.5Z", 1.5),
        ("2026-11-22T12:00:01.123456789Z", 1.123456),
        ("2026-11-22T13:00:01.25+01:00", 1.25),
        ("soon", None),
        (None, None),
    ],
)
def test_times(text: str | None, seconds: float | None) -> None:
    found = parse_time(text)
    assert found == (None if seconds is None else START + timedelta(seconds=seconds))


def test_the_last_lines_are_asked_for_from_the_end(clock: Callable[[], float]) -> None:
    google = Logging([entry(f"{n:03}", n) for n in range(900)], page=50)
    assert texts(log_lines(tail(google), line, count=3)) == ["897", "898", "899"]
    assert google.shown == 4, "and what else has the time of the first of them"
    twins = Logging([entry(name, 1) for name in "cab"])
    assert texts(log_lines(tail(twins), line, count=9)) == ["a", "b", "c"]
    assert texts(log_lines(tail(twins), line, count=2)) == ["b", "c"]


def test_following_goes_on_from_the_last_lines(clock: Callable[[], float]) -> None:
    """What was received before and left out stays out, also where it has the time of the first that is shown."""
    now = [entry(f"{n:02}", n) for n in range(50)]
    now += [entry("48b", 48), entry("48a", 48)]
    google = Logging(now, [], [entry("new", 49.5)], [entry("late", 49.2, received=51)])
    google.failing = [CloudSilent("cut"), None, CloudSilent("cut")]
    left = [6]

    def stopped() -> datetime | None:
        left[0] -= 1
        return datetime.now(UTC) if left[0] <= 0 else None

    found = texts(log_lines(tail(google), line, stopped, 3))
    assert found[:3] == ["48a", "48b", "49"]
    assert set(found[3:]) == {"new", "late"}
