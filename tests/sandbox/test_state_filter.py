"""A state without what one cloud forgot: nothing of that cloud is in it, nothing of the other is missing."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.state_filter import PROVIDERS, without

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
STATES = sorted([*GOLDEN.glob("states/*/state.json"), *GOLDEN.glob("records/*/stack-*.json")])


def exported(path: Path) -> dict[str, Any]:
    """A golden state as `pulumi stack export` has it."""
    return json.loads(path.read_text())["export"]


def package(resource: dict[str, Any]) -> str:
    return str(resource["type"]).partition(":")[0]


@pytest.mark.parametrize("cloud", PROVIDERS)
@pytest.mark.parametrize("path", STATES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_one_cloud_is_taken_out_whole(path: Path, cloud: str) -> None:
    before = exported(path)
    after = without(copy.deepcopy(before), PROVIDERS[cloud])
    resources = before["deployment"]["resources"]
    lost = {each["urn"] for each in resources if each.get("custom") and package(each) in PROVIDERS[cloud]}
    left = after["deployment"]["resources"]
    assert [each["urn"] for each in left] == [each["urn"] for each in resources if each["urn"] not in lost]
    assert not lost & set(json.dumps(left).split('"')), "no mention of what is gone"


def test_as_a_command() -> None:
    text = json.dumps(exported(STATES[0]))
    done = subprocess.run(
        [sys.executable, "-m", "sandbox.state_filter", "Google"], input=text, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0 and json.loads(done.stdout) == without(json.loads(text), PROVIDERS["Google"])
