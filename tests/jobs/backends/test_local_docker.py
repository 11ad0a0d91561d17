"""Jobs of this machine with a real image: by docker where there is one, else the command that would run it."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import BadInputs, NoRuntime
from accel.folders import state
from jobs.backends import local
from jobs.backends.base import JobRef, Phase, Status
from jobs.backends.local import LocalBackend
from tests.jobs.backends.test_local import ended, request, texts
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("home")

FAKE = """#!{python}
# docker, as far as these tests go: `run` really runs the command, in a session of its own, which outlives its client.
import json, os, signal, subprocess, sys
folder, arguments = {folder!r}, sys.argv[1:]
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
if arguments[0] == "info":
    sys.exit(0)
if arguments[0] == "rm":
    try:
        os.killpg(int(open(folder + "/" + arguments[-1]).read()), signal.SIGKILL)
    except (OSError, ValueError):
        sys.exit(1)
    sys.exit(0)
env, name, rest = {{"PATH": os.environ["PATH"]}}, "", arguments[1:]
while rest[0].startswith("--"):
    option = rest.pop(0)
    if option in ("--rm", "--init"):
        continue
    value = rest.pop(0)
    if option == "--env":
        variable, _, text = value.partition("=")
        env[variable] = text
    name = value if option == "--name" else name
image, *command = rest
if image == "acme/none:1":
    print("docker: Error response from daemon: pull access denied for acme/none", file=sys.stderr)
    sys.exit(125)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until it is forwarded: the command may print before
process = subprocess.Popen(
    command or ["echo", "entry point"],
    env=env,
    start_new_session=True,
    preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM]),
)
open(folder + "/" + name, "w").write(str(process.pid))
signal.signal(signal.SIGTERM, lambda *_: os.killpg(process.pid, signal.SIGTERM))
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
code = process.wait()
sys.exit(code if code >= 0 else 128 - code)
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker on PATH; the folder where it notes its calls."""
    folder = tmp_path / "docker"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(FAKE.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.fixture
def backend(home: Path) -> LocalBackend:
    return LocalBackend("here", LocalTarget(root=str(home)))


def runs(docker: Path) -> list[list[str]]:
    calls = [json.loads(line) for line in (docker / "calls").read_text().splitlines()]
    return [call for call in calls if call[0] == "run"]


def finished(backend: LocalBackend, **fields: Any) -> tuple[JobRef, Status]:
    ref = backend.submit(request(backend, **{"image": "acme/train:1.4", **fields}))
    return ref, ended(backend, ref)


def test_a_container_runs_with_its_environment_and_its_exit_code(backend: LocalBackend, docker: Path) -> None:
    ref, status = finished(
        backend, command=["sh", "-c", "echo $LR $ACCEL_TASK_INDEX of $ACCEL_TASK_COUNT; exit 3"], env={"LR": "a b"}
    )
    assert (status.phase, status.exit_code) == (Phase.FAILED, 3)
    assert texts(backend, ref) == ["a b 0 of 1"]
    (call,) = runs(docker)
    assert call[call.index("acme/train:1.4") :][1:] == [
        "sh",
        "-c",
        "echo $LR $ACCEL_TASK_INDEX of $ACCEL_TASK_COUNT; exit 3",
    ]
    assert {"--rm", "--init"} < set(call) and "--gpus" not in call


def test_without_a_command_the_images_own_runs(backend: LocalBackend, docker: Path) -> None:
    ref, status = finished(backend, command=[])
    assert (status.phase, texts(backend, ref)) == (Phase.SUCCEEDED, ["entry point"])


def test_what_the_job_asks_for_is_asked_of_docker(
    backend: LocalBackend, docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "gpus", lambda: (["0", "1", "2"], ["NVIDIA L4"]))
    finished(
        backend,
        accelerator={"type": "l4", "count": 2},
        cpus=1,
        memory_mib=64,
        shm_mib=16,
        mounts=[
            {"source": str(tmp_path), "path": "/data", "read_only": True},
            {"source": f"host://{tmp_path}", "path": "/out"},
        ],
    )
    (call,) = runs(docker)
    given = {(call[i], call[i + 1]) for i in range(1, len(call) - 1)}
    assert given >= {("--gpus", '"device=0,1"'), ("--cpus", "1"), ("--memory", "64m"), ("--shm-size", "16m")}
    assert ("--mount", f"type=bind,source={tmp_path},target=/data,readonly") in given
    assert ("--mount", f"type=bind,source={tmp_path},target=/out") in given
    assert not any(part.startswith("CUDA_VISIBLE_DEVICES") for part in call), "a container counts its GPUs from 0"


def test_tasks_and_attempts_have_containers_of_their_own(backend: LocalBackend, docker: Path) -> None:
    command = ["sh", "-c", 'test "$ACCEL_ATTEMPT" = 2']
    _, status = finished(backend, command=command, tasks=2, retries=1)
    assert status.phase is Phase.SUCCEEDED
    names = {call[call.index("--name") + 1] for call in runs(docker)}
    assert len(names) == 4


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_cancelled_job_leaves_no_container(
    stubborn: bool, backend: LocalBackend, docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.backends.local.GRACE_S", 1 if stubborn else 60)
    trap = "trap '' TERM" if stubborn else "trap 'echo saved; exit 143' TERM"
    command = ["sh", "-c", f"{trap}; echo begun; while :; do sleep 0.05; done"]
    ref = backend.submit(request(backend, image="acme/train:1.4", command=command))
    until(lambda: "begun" in texts(backend, ref))
    backend.cancel(ref, "enough")
    status = ended(backend, ref)
    assert status.phase is Phase.FAILED and "cancelled: enough" in str(status.reason)
    assert ("saved" in texts(backend, ref)) is not stubborn
    container_ends(docker)


def container_ends(docker: Path) -> None:
    (call,) = runs(docker)
    noted = docker / call[call.index("--name") + 1]
    until(lambda: noted.exists() and noted.read_text())  # the fake writes it once the command has begun
    pid = int(noted.read_text())
    until(lambda: not Path(f"/proc/{pid}").exists() or gone(pid))


def gone(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"


def test_a_runner_that_is_killed_leaves_no_container(backend: LocalBackend, docker: Path) -> None:
    ref = backend.submit(request(backend, image="acme/train:1.4", command=["sh", "-c", "echo begun; sleep 600"]))
    until(lambda: texts(backend, ref) == ["begun"])
    runner = json.loads((state() / "local" / ref.id / "tasks/0/1/status.json").read_text())["pid"]
    os.kill(runner, signal.SIGKILL)
    container_ends(docker)


def test_an_image_that_docker_cannot_pull_is_explained(backend: LocalBackend, docker: Path) -> None:
    ref, status = finished(backend, image="acme/none:1")
    assert (status.phase, status.exit_code) == (Phase.FAILED, 125)
    found = backend.explain(ref)
    assert found.cause == "image-forbidden" and "pull access denied" in "".join(found.evidence)


def test_without_docker_the_command_is_told_that_would_run_it(
    backend: LocalBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    made = request(backend, image="acme/train:1.4", command=["python", "t.py", "a b"], env={"LR": "0.1"},
                   accelerator={"type": "l4", "count": 2})  # fmt: skip
    with pytest.raises(NoRuntime) as refused:
        backend.submit(made)
    assert refused.value.exit_code == 6
    assert refused.value.message == "image: acme/train:1.4: this machine has no docker command"
    assert refused.value.hint
    told = shlex.split(refused.value.hint.partition(": ")[2])
    assert told[:2] == ["docker", "run"] and told[-4:] == ["acme/train:1.4", "python", "t.py", "a b"]
    assert ("--gpus", "2") in itertools.pairwise(told) and "LR=0.1" in told
    assert not (state() / "local" / made.name).exists()


def test_a_daemon_that_is_not_there_is_told_by_its_own_words(
    backend: LocalBackend, docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docker / "docker").write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///x' >&2\nexit 1\n")
    with pytest.raises(NoRuntime, match="docker has no daemon here: Cannot connect to the Docker daemon"):
        backend.submit(request(backend, image="acme/train:1.4"))


def test_mounts_are_folders_of_this_machine(backend: LocalBackend) -> None:
    with pytest.raises(BadInputs, match=r"mounts\[0\]\.source: gs://b: must be a folder of this machine"):
        request(backend, image="acme/train:1.4", mounts=[{"source": "gs://b", "path": "/b"}])
    with pytest.raises(BadInputs, match=r"mounts\[0\]: a path with a comma"):
        request(backend, image="acme/train:1.4", mounts=[{"source": "/a,b", "path": "/b"}])


def test_the_command_line_ends_with_the_code_and_the_command(
    invoke: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "job.yaml").write_text("name: train\nimage: acme/train:1.4\ncommand: [python, t.py]\n")
    monkeypatch.setenv("PATH", str(home))
    told = invoke("submit", "job.yaml", "--to", "local")
    assert told.exit_code == 6
    assert "error: image: acme/train:1.4: this machine has no docker command" in told.stderr
    assert "hint: a machine with docker runs it by: docker run --rm --init" in told.stderr
