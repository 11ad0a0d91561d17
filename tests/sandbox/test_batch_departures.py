"""Every departure from moto has a source that says so and a test that shows it."""

import re
from pathlib import Path

import pytest
from botocore.loaders import Loader

from sandbox.aws.batch.departures import DEPARTURES, Departure

TESTS = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_batch*.py"))
SHAPES = Loader().load_service_model("batch", "service-2")["shapes"]


@pytest.mark.parametrize("row", DEPARTURES, ids=lambda row: row.id)
def test_a_departure_has_a_source_and_a_test(row: Departure) -> None:
    assert re.search(rf"^def {row.test}\(", TESTS, re.MULTILINE)
    shape = row.source.removeprefix("model:")
    assert SHAPES[shape]["documentation"] if row.source.startswith("model:") else row.source.startswith("https://")


def test_ids_are_unique() -> None:
    assert len({row.id for row in DEPARTURES}) == len(DEPARTURES)
