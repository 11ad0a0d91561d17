"""A Google project that has no API enabled, and the engine before its first deployment there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Engine
from tests.support.google_fake import Fake, engine_on, provider_of, serving

CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1"}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Fake]:
    with serving(tmp_path / "google") as made:
        yield made


@pytest.fixture
def engine_on_fresh(tmp_path: Path, fresh: Fake) -> Iterator[Engine]:
    with provider_of(fresh) as variables:
        yield from engine_on(tmp_path / "project", fresh, variables, CONFIG, "--run-program")
