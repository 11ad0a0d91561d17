"""Cloud Logging in the sandbox's Google."""

import re
from itertools import count
from typing import Any

import pytest

from sandbox.google.log_filter import nanoseconds, parse_filter
from sandbox.google.world import Logs
from tests.support.google_fake import Fake, P
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake"]
WRITE, LIST = "logging.googleapis.com/v2/entries:write", "logging.googleapis.com/v2/entries:list"
_NAMES = count()


@pytest.fixture
def log(fake: Fake) -> str:
    """The name of a log that no other test writes."""
    fake.well()
    return f"{P}/logs/jobs-{next(_NAMES)}"


def entry(number: int, text: str = "", **more: Any) -> dict[str, Any]:
    """Its time is `number` seconds after noon."""
    made = f"2026-01-02T12:{number // 60:02d}:{number % 60:02d}Z"
    return {"insertId": f"i-{number:04d}", "timestamp": made, "textPayload": text or f"line {number}", **more}


def write(fake: Fake, log: str, entries: list[dict[str, Any]], **more: Any) -> Any:
    marked = [{**each, "insertId": f"{log}-{each['insertId']}"} if "insertId" in each else each for each in entries]
    return fake.ask("POST", WRITE, {"logName": log, "resource": {"type": "global"}, "entries": marked, **more})


def listed(fake: Fake, log: str, filter: str = "", **more: Any) -> Any:
    text = f'logName="{log}" {filter}'
    return fake.call("POST", LIST, {"resourceNames": [P], "filter": text, **more})


def texts(fake: Fake, log: str, filter: str = "", **more: Any) -> list[str]:
    return [each["textPayload"] for each in listed(fake, log, filter, **more).get("entries", [])]


def test_what_is_written_is_read(fake: Fake, log: str) -> None:
    one = entry(1, "one", labels={"accel-job": "a"}, severity="ERROR")
    assert write(fake, log, [entry(2, "two"), one], labels={"accel-job": "b", "accel-host": "0"}).json() == {}
    first, second = listed(fake, log)["entries"]
    assert (first["textPayload"], first["labels"], first["severity"]) == (
        "one", {"accel-job": "a", "accel-host": "0"}, "ERROR",
    )  # fmt: skip
    assert (second["logName"], second["labels"]["accel-job"]) == (log, "b") and second["receiveTimestamp"]
    assert second["resource"] == {"type": "global", "labels": {"project_id": "accel-sandbox"}}
    assert "__ns" not in first


def test_entries_without_a_time_or_an_id_are_given_them(fake: Fake, log: str) -> None:
    write(fake, log, [{"textPayload": "a"}, {"textPayload": "b"}, {"textPayload": "c"}])
    found = listed(fake, log)["entries"]
    assert [each["textPayload"] for each in found] == ["a", "b", "c"]
    assert len({each["insertId"] for each in found}) == 3 and found[0]["timestamp"] == found[0]["receiveTimestamp"]


def test_an_entry_that_is_written_again_is_one(fake: Fake, log: str) -> None:
    for text in ("first", "second"):
        assert write(fake, log, [entry(1, text)]).ok
    assert texts(fake, log) == ["first"]
    write(fake, log, [{**entry(1, "third"), "timestamp": "2026-01-02T12:00:01.5Z"}])
    assert texts(fake, log) == ["first", "third"], "another time is another entry"


@pytest.mark.parametrize("order", ["timestamp asc", "timestamp desc"])
def test_pages_have_everything_once(fake: Fake, log: str, order: str) -> None:
    """Entries of one time are in the order of their ids, whatever the order of times."""
    entries = [{**entry(n // 3), "insertId": f"i-{n:04d}", "textPayload": str(n)} for n in range(100)]
    write(fake, log, [*reversed(entries)])
    seen: list[str] = []
    body: dict[str, Any] = {"orderBy": order, "pageSize": 7}
    while True:
        page = listed(fake, log, **body)
        assert len(page["entries"]) <= 7
        seen += [each["textPayload"] for each in page["entries"]]
        if "nextPageToken" not in page:
            break
        body["pageToken"] = page["nextPageToken"]
    groups = [[str(n) for n in range(100) if n // 3 == second] for second in range(34)]
    expected = groups if order.endswith("asc") else groups[::-1]
    assert seen == [each for group in expected for each in group]
    assert len(texts(fake, log)) == 50, "without a size, a page has 50"


def test_a_page_has_at_most_a_thousand(fake: Fake, log: str) -> None:
    write(fake, log, [entry(n) for n in range(1001)])
    page = listed(fake, log, pageSize=5000)
    assert len(page["entries"]) == 1000
    assert len(listed(fake, log, pageSize=5000, pageToken=page["nextPageToken"])["entries"]) == 1


FILTERS = {
    'labels."accel-job"="a"': ["1", "2"],
    'labels.accel-job="a" AND labels."accel-host"="1"': ["2"],
    'timestamp>="2026-01-02T12:00:02Z"': ["2", "3"],
    'timestamp > "2026-01-02T12:00:02.0Z"': ["3"],
    'timestamp>="2026-01-02T13:00:02+01:00" timestamp<"2026-01-02T12:00:03Z"': ["2"],
    'insertId > "{log}-i-0001"': ["2", "3"],
    "severity>=WARNING": ["3"],
    "severity=DEFAULT": ["1", "2"],
    "severity!=ERROR": ["1", "2"],
    'textPayload:"2"': ["2"],
    'textPayload=~"[13]"': ["1", "3"],
    'labels."none"!="x"': ["1", "2", "3"],
    'labels."none"="x"': [],
    'labels."accel-host"="0" OR severity=ERROR': ["1", "3"],
    'labels."accel-job"="a" AND labels."accel-host"="0" OR labels."accel-host"="1"': ["1", "2"],
    '(labels."accel-job"="b" AND severity=ERROR) OR (labels."accel-host"="1" AND timestamp>="2026-01-02T12:00:02Z")': [
        "2",
        "3",
    ],
    'resource.type="global"\nAND labels."quo\\"ted"="y"': ["3"],
}


@pytest.mark.parametrize("filter", FILTERS)
def test_filters(fake: Fake, log: str, filter: str) -> None:
    write(fake, log, [
        entry(1, "1", labels={"accel-job": "a", "accel-host": "0"}),
        entry(2, "2", labels={"accel-job": "a", "accel-host": "1"}),
        entry(3, "3", labels={"accel-job": "b", 'quo"ted': "y"}, severity="ERROR"),
    ])  # fmt: skip
    wanted, text = FILTERS[filter], filter.replace("{log}", log)
    assert texts(fake, log, text) == wanted
    assert texts(fake, log, text, orderBy="timestamp desc") == wanted[::-1]


@pytest.mark.parametrize(
    "filter", ['NOT a="b"', '(a="b"', 'a="b")', 'a="b" OR', "words", "timestamp=x", "severity>=LOUD"]
)
def test_filters_that_are_not_read_are_refused(fake: Fake, filter: str) -> None:
    refused = fake.ask("POST", LIST, {"resourceNames": [P], "filter": filter})
    assert refused.status_code == 400 and "Unparseable filter" in refused.text


@pytest.mark.parametrize(
    "body, code",
    [
        ({}, 400),
        ({"resourceNames": ["projects/other"]}, 403),
        ({"resourceNames": [P], "orderBy": "severity"}, 400),
        ({"resourceNames": [P], "pageSize": -1}, 400),
        ({"resourceNames": [P], "pageToken": "x"}, 400),
        ({"resourceNames": [P], "filter": "a=" + "b" * 20_000}, 400),
    ],
)
def test_lists_that_are_refused(fake: Fake, body: dict[str, Any], code: int) -> None:
    assert fake.ask("POST", LIST, body).status_code == code


def test_an_entry_that_is_too_large_is_refused(fake: Fake, log: str) -> None:
    large = entry(2, "x" * 300_000)
    refused = write(fake, log, [entry(1), large])
    said = refused.json()["error"]["message"]
    assert refused.status_code == 400
    assert re.fullmatch(r"Log entry with size 293\.\dK exceeds maximum size of 256\.0K", said)
    assert "details" not in refused.json()["error"] and texts(fake, log) == []
    partly = write(fake, log, [entry(1), large], partialSuccess=True).json()["error"]
    (detail,) = partly["details"]
    assert detail["@type"].endswith("WriteLogEntriesPartialErrors")
    assert detail["logEntryErrors"] == {"1": {"code": 3, "message": said}}
    assert texts(fake, log) == ["line 1"]
    whole = write(fake, log, [entry(n, "x" * 200_000) for n in range(60)])
    assert whole.json()["error"]["message"] == "Request payload size exceeds the limit: 10485760 bytes."


@pytest.mark.parametrize(
    "change, text",
    [
        ({"logName": "jobs"}, "Log name 'jobs' is not projects/[PROJECT_ID]/logs/[LOG_ID]"),
        ({"resource": {}}, "no monitored resource"),
        ({"entries": [{"timestamp": "now"}]}, "Invalid value at 'entries[0].timestamp'"),
        ({"entries": [{"text": "x"}]}, 'Unknown name "text"'),
    ],
)
def test_writes_that_are_refused(fake: Fake, log: str, change: dict[str, Any], text: str) -> None:
    body = {"logName": log, "resource": {"type": "global"}, "entries": [entry(1)], **change}
    refused = fake.ask("POST", WRITE, body)
    assert refused.status_code == 400 and text in refused.json()["error"]["message"]


def test_logs_of_another_project_are_refused(fake: Fake) -> None:
    assert write(fake, "projects/other/logs/x", [entry(1)]).status_code == 403


def test_a_dry_run_writes_nothing(fake: Fake, log: str) -> None:
    assert write(fake, log, [entry(1)], dryRun=True).ok and texts(fake, log) == []


def test_entries_can_be_read_late_and_out_of_order(fake: Fake, log: str) -> None:
    fake.fault(method="logging.entries.write", delay_s=1)
    write(fake, log, [entry(1)])
    write(fake, log, [entry(2)])
    assert texts(fake, log) == ["line 2"], "what was written first can be read later"
    until(lambda: texts(fake, log) == ["line 1", "line 2"])


def test_too_many_reads_are_a_fault_that_is_planned(fake: Fake, log: str) -> None:
    fake.fault(method="logging.entries.list", code=429, message="Quota exceeded for quota metric 'Read requests'")
    body = {"resourceNames": [P], "filter": f'logName="{log}"'}
    refused = fake.ask("POST", LIST, body)
    assert (refused.status_code, refused.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert fake.ask("POST", LIST, body).ok


def test_a_page_is_found_without_reading_those_before() -> None:
    """How much a page costs does not grow with what was read already: 100,000 entries are read as quickly as 1,000
    a hundred times."""
    logs, tested = Logs(), 0
    for number in range(10_000):
        logs.add({"__ns": number, "insertId": str(number), "textPayload": ""}, 0)

    def counted(entry: dict[str, Any]) -> bool:
        nonlocal tested
        tested += 1
        return True

    wanted, token, seen = parse_filter(""), "", 0
    wanted = type(wanted)((counted,), 0)
    while True:
        found, token = logs.page(wanted, False, 100, token)
        seen += len(found)
        if not token:
            break
    assert (seen, tested) == (10_000, 10_000)


def test_times() -> None:
    assert nanoseconds("1970-01-01T00:00:01.000000001Z") == 1_000_000_001
    assert nanoseconds("1970-01-01T01:00:00.5+01:00") == 500_000_000
    assert nanoseconds("2026-13-01T00:00:00Z") is None and nanoseconds("yesterday") is None
