"""Whatever is wrong with a command line: its exit code and one error line, then at most one hint."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from jobs.cli.main import VERBS
from jobs.client.history import recent
from tests.jobs.bad_arguments import BAD_ARGUMENTS

TARGETS = {
    "gpu-a": {"kind": "slurm", "schema": 1},
    "gpu-b": {"kind": "slurm"},
    "here": {"kind": "local", "root": "."},
}


ALL_VERBS = [
    (f"{verb} {wrong}", 2, fragment)
    for verb in VERBS
    for wrong, fragment in (
        ("--nonsuch", "unknown option --nonsuch"),
        ("-o yaml", "unknown value yaml"),
        ("--targets", "--targets"),
        ("-x", "-x"),
        ("--strict=yes", "--strict"),
        ("--outptu json", "did you mean --output"),
    )
    if (verb, wrong) != ("import", "-o yaml")
]
"""What is wrong with every verb alike."""

CASES = [*BAD_ARGUMENTS, *ALL_VERBS]


def test_the_corpus_is_large_enough() -> None:
    assert len({line for line, _, _ in CASES}) >= 150


@pytest.mark.parametrize("line, code, fragment", CASES, ids=[line for line, _, _ in CASES])
def test_one_error_line(
    line: str,
    code: int,
    fragment: str,
    home: Path,
    invoke: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (home / "j.yaml").write_text("name: a\ncommand: ['true']\n")
    (home / "targets.json").write_text(json.dumps(TARGETS))
    monkeypatch.setenv("ACCEL_TARGETS", "targets.json")
    result = invoke(*shlex.split(line))
    errors = result.stderr.splitlines()
    assert result.stdout == ""
    assert errors[0].startswith("error: ") and fragment in errors[0], errors
    if "targets.json" not in line:  # read as a job file it has several faults
        assert [error.split(":")[0] for error in errors] in (["error"], ["error", "hint"])
    assert result.exit_code == code
    assert recent() == []
