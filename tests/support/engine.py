"""The real Pulumi engine against a sandbox of its own: one sandbox a session, one folder and stack a test."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import pytest
import yaml

from sandbox import keys, processes
from sandbox.environment import environment, project
from sandbox.processes import PARTS, stop

from . import programs
from .forking import Forked

PROJECT = "name: {name}\nruntime: python\n"
WITHOUT_KUBERNETES = ("cloud", "google", "plugins")
"""Parts of a sandbox."""
SKIP_CHECKPOINTS = "PULUMI_SKIP_CHECKPOINTS"
"""The variable by which the engine writes the state once, at its end. To write it whole before and after each step is
half of its CPU. Runs that are killed do without it (killed.py)."""
STEPS = ("create", "update", "replace", "delete", "same")


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox, and boto3 clients of its cloud."""

    home: Path
    variables: Mapping[str, str]
    secrets: str = "passphrase"
    """What encrypts the secrets of stacks. A key of KMS takes a call; a passphrase, 0.2 s of CPU a command."""

    def client(self, service: str, region: str = "us-east-1") -> Any:
        return boto3.client(
            service,  # pyright: ignore[reportArgumentType, reportCallIssue]
            region_name=region,
            endpoint_url=self.variables["AWS_ENDPOINT_URL"],
            **keys.boto(keys.key(self.home)),
        )


@dataclass(frozen=True)
class Step:
    """One step of an operation, as the engine planned it."""

    op: str
    type: str
    name: str
    diffs: tuple[str, ...]
    """The paths that differ."""
    replaces: tuple[str, ...]
    """The properties that force a replacement."""


@dataclass(frozen=True)
class Result:
    """What one engine command did."""

    exit_code: int
    counts: Counter[str]
    """Resources by operation (create, update, replace, delete, same), the stack itself not counted."""
    steps: tuple[Step, ...]
    outputs: Mapping[str, Any]
    """The stack's outputs; secret ones read `[secret]`."""
    diagnostics: tuple[str, ...]
    """Warnings and errors, one text each, without colours."""
    text: str = field(repr=False)
    """stdout and stderr."""

    def ops(self, *without: str) -> dict[str, int]:
        """The counts, without zeros and without the operations named."""
        return {op: n for op, n in self.counts.items() if n and op not in without}

    @property
    def drift(self) -> dict[str, tuple[str, ...]]:
        """What the refresh of `up --refresh` found to differ from the state: paths by name."""
        return {step.name: step.diffs for step in self.steps if step.op == "refresh" and step.diffs}

    def step(self, name: str, op: str) -> Step:
        found = [step for step in self.steps if step.name == name and step.op == op]
        assert found, f"no {op} of {name} among {[(s.op, s.name) for s in self.steps]}"
        return found[0]


class Engine:
    """A Pulumi program in a folder, and the commands on its one stack.

    `program`: the text of a `__main__.py`, or a folder with its own Pulumi.yaml, which is copied
    (used as it is where it is `folder` itself).
    """

    def __init__(
        self,
        folder: Path,
        sandbox: Sandbox,
        program: str | Path = "",
        *,
        stack: str = "test",
        config: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.sandbox, self.stack = folder, sandbox, stack
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PULUMI_"))},
            **sandbox.variables,
            "PULUMI_DEBUG_COMMANDS": "true",  # the event log is behind it
            "PULUMI_PYTHON_CMD": programs.python(),
            "GOGC": "400",  # garbage is collected less often: CPU is what the tests wait for
            SKIP_CHECKPOINTS: "true",
            "PYTHONPATH": str(project()),
            "VIRTUAL_ENV": "",
            **(environ or {}),
        }
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(program, Path):
            if program != folder:
                unwanted = shutil.ignore_patterns(".*", "__pycache__")
                shutil.copytree(program, folder, dirs_exist_ok=True, ignore=unwanted)
            (folder / ".venv").symlink_to(sys.prefix)  # a Pulumi.yaml may name it
        else:
            # A project of its own for each test: a backend is shared by the session.
            (folder / "Pulumi.yaml").write_text(PROJECT.format(name=f"{folder.name[:60]}-{os.urandom(3).hex()}"))
            self.write(program)
        self.project: str = yaml.safe_load((folder / "Pulumi.yaml").read_text())["name"]
        lines = {"aws:region": "us-east-1"} if config is None else config
        stack_file = folder / f"Pulumi.{stack}.yaml"
        if lines and not stack_file.exists():
            stack_file.write_text("config:\n" + "".join(f"  {k}: {json.dumps(v)}\n" for k, v in lines.items()))
        self.run("stack", "select", "--create", stack, "--secrets-provider", sandbox.secrets)

    def write(self, program: str) -> "Engine":
        """Replace the program."""
        (self.folder / "__main__.py").write_text(program)
        return self

    def preview(self, *options: str, check: bool = True) -> Result:
        return self._operate("preview", *options, check=check)

    def up(self, *options: str, check: bool = True) -> Result:
        return self._operate("up", "--yes", "--skip-preview", *options, check=check)

    def stays(self, count: int) -> None:
        """Nothing of so many resources differs, neither from the program nor from what the cloud has."""
        result = self.up("--refresh")
        changed = {step.name: (step.op, step.diffs) for step in result.steps if step.op not in ("same", "refresh")}
        assert (changed, result.ops()) == ({}, {"same": count})

    def refresh(self, *options: str, check: bool = True) -> Result:
        return self._operate("refresh", "--yes", "--skip-preview", *options, check=check)

    def destroy(self, *options: str, check: bool = True) -> Result:
        return self._operate("destroy", "--yes", "--skip-preview", *options, check=check)

    def export(self) -> list[dict[str, Any]]:
        """The resources in the stack's state."""
        state = json.loads(self.run("stack", "export", "--stack", self.stack, "--show-secrets").stdout)
        return state["deployment"].get("resources", [])

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Any command of `pulumi` in the folder."""
        command = [shutil.which("pulumi", path=self.variables["PATH"]) or "pulumi", *arguments]
        done = subprocess.run(
            [*command, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def _operate(self, verb: str, *options: str, check: bool) -> Result:
        log = self.folder / "events.json"
        log.unlink(missing_ok=True)
        done = self.run(verb, "--stack", self.stack, "--event-log", str(log), *options, check=False)
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        result = _result(done, events)
        assert not check or done.returncode == 0, result.text
        return result


def _result(done: subprocess.CompletedProcess[str], events: list[dict[str, Any]]) -> Result:
    steps: list[Step] = []
    outputs: Mapping[str, Any] = {}
    diagnostics: list[str] = []
    counts: Counter[str] = Counter()
    refreshed: set[str] = set()
    stack = ""
    for event in events:
        if about := event.get("diagnosticEvent"):
            if about["severity"] in ("warning", "error"):
                diagnostics.append(about["message"].strip())
        elif about := event.get("summaryEvent"):
            counts.update(about["resourceChanges"] or {})
        elif about := event.get("resourcePreEvent") or event.get("resOutputsEvent"):
            planned, found = "resourcePreEvent" in event, about["metadata"]
            if found["type"] == "pulumi:pulumi:Stack":
                outputs = (found.get("new") or {}).get("outputs") or outputs
                stack = "same" if found["op"] == "refresh" else found["op"]
            elif found["op"] == "refresh" and planned:
                refreshed.add(found["urn"])  # what it found comes with its outputs
            elif planned or found["urn"] in refreshed:
                steps.append(_step(found))
    counts[stack] -= stack != ""
    return Result(
        exit_code=done.returncode,
        counts=counts,
        steps=tuple(steps),
        outputs=outputs,
        diagnostics=tuple(diagnostics),
        text=done.stdout + done.stderr,
    )


def _step(found: Mapping[str, Any]) -> Step:
    detailed = found.get("detailedDiff") or {}
    return Step(
        op=found["op"],
        type=found["type"],
        name=found["urn"].rpartition("::")[2],
        diffs=tuple(sorted(detailed or found.get("diffs") or [])),
        replaces=tuple(sorted(found.get("keys") or [])),
    )


def start(home: Path, parts: Collection[str] = processes.AWS) -> None:
    """Start these parts of a sandbox, without two seconds of CPU for the imports of each."""

    def forked(arguments: list[str], log: int) -> Forked:
        return Forked(arguments, project(), os.environ, log, log)

    with mock.patch.object(processes, "run_python", forked):
        processes.start(home, parts)


def started(home: Path, parts: Collection[str] = processes.AWS) -> Iterator[Sandbox]:
    """For a fixture: a sandbox with these parts."""
    start(home, parts)
    made = Sandbox(home, environment(home))
    key = made.client("kms").create_key()["KeyMetadata"]["KeyId"]
    yield replace(made, secrets=f"awskms://{key}?region=us-east-1")
    stop(home)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for the session (of each worker, under xdist)."""
    yield from started(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="session")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """As `sandbox`, with the Google and Kubernetes parts: nodes that come in moments."""
    home = tmp_path_factory.mktemp("google")
    (home / "nodes.json").write_text(json.dumps({"scale_up_s": 0.2, "driver_s": 0.1, "grace_s": 3}))
    yield from started(home, PARTS)


@pytest.fixture
def engine(tmp_path: Path, sandbox: Sandbox) -> Iterator[Engine]:
    """An empty program; `engine.write(...)` gives it one. What a failed test leaves is destroyed."""
    engine = Engine(tmp_path, sandbox)
    yield engine
    (state,) = (sandbox.home / "backend" / ".pulumi" / "stacks" / engine.project).glob(f"{engine.stack}.json")
    if json.loads(state.read_text())["checkpoint"]["latest"].get("resources"):
        engine.destroy(check=False)
