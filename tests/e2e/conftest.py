"""A deployed environment, and the commands as a user runs them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.environment import project
from tests.support import commands
from tests.support.cloud import listing
from tests.support.engine import WITHOUT_KUBERNETES, Sandbox, started
from tests.support.project import Stack, environment, google_sections, put

OWN = ("AWS_", "PULUMI_", "ACCEL_", "GOOGLE_", "CLOUDSDK_")
"""What variables begin with that a sandbox sets itself."""
QUEUES = {"spot": {"environments": ["spot"]}, "steady": {"environments": ["on-demand"]}}


@dataclass(frozen=True)
class Shell:
    """Runs `jobs` and `stacks` in a folder, with the sandbox's variables and a state folder of its own."""

    folder: Path
    variables: dict[str, str]

    def start(self, command: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", command, *arguments],
            cwd=self.folder,
            env={**self.variables, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str, *arguments: str, code: int = 0, **environ: str) -> str:
        """What the command printed on stdout; its exit code must be `code`."""
        done = self.start(command, *arguments, **environ)
        out, err = done.communicate(timeout=120)
        assert done.returncode == code, f"{command} {' '.join(arguments)} ended with {done.returncode}:\n{out}{err}"
        return out.strip()

    def stacks(self, *arguments: str, code: int = 0) -> str:
        """The same of `stacks`, but for its start."""
        return self._ended("stacks", arguments, code, {}).stdout.strip()

    def jobs(self, *arguments: str, code: int = 0, **environ: str) -> str:
        """As `run` of `jobs`, but for its start; `start` has that too."""
        return self._ended("jobs", arguments, code, environ).stdout.strip()

    def fails(self, *arguments: str, code: int, **environ: str) -> list[str]:
        """The error and hint lines of a `jobs` command that must fail."""
        done = self._ended("jobs", arguments, code, environ)
        assert "Traceback" not in done.stderr
        return done.stderr.strip().splitlines()

    def _ended(
        self, command: str, arguments: Sequence[str], code: int, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        done = commands.run(command, *arguments, cwd=self.folder, env={**self.variables, **environ})
        assert done.returncode == code, f"{command} {' '.join(arguments)} ended with {done.returncode}:\n{done}"
        return done


def shell_on(sandbox: Sandbox, targets: Path, folder: Path) -> Shell:
    """A user's shell in the project's folder, with state and cache of its own."""
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(OWN)},
        **sandbox.variables,
        "ACCEL_TARGETS": str(targets),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(project()),
    }
    return Shell(project(), variables)


@pytest.fixture(scope="session")
def deployed(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The sandbox's environment, deployed once for each worker; destroyed, it leaves nothing, whatever jobs ran."""
    before = listing(sandbox, "us-east-1")
    stack = Stack(tmp_path_factory.mktemp("deployed"), sandbox, environment("sandbox"), stack="e2e")
    stack.up_targets()
    yield stack
    stack.destroy()
    assert listing(sandbox, "us-east-1") == before


@pytest.fixture(scope="session")
def both(google: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """AWS Batch with a queue for Spot and one on demand, Google Batch and GKE, in one environment, deployed once."""
    on_google = google_sections("network", "accounts", "batch", "cluster", "pools", "workloads")
    values = {**on_google, **put("aws.queues", QUEUES, environment("sandbox"))}
    stack = Stack(tmp_path_factory.mktemp("both"), google, values, stack="both")
    stack.up_targets()
    yield stack
    stack.destroy()


@pytest.fixture(scope="session")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox without Kubernetes."""
    yield from started(tmp_path_factory.mktemp("managed"), WITHOUT_KUBERNETES)


@pytest.fixture(scope="session")
def services(managed: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The sections `batch` and `vertex`, deployed once."""
    values = google_sections("network", "batch", "vertex")
    stack = Stack(tmp_path_factory.mktemp("services"), managed, values, stack="services")
    stack.up_targets()
    yield stack
    stack.destroy()


@pytest.fixture
def shell(deployed: Stack, sandbox: Sandbox, tmp_path: Path) -> Shell:
    """A user's shell in the project's folder."""
    return shell_on(sandbox, deployed.folder / "targets.json", tmp_path)


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., str]:
    """Writes a job file: the fields given over a small default."""

    def write(**fields: Any) -> str:
        path = tmp_path / f"{fields.get('name', 'small')}.yaml"
        default = {"name": "small", "image": "local/examples", "command": ["python", "-c", "print('hello')"]}
        path.write_text(yaml.safe_dump({**default, **fields}))
        return str(path)

    return write
