"""What a shell is answered when its user presses Tab, by the command in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.batch_target import BATCH
from tests.jobs.conftest import ROOT, command

TARGETS = {"gpu-a": BATCH, "gpu-b": {"kind": "newer"}, "cpu": {"kind": "local", "root": "."}}


def answered(line: str, module: str = "jobs", variable: str = "_ACCEL_JOBS_COMPLETE") -> list[str]:
    """The line as bash has it, a space at its end for a word that is not begun."""
    words = line.split()
    count = len(words) - (not line.endswith(" "))
    environ = {variable: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(count), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", module], env=os.environ | environ, capture_output=True, text=True, check=False
    )
    assert done.stderr == "", done.stderr
    return [each.removeprefix("plain,") for each in done.stdout.splitlines() if each]


@pytest.fixture(autouse=True)
def known(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (home / "targets.json").write_text(json.dumps(TARGETS))
    (home / "others.json").write_text(json.dumps({"other": BATCH}))
    monkeypatch.setenv("ACCEL_TARGETS", "targets.json")
    for name in ("dev", "prod"):
        (home / f"Pulumi.{name}.yaml").write_text("config: {}\n")
    (home / "j.yaml").write_text("name: digits\ncommand: ['true']\n")
    return home


def test_targets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered("accel-jobs submit j.yaml --to ") == ["gpu-a", "gpu-b", "cpu", "local"]
    assert answered("accel-jobs ls --to gpu") == ["gpu-a", "gpu-b"]
    assert answered("accel-jobs --targets others.json cost --to o") == ["other"]
    monkeypatch.setenv("ACCEL_TARGETS", "none.json")
    assert answered("accel-jobs ls --to ") == []


def test_jobs(home: Path) -> None:
    refs = [command("submit", "j.yaml", "--to", "cpu", "-o", "id").stdout.strip() for _ in range(2)]
    ids = [ref.rpartition("/")[2] for ref in reversed(refs)]
    for verb in ("get", "logs", "cancel", "wait", "explain", "retry", "watch", "report", "exec"):
        assert answered(f"accel-jobs {verb} ") == ids, verb
    assert answered(f"accel-jobs wait {ids[0]} {ids[1][:-1]}") == [ids[1]]
    assert answered("accel-jobs get local:/d") == list(reversed(refs))
    assert command("get", ids[0]).returncode == 0


def test_words_and_files() -> None:
    assert answered("accel-jobs ls -o js") == ["json", "jsonl"]
    assert answered("accel-jobs submit ") == ["file,"] and answered("accel-jobs submit j") == ["file,j"]
    assert answered("accel-jobs submit j.yaml --code ") == ["dir,"]
    assert "submit" in answered("accel-jobs ") and answered("accel-jobs can") == ["cancel"]


def test_stacks() -> None:
    def ask(line: str) -> list[str]:
        return answered(line, "stacks", "_STACKS_COMPLETE")

    assert ask("stacks validate ") == ["dev", "prod"] and ask("stacks recover p") == ["prod"]
    assert ask("stacks export --stack d") == ["dev"] and ask("stacks budget status --stack p") == ["prod"]
    assert ask("stacks bu") == ["budget"] and ask("stacks budget res") == ["resume"]
    for module, name in (("stacks", "_stacks_completion"), ("jobs", "_accel_jobs_completion")):
        for shell in ("bash", "zsh", "fish"):
            made = [sys.executable, "-P", "-m", module, "completion", shell]
            environ = os.environ | {"PYTHONPATH": str(ROOT)}
            script = subprocess.run(made, env=environ, capture_output=True, text=True, check=True).stdout
            assert name in script.lower() and name.removesuffix("_completion").upper() + "_COMPLETE" in script
