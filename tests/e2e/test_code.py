"""`submit --code` on every backend: sent, unpacked, run; an edited file is another job, without another image.

GKE's is in test_gke.py, that of VMs in test_vms.py.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.engine import Sandbox
from tests.support.project import Stack
from tests.support.small_wheel import write_wheel
from tests.support.soak import sampled

from .conftest import Shell, shell_on

TRAIN = """
import os, pathlib, sys
import accel_runtime
import small_package
from model import layers
assert small_package.answer == 42
print("{word}", layers.COUNT, sys.argv[1:], pathlib.Path("data/\u00fc \\n.txt").read_text(), flush=True)
print("no build" if not os.path.exists("build") else "build", os.environ["ACCEL_CODE"])
"""
SWEEP = """
import os, pathlib
print("{word}", os.environ["RATE"], flush=True)
print('@accel {"at": 1, "metrics": {"rate": %s}}' % os.environ["RATE"], flush=True)
raise SystemExit(3 if os.environ["RATE"] != "1" and not pathlib.Path(os.environ["MENDED"]).exists() else 0)
"""


class Project:
    """A repository of somebody who trains."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = {
            "model/__init__.py": "",
            "model/layers.py": "COUNT = 7\n",
            "data/\u00fc \n.txt": "odd",
            ".gitignore": "build/\n.env\n",
            "build/out.bin": "0" * 1000,
            ".env": "TOKEN=x",
            "requirements.txt": "--no-index\n--find-links wheels\nsmall-package==1.0\n",
        }
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        write_wheel(folder / "wheels")
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        self.say("first")

    def say(self, word: str) -> None:
        for name, text in (("train", TRAIN), ("tune", SWEEP)):
            (self.folder / f"{name}.py").write_text(text.replace("{word}", word))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def goes_round(shell: Shell, project: Project, to: str, tmp_path: Path, **fields: object) -> None:
    path = tmp_path / f"{to}.yaml"
    job = {"name": f"code-{to}", "image": "local/examples", "command": ["python3", "train.py", "a b", "$(x)"], **fields}
    path.write_text(yaml.safe_dump(job))
    sent = ("--code", str(project.folder), "--requirements", str(project.folder / "requirements.txt"))
    submit = ("submit", str(path), "--to", to, *sent, "--key", "k", "-o", "id", "--wait")
    first = shell.jobs(*submit)
    log = shell.jobs("logs", first)
    assert "first 7 ['a b', '$(x)'] odd" in log, log
    digest = log.split("no build ")[1].split()[0]
    assert digest in shell.jobs(*submit[:-1], "--dry-run")
    assert shell.jobs(*submit[:-1]) == first
    project.say("second")
    second = shell.jobs(*submit)
    assert second != first
    assert "second 7 ['a b', '$(x)'] odd" in shell.jobs("logs", second)


def its_failed_tasks_run_the_same_code(shell: Shell, project: Project, to: str, tmp_path: Path, **fields: Any) -> None:
    path, mended = tmp_path / f"tune-{to}.yaml", tmp_path / "mended"
    job = {"name": f"tune-{to}", "image": "local/examples", "command": ["python3", "tune.py"], "retries": 0, **fields}
    sweep = {"env": {"MENDED": str(mended)}, "sweep": {"grid": {"RATE": ["1", "2", "3"]}}}
    path.write_text(yaml.safe_dump({**job, **sweep}))
    project.say("as it was")
    first = shell.jobs("submit", str(path), "--to", to, "--code", str(project.folder), "-o", "id")
    shell.jobs("wait", first, "--timeout", "120s", code=125)
    project.say("mended")
    mended.touch()
    second = shell.jobs("retry", first, "-o", "id")
    shell.jobs("wait", second, "--timeout", "120s")
    log = shell.jobs("logs", second)
    assert "as it was 2" in log and "as it was 3" in log and "as it was 1" not in log and "mended" not in log, log
    found = json.loads(shell.jobs("results", second, "--by", "rate", "--max", "-o", "json"))
    assert [(each["params"]["RATE"], each["state"], each["job"]) for each in found] == [
        ("3", "SUCCEEDED", second),
        ("2", "SUCCEEDED", second),
        ("1", "SUCCEEDED", first),
    ]


@pytest.mark.parametrize("to", sampled(["local", "gpu"], ["gpu"]))
def test_on_this_machine_and_on_aws_batch(shell: Shell, project: Project, to: str, tmp_path: Path) -> None:
    goes_round(shell, project, to, tmp_path)
    its_failed_tasks_run_the_same_code(shell, project, to, tmp_path)


@pytest.mark.parametrize("to", sampled(["batch", "vertex"], ["batch"]))
def test_on_google_cloud(services: Stack, managed: Sandbox, project: Project, to: str, tmp_path: Path) -> None:
    shell = shell_on(managed, services.folder / "targets.json", tmp_path)
    goes_round(shell, project, to, tmp_path)
    if to == "batch":  # a job of Vertex AI has one task
        its_failed_tasks_run_the_same_code(shell, project, to, tmp_path)
