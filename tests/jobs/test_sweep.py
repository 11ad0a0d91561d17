"""A sweep in a job file: its tasks, its values, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.contract import variables
from accel.diagnostics.errors import BadInputs
from jobs.model import document, sweep, sweep_tasks
from jobs.model.job import Job
from jobs.runtime import sweep as parameters

BASE = "name: s\ncommand: [python, train.py]\n"
DRAWN = {
    "random": {
        "LEARNING_RATE": {"log": ["1e-4", "1e-1"]},
        "HIDDEN": {"choice": ["32", "64", "128"]},
        "DROPOUT": {"uniform": ["0", "0.5"]},
        "LAYERS": {"int": ["1", "8"]},
    },
    "count": 4,
    "seed": 7,
}


def job(text: str, *sets: str) -> Job:
    read = document.parse((BASE + text).encode(), "f.yaml", Job)
    for each in sets:
        read.set(each)
    return read.job()


def every(job: Job) -> list[dict[str, str]]:
    assert job.sweep
    spec = json.loads(sweep.text(sweep.sweep_spec(job.sweep)))
    return [parameters.params(spec, index) for index in range(job.tasks)]


def test_a_grid_is_every_combination_and_its_last_name_changes_fastest() -> None:
    read = job("sweep: {grid: {LR: [0.10, 1e-3, 007], SIZE: [32, 64]}}")
    assert read.tasks == 6
    assert [tuple(each.values()) for each in every(read)] == [
        ("0.10", "32"), ("0.10", "64"), ("1e-3", "32"), ("1e-3", "64"), ("007", "32"), ("007", "64"),
    ]  # fmt: skip


def test_a_list_is_as_written() -> None:
    read = job("sweep:\n  list:\n  - {LR: 0.1, NAME: 'a b'}\n  - {NAME: '$x', LR: 3}\n")
    assert every(read) == [{"LR": "0.1", "NAME": "a b"}, {"LR": "3", "NAME": "$x"}]


def test_what_is_drawn_is_the_same_everywhere() -> None:
    """These values are what docs/sweeps.md promises: a change of one of them changes every sweep that was made."""
    assert [list(parameters.params(DRAWN, index).values()) for index in range(4)] == [
        ["0.00115853", "32", "0.441191", "5"],
        ["0.0421308", "32", "0.42615", "8"],
        ["0.00215727", "128", "0.493341", "4"],
        ["0.000379078", "64", "0.286325", "2"],
    ]


def test_the_caller_s_own_decimal_settings_change_nothing() -> None:
    wanted = parameters.params(DRAWN, 3)
    with localcontext() as context:
        context.prec = 3
        assert parameters.params(DRAWN, 3) == wanted


def test_the_decimals_of_python_itself_draw_the_same() -> None:
    """`_pydecimal` is what Pythons without the C library use: their exp and ln are held to the same digits."""
    code = (
        "import sys, _pydecimal; sys.modules['decimal'] = _pydecimal\n"
        "import importlib.util, json\n"
        "spec = importlib.util.spec_from_file_location('accel_sweep', sys.argv[1])\n"
        "found = importlib.util.module_from_spec(spec); sys.modules['accel_sweep'] = found\n"
        "spec.loader.exec_module(found)\n"
        "print(json.dumps([found.params(json.loads(sys.argv[2]), i) for i in range(60)]))\n"
    )
    drawn = {**DRAWN, "count": 60, "seed": 11}
    path = str(Path(parameters.__file__))
    done = subprocess.run(
        [sys.executable, "-c", code, path, json.dumps(drawn)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [parameters.params(drawn, index) for index in range(60)]


@given(st.integers(0, 2**31), st.integers(0, 1000))
def test_what_is_drawn_lies_within_its_bounds(seed: int, index: int) -> None:
    found = parameters.params({**DRAWN, "count": 1001, "seed": seed}, index)
    assert 1e-4 <= float(found["LEARNING_RATE"]) <= 1e-1
    assert 0 <= float(found["DROPOUT"]) <= 0.5
    assert 1 <= int(found["LAYERS"]) <= 8
    assert found["HIDDEN"] in ("32", "64", "128")


def test_draws_are_spread_evenly() -> None:
    spec = {"random": DRAWN["random"], "count": 4000, "seed": 1}
    drawn = [parameters.params(spec, index) for index in range(4000)]
    layers = [sum(each["LAYERS"] == str(count) for each in drawn) for count in range(1, 9)]
    assert min(layers) > 400 and max(layers) < 600
    low = sum(float(each["LEARNING_RATE"]) < 10**-2.5 for each in drawn)
    assert 1850 < low < 2150


@pytest.mark.parametrize("low, high", [("0.1234567", "0.1234568"), ("1e-9", "1.0000001e-9")])
def test_rounding_leaves_no_value_outside(low: str, high: str) -> None:
    for kind in ("uniform", "log"):
        spec = {"random": {"X": {kind: [low, high]}}, "count": 20, "seed": 0}
        for index in range(20):
            assert float(low) <= float(parameters.params(spec, index)["X"]) <= float(high)


@given(st.lists(st.integers(0, 500), min_size=1, unique=True))
def test_numbers_are_read_as_they_were_written(numbers: list[int]) -> None:
    assert parameters.spans(parameters.format_spans(sorted(numbers))) == sorted(numbers)


def test_a_job_file_keeps_its_sweep() -> None:
    for text in ("grid: {A: [1, 2]}", "list: [{A: x}]", "random: {A: {int: [1, 9]}}, count: 3, seed: 5"):
        read = job(f"sweep: {{{text}, objective: {{metric: loss, best: min}}}}")
        again = document.parse(document.dump(read).encode(), "again.yaml", Job).job()
        assert again == read and again.tasks == read.tasks


def test_fields_of_a_sweep_are_set_from_the_command_line() -> None:
    text = "sweep: {random: {A: {choice: [1, 2]}}, count: 3}"
    assert job(text, "sweep.count=5", "sweep.shell=false").tasks == 5
    assert job("sweep: {grid: {A: [1]}}", "sweep.grid.A=[0.10, 2]").sweep == job("sweep: {grid: {A: [0.10, 2]}}").sweep


def test_tasks_may_say_what_the_sweep_says() -> None:
    assert job("tasks: 4\nsweep: {grid: {A: [1, 2], B: [3, 4]}}").tasks == 4
    assert job("parallelism: 3\nsweep: {grid: {A: [1, 2], B: [3, 4]}}").parallelism == 3


WRONG = {
    "tasks: 16\nsweep: {grid: {A: [1, 2], B: [3, 4]}}": "tasks: 16 tasks, 4 combinations of the sweep; leave tasks out",
    "sweep: {}": "sweep: must have one of grid, list and random, has none",
    "sweep: {grid: {A: [1]}, list: [{A: 1}]}": "sweep: must have one of grid, list and random, has grid and list",
    "sweep: {grid: {}}": "sweep.grid: must not be empty",
    "sweep: {grid: {A: []}}": "sweep.grid.A: must not be empty",
    "sweep: {grid: {A: [yes]}}": "sweep.grid.A.0: must be text; YAML read it as true: quote it",
    "sweep: {grid: {A-B: [1]}}": "sweep.grid.A-B: not the name of an environment variable",
    "sweep: {grid: {ACCEL_A: [1]}}": "sweep.grid.ACCEL_A: names that begin with ACCEL_",
    'sweep: {grid: {A: ["a\\nb"]}}': "line break",
    "sweep: {grid: {A: [1]}, count: 3}": "sweep.count: is of random alone",
    "sweep: {grid: {A: [1]}, size: 3}": "sweep.size: unknown field",
    "sweep: {list: [{A: 1}, {B: 1}]}": "sweep.list.1: has not A, unlike the first",
    "sweep: {list: [{A: 1}, {A: 1, B: 1}]}": "sweep.list.1: has B, unlike the first",
    "sweep: {list: []}": "sweep.list: must not be empty",
    "sweep: {random: {A: {int: [1, 2]}}}": "sweep.count: is missing; random needs the number of tasks",
    "sweep: {random: {A: {int: [1, 2]}}, count: 0}": "sweep.count: is missing",
    "sweep: {random: {A: {}}, count: 1}": "sweep.random.A: must have one of log, uniform, int and choice, has none",
    "sweep: {random: {A: {int: [1, 2.5]}}, count: 1}": "sweep.random.A.int: must be two whole numbers",
    "sweep: {random: {A: {int: [3, 2]}}, count: 1}": "sweep.random.A.int: the lowest comes first, and 3 is not below 2",
    "sweep: {random: {A: {log: [0, 1]}}, count: 1}": "sweep.random.A.log: 0 has no logarithm",
    "sweep: {random: {A: {uniform: [a, 1]}}, count: 1}": "sweep.random.A.uniform.0: must be a number",
    "sweep: {random: {A: {uniform: [0, .inf]}}, count: 1}": "sweep.random.A.uniform.1",
    "sweep: {random: {A: {uniform: [0, 1, 2]}}, count: 1}": "must have at most 2 entries, has 3",
    "sweep: {random: {A: {uniform: [0, 1e999]}}, count: 1}": "sweep.random.A.uniform.1",
    "sweep: {grid: {A: [1]}, objective: {metric: loss, best: low}}": "sweep.objective.best: must be one of",
    "env: {A: 1}\nsweep: {grid: {A: [1]}}": "env.A: is set by the sweep; keep one",
    "secrets: {A: /x}\nsweep: {grid: {A: [1]}}": "secrets.A: is set by the sweep; keep one",
    "nodes: 2\nsweep: {grid: {A: [1, 2]}}": "nodes: 2 with 2 tasks",
    "nodes: 2\nsweep: {grid: {A: [1]}}": "sweep: is of tasks, and the job has 2 nodes",
    "parallelism: 3\nsweep: {grid: {A: [1, 2]}}": "parallelism: 3 is above tasks, 2",
    "sweep: {random: {A: {int: [1, 9]}}, count: 90000}": "shell: false leaves them to the program",
    "sweep: {random: {A: {int: [1, 9]}}, count: 100001, shell: false}": "sweep: has 100001 combinations, of which",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_in_a_line_with_its_place(text: str) -> None:
    with pytest.raises(BadInputs) as caught:
        job(text)
    (message,) = caught.value.messages
    assert WRONG[text] in message
    assert message.startswith("f.yaml:")


def test_a_sweep_needs_a_command_unless_its_program_reads_it() -> None:
    with pytest.raises(BadInputs, match="command: is missing"):
        document.parse(b"name: s\nimage: a/b:1\nsweep: {grid: {A: [1, 2]}}\n", "f", Job).job()
    assert (
        document.parse(b"name: s\nimage: a/b:1\nsweep: {grid: {A: [1, 2]}, shell: false}\n", "f", Job).job().tasks == 2
    )


def test_a_variable_above_what_linux_hands_on_is_refused() -> None:
    rows = "".join(f"  - {{A: {'x' * 40}{number}}}\n" for number in range(3000))
    with pytest.raises(BadInputs, match="of which a variable takes 131071"):
        job(f"sweep:\n  shell: false\n  list:\n{rows}")


def test_names_of_variables_are_those_of_the_contract() -> None:
    ours = (parameters.SWEEP, parameters.ONLY, parameters.INDEX, parameters.INDEX_FROM)
    assert ours == (variables.SWEEP, variables.SWEEP_ONLY, variables.TASK_INDEX, variables.INDEX_FROM)


@pytest.mark.parametrize(
    "env, index",
    [
        ({"ACCEL_TASK_INDEX": "2"}, 2),
        ({"ACCEL_TASK_INDEX_FROM": "JOB_COMPLETION_INDEX", "JOB_COMPLETION_INDEX": "1"}, 1),
        ({"ACCEL_TASK_INDEX": "1", "ACCEL_SWEEP_ONLY": "0,3"}, 3),
        ({"ACCEL_TASK_INDEX": "2", "ACCEL_SWEEP_ONLY": "0,2-3"}, 3),
    ],
)
def test_a_program_finds_its_parameters_without_a_shell(env: dict[str, str], index: int) -> None:
    found = parameters.task({**env, "ACCEL_SWEEP": sweep.text(DRAWN)})
    assert found == parameters.Member(index, 4, parameters.params(DRAWN, index))


@pytest.mark.parametrize("env", [{}, {"ACCEL_TASK_INDEX": "x"}, {"ACCEL_TASK_INDEX": "5", "ACCEL_SWEEP_ONLY": "0"}])
def test_a_program_without_an_index_is_told_so(env: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="ACCEL_TASK_INDEX: "):
        parameters.task({**env, "ACCEL_SWEEP": sweep.text(DRAWN)})
    assert parameters.task({}) is None and "ACCEL_SWEEP" not in os.environ


def test_on_targets_of_one_task_each_is_a_job() -> None:
    read = job("env: {E: x}\nsweep: {grid: {A: [1, 2], B: [x]}}")
    parts = sweep_tasks.apart(read, "vertex")
    assert [each.name for each in parts] == ["s-0", "s-1"]
    assert [{name: each.env[name] for name in "ABE"} for each in parts] == [
        {"A": "1", "B": "x", "E": "x"},
        {"A": "2", "B": "x", "E": "x"},
    ]
    assert {each.tasks for each in parts} == {1}
    found = [sweep_tasks.find_sweep({"env": each.env}) for each in parts]
    assert [(each.places, each.params(each.places[0])) for each in found if each] == [
        ([0], {"A": "1", "B": "x"}), ([1], {"A": "2", "B": "x"}),
    ]  # fmt: skip
    assert sweep_tasks.apart(read, "gke") == [read]


BODIES: list[Any] = [
    {"env": {"ACCEL_SWEEP": "x"}},
    {"a": [{"b": {"variables": {"OTHER": "y", "ACCEL_SWEEP": "x"}}}]},
    {"containers": [{"env": [{"name": "OTHER", "value": "y"}, {"name": "ACCEL_SWEEP", "value": "x"}]}]},
]


@pytest.mark.parametrize("body", BODIES)
def test_a_variable_is_found_in_every_form_of_request(body: Any) -> None:
    assert sweep_tasks.variable(body, "ACCEL_SWEEP") == "x"
    assert sweep_tasks.variable(body, "ACCEL_SWEEP_OF") is None
