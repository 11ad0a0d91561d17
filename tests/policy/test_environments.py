"""The house's own environments keep the house's policies."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy.judge import Config, config, findings
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.laws.components import MAKERS
from tests.support import memory
from tests.support.seen import seen

ROOT = Path(__file__).resolve().parents[2]


def environment(stack: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]["accel:environment"]


def read(name: str) -> Config:
    return config(json.loads((ROOT / "policy" / f"{name}.json").read_text()))


@pytest.mark.parametrize(
    "stack, using",
    [("dev", "dev"), ("gke-dev", "dev"), ("prod", "prod"), ("gke-prod-network", "prod"), ("sandbox", "dev")],
)
def test_an_environment_passes(stack: str, using: str) -> None:
    loaded = load_environment(environment(stack))
    resources = seen(memory.run(lambda: deploy(loaded), stack=stack))
    assert len(resources) > 4
    found = findings(resources, read(using))
    assert [(each.policy.id, each.name, each.message) for each in found] == []


def test_a_playground_is_no_production() -> None:
    loaded = load_environment(environment("dev"))
    refused = {each.policy.id for each in findings(seen(memory.run(lambda: deploy(loaded))), read("prod"))}
    assert refused == {"protected-state", "log-retention"}


ABOUT_AN_ENVIRONMENT = ("protected-state", "images-by-digest", "cost-labels")
"""What the environment decides, or its provider: a component alone has neither."""


@pytest.mark.parametrize("name", MAKERS)
def test_a_component_passes_by_default(name: str) -> None:
    recorder = memory.run(lambda: MAKERS[name]("one"))
    found = [
        (each.policy.id, each.name, each.message)
        for each in findings(seen(recorder))
        if each.policy.id not in ABOUT_AN_ENVIRONMENT
    ]
    assert found == []
