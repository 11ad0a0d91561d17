"""runner.py as a process of its own, by its contract of files and signals only."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

RUNNER = Path(__file__).resolve().parents[2] / "jobs" / "backends" / "local_programs" / "runner.py"


def begin(folder: Path, command: list[str], tied: bool = False, **spec: Any) -> subprocess.Popen[bytes]:
    defaults: dict[str, Any] = {"env": {}, "workdir": str(folder), "timeout_s": None, "grace_s": 5}
    (folder / "spec.json").write_text(json.dumps({"command": command} | defaults | spec))
    stdin = subprocess.PIPE if tied else subprocess.DEVNULL
    arguments = [sys.executable, str(RUNNER), str(folder), *(["--tied"] if tied else [])]
    return subprocess.Popen(arguments, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def status(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "status.json").read_text())


def finish(runner: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    assert runner.communicate(timeout=90)[0] == b""
    assert runner.returncode == 0
    assert sorted(status(folder)) == ["exit_code", "phase", "pid", "reason", "started", "stopped"]
    return status(folder)


def output(folder: Path) -> str:
    path = folder / "output.log"
    return path.read_text() if path.exists() else ""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    "command, phase, code, reason",
    [
        (["true"], "succeeded", 0, "exited"),
        (["false"], "failed", 1, "exited"),
        (["sh", "-c", "exit 42"], "failed", 42, "exited"),
        (["sh", "-c", "kill -9 $$"], "failed", 137, "exited"),
        (["sh", "-c", "kill -SEGV $$"], "failed", 139, "exited"),
        (["sh", "-c", "exit 255"], "failed", 255, "exited"),
    ],
)
def test_exit_codes(command: list[str], phase: str, code: int, reason: str, tmp_path: Path) -> None:
    found = finish(begin(tmp_path, command), tmp_path)
    assert (found["phase"], found["exit_code"], found["reason"]) == (phase, code, reason)
    assert found["started"] <= found["stopped"]


@pytest.mark.parametrize(
    "command, code",
    [(["no-such-program"], 127), (["./gone"], 127), (["/"], 126), ([""], 126), (["./plain"], 126)],
)
def test_what_does_not_start(command: list[str], code: int, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("not executable")
    found = finish(begin(tmp_path, command), tmp_path)
    assert found["phase"] == "failed" and found["exit_code"] == code
    assert found["reason"].startswith("not-started: ")


def test_a_missing_folder_does_not_start(tmp_path: Path) -> None:
    found = finish(begin(tmp_path, ["true"], workdir=str(tmp_path / "gone")), tmp_path)
    assert found["reason"].startswith("not-started: ") and "gone" in found["reason"]


def test_the_environment_is_that_of_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "x")
    finish(begin(tmp_path, ["env"], env={"A": "1", "LANG": "xx"}), tmp_path)
    found = dict(line.split("=", 1) for line in output(tmp_path).splitlines())
    assert set(found) == {"A", "PATH", "HOME", "LANG", "TMPDIR", "PYTHONUNBUFFERED"}
    assert (found["A"], found["LANG"], found["PYTHONUNBUFFERED"]) == ("1", "xx", "1")
    assert found["PATH"].split(":")[0] == str(Path(sys.executable).parent)


def test_python_is_the_one_that_runs_this(tmp_path: Path) -> None:
    finish(begin(tmp_path, ["python", "-c", "import sys; print(sys.prefix)"]), tmp_path)
    assert output(tmp_path).strip() == sys.prefix


def test_output_is_raw_in_order_and_at_once(tmp_path: Path) -> None:
    script = r"printf 'a\r\nb\377'; echo c >&2; printf end; sleep 30"
    runner = begin(tmp_path, ["sh", "-c", script])
    until(lambda: (tmp_path / "output.log").exists() and (tmp_path / "output.log").read_bytes().endswith(b"end"))
    assert (tmp_path / "output.log").read_bytes() == b"a\r\nb\xffc\nend"
    assert status(tmp_path)["phase"] == "running" and status(tmp_path)["pid"] == runner.pid
    runner.terminate()
    finish(runner, tmp_path)


def test_sigterm_is_passed_on(tmp_path: Path) -> None:
    script = "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    runner = begin(tmp_path, ["sh", "-c", script])
    until(lambda: "ready" in output(tmp_path))
    runner.terminate()
    found = finish(runner, tmp_path)
    assert (found["phase"], found["exit_code"], found["reason"]) == ("failed", 3, "terminated")
    assert "saved" in output(tmp_path)


def test_sigkill_follows_after_the_grace(tmp_path: Path) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    runner = begin(tmp_path, ["sh", "-c", script], grace_s=1)
    until(lambda: "ready" in output(tmp_path))
    begun = time.monotonic()
    runner.terminate()
    found = finish(runner, tmp_path)
    assert (found["exit_code"], found["reason"]) == (137, "terminated")
    assert 0.9 < time.monotonic() - begun < 30


def test_timeout(tmp_path: Path) -> None:
    found = finish(begin(tmp_path, ["sleep", "60"], timeout_s=1), tmp_path)
    assert (found["phase"], found["exit_code"], found["reason"]) == ("failed", 143, "timeout")


def test_a_job_that_ends_well_at_its_timeout_still_failed(tmp_path: Path) -> None:
    script = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
    found = finish(begin(tmp_path, ["sh", "-c", script], timeout_s=1), tmp_path)
    assert (found["phase"], found["exit_code"], found["reason"]) == ("failed", 0, "timeout")


def test_what_the_job_left_behind_is_killed(tmp_path: Path) -> None:
    finish(begin(tmp_path, ["sh", "-c", "sleep 60 & echo $!"]), tmp_path)
    until(lambda: not alive(int(output(tmp_path))))


@pytest.mark.parametrize(
    "script", ["echo $$; exec sleep 60", "sleep 60 & echo $!; wait", "sleep 60 & echo $! && wait && echo"]
)
def test_a_killed_runner_leaves_no_job(script: str, tmp_path: Path) -> None:
    runner = begin(tmp_path, ["sh", "-c", script])
    until(lambda: output(tmp_path).endswith("\n"))
    pid = int(output(tmp_path))
    assert alive(pid)
    runner.kill()
    runner.wait()
    until(lambda: not alive(pid))
    assert status(tmp_path)["phase"] == "running"  # the last word of a runner that could say no more


def test_a_tied_runner_ends_with_its_stdin(tmp_path: Path) -> None:
    runner = begin(tmp_path, ["sh", "-c", "echo ready; sleep 60"], tied=True)
    until(lambda: "ready" in output(tmp_path))
    assert runner.stdin is not None
    runner.stdin.close()
    runner.stdin = None
    assert finish(runner, tmp_path)["reason"] == "terminated"


def test_terminated_before_it_began(tmp_path: Path) -> None:
    """At whatever moment the signal comes: a final status, or none because Python itself had not begun."""
    for delay_ms in range(0, 60, 6):
        folder = tmp_path / str(delay_ms)
        folder.mkdir()
        runner = begin(folder, ["sleep", "60"])
        time.sleep(delay_ms / 1000)
        runner.terminate()
        runner.communicate(timeout=90)
        if (folder / "status.json").exists():
            assert status(folder)["reason"] == "terminated", delay_ms
        else:
            assert runner.returncode == -signal.SIGTERM


def test_nothing_of_the_runner_stays(tmp_path: Path) -> None:
    runner = begin(tmp_path, ["true"])
    finish(runner, tmp_path)
    until(lambda: not any(_runs(path, str(tmp_path)) for path in Path("/proc").glob("[0-9]*")))


def _runs(path: Path, text: str) -> bool:
    try:
        return text in (path / "cmdline").read_text()
    except OSError:
        return False
