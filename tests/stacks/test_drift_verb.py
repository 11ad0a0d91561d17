"""`stacks drift` as a command: exit codes, stacks that were not deployed, targets that nobody answers for."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

import jobs.client.published_targets as published
import stacks.cli.drift as drift_command
from accel.diagnostics.errors import CloudSilent, NotFound
from sandbox.environment import project
from stacks.cli.main import stacks
from stacks.operations.drift.comparison import drift_of_targets
from stacks.operations.drift.differences import Drift, Weight
from stacks.operations.drift.state import Resource, State
from tests.support.project import environment

Found = dict[str, list[Drift]]


def found(weight: Weight) -> list[Drift]:
    return [Drift("pool", "l4", weight, "is ERROR", "make it anew")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    values = json.dumps({"config": {"accel:environment": environment("sandbox")}})
    for name in ("dev", "prod"):
        (tmp_path / f"Pulumi.{name}.yaml").write_text(values)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, deployed: Found, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr, where the stacks of `deployed` were deployed and have drifted so."""

    def drift_of_stack(stack: Any, *_: Any) -> list[Drift]:
        if stack.name not in deployed:
            raise NotFound(f"stack {stack.name} has no resources", "deploy it first: pulumi up")
        return deployed[stack.name]

    monkeypatch.setattr(drift_command, "drift_of_stack", drift_of_stack)
    done = CliRunner().invoke(stacks, ["drift", *arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    "weight, strict, code",
    [(None, True, 0), ("soon", False, 0), ("unknown", False, 0), ("soon", True, 7), ("unknown", True, 7),
     ("changed", False, 7), ("broken", False, 7)],
)  # fmt: skip
def test_exit_codes(
    weight: Weight | None, strict: bool, code: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = {"prod": found(weight) if weight else []}
    arguments = ["prod", "-o", "json", *(["--strict"] if strict else [])]
    ended, out, err = run(monkeypatch, deployed, *arguments)
    assert (ended, [each["weight"] for each in json.loads(out)]) == (code, [weight] if weight else []), err
    assert "prod: as deployed" in err if not weight else True


def test_a_stack_that_is_not_deployed_ends_it_only_where_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(monkeypatch, {"prod": found("broken")}, "-o", "json")
    assert (code, [each["stack"] for each in json.loads(out)]) == (7, ["prod"])
    assert "dev: stack dev has no resources" in err
    code, _, err = run(monkeypatch, {"prod": []}, "prod", "dev")
    assert code == 6 and "deploy it first" in err


SOURCE = "ssm:us-east-1/accel/prod/targets"
TARGET = {"kind": "aws-batch", "region": "us-east-1", "queue": "gpu"}
DEPLOYED = State((
    Resource("pulumi:pulumi:Stack", "accel-prod", "", {}, {"targets": {"gpu": TARGET}}, ""),
    Resource("accel:aws:PublishedTargets", "targets", "", {}, {"path": "/accel/prod/targets"}, "accel-prod"),
))  # fmt: skip


@pytest.mark.parametrize(
    "answer, expected",
    [
        ({"gpu": TARGET}, []),
        ({"gpu": {**TARGET, "queue": "other"}}, [("target", "gpu", "changed")]),
        ({"old": TARGET}, [("target", "gpu", "broken"), ("target", "old", "changed")]),
        (NotFound("nothing is published"), [("target", "gpu", "broken")]),
        (CloudSilent("nobody answers"), [("not readable", SOURCE, "unknown")]),
    ],
)
def test_targets(
    answer: Any, expected: list[tuple[str, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fetched(given: Any) -> None:
        def fetch() -> Any:
            if isinstance(given, Exception):
                raise given
            return given

        monkeypatch.setitem(published._SOURCES, "ssm:", lambda source: fetch)  # pyright: ignore[reportPrivateUsage]

    # A copy from before, which is as the stack has it, is not what is published now.
    fetched({"gpu": TARGET})
    assert drift_of_targets(DEPLOYED) == []
    fetched(answer)
    assert [(each.what, each.name, each.weight) for each in drift_of_targets(DEPLOYED)] == expected


@pytest.mark.parametrize("codes, code", [((0, 0), 0), ((7, 0), 7), ((0, 7), 7)])
def test_the_scheduled_workflow_looks_at_both(codes: tuple[int, int], code: int, tmp_path: Path) -> None:
    """Its script, as GitHub runs it, with a `stacks` that ends as it is told."""
    workflow = yaml.safe_load((project() / ".github" / "workflows" / "drift.yml").read_text())
    script = workflow["jobs"]["look"]["steps"][-1]["run"]
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@"\ncase "$3" in drift) exit {codes[0]};; leaks) exit {codes[1]};; esac\n')
    python.chmod(0o755)
    variables = {**os.environ, "STACK": "prod", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=variables, check=False)
    assert done.returncode == code
    told = [line for line in (tmp_path / "summary").read_text().splitlines() if line.startswith("-m")]
    assert told == ["-m stacks drift prod -o wide", "-m stacks leaks --expect-none prod -o wide"]
    for line in told:
        name, *arguments = line.removeprefix("-m stacks ").split()
        command = stacks.get_command(click.Context(stacks), name)
        assert command
        command.make_context(name, arguments, resilient_parsing=False)
