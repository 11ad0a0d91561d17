"""The table of features against the classes, the refusals and the page that shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.contract.targets import KINDS, AnyTarget, LocalTarget
from accel.diagnostics.errors import BadInputs
from jobs.backends import base, free_gpus, tasks
from jobs.backends.features import FEATURES
from jobs.backends.registry import backend_class, of_target
from jobs.client.dispatch import Feasible
from jobs.model.job import Job
from tests.support.every_target import MADE

PROTOCOLS: dict[str, Any] = {
    "logs": base.Logs,
    "listing": base.Listing,
    "many": base.Many,
    "concurrent": base.Concurrent,
    "resubmit": base.Resubmit,
    "resubmit_tasks": tasks.ResubmitTasks,
    "tasks": tasks.Tasks,
    "progress_lines": tasks.ProgressLines,
    "attempts": base.Attempts,
    "exec": base.Exec,
    "quota": base.Quotas,
    "free_gpus": free_gpus.FreeGpus,
    "explain": base.Explain,
    "reconcile": base.TendedBackend,
    "feasibility": Feasible,
}
TARGETS: dict[str, Callable[..., AnyTarget]] = {**MADE, "local": LocalTarget}
REFUSALS = {
    "arrays": ({"tasks": 4}, "tasks: "),
    "nodes": ({"nodes": 2}, "nodes: this machine is one node"),
    "spot_prefer": (
        {"spot": "prefer", "deadline": "8h", "timeout_s": 3600},
        ("spot: prefer is for", "spot: this machine is not"),
    ),
}
CHOOSING = Path(__file__).parents[3] / "docs/choosing.md"


def test_every_kind_has_a_row() -> None:
    assert sorted(FEATURES) == sorted(KINDS)


@pytest.mark.parametrize("feature", PROTOCOLS)
@pytest.mark.parametrize("kind", FEATURES)
def test_the_table_says_what_the_class_has(kind: str, feature: str) -> None:
    assert issubclass(backend_class(kind), PROTOCOLS[feature]) is getattr(FEATURES[kind], feature)


@pytest.mark.parametrize("feature", REFUSALS)
@pytest.mark.parametrize("kind", FEATURES)
def test_the_table_says_what_a_backend_refuses(kind: str, feature: str) -> None:
    fields, refusal = REFUSALS[feature]
    job = Job(name="digits", command=["true"], **fields)
    messages: list[str] = []
    try:
        of_target("t", TARGETS[kind]()).render(job, "digits", "0" * 64)
    except BadInputs as error:
        messages = [message.removeprefix("target t: ") for message in error.messages]
    assert any(message.startswith(refusal) for message in messages) is not getattr(FEATURES[kind], feature)


def cells(row: str) -> list[str]:
    """Return the cells of a row of the page's table, one a kind."""
    (line,) = [line for line in CHOOSING.read_text().splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.mark.parametrize(
    "row, feature, says_yes",
    [
        ("`accel-jobs exec` in a running job", "exec", lambda cell: cell.startswith("yes")),
        ("tasks of one job", "arrays", lambda cell: cell != "1"),
        ("several nodes", "nodes", lambda cell: cell != "no"),
        ("who tries again what Spot lost", "reconcile", lambda cell: "`tend`" in cell),
    ],
)
def test_the_page_says_the_same(row: str, feature: str, says_yes: Callable[[str], bool]) -> None:
    written = [getattr(features, feature) for kind, features in FEATURES.items() if kind != "local"]
    assert [says_yes(cell) for cell in cells(row)] == written
