"""The `allowances` section: what is refused, and what every target promises."""

from typing import Any

import pytest

from accel.contract.allowances import Allowances
from stacks.environment.config import ConfigFaults, load_environment
from stacks.environment.deployment import deploy
from tests.support import gcp
from tests.support.project import environment as of_stack

SUBNET = {"nodes": "10.0.0.0/22", "pods": "10.4.0.0/14", "services": "10.8.0.0/20"}
GOOGLE = {
    "project": gcp.PROJECT,
    "region": "us-central1",
    "network": {"kind": "create", "subnets": {"us-central1": SUBNET}},
    "batch": {"targets": {"b": {}}},
    "vertex": {"targets": {"v": {}}},
}
TEAMS = {"ml": {"usd": 20}, "vision": {"usd": 0.5, "unpriced": "warn"}}


def google(**allowances: Any) -> dict[str, Any]:
    return {"owner": "ml", "gcp": GOOGLE, "allowances": {"teams": TEAMS, **allowances}}


@pytest.mark.parametrize(
    ("allowances", "path", "says"),
    [
        ({"teams": {}}, "allowances.teams", "must not be empty"),
        ({"teams": {"ml": {"usd": 0}}}, "allowances.teams.ml.usd", "0"),
        ({"teams": {"ml": {"usd": 5, "period": "week"}}}, "allowances.teams.ml.period", "unknown"),
        ({"teams": {"ml": {"usd": 5, "unpriced": "wran"}}}, "allowances.teams.ml.unpriced", "warn"),
        ({"teams": {"ML team": {"usd": 5}}}, "allowances.teams", "ML team"),
        ({"ledger": {"kind": "dynamodb"}}, "allowances.ledger", "there is no section aws; use kind firestore"),
        ({"ledger": {"kind": "file"}}, "allowances.ledger", "dynamodb"),
    ],
)
def test_faults(allowances: dict[str, Any], path: str, says: str) -> None:
    with pytest.raises(ConfigFaults) as refused:
        load_environment(google(**allowances))
    assert path in str(refused.value) and says in str(refused.value)


def test_one_ledger_serves_both_clouds() -> None:
    values = {**of_stack("sandbox"), "allowances": {"teams": TEAMS, "ledger": {"kind": "firestore"}}}
    with pytest.raises(ConfigFaults, match="with a section aws use kind dynamodb, which serves both"):
        load_environment(values)


@pytest.mark.parametrize(
    ("ledger", "kept"),
    [(None, "firestore"), ({"kind": "firestore", "protect": True}, "firestore"), ({"kind": "machine"}, None)],
)
def test_every_target_says_who_may_spend_how_much(ledger: dict[str, Any] | None, kept: str | None) -> None:
    loaded = load_environment(google(**({"ledger": ledger} if ledger else {})))
    recorder = gcp.run(lambda: deploy(loaded))
    promised = recorder.exports["allowances"]
    found = Allowances.model_validate(promised)
    assert found.default_team == "ml" and found.teams["vision"].unpriced == "warn" and found.stack.count("/") == 1
    assert (found.ledger.kind if found.ledger else None) == kept
    targets = recorder.exports["targets"]
    assert {name: each["allowances"] for name, each in targets.items()} == {"b": promised, "v": promised}
    made = [each.name for each in recorder.registrations if each.type == "accel:gcp:SpendLedger"]
    assert made == (["ledger"] if kept else [])


def test_without_the_section_nothing_is_promised() -> None:
    loaded = load_environment({"owner": "ml", "gcp": GOOGLE})
    outputs = gcp.run(lambda: deploy(loaded)).exports
    assert "allowances" not in outputs and all("allowances" not in each for each in outputs["targets"].values())
