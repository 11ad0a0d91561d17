"""Checkov over what the environments and the components make, as if Terraform had planned it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.laws.components import MAKERS
from tests.policy.test_environments import environment
from tests.support import memory

from .plans import plan
from .weakened import weakened

COMMAND = os.environ.get("ACCEL_CHECKOV", "")
"""Its path; `make audit` installs it and sets this."""
pytestmark = pytest.mark.skipif(not COMMAND, reason="make audit")
SKIPPED: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("skipped.yaml").read_text())
ENVIRONMENTS = ("dev", "gke-dev", "prod", "gke-prod-network", "sandbox")
LABELS = ("CKV_GCP_21",)
"""Checks of what an environment's provider gives to each of its resources."""
CONTROLS = 60
"""Checks, each on a type, that hold for what we make and not for a weaker copy."""


def scanned(folder: Path, plans: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The results of each plan, by its name."""
    for name, one in plans.items():
        (folder / f"{name}.json").write_text(json.dumps(one))
    files = [part for name in plans for part in ("-f", str(folder / f"{name}.json"))]
    command = [COMMAND, *files, "--framework", "terraform_plan", "--compact", "-o", "json"]
    command += ["--soft-fail", "--skip-download"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    found: dict[str, dict[str, Any]] = {name: {"passed": [], "failed": []} for name in plans}
    for verdict in ("passed", "failed"):
        for each in results[f"{verdict}_checks"]:
            found[Path(each["file_path"]).stem][verdict].append((each["check_id"], each["resource"]))
    return found


@pytest.fixture(scope="module")
def environments() -> dict[str, dict[str, Any]]:
    loaded = {name: load_environment(environment(name)) for name in ENVIRONMENTS}
    return {name: plan(memory.run(lambda one=one: deploy(one), stack=name)) for name, one in loaded.items()}


@pytest.fixture(scope="module")
def components(environments: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Those of which something is in no environment."""
    plans = {name.replace(":", "-"): plan(memory.run(lambda make=make: make("one"))) for name, make in MAKERS.items()}
    known = {kind for one in environments.values() for kind in kinds(one)}
    return {name: one for name, one in plans.items() if kinds(one) - known}


@pytest.fixture(scope="module")
def found(
    environments: dict[str, dict[str, Any]],
    components: dict[str, dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, dict[str, Any]]:
    return scanned(tmp_path_factory.mktemp("plans"), environments | components)


def kinds(one: dict[str, Any]) -> set[str]:
    """The types in a plan."""
    return {each["type"] for each in one["planned_values"]["root_module"]["resources"]}


def test_environments_and_components_pass(
    found: dict[str, dict[str, Any]], components: dict[str, dict[str, Any]]
) -> None:
    failed = {
        (name, *each)
        for name, one in found.items()
        for each in one["failed"]
        # How things are joined shows in an environment only.
        if not (name in components and (each[0].startswith("CKV2") or each[0] in LABELS))
    }
    assert sum(len(one["passed"]) for one in found.values()) > 500
    assert sorted(each for each in failed if each[1] not in SKIPPED) == []
    assert SKIPPED.keys() - {each[1] for each in failed} == set(), "what holds need not be skipped"


def test_what_is_skipped_is_explained() -> None:
    assert len(SKIPPED) <= 25
    assert all(each["why"] and each["owner"] for each in SKIPPED.values())


def test_weaker_copies_fail(
    found: dict[str, dict[str, Any]],
    environments: dict[str, dict[str, Any]],
    components: dict[str, dict[str, Any]],
    tmp_path: Path,
) -> None:
    """Else a check might pass because it sees nothing of what we make."""
    after = scanned(tmp_path, {name: weakened(one) for name, one in (environments | components).items()})

    def told(results: dict[str, dict[str, Any]], verdict: str) -> set[tuple[str, str]]:
        pairs = {(id, of.partition(".")[0]) for one in results.values() for id, of in one[verdict]}
        return {pair for pair in pairs if not pair[0].startswith("CKV2")}  # the copies are joined to nothing

    caught = (told(found, "passed") - told(found, "failed")) & told(after, "failed")
    assert len(caught) >= CONTROLS, sorted(caught)
