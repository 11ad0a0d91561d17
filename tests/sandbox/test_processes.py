"""The sandbox's processes: started once, found again, stopped without remains."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sandbox import Fault, processes
from sandbox.environment import environment, project, require_sandbox


def sandbox(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sandbox", "--home", str(home), *arguments]
    return subprocess.run(command, cwd=project(), capture_output=True, text=True, timeout=120)


def mine(home: Path) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = process.cmdline()
            if str(home) in line and any(part.startswith("sandbox") for part in line):
                found.append(process)
    return found


@pytest.fixture
def home(tmp_path: Path):
    home = tmp_path / "a sandbox"
    yield home
    processes.stop(home)
    assert not mine(home)


def test_start_stop_and_status(home: Path) -> None:
    assert sandbox(home, "status").returncode == 6
    missing = sandbox(home, "env")
    assert missing.returncode == 6
    assert [line.partition(":")[0] for line in missing.stderr.splitlines()] == ["error", "hint"]

    two = [
        subprocess.Popen(
            [sys.executable, "-m", "sandbox", "--home", str(home), "start"],
            cwd=project(),
            stdout=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    assert [process.wait(120) for process in two] == [0, 0]
    first = {name: part.process.pid for name, part in processes.running(home).items()}
    assert len(mine(home)) == len(first) == 2
    assert sandbox(home, "start").returncode == 0
    assert {name: part.process.pid for name, part in processes.running(home).items()} == first

    exports = sandbox(home, "env").stdout
    shown = subprocess.run(
        ["sh", "-c", exports + "env"], capture_output=True, text=True, env={"PATH": os.defpath}
    ).stdout
    assert set(environment(home).items()) - {("PATH", environment(home)["PATH"])} <= {
        tuple(line.split("=", 1)) for line in shown.splitlines()
    }
    assert "AWS_REGION" not in exports and shlex.quote(str(home)) in exports

    # Killed plugins come back to the same cloud; a killed cloud takes the plugins along.
    os.kill(first["plugins"], signal.SIGKILL)
    assert sandbox(home, "start").returncode == 0
    assert processes.running(home)["cloud"].process.pid == first["cloud"]
    os.kill(first["cloud"], signal.SIGKILL)
    time.sleep(0.1)
    assert sandbox(home, "status").returncode == 6
    assert sandbox(home, "start").returncode == 0
    again = {name: part.process.pid for name, part in processes.running(home).items()}
    assert not set(first.values()) & set(again.values())

    # Pid files lost: the processes are found by their command line.
    (home / "cloud.json").unlink()
    stopped = sandbox(home, "stop", "--wipe")
    assert stopped.stdout.count("stopped ") == 2 and not home.exists()
    assert sandbox(home, "stop").stdout == "nothing was running\n"


def test_foreign_process_under_our_pid_is_left_alone(home: Path) -> None:
    home.mkdir()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        for part in processes.PARTS:
            (home / f"{part}.json").write_text(json.dumps({"pid": other.pid, "port": 1, "providers": {}}))
        assert processes.running(home) == {}
        assert processes.stop(home) == []
        assert other.poll() is None
        other.kill()


def test_failed_start_shows_the_log_and_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_ACCOUNT_ID", "1")
    monkeypatch.setattr(processes, "project", lambda: home / "nowhere")
    with pytest.raises((Fault, OSError)):
        processes.start(home)
    assert not mine(home)


@pytest.mark.parametrize(
    "backend, endpoint, said",
    [
        ("", "http://127.0.0.1:1", "PULUMI_BACKEND_URL is not set"),
        ("s3://state", "http://127.0.0.1:1", "PULUMI_BACKEND_URL is s3://state"),
        ("file:///elsewhere", "http://127.0.0.1:1", "PULUMI_BACKEND_URL is file:///elsewhere"),
        ("file://HOME/../x", "http://127.0.0.1:1", "PULUMI_BACKEND_URL is file://"),
        ("file://HOME/backend", "https://aws.amazon.com", "AWS_ENDPOINT_URL is https://aws.amazon.com"),
        ("file://HOME/backend", "", "AWS_ENDPOINT_URL is not set"),
        ("file://HOME/backend", "http://127.0.0.1:1", None),
    ],
)
def test_refuses_what_is_not_the_sandbox(tmp_path: Path, backend: str, endpoint: str, said: str | None) -> None:
    environ = {
        "SANDBOX_HOME": str(tmp_path),
        "PULUMI_BACKEND_URL": backend.replace("HOME", str(tmp_path)),
        "AWS_ENDPOINT_URL": endpoint,
    }
    if said is None:
        require_sandbox(environ)
        return
    with pytest.raises(Fault) as refused:
        require_sandbox(environ)
    assert refused.value.code == 2 and str(refused.value).startswith(said)
