"""A first deployment in a project of Google Cloud that has no API enabled, on the real engine."""

import pytest

from tests.support.engine import Engine
from tests.support.google_fake import Fake, P
from tests.support.soak import soak_only

from .test_google_budget import SECTION, program

pytestmark = pytest.mark.engine


@pytest.fixture
def engine(engine_on_fresh: Engine) -> Engine:
    return engine_on_fresh


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
