"""The sandbox's processes: started once, found again, stopped without remains."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sandbox import SandboxError, keys, processes
from sandbox.__main__ import ONLY
from sandbox.environment import environment, project

_TAIL = shutil.which("tail") or "tail"


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
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(ONLY, "aws")  # the others are tested where they are
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

    assert {path.name: path.stat().st_mode & 0o777 for path in (home, home / "key", home / "header")} == {
        home.name: 0o700,
        "key": 0o600,
        "header": 0o600,
    }
    secret = keys.key(home)
    assert (home / "header").read_text() == f"Authorization: Bearer {secret}\n"
    values = [secret, *keys.aws(secret).values(), *keys.aws(secret, keys.DEPLOYER).values()]
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            assert not [value for value in values if value in " ".join(process.cmdline())]

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


def test_an_output_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    """As `sandbox status | head -1` and a full disk do it."""
    command = [sys.executable, "-m", "sandbox", "--home", str(tmp_path), "status"]
    listening, telling = os.pipe()
    os.close(listening)
    gone = subprocess.run(command, cwd=project(), stdout=telling, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(telling)
    assert (gone.returncode, gone.stderr) == (141, "")
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(command, cwd=project(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert told.returncode == 1
    assert told.stderr.splitlines()[0] == "error: the output cannot be written: No space left on device"
    assert "Traceback" not in told.stderr and "Exception" not in told.stderr


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
    with pytest.raises((SandboxError, OSError)):
        processes.start(home)
    assert not mine(home)


def test_what_a_killed_control_plane_left_is_ended(home: Path) -> None:
    ours, other = home / "kubernetes" / "data", home.parent / "kubernetes" / "data"
    for file in (ours, other):
        file.parent.mkdir(parents=True)
        file.touch()
    # Named as the real ones are; what only mentions the folder, or belongs to another one, is left alone.
    named = (("etcd", ours), ("kueue", ours), ("less", ours), ("etcd", other))
    started = [subprocess.Popen([f"/bin/{name}", "-f", str(file)], executable=_TAIL) for name, file in named]
    try:
        ended = {int(line.split()[0]) for line in processes.stop(home)}
        assert ended == {process.pid for process in started[:2]}
        assert [process.poll() is None for process in started] == [False, False, True, True]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_google_starts_anew_with_its_cluster(home: Path) -> None:
    everything = {"cloud", "google", "kubernetes", "plugins"}
    assert processes._missing(processes.PARTS, everything) == []
    assert processes._missing(processes.PARTS, everything - {"google"}) == ["google", "kubernetes", "plugins"]
    assert processes._missing(processes.PARTS, everything - {"kubernetes"}) == ["google", "kubernetes", "plugins"]
    assert processes._missing(processes.PARTS, everything - {"plugins"}) == ["plugins"]
    assert processes._missing(processes.AWS, {"cloud"}) == ["plugins"]
    without = ("cloud", "google", "plugins")
    assert processes._missing(without, {"cloud", "plugins"}) == ["google", "plugins"]


def test_the_environment_leads_to_a_google_that_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    monkeypatch.setenv("ACCEL_PULUMI_BIN", "/engine")
    (home / "cloud.json").write_text(json.dumps({"port": 1}))
    (home / "plugins.json").write_text(json.dumps({"providers": {"aws": 2}}))
    without = environment(home)
    assert "GOOGLE_OAUTH_ACCESS_TOKEN" not in without and str(home / "bin") not in without["PATH"]
    (home / "google.json").write_text(json.dumps({"url": "http://127.0.0.1:3"}))
    values = environment(home)
    assert values["GOOGLE_OAUTH_ACCESS_TOKEN"] == (home / "key").read_text()
    assert values["PATH"].split(os.pathsep)[:2] == [str(home / "bin"), "/engine"]
    roots = {name: value for name, value in values.items() if name.startswith("CLOUDSDK_API")}
    assert roots["CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"] == "http://127.0.0.1:3/compute.googleapis.com/compute/v1/"
    assert len(roots) == 22 and all(value.startswith("http://127.0.0.1:3/") for value in roots.values())
    assert values["ACCEL_IAP_URL"] == "ws://127.0.0.1:3/v4"
    assert values["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert values["PULUMI_BACKEND_URL"] == (home / "backend").as_uri()
    assert values["KUBECONFIG"] == str(home / "kubeconfig")
