"""One key, one run: whoever is killed, at whatever step, and however many submit at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.contract.targets import LocalTarget
from jobs.backends.base import JobRef, Phase, Request
from jobs.backends.local import LocalBackend
from jobs.model import keys
from jobs.model.job import Job
from tests.support.soak import SOAK, sampled, soak_only

pytestmark = pytest.mark.usefixtures("home")

REPEATS = 25 if SOAK else 1
CLIENT_STEPS = 11
SUPERVISOR_STEPS = 22

# Counts what a process does to files, locks and processes, and kills it before the step of that number.
HOOK = """
import os, signal, sys
STEPS = {"os.mkdir", "os.link", "os.remove", "os.rename", "fcntl.flock", "os.fork", "os.posix_spawn",
         "subprocess.Popen", "open"}
def install(at, note):
    steps = []
    def hook(event, arguments):
        if event not in STEPS or (event == "open" and "/state/" not in str(arguments[0])):
            return
        steps.append(event)
        if len(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(note, f"{event}\\n".encode())
    sys.addaudithook(hook)
"""


def repeated(steps: int) -> list[int]:
    return [step for step in range(1, steps + 1) for _ in range(REPEATS)]


def fork(work: Callable[[], object]) -> int:
    """A child that does the work and nothing else; its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def reap(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def asked(backend: LocalBackend, key: str = "k") -> Request:
    job = Job(name="digits", command=["sh", "-c", "echo ran >> runs; sleep 0.05"])
    made = keys.submission_key(job.name, key)
    return backend.render(job, keys.platform_name(job.name, made), made)


def ended(backend: LocalBackend, ref: JobRef) -> Phase:
    end = time.monotonic() + 90
    while not (phase := backend.status(ref).phase).ended:
        assert time.monotonic() < end
        time.sleep(0.02)
    return phase


def runs(home: Path) -> int:
    path = home / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def backend(home: Path) -> LocalBackend:
    return LocalBackend("here", LocalTarget(root=str(home)))


@pytest.fixture
def note(tmp_path: Path) -> Iterator[int]:
    """A file that notes each step that was gone through."""
    opened = os.open(tmp_path / "steps", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.set_inheritable(opened, True)
    yield opened
    os.close(opened)


def killed_client(backend: LocalBackend, step: int, note: int) -> int:
    names: dict[str, Any] = {}
    exec(HOOK, names)  # noqa: S102

    def submit() -> None:
        names["install"](step, note)
        backend.submit(asked(backend))

    return reap(fork(submit))


def killed_supervisor(backend: LocalBackend, step: int, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(
        f"{HOOK}\nif any('supervisor' in word for word in sys.orig_argv):\n"
        f"    install({step}, os.open({str(tmp_path / 'steps')!r}, os.O_CREAT | os.O_WRONLY | os.O_APPEND))\n"
    )
    with patch.context() as inside:
        inside.setenv("PYTHONPATH", str(hooks))
        reap(fork(lambda: backend.submit(asked(backend))))


@pytest.mark.parametrize("step", sampled(repeated(CLIENT_STEPS), [2, 6, 9, 11]))
def test_a_client_killed_at_each_step(step: int, backend: LocalBackend, home: Path, note: int) -> None:
    assert killed_client(backend, step, note) == -signal.SIGKILL
    ref = backend.submit(asked(backend))
    assert ended(backend, ref) is Phase.SUCCEEDED
    assert backend.submit(asked(backend)) == ref
    assert runs(home) == 1
    assert len(list(backend.list(limit=10, ended=True))) == 1


@pytest.mark.parametrize("step", sampled(repeated(SUPERVISOR_STEPS), [1, 6, 10, 14, 18, 22]))
def test_a_supervisor_killed_at_each_step(
    step: int, backend: LocalBackend, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_supervisor(backend, step, tmp_path, monkeypatch)
    ref = backend.submit(asked(backend))
    # A supervisor that had taken the job on and died leaves it failed, never run twice.
    phase = ended(backend, ref)
    assert phase is Phase.SUCCEEDED or "runner is gone" in (backend.status(ref).reason or "")
    assert runs(home) == 1 or (phase is Phase.FAILED and runs(home) == 0)
    assert backend.submit(asked(backend)) == ref


def test_the_steps_are_all_steps(
    backend: LocalBackend, note: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert killed_client(backend, CLIENT_STEPS + 1, note) == 0
    steps = tmp_path / "steps"
    assert len(steps.read_text().split()) == CLIENT_STEPS
    steps.write_text("")
    (ref,) = [status.ref for status in backend.list(limit=1, ended=True)]
    ended(backend, ref)
    shutil.rmtree(tmp_path / "state")
    killed_supervisor(backend, 10**9, tmp_path, monkeypatch)
    ended(backend, ref)
    assert len(steps.read_text().split()) == SUPERVISOR_STEPS, steps.read_text()


@pytest.mark.parametrize("clients", [100 if SOAK else 8])
def test_many_clients_at_once(clients: int, backend: LocalBackend, home: Path) -> None:
    listening, telling = os.pipe()

    def submit() -> None:
        os.close(telling)
        os.read(listening, 1)
        backend.submit(asked(backend))

    children = [fork(submit) for _ in range(clients)]
    os.close(listening)
    os.close(telling)  # lets all of them go
    assert [reap(pid) for pid in children] == [0] * clients
    (status,) = backend.list(limit=10, ended=True)
    assert ended(backend, status.ref) is Phase.SUCCEEDED
    assert runs(home) == 1


@soak_only
def test_many_keys_at_once(backend: LocalBackend, home: Path) -> None:
    children = [fork(lambda key=key: backend.submit(asked(backend, str(key)))) for key in range(8)]
    assert [reap(pid) for pid in children] == [0] * 8
    found = list(backend.list(limit=100, ended=True))
    assert len(found) == 8
    assert {ended(backend, status.ref) for status in found} == {Phase.SUCCEEDED}
    assert runs(home) == 8


def test_a_claim_is_whole_or_not_there(backend: LocalBackend, tmp_path: Path) -> None:
    """Drafts of killed clients stay beside the request and are never taken for one."""
    ref = backend.submit(asked(backend))
    folder = tmp_path / "state" / "accel" / "local" / ref.id
    (folder / ".request.json.0123").write_text('{"key": "torn')
    assert ended(backend, ref) is Phase.SUCCEEDED
    assert json.loads((folder / "request.json").read_text())["name"] == ref.id
