"""What `watch` knows and draws, from made-up statuses and lines."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.console.terminal_text import Style, bar, clip, fit, job_text, lasting, width
from jobs.backends.base import Attempt, JobRef, Phase, Status
from jobs.client.observation import Board, Rate
from jobs.client.progress import parse, place_of, short
from jobs.runtime.lines import MARK, format_line
from jobs.views.watch.draw import Changes, Frame, draw

T0 = 1_795_000_000.0
REF = JobRef("aws-batch", "us-east-1", "a1")
PLAIN, COLOUR = Style(False, True), Style(True, True)
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\r\n\x9b1m\u202eabc\x00\x7f"


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(T0 + seconds, UTC)


def status(phase: Phase = Phase.RUNNING, ref: JobRef = REF, **fields: object) -> Status:
    told = {"name": "digits", "native": str(phase), "created": at(-60), "target": "gpu", **fields}
    return Status(ref=ref, phase=phase, **told)


def line(seconds: float, **told: object) -> str:
    return MARK + json.dumps({"at": T0 + seconds, **told})


def board(*lines: tuple[str, str], seen: Status | None = None, when: float = 0) -> Board:
    made = Board()
    job = made.job(REF)
    job.saw(seen or status(started=at(0)), T0 + when)
    for source, text in lines:
        told = parse(text)
        assert told is not None, text
        job.heard(source, told, made.places)
    return made


def test_a_line_of_the_runtime_is_read_and_said_in_short() -> None:
    gpus = [{"index": 0, "use": 97, "memory_use": 41, "memory_mib": 40960, "throttle": ["thermal"], "xid": [79]}]
    told = parse(
        format_line(step=120, steps=1000, metrics={"loss": 0.3125}, gpus=gpus, event="checkpoint", said="of 120")
    )
    assert told is not None and told.fraction == 0.12
    words = "checkpoint: of 120  step 120/1000 (12%)  loss 0.3125  gpu 97%  memory busy 41%  40.0 GiB"
    assert short(told) == f"{words}  throttled: thermal  XID 79"


@pytest.mark.parametrize(
    "text",
    ["", "loss 3", MARK, MARK + "{", MARK + "[]", MARK + '{"at": "1"}', MARK + '{"at": true}', MARK + '{"at": NaN}',
     MARK + '{"at": -1}', MARK + '{"at": 1e400}', '{"a": "' + MARK + '{"at": 1}'],
)  # fmt: skip
def test_any_other_line_tells_nothing(text: str) -> None:
    assert parse(text) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("step", "steps", "metrics", "gpus", "host", "event", "said", "params")


@settings(max_examples=60, deadline=None)
@given(
    told=st.dictionaries(st.sampled_from(KEYS), ANYTHING | st.dictionaries(st.text(), st.floats())),
    source=st.text(max_size=30),
    columns=st.integers(1, 200),
    rows=st.integers(1, 30),
    colour=st.booleans(),
)
def test_whatever_a_job_says_is_drawn_within_the_screen(
    told: dict[str, object], source: str, columns: int, rows: int, colour: bool
) -> None:
    found = parse(MARK + json.dumps({"at": T0, **told}))
    assert found is not None
    made = board(seen=status(name=f"x{source}", reason=source + HOSTILE))
    made.job(REF).heard(source, found, made.places)
    made.job(REF).heard("task 3 attempt 2", found, made.places)
    lines = draw(made, Frame(columns, rows, T0 + 10, Style(colour, True)))
    assert len(lines) <= rows
    bare = [text for each in lines for text in [strip(each)]]
    assert all(text.isprintable() and width(text) <= columns for text in bare)
    assert short(found).isprintable() or not short(found)
    assert all(text.isprintable() for text in Changes().lines(made, T0))


def strip(text: str) -> str:
    """Without the colours that we add ourselves, and those alone."""
    for code in (*range(31, 38), 1, 2, 0):
        text = text.replace(f"\x1b[{code}m", "")
    return text


def test_use_of_memory_stands_beside_the_use_of_gpus() -> None:
    gpus = [{"use": 90, "memory_use": 40}, {"use": 80, "memory_use": 30}]
    made = board(*[("", line(t, step=t, steps=100, gpus=gpus)) for t in (10, 20)])
    assert "85%/35%" in draw(made, Frame(120, 20, T0 + 20, PLAIN))[2].split()


def test_a_row_has_progress_metrics_gpu_cost_and_the_time_left() -> None:
    lines = [("", line(t, step=t, steps=100, metrics={"loss": 1 / t}, gpus=[{"use": 90}])) for t in (10, 20)]
    made = board(*lines)
    made.job(REF).rate = Rate(3.6, 3.6)
    _, titles, row = draw(made, Frame(120, 20, T0 + 20, PLAIN))
    assert titles.split() == ["NAME", "TARGET", "PHASE", "TIME", "PROGRESS", "METRICS", "GPU", "COST", "ETA"]
    assert row.split() == [
        "digits",
        "gpu",
        "RUNNING",
        "20s",
        "██░░░░░░░░░░",
        "20%",
        "loss",
        "0.05",
        "90%",
        "$0.02",
        "1m20s",
    ]


def test_what_does_not_fit_is_left_out_and_the_phase_stays() -> None:
    made = board(("", line(10, step=1, steps=2, metrics={"loss": 1.0})), seen=status(name="名前" * 20, started=at(0)))
    for columns in range(1, 130):
        lines = draw(made, Frame(columns, 20, T0 + 20, PLAIN))
        assert all(width(text) <= columns for text in lines), columns
        assert columns < 24 or "RUNNING" in lines[2], columns
        assert columns < 40 or "50%" in lines[2], columns


def test_why_a_job_waits_stands_below_it() -> None:
    made = board(seen=status(Phase.QUEUED, native="RUNNABLE", reason="MISCONFIGURATION: no\ninstance " + HOSTILE))
    lines = draw(made, Frame(60, 20, T0, COLOUR))
    assert "MISCONFIGURATION: no instance" in lines[3] and strip(lines[3]).isprintable()


@pytest.mark.parametrize("again, attempt", [("attempt 2", 2), ("", 1)])
def test_a_new_attempt_counts_its_pace_from_its_checkpoint(again: str, attempt: int) -> None:
    task = (
        board(
            ("", line(10, step=10, steps=100)),
            ("", line(60, step=60, steps=100)),
            (again, line(100, step=60, steps=100, event="resume")),
            ("attempt 1", line(61, step=61, steps=100)),
            (again, line(110, step=70, steps=100)),
        )
        .job(REF)
        .tasks[None]
    )
    assert (task.attempt, task.fraction) == (attempt, 0.7)
    assert task.eta_s(T0 + 110) == pytest.approx(30)
    assert task.eta_s(T0 + 120) == pytest.approx(20), "it goes on while nothing is heard"
    assert task.eta_s(T0 + 160) == pytest.approx(180), "it is slower than it was"


def test_an_array_is_counted_and_its_slowest_are_named() -> None:
    seen = status(tasks={"RUNNABLE": 9990, "RUNNING": 8, "SUCCEEDED": 2}, started=at(0))
    lines = [(f"task {i}", line(i, step=i, steps=10)) for i in range(1, 9)]
    made = board(*lines, seen=seen)
    shown = draw(made, Frame(100, 20, T0 + 1000, PLAIN))
    assert "tasks: 9,990 RUNNABLE, 8 RUNNING, 2 SUCCEEDED" in shown[3]
    assert [text.split()[2] for text in shown[4:]] == ["1", "2", "3", "4", "5"]
    assert "silent, last line 16m39s ago" in shown[4]
    assert len(shown) == 9, "ten thousand tasks are a few lines"


def test_an_array_comes_to_its_end_at_the_pace_since_it_is_watched() -> None:
    made = board(seen=status(tasks={"RUNNING": 10, "RUNNABLE": 90}, started=at(0)))
    job = made.job(REF)
    assert job.eta_s(T0) is None
    job.saw(status(tasks={"SUCCEEDED": 25, "RUNNING": 10, "RUNNABLE": 65}, started=at(0)), T0 + 100)
    assert job.eta_s(T0 + 100) == pytest.approx(300)
    job.rate = Rate(36.0, 72.0)
    assert job.cost(T0 + 100) == (pytest.approx(10.0), pytest.approx(20.0)), "ten tasks for 100 s"
    assert not job.missed
    late = board(seen=status(tasks={"RUNNING": 1}, started=at(-7200))).job(REF)
    assert late.missed, "what it cost before nobody saw"


def test_of_nodes_the_last_one_counts() -> None:
    made = board(("node 0", line(1, step=5, steps=10)), ("node 1", line(1, step=3, steps=10)))
    assert made.job(REF).fraction == 0.3
    assert [text.split()[:2] for text in draw(made, Frame(80, 9, T0, PLAIN))[3:]] == [["node", "0"], ["node", "1"]]


def test_the_cost_of_earlier_attempts_counts_once_they_are_known() -> None:
    made = board(seen=status(Phase.SUCCEEDED, started=at(3600), stopped=at(7200), attempts=2))
    job = made.job(REF)
    assert job.cost(T0) is None
    job.rate = Rate(1.0, 2.0, nodes=2)
    assert job.cost(T0) == (2.0, 4.0)
    job.attempts = (Attempt(1, started=at(0), stopped=at(1800)), Attempt(2, started=at(3600), stopped=at(7200)))
    assert job.cost(T0) == (3.0, 6.0)
    job.free = True
    assert job.cost(T0) == (0.0, 0.0)


def test_many_jobs_are_cut_to_the_screen_those_that_run_first() -> None:
    made = Board()
    for number in range(300):
        ref = JobRef("gke", "p/l/c/n", f"j{number}")
        phase = Phase.RUNNING if number >= 290 else Phase.SUCCEEDED
        made.job(ref).saw(status(phase, ref, name=f"j{number}"), T0)
    lines = draw(made, Frame(80, 12, T0, PLAIN))
    assert len(lines) == 12 and lines[0].startswith("300 jobs: 10 running, 290 succeeded")
    assert all(f"j{290 + place}" in text for place, text in enumerate(lines[2:11]))
    assert lines[-1] == "and 291 more jobs"


def test_changes_are_said_once() -> None:
    made, changes = board(seen=status(Phase.QUEUED, native="RUNNABLE")), Changes()
    job = made.job(REF)
    assert changes.lines(made, T0) == [f"{REF}: QUEUED, RUNNABLE"]
    assert changes.lines(made, T0) == []
    job.saw(status(Phase.RUNNING, started=at(0)), T0)
    assert changes.lines(made, T0) == [f"{REF}: RUNNING"]
    said: list[str] = []
    for step in range(1, 101):
        told = parse(line(step, step=step, steps=100, metrics={"loss": 2.0}))
        assert told
        job.heard("", told, made.places)
        said = changes.lines(made, T0 + step)
        assert bool(said) == (step == 1 or step % 10 == 0), step
    assert said == [f"{REF}: 100% done, loss 2, 0s left"]
    job.rate = Rate(1.0, 1.0)
    job.saw(status(Phase.FAILED, started=at(0), stopped=at(3600), reason="OutOfMemory", exit_code=137), T0 + 3600)
    assert changes.lines(made, T0) == [f"{REF}: FAILED, OutOfMemory, exit code 137, cost $1.00"]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("", (None, 1)),
        ("attempt 2", (None, 2)),
        ("task 7", (7, 1)),
        ("node 3 attempt 4", (3, 4)),
        ("tasks 9", (None, 1)),
    ],
)
def test_the_source_of_a_line(source: str, place: tuple[int | None, int]) -> None:
    assert place_of(source) == place


def test_words() -> None:
    assert [lasting(s) for s in (0, 59, 61, 3660, 90_000, 1e30)][:5] == ["0s", "59s", "1m01s", "1h01m", "1d01h"]
    assert width("日本e\u0301") == 5 and clip("日本語", 5, PLAIN) == "日本…" and clip("日本語", 4, PLAIN) == "日…"
    assert fit("日本", 6, PLAIN) == "日本  " and fit("x", 3, PLAIN, right=True) == "  x" and clip("abc", 0, PLAIN) == ""
    ascii_only = Style(False, False)
    assert (
        bar(0.5, 4, ascii_only) == "##--"
        and ascii_only.clean("日\x1b本") == "? ?"
        and clip("abcd", 3, ascii_only) == "ab~"
    )


def test_a_jobs_colours_stay_and_nothing_else_that_a_terminal_obeys() -> None:
    assert job_text("\x1b[1;31mred\x1b[0m", COLOUR) == "\x1b[1;31mred\x1b[0m\x1b[0m"
    assert job_text("\x1b[38;5;12mx", COLOUR) == "\x1b[38;5;12mx\x1b[0m"
    assert job_text("\x1b[1;31mred\x1b[0m", PLAIN) == "red"
    for text in (
        "\x1b[2Jx",
        "\x1b]0;title\x07x",
        "\x1b]8;;http://a\x1b\\x",
        "\x1bPq\x1b\\x",
        "\x1bcx",
        "\x1b[8mx",
        "\x1b[5mx",
    ):
        assert job_text(text, COLOUR) == "x", repr(text)
    assert "\x1b" not in job_text("\x1b\x1b[2J\x1b", COLOUR) and "\x9b" not in job_text("\x9b2J", COLOUR)
    assert job_text("  1%\r 50%\r100%\r", COLOUR) == "100%"
    assert job_text("a\tb", PLAIN) == "a       b"


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("\x1b[]0;8m1PX^_\\\x07\x9b\rxJK?"), max_size=40))
def test_no_mixture_of_sequences_gets_through(text: str) -> None:
    assert job_text(text, PLAIN).isprintable()
    kept = re.sub(r"\x1b\[[0-9;]*m", "", job_text(text, COLOUR))
    assert kept.isprintable(), "what is left are colours"


def test_the_age_of_a_job_that_waits() -> None:
    made = board(seen=status(Phase.QUEUED, created=at(0) - timedelta(hours=2)))
    assert "2h00m" in draw(made, Frame(80, 5, T0, PLAIN))[2]
