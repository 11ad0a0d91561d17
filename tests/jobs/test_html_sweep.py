"""The page about a sweep: its best task, pictures of its parameters, the ranking, and what is folded."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.backends.base import JobRef, LogLine, Phase
from jobs.backends.tasks import TaskStatus
from jobs.client.results import Row
from jobs.model.sweep_tasks import SweepPart
from jobs.runtime.lines import MARK
from jobs.views.report.gather import SERIES_MAX, ReportData
from jobs.views.report.page import page
from jobs.views.report.sweep import PLACES_MAX, Sweep, of, scatter

from .test_html import EVIL, T0, at, figure, read, reclaimed

REF = JobRef("local", "", "tune-1")
ROOT = str(Path(__file__).resolve().parents[2])
TRAIN = f"""
import os, sys; sys.path.insert(0, {ROOT!r})
from jobs.runtime.lines import format_line
rate, size = float(os.environ["LR"]), int(os.environ["SIZE"])
if (rate, size) == (0.1, 64):
    print("diverged"); sys.exit(3)
for step in range(1, 4):
    print(format_line(step=step, steps=3, metrics={{"accuracy": step * (1 - rate) / 4, "loss": rate / step}}))
    print(format_line(step=step, event="checkpoint", said=f"step {{step}}"), flush=True)
"""


def tuned(rates: Sequence[str], metrics: Sequence[float | None], best: str | None = "max") -> Sweep:
    rows = [
        Row(REF, i, i, {"LR": rate}, TaskStatus(i, Phase.SUCCEEDED, "done"), {} if told is None else {"acc": told})
        for i, (rate, told) in enumerate(zip(rates, metrics, strict=True))
    ]
    return Sweep(rows, "acc", best)


def cells(text: str, title: str) -> list[list[str]]:
    """The texts of each row of a section's table, its head first."""
    drawn = text.split(f"<h2>{title}</h2>")[1].split("<table>")[1].split("</table>")[0]
    rows = ElementTree.fromstring(f"<table>{drawn}</table>").iter("tr")  # noqa: S314
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def test_a_sweep_on_this_machine_for_real(home: Path, invoke: Any) -> None:
    sweep = {
        "grid": {"LR": ["0.1", "0.01", "0.001"], "SIZE": ["32", "64"]},
        "objective": {"metric": "accuracy", "best": "max"},
    }
    job = {"name": "tune", "command": [sys.executable, "-c", TRAIN], "sweep": sweep}
    (home / "tune.json").write_text(json.dumps(job))
    (home / "targets.json").write_text(f'{{"here": {{"kind": "local", "schema": 1, "root": "{home}"}}}}')
    done = invoke("submit", "tune.json", "--to", "here", "--targets", "targets.json", "-o", "id", "--wait")
    ref = done.stdout.splitlines()[0]
    assert invoke("report", ref, "--out", "page.html").exit_code == 0
    text = (home / "page.html").read_text()
    shown = "".join(read(text).text)
    assert "Best by accuracy (max): task 4 with 0.7492: LR=0.001 SIZE=32 (5 of 6 tasks have told it)" in shown
    assert all(f"<h3>accuracy by {name}</h3>" in text for name in ("LR", "SIZE"))
    ranking = cells(text, "Sweep")
    assert ranking[0] == ["place", "task", "LR", "SIZE", "accuracy", "loss", "phase"]
    assert [row[1] for row in ranking[1:]] == ["4", "5", "2", "3", "0", "1"] and ranking[-1][-1] == "FAILED"
    assert [row[:3] for row in cells(text, "Tasks")[1:]] == [["1", "1", "FAILED"], ["0,2-5", "5", "SUCCEEDED"]]
    curves = text.split("<h3>accuracy</h3>")[1].split("</figcaption>")[0]
    assert curves.index("task 4,") < curves.index("task 5,") < curves.index("task 2,") < curves.index("task 0,")
    assert text.count('<line class="saved"') == 15 and "3 checkpoints, the last: step 3" in shown
    assert "python" in shown and "accel_bad" not in shown, "the command is the user's own"


def test_a_task_that_is_a_job_of_its_own_has_its_parameters() -> None:
    found = replace(reclaimed(), params={"LR": "0.1", "NOTE": EVIL})
    text = page(found)
    assert "LR=0.1 NOTE=" in "".join(read(text).text)


def test_the_smallest_is_the_best_where_the_objective_says_so() -> None:
    found = tuned(["1", "2", "3"], [0.5, 0.1, None], "min")
    assert [row.index for row in found.ranked] == [1, 0, 2]
    assert found.first is not None and found.first.index == 1
    nobody = tuned(["1", "2"], [0.5, 0.9], None)
    assert [row.index for row in nobody.ranked] == [0, 1] and nobody.first is None
    text = page(replace(reclaimed(), sweep=nobody))
    assert cells(text, "Sweep")[0][:2] == ["task", "LR"], "nothing is ranked where nobody says which is better"


def test_a_sweep_without_an_objective_shows_the_first_metric() -> None:
    tasks = [TaskStatus(i, Phase.SUCCEEDED, "done") for i in range(2)]
    spec = {"grid": {"LR": ["1", "2"]}}
    found = of(REF, SweepPart(spec, range(2), None), tasks, {0: {"loss": 1.0}, 1: {"loss": 2.0, "acc": 0.1}})
    assert (found.metric, found.best) == ("loss", None) and "loss by LR" in page(replace(reclaimed(), sweep=found))


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.one_of(WORDS, st.floats(allow_nan=True, allow_infinity=True).map(str), st.sampled_from(["1e-4", "nan", ""]))


@settings(max_examples=150, deadline=None)
@given(
    tasks=st.lists(
        st.tuples(VALUES, st.none() | st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=30
    ),
    best=st.sampled_from(["max", "min", None]),
)
def test_any_sweep_is_drawn_inside_its_picture(tasks: list[tuple[str, float | None]], best: str | None) -> None:
    found = tuned([value for value, _ in tasks], [told for _, told in tasks], best)
    text = page(replace(reclaimed(), sweep=found))
    read(text)
    made = scatter(found, "LR")
    told = [row for row in found.rows if row.metrics]
    kinds = {row.params["LR"] for row in told}
    if 2 <= len(kinds) <= PLACES_MAX:
        assert made
    if made:
        dots = list(figure(made).iter("circle"))
        assert len(dots) == len(told)
        assert all(0 <= float(dot.get(name, "")[:-1]) <= 100 for dot in dots for name in ("cx", "cy"))


def test_numbers_far_apart_are_drawn_by_their_logarithms() -> None:
    rates = [f"{10**-place}" for place in range(12)]
    made = scatter(tuned(rates, [float(i) for i in range(12)]), "LR")
    across = [float(dot.get("cx", "")[:-1]) for dot in figure(made).iter("circle")]
    gaps = [round(b - a, 1) for a, b in zip(sorted(across), sorted(across)[1:], strict=False)]
    assert len(set(gaps)) == 1, gaps


def test_checkpoints_are_ticks_in_the_bar_of_their_attempt() -> None:
    told = [
        LogLine(at(each), MARK + json.dumps({"at": at(each).timestamp(), "event": "checkpoint", "said": f"{each}"}), "")
        for each in (5, 10, 15, 30, 40)
    ]
    found = replace(reclaimed(), gathered=ReportData().take(told))
    text = page(found)
    assert text.count('<line class="saved"') == 5 and ">checkpoint<" in text
    assert "5 checkpoints, the last: 40" in "".join(read(text).text)


def test_the_last_metric_of_every_task_is_kept_however_many_there_are() -> None:
    told = [
        LogLine(T0, MARK + json.dumps({"at": 1.0, "step": step, "metrics": {"acc": task + step / 10}}), f"task {task}")
        for task in range(3 * SERIES_MAX)
        for step in (1, 2)
    ]
    gathered = ReportData().take(told)
    assert gathered.last == {task: {"acc": task + 0.2} for task in range(3 * SERIES_MAX)}
    assert len(gathered.metrics["acc"]) == SERIES_MAX


@pytest.mark.parametrize("count", [1, 40])
def test_reasons_that_are_the_same_are_one_row(count: int) -> None:
    tasks = tuple(TaskStatus(i, Phase.FAILED, "FAILED", 1, 1, "Essential container exited") for i in range(count))
    text = page(replace(reclaimed(), tasks=tasks))
    assert text.count("Essential container exited") == 1 and cells(text, "Tasks")[1][1] == str(count)
