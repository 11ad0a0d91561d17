"""Logs of machines from Cloud Logging: each line once and in order, however late or often Logging shows it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accel.clouds.google.api import Google
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import BadInput, CloudSilent, Throttled
from jobs.backends.base import JobRef, LogLine
from jobs.backends.vm import labels
from jobs.backends.vm import logs as module
from jobs.backends.vm.logs import BOOT_LINES, MOST_CLAUSES, logs
from jobs.backends.vm.record import Attempt, Record, Result
from tests.jobs.backends.memory_logging import MemoryLogging
from tests.support.google_fake import Fake

pytest_plugins = ["tests.support.google_fake"]
PROJECT, NAME = "accel-sandbox", "train-0123456789ab"
REF = JobRef("tpu-vm", "acme-jobs", NAME)
START = datetime(2026, 11, 22, 12, tzinfo=UTC)
PAST = "2020-01-01T00:00:00+00:00"
QUICK = Timing(connect_s=5, read_s=20, attempts=2, backoff_s=0.01, longest_wait_s=0.02, poll_s=0.01, silence_s=2)
Look = tuple[Record, Mapping[int, Result], bool]


def job(hosts: int = 1, attempts: int = 1, before: str = PAST, **last: Any) -> Record:
    """A job whose earlier attempts are gone since `before`."""
    numbers = range(1, attempts + 1)
    made = [Attempt(n, "a", labels.attempt_name(NAME, n), START.isoformat(), "gone", ended=before) for n in numbers]
    made[-1] = replace(made[-1], **{"state": "made", "ended": None, **last})
    body = {"hosts": hosts, "project": PROJECT, "bucket": "acme-jobs"}
    return Record("tpu-vm", "tpu", NAME, "train", "k", "h", body, START.isoformat(), tuple(made))


def results(*lines: int) -> dict[int, Result]:
    """Of hosts that have told of their end, after so many lines each."""
    return {host: Result(host, 0, "exited", None, None, count) for host, count in enumerate(lines)}


def entry(number: int, host: int = 0, attempt: int = 1, at: float | None = None) -> dict[str, Any]:
    """As the agent writes it: a line each second."""
    time = START + timedelta(seconds=number % BOOT_LINES if at is None else at)
    return {
        "logName": f"projects/{PROJECT}/logs/accel-jobs",
        "resource": {"type": "global"},
        "labels": {labels.JOB: NAME, labels.ATTEMPT: str(attempt), labels.HOST: str(host)},
        "insertId": f"{labels.attempt_name(NAME, attempt)}-{host}-{number:010d}",
        "timestamp": f"{time:%Y-%m-%dT%H:%M:%S.%fZ}",
        "textPayload": f"{attempt}.{host}.{number}",
    }


class Logging(MemoryLogging):
    PROJECT_ID, TIMING = PROJECT, QUICK


def once(google: Google, record: Record, host: int | None = None) -> list[str]:
    return [line.text for line in logs(google, REF, lambda: (record, {}, False), host=host, follow=False)]


def follow(google: Logging, *looks: Look) -> list[str]:
    """All lines of a followed job; the last of `looks` is what there is to see from then on."""
    return [line.text for line in lines(google, *looks)]


def lines(google: Google, *looks: Look) -> Iterator[LogLine]:
    left = list(looks)
    return logs(google, REF, lambda: left.pop(0) if len(left) > 1 else left[0], host=None, follow=True)


def ended(record: Record, *counts: int) -> Look:
    return record, results(*counts), True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Time goes on by sleeping alone; what is given is how much longer each sleep is."""
    now, more = [1000.0], [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds + more[0]

    monkeypatch.setattr(module.time, "sleep", sleep)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return lambda seconds: more.__setitem__(0, seconds)


def test_hosts_are_merged_by_time_and_told_apart() -> None:
    google = Logging([entry(n, host, at=n + host / 10) for host in range(3) for n in range(3)], page=2)
    record = job(hosts=3)
    found = [*logs(google, REF, lambda: (record, {}, False), host=None, follow=False)]
    assert [line.text for line in found] == [f"1.{host}.{n}" for n in range(3) for host in range(3)]
    assert [line.source for line in found[:3]] == ["node 0", "node 1", "node 2"]
    assert found[1].at == START + timedelta(seconds=0.1)


def test_one_host_is_asked_for_alone() -> None:
    google = Logging([entry(n, host) for host in range(3) for n in range(2)])
    assert once(google, job(hosts=3), host=1) == ["1.1.0", "1.1.1"]
    assert f'labels."{labels.HOST}"="1"' in google.filters[0]
    with pytest.raises(BadInput, match="node: tpu-vm:acme-jobs/train-0123456789ab has nodes 0 to 2, not 3"):
        once(google, job(hosts=3), host=3)


def test_entries_of_others_are_left_out() -> None:
    strange = {**entry(1), "insertId": "made-by-hand", "textPayload": "no"}
    other = {**entry(1), "labels": {**entry(1)["labels"], labels.JOB: "other"}, "textPayload": "no"}
    later = entry(0, attempt=7)
    assert once(Logging([entry(0), strange, other, later]), job()) == ["1.0.0"]


def test_a_gap_is_waited_for() -> None:
    google = Logging([entry(0), entry(2), entry(3)], [entry(5)], [entry(1), entry(4)])
    assert follow(google, (job(), {}, False), ended(job(), 6)) == [f"1.0.{n}" for n in range(6)]


def test_a_gap_of_one_host_holds_no_other_up() -> None:
    google = Logging([entry(1, 0), *(entry(n, 1) for n in range(3))], [entry(0, 0)])
    found = follow(google, (job(hosts=2), {}, False), ended(job(hosts=2), 2, 3))
    assert found == ["1.1.0", "1.1.1", "1.1.2", "1.0.0", "1.0.1"]


def test_a_line_that_never_comes_is_given_up(clock: Callable[[float], None]) -> None:
    clock(10)
    google = Logging([entry(0), entry(2), entry(4)])
    running = (job(), {}, False)
    assert follow(google, *[running] * 20, ended(job(), 5)) == ["1.0.0", "1.0.2", "1.0.4"]


def test_what_comes_after_it_was_given_up_is_not_shown_in_the_wrong_place(clock: Callable[[float], None]) -> None:
    clock(40)
    google = Logging([entry(0), entry(2)], [], [], [entry(1), entry(3)])
    assert follow(google, *[(job(), {}, False)] * 5, ended(job(), 4)) == ["1.0.0", "1.0.2", "1.0.3"]


def test_without_following_what_is_there_is_shown_at_once() -> None:
    assert once(Logging([entry(0), entry(2)]), job()) == ["1.0.0", "1.0.2"]


def test_an_entry_that_is_shown_again_is_one_line() -> None:
    class Twice(Logging):
        def post(self, *given: Any, **more: Any) -> dict[str, Any]:
            page = super().post(*given, **more)
            return {**page, "entries": [each for each in page["entries"] for _ in range(2)]}

    rounds = [[entry(0), entry(1)], [entry(3)], [entry(2)]]
    assert follow(Twice(*rounds), (job(), {}, False), ended(job(), 4)) == [f"1.0.{n}" for n in range(4)]


def test_lines_of_one_moment_are_in_their_order() -> None:
    google = Logging([entry(n, at=1) for n in (2, 0, 1)], [entry(n, at=1) for n in (3, 4)])
    assert follow(google, (job(), {}, False), ended(job(), 5)) == [f"1.0.{n}" for n in range(5)]


def test_a_boot_goes_on_with_numbers_of_its_own() -> None:
    google = Logging([entry(0), entry(1)], [entry(BOOT_LINES + 1, at=60)], [entry(BOOT_LINES, at=59)])
    found = follow(google, (job(), {}, False), ended(job(), BOOT_LINES + 2))
    assert found == ["1.0.0", "1.0.1", f"1.0.{BOOT_LINES}", f"1.0.{BOOT_LINES + 1}"]


def test_attempts_follow_each_other_and_are_told_apart(clock: Callable[[float], None]) -> None:
    first, second = job(), job(attempts=2, before=datetime.now(UTC).isoformat())
    google = Logging([entry(0)], [entry(0, attempt=2, at=100)], [entry(1, at=1), entry(1, attempt=2, at=101)])
    found = [*lines(google, (first, {}, False), (second, {}, False), ended(second, 2))]
    texts = [line.text for line in found]
    assert sorted(texts) == ["1.0.0", "1.0.1", "2.0.0", "2.0.1"] and texts.index("2.0.0") < texts.index("2.0.1")
    assert {line.text: line.source for line in found}["2.0.1"] == "attempt 2"


def test_the_end_of_a_job_is_not_the_end_of_its_log() -> None:
    """Its last lines can be read when the job has long ended."""
    late = [entry(2)]
    google = Logging([entry(0)], [entry(1)], [], [], [], late)
    assert follow(google, (job(), {}, False), ended(job(), 3)) == ["1.0.0", "1.0.1", "1.0.2"]
    assert len(google.filters) == 6, "it ends with the last line, not with the time for lines to come"


def test_a_machine_that_told_no_end_is_given_time(clock: Callable[[float], None]) -> None:
    record = job(state="gone")
    google = Logging([entry(0)], [], [entry(1)])
    assert follow(google, (record, {}, True)) == ["1.0.0", "1.0.1"]


def test_what_ended_long_ago_is_read_whole_and_not_waited_for() -> None:
    """Without a time of the test's own: it would take half a minute."""
    record = job(attempts=3, state="gone", ended=PAST)
    google = Logging([entry(n, attempt=attempt, at=10 * attempt + n) for attempt in (1, 2, 3) for n in (0, 1)])
    google.failing = [CloudSilent("no answer")]
    assert len(follow(google, (record, {}, True))) == 6 and len(google.filters) == 1


@pytest.mark.parametrize("counts", [(), (2,)])
def test_a_job_that_ended_long_ago_is_answered_without_a_pause(
    counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(module.time, "sleep", slept.append)
    google = Logging([entry(0), entry(1)])
    assert follow(google, ended(job(state="gone", ended=PAST), *counts)) == ["1.0.0", "1.0.1"]
    assert not slept and len(google.filters) == 1


@pytest.mark.parametrize("ahead_s", [0, 45])
def test_the_clock_of_a_client_that_is_ahead_ends_no_log(ahead_s: float, clock: Callable[[float], None]) -> None:
    stopped = (datetime.now(UTC) - timedelta(seconds=ahead_s)).isoformat()
    google = Logging([entry(0)], [], [], [entry(1)])
    assert follow(google, ended(job(state="gone", ended=stopped))) == ["1.0.0", "1.0.1"]


def test_lines_that_logging_never_took_do_not_hold_the_end_up(clock: Callable[[float], None]) -> None:
    google = Logging([entry(0), entry(2)])
    assert follow(google, (job(), {}, False), ended(job(), 9)) == ["1.0.0", "1.0.2"]


def test_a_page_that_is_lost_is_read_again() -> None:
    google = Logging([entry(n) for n in range(10)], page=4)
    google.failing = [None, CloudSilent("no answer"), None, None, CloudSilent("no answer")]
    assert follow(google, (job(), {}, False), ended(job(), 10)) == [f"1.0.{n}" for n in range(10)]


def test_a_cloud_that_stays_silent_ends_the_log(clock: Callable[[float], None]) -> None:
    google = Logging([entry(0)])
    google.failing = [None, *[CloudSilent("no answer") for _ in range(1000)]]
    found: list[str] = []
    with pytest.raises(CloudSilent, match="no answer"):
        found.extend(line.text for line in lines(google, (job(), {}, False)))
    assert google.failing and found == ["1.0.0"]


def test_reads_that_are_too_many_for_this_minute_go_on_in_the_next(clock: Callable[[float], None]) -> None:
    google = Logging([entry(n) for n in range(10)], page=4)
    google.failing = [None, *[Throttled("too many") for _ in range(20)]]
    assert once(google, job()) == [f"1.0.{n}" for n in range(10)]
    assert len(google.filters) == 1, "it goes on with the page that was refused"
    google.failing = [Throttled("too many") for _ in range(1000)]
    with pytest.raises(Throttled):
        once(google, job())


def test_a_client_whose_clock_is_ahead_misses_nothing() -> None:
    planned = (START + timedelta(hours=3)).isoformat()
    assert once(Logging([entry(0)]), job(planned=planned)) == ["1.0.0"]


def test_a_host_that_says_nothing_makes_no_other_be_read_again() -> None:
    chatty = [[entry(100 * turn + n, 0) for n in range(100)] for turn in range(4)]
    google = Logging([*chatty[0], entry(0, 1), entry(0, 2)], *chatty[1:], [entry(1, 1, at=2), entry(1, 2, at=3)])
    found = follow(google, *[(job(hosts=3), {}, False)] * 4, ended(job(hosts=3), 400, 2, 2))
    assert len(found) == 404 and found[-2:] == ["1.1.1", "1.2.1"]
    assert f'OR (labels."{labels.ATTEMPT}"="1" AND labels."{labels.HOST}"="1" AND timestamp>=' in google.filters[1]
    moment = re.search(r'\(timestamp>="([^"]+)"', google.filters[1])
    assert moment and datetime.fromisoformat(moment[1]) == START + timedelta(seconds=99)


@pytest.mark.parametrize("quiet", [MOST_CLAUSES - 1, MOST_CLAUSES, 4000])
def test_a_query_is_never_too_long(quiet: int) -> None:
    hosts = quiet + 1
    record = job(hosts=hosts, attempts=12)
    first = [entry(0, host, 12, at=0.123456) for host in range(1, hosts)]
    google = Logging([*first, *(entry(n, 0, 12) for n in range(20))])
    assert len(follow(google, (record, {}, False), ended(record, 20, *[1] * quiet))) == hosts + 19
    assert max(len(text) for text in google.filters) <= 20_000


def test_the_sandboxs_logging_with_entries_that_come_late(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two hosts, in batches of which some can be read later than those after them."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", fake.token)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING", f"{fake.url}/logging.googleapis.com/")
    fake.well()
    fake.fault(method="logging.entries.write", delay_s=0.7, count=20, rate=0.5, seed=7)
    google = Google(QUICK)
    for first in range(0, 100, 10):
        for host in (0, 1):
            entries = [entry(n, host, at=n / 10) for n in range(first, first + 10)]
            google.post("logging", "v2/entries:write", {"entries": entries, "partialSuccess": True})
    fake.well()
    found = [line.text for line in lines(google, (job(hosts=2), {}, False), ended(job(hosts=2), 100, 100))]
    for host in (0, 1):
        assert [text for text in found if text.startswith(f"1.{host}.")] == [f"1.{host}.{n}" for n in range(100)]
    assert len(found) == 200


def test_the_last_lines_are_asked_for_from_the_end() -> None:
    lines_now = [entry(n, host, at=n + host / 10) for host in range(2) for n in range(40)]
    record = job(hosts=2)
    found = logs(Logging(lines_now, page=7), REF, lambda: (record, {}, False), host=None, follow=False, tail=3)
    assert [line.text for line in found] == ["1.1.38", "1.0.39", "1.1.39"]
    twins = [entry(n, at=1) for n in range(9)]
    found = logs(Logging(twins), REF, lambda: (job(), {}, False), host=0, follow=False, tail=9)
    assert [line.text for line in found] == [f"1.0.{n}" for n in range(9)]
    found = logs(Logging(twins), REF, lambda: (job(), {}, False), host=0, follow=False, tail=2)
    assert [line.text for line in found] == ["1.0.7", "1.0.8"]


def test_following_goes_on_from_the_last_lines(clock: Callable[[float], None]) -> None:
    """A host that said nothing among the last lines is heard from its next line on, and gaps are waited for."""
    now = [*(entry(n, 0) for n in range(40)), *(entry(n, 1, at=n / 100) for n in range(7))]
    google = Logging(now, [], [entry(7, 1, at=41), entry(41, 0, at=42)], [entry(40, 0, at=40)])
    left = [(job(hosts=2), {}, False)] * 4
    look: Callable[[], Look] = lambda: left.pop() if left else ended(job(hosts=2), 42, 8)  # noqa: E731
    found = [line.text for line in logs(google, REF, look, host=None, follow=True, tail=2)]
    assert found == ["1.0.38", "1.0.39", "1.1.7", "1.0.40", "1.0.41"]
