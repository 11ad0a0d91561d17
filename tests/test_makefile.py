"""Make runs on the sandbox and on nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from sandbox.keys import bearer
from tests.support.soak import soak_only

ROOT = Path(__file__).resolve().parents[1]


def make(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    # What an outer make hands down would make this one a part of it.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    environment["ACCEL_SANDBOX_ONLY"] = "aws"
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for a sandbox of these tests alone, which is stopped afterwards."""
    home = tmp_path_factory.mktemp("make") / "sandbox"
    yield home
    make("sandbox-stop", SANDBOX_HOME=str(home))


def stacks(home: Path) -> set[Path]:
    return set(home.rglob("accel/*.json"))


TARGETS = {"up", "down", "test", "check", "soak", "lint", "types", "bench", "preview", "clean", "sandbox-stop"}


def test_help_is_what_make_does_first() -> None:
    lines = make().stdout.splitlines()
    targets = {line.split()[0] for line in lines}
    assert targets >= TARGETS
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


@pytest.mark.e2e
@pytest.mark.parametrize("target", ["up", "preview"])
def test_another_backend_is_refused(target: str, home: Path) -> None:
    before = stacks(home)
    answer = make(target, SANDBOX_HOME=str(home), PULUMI_BACKEND_URL="s3://somebody-elses-state")
    assert answer.returncode == 2
    assert "error: PULUMI_BACKEND_URL is s3://somebody-elses-state" in answer.stderr
    assert stacks(home) == before, "a stack was made"


@pytest.mark.engine
@pytest.mark.slow
def test_preview_of_dev_leaves_its_file_as_it_is(home: Path) -> None:
    config = ROOT / "Pulumi.dev.yaml"
    before = config.read_bytes()
    answer = make("preview", "STACK=dev", SANDBOX_HOME=str(home))
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"\+ \d+ to create", answer.stdout)
    assert "shows as a create" in answer.stderr
    assert config.read_bytes() == before

    # A quota that holds nothing ends it before anything is planned.
    cloud = json.loads((home / "cloud.json").read_text())["url"]
    quotas = f"{cloud}/sandbox-api/quotas"
    requests.post(quotas, json={"L-DB2E81BA": 0}, headers=bearer(home), timeout=120).raise_for_status()
    refused = make("preview", "STACK=dev", SANDBOX_HOME=str(home))
    assert refused.returncode != 0
    assert "Running On-Demand G and VT instances (L-DB2E81BA)" in refused.stderr
    assert "to create" not in refused.stdout


@soak_only
@pytest.mark.engine
@pytest.mark.slow
def test_what_the_clouds_have_forgotten_is_not_kept_as_state(home: Path) -> None:
    where = {"SANDBOX_HOME": str(home)}
    assert make("sandbox-start", **where).returncode == 0
    exports = subprocess.run(
        [ROOT / ".venv/bin/sandbox", "env"], env={**os.environ, **where}, capture_output=True
    ).stdout
    made = subprocess.run(
        ["bash", "-c", exports.decode() + "pulumi stack init sandbox"], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    state = home / "backend/.pulumi/stacks/accel/sandbox.json"
    assert "forgotten" not in make("sandbox-start", **where).stderr and state.exists()
    make("sandbox-stop", **where)
    assert "its clouds have forgotten what make up made" in make("sandbox-start", **where).stderr
    assert not state.exists()


@pytest.mark.parametrize("made, warned", [(("aws", "gcp"), True), (("aws",), False), (("gcp",), True)])
def test_a_cloud_that_has_nothing_yet_has_forgotten_nothing(
    made: tuple[str, ...], warned: bool, tmp_path: Path
) -> None:
    """Google starts after AWS's half was deployed: only where the state has something of Google is it lost."""
    home, state = tmp_path / "home", tmp_path / "home/backend/.pulumi/stacks/accel/sandbox.json"
    state.parent.mkdir(parents=True)
    (home / "cloud.json").touch()
    state.write_text(json.dumps({"resources": [{"type": f"{package}:some/kind:Kind"} for package in made]}, indent=1))
    os.utime(home / "cloud.json", (1, 1))
    (home / "google.json").touch()
    os.utime(state, (2, 2))
    recipe = re.search(r"\tpulumi=.*?\tdone; \\\n", (ROOT / "Makefile").read_text(), re.DOTALL)
    assert recipe
    script = recipe[0].replace("$$", "$").replace("\\\n", "\n") + 'echo "$lost"'
    found = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "SANDBOX_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert ("Google" in found.stdout) is warned, found.stderr
