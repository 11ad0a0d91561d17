"""The soak's parts: every test is in one, what they came to is counted, and a soak that was cut off goes on."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import soak
from tests.soak import PARTS, Result
from tests.support.soak import soak_only

ROOT = Path(__file__).parents[1]


def test_every_test_file_is_in_one_part_and_no_part_is_empty() -> None:
    found = [path for part in PARTS for path in soak.files_of(part)]
    assert sorted(found) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(found) == len({*found})
    assert [part for part in PARTS if not soak.files_of(part)] == []
    named = [place for places in PARTS.values() for place in places]
    assert [place for place in named if not (ROOT / place).exists()] == []


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A part of one file, which passes, fails, errs and is passed over; another that is killed."""
    (tmp_path / "test_a.py").write_text(
        "import os, pytest\n"
        "def test_good(): assert os.environ['ACCEL_SOAK'] == '1'\n"
        "def test_bad(): assert os.environ.get('GOOD')\n"
        "@pytest.fixture\ndef broken(): assert os.environ.get('GOOD')\n"
        "def test_broken(broken): pass\n"
        "@pytest.mark.skip\ndef test_not(): pass\n"
    )
    (tmp_path / "test_b.py").write_text("import os\ndef test_dies(): os.kill(os.getppid(), 9)\n")
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    monkeypatch.setattr(soak, "files_of", lambda name: [f"test_{name}.py"])
    return tmp_path


@soak_only
def test_what_a_part_came_to(part: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = part / "a.xml"
    first = soak.run("a", path)
    assert (first.passed, first.failed, first.skipped) == (1, 2, 1)
    assert [failure.rpartition("::")[2] for failure in first.failures] == ["test_bad", "test_broken"]
    monkeypatch.setenv("GOOD", "1")
    assert (soak.run("a", path).passed, soak.run("a", path).failed) == (3, 0)
    assert capsys.readouterr().out.splitlines()[-1] == "a: passed before"
    assert "2 failed" not in (part / "a.txt").read_text()


def test_a_part_that_was_killed_has_failed(part: Path) -> None:
    died = soak.run("b", part / "b.xml")
    assert (died.passed, died.failed, died.failures) == (0, 1, ("pytest did not come to its end",))


def test_the_table() -> None:
    results = {"a": Result(10, 0, 2, 61.4, ()), "kills": Result(7, 1, 0, 9, ("tests.x::test_y",))}
    assert soak.table(results) == [
        "PART   PASSED  FAILED  SKIPPED  TIME",
        "a          10       0        2  61 s",
        "kills       7       1        0   9 s",
        "all        17       1        2  70 s",
        "kills: tests.x::test_y",
    ]


def test_a_part_that_is_misspelt() -> None:
    command: list[Any] = [sys.executable, "-m", "tests.soak", "kill"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "kill: no part; one of again, kills, " in answer.stderr
