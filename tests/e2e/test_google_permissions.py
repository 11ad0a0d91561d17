"""What whoever submits to Google Cloud may do, by `stacks permissions --for submit`, is enough for `accel-jobs`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.environment.config import load_environment
from stacks.operations.permissions.google import document
from tests.support.engine import WITHOUT_KUBERNETES, Sandbox, started
from tests.support.project import Stack, google_sections

from .conftest import shell_on
from .google import Call, caller, printed

CONTROL = "sandbox-api/permissions"
CODE = 4
"""Of what a cloud refuses."""
TARGETS: dict[str, dict[str, Any]] = {
    "batch": {},
    "vertex": {},
    "vm": {"accelerator": {"type": "l4", "count": 1}},
    "tpu": {"accelerator": {"type": "v5litepod-4"}},
}
SECTIONS = ("network", "batch", "vertex", "vms")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    yield from started(tmp_path_factory.mktemp("submitters"), WITHOUT_KUBERNETES)


@pytest.fixture(scope="module")
def deployed(own: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("submitters"), own, google_sections(*SECTIONS), stack="submitters")
    stack.up_targets()
    yield stack
    stack.destroy()


@pytest.fixture
def call(own: Sandbox) -> Iterator[Call]:
    made = caller(own)
    yield made
    made("DELETE", CONTROL)


def test_who_submits_needs_no_more_than_is_printed(deployed: Stack, own: Sandbox, call: Call, tmp_path: Path) -> None:
    shell = shell_on(own, deployed.folder / "targets.json", tmp_path)
    grants = document(load_environment(google_sections(*SECTIONS)), "accel", "submitters", "submit")["grants"]
    allowed = {permission for grant in grants for permission in grant["permissions"]}
    call("POST", CONTROL, {"permissions": sorted(allowed)})
    for target, accelerator in TARGETS.items():
        path = tmp_path / f"{target}.yaml"
        command = ["python", "-c", "print('runs', flush=True)"]
        job = {"name": target, "image": "local/examples", "command": command, **accelerator}
        path.write_text(yaml.safe_dump(job))
        ref = shell.jobs("submit", str(path), "--to", target, "-o", "id", "--key", "one")
        assert shell.jobs("submit", str(path), "--to", target, "-o", "id", "--key", "one") == ref
        shell.jobs("wait", ref, "--timeout", "90s")
        printed(shell, ref, "runs")
        shell.jobs("explain", ref)
        path.write_text(yaml.safe_dump({**job, "command": ["sleep", "600"]}))
        later = shell.jobs("submit", str(path), "--to", target, "-o", "id", "--key", "two")
        shell.jobs("cancel", later, "-y")
        assert ref in shell.jobs("ls", "-a", "--to", target, "-o", "id")
    assert set(call("GET", CONTROL)["recorded"]) <= allowed
    call("POST", CONTROL, {"permissions": sorted(allowed - {"batch.jobs.create"})})
    path = str(tmp_path / "batch.yaml")
    assert "batch.jobs.create" in "".join(shell.fails("submit", path, "--to", "batch", "--key", "three", code=CODE))
