"""Files as vendors publish them, where clones of their repositories are: see originals.py."""

import os
from pathlib import Path

import pytest

from jobs.importers.kinds import KINDS
from tests.jobs.imports.originals import Original, originals, problems

FOLDER = os.environ.get("ACCEL_ORIGINALS", "")
ALL = list(originals())


@pytest.mark.skipif(not FOLDER, reason="ACCEL_ORIGINALS names no folder of clones")
@pytest.mark.parametrize("original", ALL, ids=lambda each: f"{each.repo}/{each.path}")
def test_a_published_file_is_imported_as_it_is(original: Original) -> None:
    assert problems(original, original.read(Path(FOLDER))) == []


def test_each_kind_with_a_public_repository_is_in_the_table() -> None:
    # SkyPilot's repository is larger than what can be cloned here; its shapes are in samples/.
    assert {each.kind for each in ALL} == set(KINDS) - {"skypilot"}
