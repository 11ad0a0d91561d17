"""A first deployment in a project of Google Cloud that has no API enabled, on the real engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Engine
from tests.support.google_fake import Fake, P, engine_on, provider_of, serving
from tests.support.soak import soak_only

from .test_google_budget import SECTION, program

pytestmark = pytest.mark.engine


CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1"}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Fake]:
    """A Google project that has no API enabled."""
    with serving(tmp_path / "google") as made:
        yield made


@pytest.fixture
def engine(tmp_path: Path, fresh: Fake) -> Iterator[Engine]:
    with provider_of(fresh) as variables:
        yield from engine_on(tmp_path / "project", fresh, variables, CONFIG, "--run-program")


@soak_only
def test_a_first_deployment_enables_what_it_needs(engine: Engine, fresh: Fake) -> None:
    """Its preview too comes to an end: what it reads in the project is not known yet."""
    budgets = {"ml": {**SECTION["budgets"]["ml"], "recipients": {"emails": ["ml@mail.company.com"]}}}
    engine.write(program({**SECTION, "budgets": budgets}))
    assert engine.preview().exit_code == 0
    made = engine.up()
    assert made.counts.keys() == {"create"}
    usage = f"serviceusage.googleapis.com/v1/{P}/services"
    states = {each: fresh.call("GET", f"{usage}/{each}.googleapis.com")["state"] for each in ("compute", "run", "tpu")}
    assert states == {"compute": "ENABLED", "run": "ENABLED", "tpu": "DISABLED"}, "and nothing else"
    assert engine.up("--refresh").counts.keys() == {"same"}
