"""The script that exports a task's parameters, run by real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.model import sweep_shell
from jobs.runtime import sweep as parameters

SHELLS = [path for path in map(shutil.which, ("dash", "bash", "ksh", "mksh", "yash", "zsh")) if path]
SHOW = ["env", "-0"]
GRID = {"grid": {"LR": ["0.1", "0.01", "1e-3"], "SIZE": ["32", "64"], "KIND": ["a", "b"]}}
LIST = {"list": {"names": ["LR", "NOTE"], "rows": [["0.1", "x"], ["2", ""], ["3", "a b"]]}}
RANDOM = {"random": {"X": {"uniform": ["0", "1"]}, "Y": {"int": ["1", "9"]}}, "count": 30, "seed": 3}
HOSTILE = ["$(touch hacked)", "`touch hacked`", "'; touch hacked; '", '"', "\\", "a'b\"c", "*", "~", "${PATH}", "!x",
           " ", "\t", "#", "é✓", "-n", ")", ";;", "esac", "%s", "\\n", "$(", "$$", "a=b"]  # fmt: skip


def run(
    spec: dict[str, Any], env: dict[str, str], kind: str = "local", shell: str = "/bin/sh", words: list[str] = SHOW
) -> subprocess.CompletedProcess[str]:
    _, *rest = sweep_shell.command(spec, words, kind)
    base = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ACCEL_TASK_INDEX_FROM": "ACCEL_TASK_INDEX"}
    return subprocess.run([shell, *rest], env={**base, **env}, capture_output=True, text=True, check=False)


def shown(*arguments: Any, **options: Any) -> dict[str, str]:
    done = run(*arguments, **options)
    assert (done.returncode, done.stderr) == (0, "")
    parts = (line.partition("=") for line in done.stdout.split("\0") if line)
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("spec", [GRID, LIST, RANDOM], ids=["grid", "list", "random"])
def test_each_task_gets_the_parameters_of_its_index(spec: dict[str, Any], shell: str) -> None:
    for index in (0, 1, parameters.count(spec) - 1):
        env = shown(spec, {"ACCEL_TASK_INDEX": str(index)}, shell=shell)
        assert {name: env[name] for name in parameters.names(spec)} == parameters.params(spec, index)
        assert env["ACCEL_TASK_COUNT"] == str(parameters.count(spec))


def test_every_index_of_a_grid() -> None:
    found = [shown(GRID, {"ACCEL_TASK_INDEX": str(index)}) for index in range(12)]
    assert [{name: env[name] for name in ("LR", "SIZE", "KIND")} for env in found] == [
        parameters.params(GRID, index) for index in range(12)
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_values_are_never_code(shell: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for spec in (
        {"grid": {"A": HOSTILE}},
        {"list": {"names": ["A", "B"], "rows": [[value, value] for value in HOSTILE]}},
    ):
        for index, value in enumerate(HOSTILE):
            assert shown(spec, {"ACCEL_TASK_INDEX": str(index)}, shell=shell)["A"] == value
    assert not list(tmp_path.iterdir())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_categories=["Cs", "Cc"])), min_size=1, max_size=4))
def test_any_text_comes_through(values: list[str]) -> None:
    spec = {"grid": {"A": values, "B": ["1", "2"]}}
    index = 2 * len(values) - 1
    assert shown(spec, {"ACCEL_TASK_INDEX": str(index)})["A"] == values[-1]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("only, wanted", [("3", [3]), ("0,2,5-7,11", [0, 2, 5, 6, 7, 11]), ("4-6", [4, 5, 6])])
def test_a_part_of_a_sweep_keeps_the_sweep_s_indexes(only: str, wanted: list[int], shell: str) -> None:
    """So that a task finds the checkpoints of its first try."""
    for place, index in enumerate(wanted):
        env = shown(GRID, {"ACCEL_TASK_INDEX": str(place), "ACCEL_SWEEP_ONLY": only}, shell=shell)
        assert {name: env[name] for name in ("LR", "SIZE", "KIND")} == parameters.params(GRID, index)
        assert (env["ACCEL_TASK_INDEX"], env["ACCEL_TASK_COUNT"]) == (str(index), "12")
        assert not [name for name in env if name.startswith("accel_") or name == "ACCEL_SWEEP_ONLY"]


@pytest.mark.parametrize(
    "kind, variable",
    [
        ("aws-batch", "AWS_BATCH_JOB_ARRAY_INDEX"),
        ("gke", "JOB_COMPLETION_INDEX"),
        ("google-batch", "BATCH_TASK_INDEX"),
        ("local", "ACCEL_TASK_INDEX"),
    ],
)
def test_the_index_is_the_platform_s_own(kind: str, variable: str) -> None:
    env = shown(GRID, {"ACCEL_TASK_INDEX_FROM": variable, variable: "7"}, kind)
    assert env["LR"] == parameters.params(GRID, 7)["LR"]
    assert (env["ACCEL_TASK_INDEX"], env["ACCEL_TASK_INDEX_FROM"]) == ("7", "ACCEL_TASK_INDEX")
    # A job of one task has no index of the platform's.
    assert shown(GRID, {"ACCEL_TASK_INDEX": "0", "ACCEL_SWEEP_ONLY": "7"}, kind)["LR"] == env["LR"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "kind, env, said",
    [
        ("aws-batch", {"ACCEL_TASK_INDEX_FROM": "AWS_BATCH_JOB_ARRAY_INDEX"}, "AWS_BATCH_JOB_ARRAY_INDEX"),
        ("local", {"ACCEL_TASK_INDEX": "12"}, "task 12 of 12"),
        ("local", {"ACCEL_TASK_INDEX": "x"}, "no task's number in ACCEL_TASK_INDEX"),
        ("local", {"ACCEL_TASK_INDEX": "-1"}, "no task's number"),
        ("local", {"ACCEL_TASK_INDEX": "2", "ACCEL_SWEEP_ONLY": "3-4"}, "the job has no such task"),
    ],
)
def test_no_index_is_no_first_task(kind: str, env: dict[str, str], said: str, shell: str) -> None:
    """A task without its number fails: all tasks would train the first one's parameters else."""
    done = run(GRID, env, kind, shell)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("accel: sweep: ") and said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_takes_the_shell_s_place() -> None:
    """Signals reach the program itself, and its exit code is the task's."""
    own = ["/bin/sh", "-c", 'echo "$0|$1|$2"; cut -d" " -f1 /proc/self/stat >/dev/null; exit 7', "a", "b c", "$d"]
    done = run(GRID, {"ACCEL_TASK_INDEX": "0"}, words=own)
    assert (done.returncode, done.stdout) == (7, "a|b c|$d\n")
    assert run(GRID, {"ACCEL_TASK_INDEX": "0"}, words=["no-such-program"]).returncode == 127


def test_a_grid_of_many_tasks_has_a_short_script() -> None:
    values = [str(number) for number in range(10)]
    spec = {"grid": {"A": values, "B": values, "C": values, "D": values}}
    assert parameters.count(spec) == 10_000
    assert len(sweep_shell.script(spec, "aws-batch")) < 2500
    assert shown(spec, {"ACCEL_TASK_INDEX": "9876"})["B"] == "8"
