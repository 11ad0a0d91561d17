"""The equipment of the tests: the order of a parallel run, and commands without their imports."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.environment import project
from tests.support import commands, order


@dataclass(frozen=True)
class Item:
    """A collected test."""

    path: Path
    name: str


def items(**counts: int) -> list[Any]:
    """So many tests of each module; `__` for a slash."""
    modules = {order.TESTS / f"{name.replace('__', '/')}.py": count for name, count in counts.items()}
    return [Item(path, str(number)) for path, count in modules.items() for number in range(count)]


@pytest.mark.parametrize("workers", [2, 3])
def test_each_piece_begins_with_long_tests_and_ends_with_short_ones(workers: int) -> None:
    found = items(accel__test_a=200, e2e__test_b=3, e2e__test_c=3, engine__test_d=2, engine__test_e=1, jobs__test_f=100)
    dealt = order.dealt(found, workers)
    assert sorted(dealt, key=found.index) == found
    size = len(found) // workers
    for piece in range(workers):
        folders = [item.path.parent.name for item in dealt[piece * size : (piece + 1) * size]]
        assert folders[0] in order.SECONDS and folders[-1] not in order.SECONDS
    for path in {item.path for item in found}:
        mine = [item for item in found if item.path == path]
        assert [item for item in dealt if item.path == path] == mine, "the tests of a module stay in their order"
    places = [index for index, item in enumerate(dealt) if item.path.parent.name == "e2e"]
    assert places == list(range(places[0], places[0] + 6)), "one worker deploys for all of them"


def test_more_long_tests_than_a_piece_holds() -> None:
    found = items(engine__test_a=9, accel__test_b=1)
    assert sorted(order.dealt(found, 2), key=found.index) == found


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
