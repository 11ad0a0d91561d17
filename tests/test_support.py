"""The equipment of the tests: the order of a parallel run, and commands without their imports."""

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sandbox.environment import project
from tests.support import commands, order


class Item(NamedTuple):
    """A collected test."""

    path: Path
    number: int


def test_units_that_take_long_come_first_and_stay_whole() -> None:
    modules = ["accel/test_a.py", "e2e/test_jobs.py", "engine/test_life.py", "e2e/test_gke.py", "e2e/test_queues.py"]
    items: list[Any] = [Item(order.TESTS / module, number) for module in modules for number in (1, 2)]
    order.pytest_collection_modifyitems(items)
    found = [(str(item.path.relative_to(order.TESTS)), item.number) for item in items]
    expected = ["e2e/test_gke.py", "e2e/test_jobs.py", "e2e/test_queues.py", "engine/test_life.py", "accel/test_a.py"]
    assert found == [(module, number) for module in expected for number in (1, 2)]


def test_every_unit_is_there() -> None:
    modules = {str(path.relative_to(order.TESTS)) for path in order.TESTS.rglob("test_*.py")}
    assert order.SECONDS.keys() <= {order.unit(module) for module in modules}
    assert {"aws", "both", "control-plane", "gke", "laws", "services"} == {
        order.unit(module) for module in modules
    } - modules


def test_a_long_count_goes_to_several_workers_of_a_soak() -> None:
    module = "engine/test_recover_kills.py"
    kills = [f"tests/{module}::test_killed_at_any_moment[{part}-7]" for part in ("aws-engine", "google-program")]
    alone = f"tests/{module}::test_a_delete_that_is_in_no_state_is_seen"
    assert {order.scope(each, soak=True) for each in [*kills, alone]} == {
        f"{module}[aws-engine",
        f"{module}[google-program",
        module,
    }
    assert {order.scope(each, soak=False) for each in [*kills, alone]} == {module}
    assert order.SPLIT.keys() <= {str(path.relative_to(order.TESTS)) for path in order.TESTS.rglob("test_*.py")}


@pytest.mark.parametrize(
    "words",
    [("stacks", "--help"), ("stacks", "validat"), ("stacks", "validate", "dve"), ("jobs", "targets")],
    ids=" ".join,
)
def test_a_command_answers_as_from_its_own_start(words: tuple[str, ...], tmp_path: Path) -> None:
    environ = {"PATH": "", "PYTHONPATH": str(project()), "XDG_CACHE_HOME": str(tmp_path)}
    own = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, env=environ, capture_output=True, text=True)
    forked = commands.run(*words, cwd=tmp_path, env=environ)
    assert (forked.returncode, forked.stdout, forked.stderr) == (own.returncode, own.stdout, own.stderr)


def test_a_command_that_raises(tmp_path: Path) -> None:
    done = commands.run("zipfile", "--list", "nosuch.zip", cwd=tmp_path, env={})
    assert done.returncode == 1 and done.stderr.startswith("Traceback ")
    assert done.stderr.splitlines()[-1].startswith("FileNotFoundError: ")
