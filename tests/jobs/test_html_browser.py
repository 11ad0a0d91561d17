"""The page about a job in a browser: laid out as it is meant, on a wide screen and a telephone, light and dark."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Attempt, Phase
from jobs.backends.tasks import TaskStatus
from jobs.client.request_body import RequestSummary
from jobs.client.results import Row
from jobs.views.report.gather import ReportData
from jobs.views.report.page import page
from jobs.views.report.sweep import Sweep
from tests.support.browser import Page, opened
from tests.support.project import project

from .test_html import EVIL, at, lines, reclaimed

WIDE, NARROW = 1280, 480
SCHEMES = ("light", "dark")
ANEW = bool(os.environ.get("ACCEL_UPDATE_GOLDEN"))
"""Whether the picture of docs/sweeps.md is made."""

BOXES = """
[...document.querySelectorAll(%r)].map(each => {
  const box = each.getBoundingClientRect();
  return {name: each.getAttribute("class") || "", text: each.textContent, left: box.left, right: box.right,
          top: box.top, bottom: box.bottom, held: !!each.closest(".scroll")};
})
"""
CUT = """
[...document.querySelectorAll("body *:not(svg *)")].filter(each =>
  !each.closest(".scroll") && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display != "inline"
).map(each => each.outerHTML.slice(0, 200))
"""
CONTRAST = """
(() => {
  const numbers = colour => colour.match(/[0-9.]+/g).map(Number);
  const light = colour => numbers(colour).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, place) => sum + x * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = each => {
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
  };
  const bars = Object.fromEntries([...document.querySelectorAll("rect")].map(
    each => [each.getAttribute("class"), getComputedStyle(each).fill]));
  const texts = "h1, h2, h3, p, dt, dd, small, th, td, li, .phase, .key span, .key b, text, .unit";
  return [...document.querySelectorAll(texts)]
    .filter(each => each.textContent).map(each => {
      const drawn = each.tagName == "text";
      const bar = drawn && each.classList.contains("on") ? bars[each.classList[1]] : null;
      const style = getComputedStyle(each);
      const [a, b] = [drawn ? style.fill : style.color, bar || behind(each)].map(light);
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), each.outerHTML.slice(0, 120)];
    }).filter(([ratio]) => ratio < 4.5);
})()
"""
"""Texts with less than what https://www.w3.org/TR/WCAG22/#contrast-minimum asks for."""


def found(shown: Page, selector: str) -> list[dict[str, Any]]:
    return shown.evaluate(BOXES % selector)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Two nodes, each with attempts of its own, one of which lost its machine; a long name, and text that would do
    harm."""
    folder = tmp_path_factory.mktemp("page")
    told = reclaimed()
    attempts = [
        replace(each, place=place, lost=each.lost and not place)
        for place in (0, 1)
        for each in (*(told.attempts or ()), Attempt(3, None, at(60)))
    ]
    gathered = ReportData().take(lines()).take(lines("samples a second"))
    status = replace(told.status, name=f"digits-{'long' * 40}", reason=EVIL)
    (folder / "page.html").write_text(page(replace(told, status=status, attempts=attempts, gathered=gathered)))
    with opened(folder / "page.html", folder) as shown:
        yield shown


def test_it_asks_for_nothing_and_nothing_is_wrong_with_it(shown: Page, tmp_path: Path) -> None:
    assert (shown.asked, shown.said) == ([], [])
    bad = '<script>console.error("bad")</script><img src="http://127.0.0.1:9/picture.png">'
    (tmp_path / "bad.html").write_text(f"<!doctype html><title>bad</title>{bad}")
    with opened(tmp_path / "bad.html", tmp_path) as other:
        assert other.asked == ["http://127.0.0.1:9/picture.png"] and any('"bad"' in each for each in other.said)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_everything_has_room(shown: Page, width: int) -> None:
    shown.size(width, 900)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate(CUT) == []
    for each in found(shown, "body *"):
        assert each["held"] or (each["left"] >= 0 and each["right"] <= width), each
    for plot in found(shown, "svg.field"):
        assert plot["right"] - plot["left"] > 0.4 * min(width, 1056) and plot["bottom"] - plot["top"] >= 60, plot
    labels = found(shown, "svg.below text")
    assert len(labels) >= 12
    for one, other in pairwise(labels):
        assert one["top"] != other["top"] or one["right"] < other["left"], (one, other)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_timeline_and_the_gpus_have_one_axis(shown: Page, width: int) -> None:
    shown.size(width, 900)
    fields = found(shown, "section:nth-of-type(1) svg.field, section:nth-of-type(4) svg.field")
    assert len(fields) == 4 and len({(each["left"], each["right"]) for each in fields}) == 1
    marks = found(shown, "line.lost")
    assert len(marks) == 4 and len({each["left"] for each in marks}) == 1, "in four pictures"
    rows = found(shown, "section:nth-of-type(1) svg.side text")
    bars = found(shown, "rect")
    assert [each["text"] for each in rows][::3] == ["node 0, attempt 1", "node 1, attempt 1"]
    for row in rows:
        inside = [bar for bar in bars if bar["top"] < (row["top"] + row["bottom"]) / 2 < bar["bottom"]]
        assert inside and all(fields[0]["left"] <= bar["left"] < bar["right"] <= fields[0]["right"] for bar in inside)
        for one, other in pairwise(inside):
            assert one["right"] <= other["left"] + 2.2, "one after the other, but for the least that is seen"


def test_curves_and_tables_are_where_they_belong(shown: Page) -> None:
    shown.size(WIDE, 900)
    field = found(shown, ".charts svg.field")[0]
    curves = found(shown, "polyline")
    assert len(curves) == 13, "two attempts of two metrics, three of use, of use of memory and of memory"
    assert all(each["bottom"] - each["top"] < field["bottom"] - field["top"] + 3 for each in curves)
    assert curves[0]["left"] == pytest.approx(field["left"], abs=2) and curves[1]["left"] > curves[0]["left"] + 50
    ends = {round(each["right"] - each["left"]) for each in found(shown, "tr td:nth-child(2)")}
    assert len(ends) <= 3, "cells of a column are as wide as each other, in each table"
    right = shown.evaluate('[...document.querySelectorAll("td.n")].map(each => getComputedStyle(each).textAlign)')
    assert right and set(right) == {"right"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_can_be_read(shown: Page, scheme: str) -> None:
    shown.size(WIDE, 900)
    shown.scheme(scheme)
    back = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back[4:-1].split(","))) > 384) == (scheme == "light")
    assert shown.evaluate(CONTRAST) == []
    kinds = {each["name"] for each in found(shown, "rect")}
    assert kinds == {"wait", "start", "bad", "over", "lost"} and found(shown, "text.on.over")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A sweep of two parameters, half drawn at random, with a name and a value that are long."""
    folder = tmp_path_factory.mktemp("sweep")
    draw = random.Random(16)
    told = reclaimed()
    params = [
        {
            "LEARNING_RATE": f"{10 ** draw.uniform(-4, -1):.2g}",
            "BATCH_SIZE": str(2 ** (5 + i % 4)),
            "SCHEDULE": ("constant", "cosine-with-warm-restarts")[i % 2],
        }
        for i in range(12)
    ]
    rows = [
        Row(told.status.ref, i, i, each, TaskStatus(i, Phase.SUCCEEDED, "SUCCEEDED", 1, 0), {"accuracy": draw.random()})
        for i, each in enumerate(params)
    ]
    rows[3].metrics.clear()
    tasks = [row.state for row in rows]
    long = 1 if ANEW else 40
    sent = RequestSummary(
        "registry.example/" + "train" * long, ("python3", "train.py", "--note=" + "x" * 5 * long), "ab" * 32
    )
    found = replace(told, tasks=tasks, sweep=Sweep(rows, "accuracy", "max"), sent=sent)
    (folder / "page.html").write_text(page(found))
    with opened(folder / "page.html", folder) as shown:
        yield shown
        if ANEW:
            shown.scheme("light")
            end = "document.querySelectorAll('section')[1].getBoundingClientRect().top + scrollY"
            shown.picture(project() / "docs" / "pictures" / "sweep.png", 1000, upto=end)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_sweep_has_room_and_leaves_no_half_empty(swept: Page, width: int) -> None:
    swept.size(width, 900)
    assert (swept.asked, swept.said) == ([], [])
    assert swept.evaluate("document.documentElement.scrollWidth") <= width and swept.evaluate(CUT) == []
    (whole,) = found(swept, "header")
    for table in found(swept, "table"):
        assert table["right"] - table["left"] >= 0.98 * (whole["right"] - whole["left"]), table["text"][:80]
    for one, other in pairwise(found(swept, "section:first-of-type svg.below text")):
        assert one["top"] != other["top"] or one["right"] < other["left"], (one, other)
    fields, dots = found(swept, "section:first-of-type svg.field"), found(swept, "section:first-of-type circle")
    assert len(fields) == 3 and len(dots) == 3 * 11
    for field, part in zip(fields, (dots[:11], dots[11:22], dots[22:]), strict=True):
        assert all(field["left"] - 6 <= dot["left"] and dot["right"] <= field["right"] + 6 for dot in part)
    assert fields[-1]["right"] >= 0.98 * whole["right"], "the last of three has the whole width"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_sweep_can_be_read(swept: Page, scheme: str) -> None:
    swept.size(WIDE, 900)
    swept.scheme(scheme)
    assert swept.evaluate(CONTRAST) == []
