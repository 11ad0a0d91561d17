"""A law: a password that somebody wrote into an environment or after a command is not printed."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sandbox import __main__ as sandbox
from stacks.cli.main import VERBS, stacks
from tests.support.markers import FORMS, MARKER, planted

ROOT = Path(__file__).resolve().parents[2]


def clean(*arguments: str) -> None:
    result = CliRunner().invoke(stacks, arguments)
    assert MARKER not in result.output + result.stderr, (arguments, result.output)
    assert "this is a bug in accel" not in result.stderr, (arguments, result.stderr)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # no engine
    return tmp_path


@pytest.mark.parametrize("name", ["dev", "gke-prod-workloads"])
def test_in_an_environment(name: str, folder: Path) -> None:
    config: dict[str, Any] = yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text())
    for at, (_, planted_config, form) in enumerate(planted(config["config"])):
        (folder / "Pulumi.it.yaml").write_text(yaml.safe_dump({"config": planted_config}))
        clean("validate", "it")
        if at % 4 == 0:
            clean("cost", "it")
            (folder / "Pulumi.it.yaml").write_text(yaml.safe_dump({"config": {**config["config"], form: form}}))
            clean("validate", "it")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_in_arguments(verb: str) -> None:
    for form in FORMS:
        for line in ([verb, form], [verb, "--stack", form], [verb, f"--{form}"], [verb, "-o", form], [form]):
            clean(*line)


def test_of_the_sandbox(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for form in FORMS:
        for verb in ("status", "stop", "env"):
            sandbox.main(["--home", str(folder / form), verb])
        with pytest.raises(SystemExit):
            sandbox.main(["start", f"--{form}"])
    printed = capfd.readouterr()
    assert MARKER not in printed.out + printed.err
