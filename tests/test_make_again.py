"""`make up` after the sandbox was stopped or killed: what stood before stands after, or the loss is said and mended."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from sandbox import processes
from sandbox.toolchain import control_plane
from tests.support.soak import sampled, soak_only
from tests.support.waiting import PATIENCE_S, until

from .test_makefile import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.slow]
LOST = "The sandbox was started again"
LEFT = "The last make was killed"
TARGETS = ROOT / ".accel" / "targets.json"


@dataclass(frozen=True)
class Make:
    """make and the commands on a sandbox of their own, with a state folder of their own. `cloud`: "", where there are
    both."""

    folder: Path
    home: Path
    cloud: str = "aws"

    @property
    def variables(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "AWS_", "PULUMI_"))}
        own = {"SANDBOX_HOME": str(self.home), "ACCEL_SANDBOX_ONLY": self.cloud, "XDG_STATE_HOME": str(self.folder)}
        return kept | own | {"XDG_CACHE_HOME": str(self.folder / "cache"), "ACCEL_PULUMI_BIN": _engine()}

    def start(self, *words: str) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(words, cwd=ROOT, env=self.variables, start_new_session=True, **pipes)

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        """What was printed on stdout and on stderr."""
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE_S * 4)
        assert process.returncode == code, out + err
        return out.strip(), err.strip()

    def begin(self) -> subprocess.Popen[str]:
        """`make up` with a job of a moment."""
        return self.start("make", "--no-print-directory", "up", f"CLOUD={self.cloud}", f"JOB={self.job('true')}")

    def up(self) -> str:
        """What it says beside its results."""
        process = self.begin()
        out, err = process.communicate(timeout=PATIENCE_S * 4)
        assert process.returncode == 0, out + err
        return err

    def jobs(self, words: str, code: int = 0) -> tuple[str, str]:
        """The command with the sandbox's environment."""
        script = f'values=$(.venv/bin/sandbox env) && eval "$values" && .venv/bin/jobs {words}'
        return self.run("bash", "-c", script, code=code)

    def submit(self, path: Path, *options: str) -> str:
        return self.jobs(f"submit {path} --to gpu -o id {' '.join(options)}")[0]

    def forgot(self, ref: str) -> None:
        """A job of a cloud that is gone is said to be unknown, in one line, and is in nobody's way."""
        for verb in ("get", "wait", "logs"):
            error, hint = self.jobs(f"{verb} {ref}", code=6)[1].splitlines()
            assert error.endswith("AWS Batch knows no such job") and hint.startswith("hint: "), error
        assert ref not in self.jobs("ls --all -o id")[0]

    def job(self, *command: str, **fields: Any) -> Path:
        path = self.folder / f"{fields.get('name', 'small')}.yaml"
        small = {"name": "small", "image": "local/examples", "command": [*command], "cpus": 1, "memory_mib": 2048}
        path.write_text(yaml.safe_dump(small | fields))
        return path

    def state(self) -> dict[str, Any]:
        path = self.home / "backend/.pulumi/stacks/accel/sandbox.json"
        try:
            return json.loads(path.read_text())["checkpoint"]["latest"] or {}
        except (FileNotFoundError, json.JSONDecodeError, KeyError):
            return {}

    def kill(self, what: str) -> None:
        """kill -9 of the sandbox, of make with the engine, or of everything, as when the power fails."""
        found = {*processes._remains(self.home)}
        others = {each for each in psutil.process_iter() if self._ours(each)} - found
        engines = {each for each in found if _word(each).startswith("pulumi")}
        chosen = {"sandbox": found - engines, "engine": others | engines, "everything": found | others}[what]
        for each in chosen:
            with contextlib.suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(chosen, timeout=120)

    def _ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("SANDBOX_HOME") == str(self.home)
        except psutil.Error:
            return False


def _word(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


def _engine() -> str:
    from sandbox import toolchain

    return str(toolchain.engine())


def _made(folder: Path, cloud: str) -> Iterator[Make]:
    before = TARGETS.read_bytes() if TARGETS.exists() else None
    made = Make(folder, folder / "sandbox", cloud)
    yield made
    made.kill("everything")
    if before is not None:
        TARGETS.write_bytes(before)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from _made(tmp_path, "aws")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Make]:
    # The cache is the test's own, and building the commands of Kubernetes into it would take a quarter of an hour.
    commands = control_plane.kubernetes().parent
    (tmp_path / "cache/accel").mkdir(parents=True)
    (tmp_path / "cache/accel" / commands.name).symlink_to(commands)
    yield from _made(tmp_path, "")


KILLED = ("everything", "sandbox", "engine")


@pytest.mark.parametrize("killed", sampled(KILLED, ["everything"]))
def test_what_was_killed_is_made_again(make: Make, killed: str) -> None:
    running = make.begin()
    until(lambda: len(make.state().get("resources") or []) > 12 or running.poll() is not None)
    assert running.poll() is None
    make.kill(killed)
    if killed == "sandbox":
        assert running.wait(240) != 0
    told = make.up()
    assert (LOST in told, LEFT in told) == (killed != "engine", killed == "engine")
    make.submit(make.job("true", name="first"), "--wait")


@soak_only
def test_what_was_stopped_is_made_again(make: Make) -> None:
    make.up()
    first = make.submit(make.job("true", name="first"), "--wait", "--key", "first")
    make.run("make", "--no-print-directory", "sandbox-stop")
    told = make.up()
    assert LOST in told and LEFT not in told
    told = make.up()
    assert LOST not in told and LEFT not in told, "it stands"
    make.forgot(first)
    again = make.submit(make.job("true", name="first"), "--wait", "--key", "first")
    assert again != first and again in make.jobs("ls --all -o id")[0]


@soak_only
@pytest.mark.parametrize("tasks", [None, 3], ids=["job", "sweep"])
@pytest.mark.parametrize("killed", KILLED[:2])
def test_what_was_killed_while_jobs_ran_is_made_again(make: Make, tasks: int | None, killed: str) -> None:
    make.up()
    long = make.job("sleep", "600", name="long", **({"tasks": tasks} if tasks else {}))
    ref = make.submit(long)
    until(lambda: "RUNNING" in make.jobs(f"get {ref}")[0])
    make.kill(killed)
    assert LOST in make.up()
    make.forgot(ref)


@soak_only
@pytest.mark.parametrize(("part", "cloud", "target"), [("cloud", "AWS", "gpu"), ("google", "Google", "gke")])
def test_what_one_of_two_clouds_forgot_is_made_again(both: Make, part: str, cloud: str, target: str) -> None:
    both.up()
    job = both.job("true", name="first")
    first, other = (both.jobs(f"submit {job} --to {to} --wait -o id")[0] for to in (target, "local"))
    processes.running(both.home)[part].process.kill()
    told = both.up()
    assert f"The sandbox's {cloud} was started again" in told and LOST not in told
    assert "was started again" not in both.up(), "it stands"
    assert both.jobs(f"submit {job} --to {target} --wait -o id")[0] != first
    assert other in both.jobs("ls --all -o id")[0]


@soak_only
@pytest.mark.parametrize("killed", KILLED)
def test_both_clouds_are_made_again(both: Make, killed: str) -> None:
    running = both.begin()
    until(lambda: len(both.state().get("resources") or []) > 80 or running.poll() is not None)
    assert running.poll() is None
    both.kill(killed)
    running.wait(240)
    told = both.up()
    assert (LOST in told, LEFT in told) == (killed != "engine", killed == "engine")
    again = both.up()
    assert LOST not in again and LEFT not in again
