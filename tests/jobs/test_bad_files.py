"""Whatever is wrong with a job file: exit code 2, one line a fault, no trace, nothing submitted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from jobs.client.history import recent
from tests.jobs.bad_files import BAD_FILES


def test_the_corpus_is_large_enough() -> None:
    assert len({text for text, _ in BAD_FILES}) >= 150


@pytest.mark.parametrize("verb", ["validate", "submit"])
@pytest.mark.parametrize("text, fragments", BAD_FILES, ids=range(len(BAD_FILES)))
def test_every_fault_is_one_line(
    text: str | bytes, fragments: list[str], verb: str, home: Path, invoke: Callable[..., Result]
) -> None:
    (home / "f.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    result = invoke(verb, "f.yaml")
    lines = result.stderr.splitlines()
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(lines) == len(fragments), lines
    for line, fragment in zip(lines, fragments, strict=True):
        assert line.startswith("error: f.yaml:"), line
        assert fragment in line
        assert len(line) < 400
    assert recent() == []
