"""The page about a job: what stands on it, that it is whole, and that nothing on it is more than text."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.backends.base import Attempt, Explanation, JobRef, LogLine, Phase, Status
from jobs.backends.tasks import TaskStatus
from jobs.client.accrued_cost import JobPrice
from jobs.client.observation import Rate
from jobs.runtime.lines import MARK
from jobs.views.report.axis import Axis, around, between, since
from jobs.views.report.chart import FIELD, Series, Times, chart
from jobs.views.report.gather import POINTS_MAX, Curve, ReportData
from jobs.views.report.page import Facts, machine_s, page

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "report.html"
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVIL = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'\x1b[2J\u202e&amp;"
VOID = {"meta"}


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def lines(name: str = "loss") -> Iterator[LogLine]:
    for attempt, steps in ((1, range(1, 40)), (2, range(30, 101))):
        for step in steps:
            when = at(2 + step / 2 + 5 * (attempt - 1))
            told: dict[str, object] = {"at": when.timestamp(), "step": step, "steps": 100, "metrics": {name: 4 / step}}
            if step % 10 == 0:
                told["gpus"] = [
                    {
                        "index": 0,
                        "use": 80 + step % 7,
                        "memory_use": 30 + step % 7,
                        "memory_mib": 40000,
                        "xid": [79] * (step == 60),
                    }
                ]
            if step == 30 and attempt == 2:
                told |= {"event": "resume", "said": f"from step 30 {name if name != 'loss' else ''}".strip()}
            yield LogLine(when, MARK + json.dumps(told), f"attempt {attempt}" if attempt > 1 else "")
    yield LogLine(at(60), "any other line", "attempt 2")


def reclaimed() -> Facts:
    """A job that lost its first machine, and failed on its second."""
    status = Status(
        JobRef("aws-batch", "us-east-1", "0f3c"), "digits-1a2b", Phase.FAILED, "FAILED", "OutOfMemory", 137,
        attempts=2, lost=1, lost_gpu_hours=0.33, created=at(0), started=at(27), stopped=at(60), target="gpu",
    )  # fmt: skip
    attempts = (
        Attempt(1, None, at(0), None, at(2), at(22), None, "Host EC2 (instance i-0) terminated.", True),
        Attempt(2, None, at(22), at(25), at(27), at(60), 137, "OutOfMemoryError: Container killed"),
    )
    why = Explanation(
        "oom", "it ran out of memory", ("exit code 137",), "raise memory_mib, and `accel-jobs retry REF`", ("ecs:x",)
    )
    price = JobPrice(Rate(0.5, 1.25), notes=("g5.xlarge: assumed",))
    return Facts(status, ReportData().take(lines()), price, at(61), attempts, None, why, ("its quota: not allowed",))


class Reader(HTMLParser):
    """Keeps what a browser would act on; fails where elements do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(text: str) -> Reader:
    """Whole, and without anything that fetches or runs; its drawings are XML."""
    found = Reader(text)
    for tag, attributes in found.tags:
        assert tag not in ("script", "img", "link", "iframe", "object", "a", "base", "form"), tag
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name in attributes), attributes
    style = text.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style and "@import" not in style
    for part in text.split("<figure>")[1:]:
        figure(part)
    return found


def figure(text: str) -> ElementTree.Element:
    """A figure is XML too; where it begins may be left out."""
    return ElementTree.fromstring(f"<figure>{text.removeprefix('<figure>').split('</figure>')[0]}</figure>")  # noqa: S314


def test_both_attempts_and_the_reclaim_are_on_the_page() -> None:
    text = page(reclaimed())
    shown = "\n".join(read(text).text)
    for words in ("attempt 1", "attempt 2", "its machine was taken away: Host EC2", "20m00s", "33m00s", "OutOfMemory",
                  "it ran out of memory (oom)", "XID 79", "resume: from step 30", "$0.44–1.10", "not read: ecs:x",
                  "1 of 2 attempts were lost", "its quota: not allowed", "g5.xlarge: assumed"):  # fmt: skip
        assert words in shown, words
    assert 'class="lost"' in text and text.count("<polyline") == 8, (
        "loss, use, use of memory, and memory, of each attempt"
    )
    assert "<code>accel-jobs retry aws-batch:us-east-1/0f3c</code>" in text


def test_the_page_is_the_golden_one() -> None:
    made = page(reclaimed())
    assert made == page(reclaimed())
    if os.environ.get("ACCEL_UPDATE_GOLDEN"):
        GOLDEN.write_text(made)
    assert made == GOLDEN.read_text(), "ACCEL_UPDATE_GOLDEN=1 writes it anew; look at it in a browser"


def test_what_comes_from_outside_is_text() -> None:
    found = reclaimed()
    status = replace(found.status, name=EVIL, reason=EVIL, native=EVIL, target=EVIL, tasks={EVIL: 3})
    why = Explanation(EVIL, EVIL, (EVIL,), EVIL, (EVIL,))
    tasks = (TaskStatus(0, Phase.FAILED, EVIL, 1, 1, EVIL),)
    attempts = tuple(replace(each, reason=EVIL) for each in found.attempts or ())
    gathered = ReportData().take(lines(EVIL))
    price = JobPrice(None, why=EVIL, notes=(EVIL,))
    evil = replace(found, status=status, why=why, tasks=tasks, attempts=attempts, gathered=gathered, price=price,
                   warnings=(EVIL,))  # fmt: skip
    text = page(evil)
    read(text)
    assert "\x1b" not in text and "\u202e" not in text and "<script" not in text


def test_what_is_not_known_is_said() -> None:
    status = Status(JobRef("vertex", "p/r", "1"), "x", Phase.SUCCEEDED, "SUCCEEDED")
    shown = "\n".join(read(page(Facts(status, None, JobPrice(None, why="it was not submitted from here"), T0))).text)
    assert shown.count("not known") >= 6 and "Attempts before the last are not known" in shown
    assert "Not known: it was not submitted from here." in shown and "the log could not be read" in shown
    quiet = "\n".join(read(page(Facts(status, ReportData(), JobPrice(None, free=True), T0))).text)
    assert "nobody bills this machine" in quiet and "tells nothing of GPUs" in quiet


def test_a_job_that_goes_on_has_open_ends() -> None:
    found = reclaimed()
    status = replace(found.status, phase=Phase.RUNNING, stopped=None, exit_code=None, reason=None)
    last = Attempt(2, None, at(22), None, at(27))
    attempts = (*(found.attempts or ())[:1], last)
    running = replace(found, status=status, attempts=attempts, why=None)
    assert "goes on" in "\n".join(read(page(running)).text)
    assert machine_s(running) == (20 + 34) * 60


@pytest.mark.parametrize("tasks, seconds", [(2, 120.0), (5, None)])
def test_an_arrays_cost_is_known_where_all_its_tasks_are(tasks: int, seconds: float | None) -> None:
    found = reclaimed()
    status = replace(found.status, tasks={"SUCCEEDED": tasks})
    attempts = [Attempt(1, place, at(0), None, at(1), at(2), 0) for place in range(2)]
    assert machine_s(replace(found, status=status, attempts=attempts, price=JobPrice(Rate(1, 1, nodes=8)))) == seconds


def test_a_long_log_is_thinned_evenly_and_keeps_its_end() -> None:
    curve = Curve()
    for step in range(1_000_003):
        curve.add(step, step)
    xs = [x for x, _ in curve.drawn]
    assert len(xs) <= 2 * POINTS_MAX and xs == sorted(xs) and (xs[0], xs[-1]) == (0, 1_000_002)
    gaps = {b - a for a, b in pairwise(xs[:-1])}
    assert len(gaps) == 1


@pytest.mark.parametrize("named", [True, False])
def test_a_second_attempt_is_told_apart_also_where_lines_do_not_name_it(named: bool) -> None:
    told: list[dict[str, object]] = [{"event": "resume", "step": 5}, *({"step": 6 + i} for i in range(3))]
    of = [LogLine(T0, MARK + json.dumps({"at": 1.0, "metrics": {"loss": 1}, **each}), "node 3") for each in told]
    again = [replace(line, source="node 3 attempt 2") for line in of] if named else of
    curves = ReportData().take([*of, *again]).metrics["loss"]
    assert {key: len(curve.points) for key, curve in curves.items()} == {(3, 1): 4, (3, 2): 4}


def test_more_than_fits_is_counted() -> None:
    told = [{"at": 1.0, "step": 1, "event": "note", "metrics": {f"m{i}": 1.0 for i in range(60)}}] * 200
    gathered = ReportData().take(LogLine(T0, MARK + json.dumps(each)) for each in told)
    assert len(gathered.metrics) == 24 and len(gathered.events) == 100
    assert gathered.left_out == 200 * 36 + 100


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=80, deadline=None)
@given(points=st.lists(st.tuples(st.floats(0, 1e15), NUMBERS), max_size=6), time=st.booleans())
def test_any_points_are_drawn_inside_the_picture(points: Sequence[tuple[float, float]], time: bool) -> None:
    xs = [x for x, _ in points]
    made = chart("x", [Series("a", [points])], Times(min(xs), max(xs), xs[:1]) if time and xs else None)
    assert bool(made) == bool(points)
    if points:
        drawn = figure(made)
        for line in drawn.iter("polyline"):
            for pair in str(line.get("points")).split():
                x, y = map(float, pair.split(","))
                assert 0 <= x <= FIELD and 0 <= y <= FIELD
        places = [each.get(name, "") for each in drawn.iter() for name in ("x", "x1", "y1", "cx", "cy")]
        assert all(0 <= float(place[:-1]) <= 100 for place in places if place.endswith("%"))


TOP = 1e15
SPANS = st.tuples(st.floats(-TOP, TOP), st.floats(0, TOP)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(max_examples=200, deadline=None)
@given(span=SPANS, kind=st.sampled_from((between, around, since)))
def test_axes_have_a_few_ticks_in_order(span: tuple[float, float], kind: Callable[[float, float], Axis]) -> None:
    axis = kind(*span)
    ticks = axis.ticks()
    parts = [part for part, _ in ticks]
    assert 1 <= len(ticks) <= 8 and parts == sorted(parts) and 0 <= parts[0] <= parts[-1] <= 1
    if kind is around:
        assert axis.low <= span[0] + 1e-9 * axis.step and span[1] - 1e-9 * axis.step <= axis.high


@pytest.mark.parametrize(
    "axis, words",
    [
        (since(100, 145), ["0", "10s", "20s", "30s", "40s"]),
        (since(0, 3600), ["0", "10m", "20m", "30m", "40m", "50m", "1h"]),
        (since(0, 5400), ["0", "15m", "30m", "45m", "1h", "1h15m", "1h30m"]),
        (since(0, 10 * 86_400), ["0", "2d", "4d", "6d", "8d", "10d"]),
        (around(0.04, 3.9), ["0", "1", "2", "3", "4"]),
        (around(-0.4, -0.1), ["-0.4", "-0.3", "-0.2", "-0.1", "0"]),
        (around(95.2, 99.1), ["95", "96", "97", "98", "99", "100"]),
        (between(1, 24), ["5", "10", "15", "20"]),
    ],
)
def test_ticks_are_at_round_places(axis: Axis, words: list[str]) -> None:
    assert [word for _, word in axis.ticks()] == words


def test_curves_of_a_clock_that_is_wrong_have_an_axis_of_their_own() -> None:
    found = reclaimed()
    skewed = [LogLine(T0, MARK + json.dumps({"at": 1e9 + i, "gpus": [{"use": i}]}), "") for i in range(40)]
    text = page(replace(found, gathered=ReportData().take(skewed)))
    (drawn,) = [part for part in text.split("<figure>") if "<h3>use, %</h3>" in part]
    assert ">30s<" in drawn and 'class="lost"' not in drawn


def test_a_local_job_for_real(home: Path, invoke: Any) -> None:
    code = (
        f"import sys, os; sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "from jobs.runtime.lines import format_line\n"
        "again = os.path.exists('tried'); open('tried', 'w').close()\n"
        "for i in range(1, 10):\n"
        "    print(format_line(step=i, steps=9, metrics={'loss': 1 / i}, gpus=[{'index': 0, 'use': 9 * i}]))\n"
        "sys.exit(0 if again else 3)\n"
    )
    (home / "job.yaml").write_text(json.dumps({"name": "train", "command": ["python", "-c", code], "retries": 1}))
    (home / "targets.json").write_text(f'{{"here": {{"kind": "local", "schema": 1, "root": "{home}"}}}}')
    ref = invoke("submit", "job.yaml", "--to", "here", "--targets", "targets.json", "-o", "id", "--wait").stdout.strip()
    assert invoke("report", ref, "--out", "page.html").exit_code == 0
    text = (home / "page.html").read_text()
    shown = "\n".join(read(text).text)
    assert "attempt 1" in shown and "attempt 2" in shown and "SUCCEEDED" in shown and text.count("<polyline") == 4
    assert invoke("report", ref, "--out", "-").stdout.startswith("<!doctype html>")
    nowhere = invoke("report", ref, "--out", "absent/page.html")
    assert nowhere.exit_code == 2 and "absent/page.html: cannot be written" in nowhere.stderr
