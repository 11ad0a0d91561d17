"""The local backend: what it refuses, and that what it accepts really runs."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import BadInput, BadInputs, CloudSilent, JobsError, NotFound
from accel.folders import state
from accel.rules.jobs.exit_codes import CANNOT_RUN
from jobs.backends import local
from jobs.backends.base import Backend, JobRef, Listing, Logs, Phase, Request, Resubmit, Status
from jobs.backends.local import LocalBackend
from jobs.model import keys
from jobs.model.job import Job
from tests.support.gathering import met, until_there
from tests.support.soak import sampled
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("home")

SHELL = ["sh", "-c"]
PARTNER = "$((ACCEL_TASK_INDEX ^ 1))"
"""The task that runs beside one, where two do."""


@pytest.fixture
def backend(home: Path) -> LocalBackend:
    return LocalBackend("here", LocalTarget(root=str(home)))


def request(backend: LocalBackend, key: str | None = None, **fields: Any) -> Request:
    job = Job.model_validate({"name": "digits", "command": ["true"]} | fields)
    made = keys.submission_key(job.name, key or keys.random_key())
    return backend.render(job, keys.platform_name(job.name, made), made)


def ended(backend: LocalBackend, ref: JobRef) -> Status:
    until(lambda: backend.status(ref).phase.ended)
    return backend.status(ref)


def texts(backend: LocalBackend, ref: JobRef, **how: Any) -> list[str]:
    return [line.text for line in backend.logs(ref, **how)]


def test_it_is_a_backend_with_everything(backend: LocalBackend) -> None:
    checked: Backend = backend
    assert isinstance(checked, Logs) and isinstance(checked, Listing) and isinstance(checked, Resubmit)


# --- render


def test_the_whole_request(backend: LocalBackend, home: Path) -> None:
    job = Job.model_validate(
        {
            "name": "digits",
            "image": "local/a/b",
            "command": ["python", "x.py"],
            "env": {"A": "1"},
            "tasks": 4,
            "parallelism": 2,
            "retries": 1,
            "timeout_s": "1h",
            "cpus": 1,
            "memory_mib": 64,
            "labels": {"t": "x"},
            "accelerator": {"count": 1, "type": "h100"},
        }
    )
    made = backend.render(job, "digits-0", "0")
    assert made == Request(
        "local",
        "here",
        "digits-0",
        "0",
        {
            "job": "digits",
            "command": ["python", "x.py"],
            "env": {"A": "1", "ACCEL_GRACE_S": "30"},
            "folder": f"{home}/a/b",
            "tasks": 4,
            "parallelism": 2,
            "retries": 1,
            "timeout_s": 3600,
            "grace_s": 30,
            "cpus": 1,
            "memory_mib": 64,
            "shm_mib": None,
            "disk_gib": None,
            "accelerator": {"type": "h100", "count": 1},
            "labels": {"t": "x"},
        },
    )
    assert json.loads(json.dumps(made.body)) == made.body


def test_without_an_image_the_root_is_the_folder(backend: LocalBackend, home: Path) -> None:
    assert request(backend).body["folder"] == str(home)


@pytest.mark.parametrize(
    "fields, fault",
    [
        ({"command": []}, "command: is missing"),
        ({"nodes": 2}, "nodes: this machine is one node"),
        ({"tasks": 10_001}, "tasks: 10,001: this machine runs at most 10,000 of one job"),
        ({"tasks": 10**9}, "tasks: 1,000,000,000: this machine runs at most 10,000 of one job"),
        ({"spot": True}, "spot: this machine is not Spot capacity"),
        ({"mounts": [{"source": "a", "path": "/b"}]}, "mounts: nothing is mounted here"),
        ({"secrets": {"T": "arn:x"}}, "secrets: references are resolved by the cloud only"),
        ({"aws_batch": {"depends_on": ["x"]}}, "aws_batch.depends_on: jobs on AWS Batch"),
        ({"image": "local/"}, "must be local/<folder>"),
        ({"image": "local/../up"}, "must be local/<folder>"),
        ({"image": "local/a/../../up"}, "must be local/<folder>"),
        ({"image": "local//etc"}, "must be local/<folder>"),
        ({"image": "local/a\0b"}, "must be local/<folder>"),
    ],
)
def test_what_cannot_be_honoured_is_refused(fields: dict[str, Any], fault: str, backend: LocalBackend) -> None:
    with pytest.raises(BadInputs) as caught:
        request(backend, **fields)
    (message,) = caught.value.messages
    assert message.startswith("target here: ") and fault in message


def test_refusals_come_together(backend: LocalBackend) -> None:
    with pytest.raises(BadInputs) as caught:
        request(backend, command=[], nodes=2, spot=True, image="local/../x")
    assert len(caught.value.messages) == 4


def test_what_is_of_another_backend_is_said(backend: LocalBackend) -> None:
    assert "aws_batch" in request(backend, aws_batch={"definition": "x"}).warnings[0]
    assert request(backend, spot=False).warnings == ()


# --- submit: what this machine has


@pytest.mark.parametrize(
    "fields, fault",
    [
        ({"cpus": 100_000}, "cpus: asks for 100000, this machine has"),
        ({"memory_mib": 2**30}, "memory_mib: asks for"),
        ({"shm_mib": 2**30}, "shm_mib: asks for"),
        ({"disk_gib": 2**30}, "disk_gib: asks for"),
        ({"image": "local/gone"}, "image: the folder"),
        ({"accelerator": {"count": 3}}, "accelerator.count: asks for 3, this machine has 2 GPU(s)"),
        ({"accelerator": {"type": "a100"}}, "accelerator.type: asks for a100, this machine has NVIDIA H200"),
    ],
)
def test_what_this_machine_lacks(
    fields: dict[str, Any], fault: str, backend: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "gpus", lambda: (["0", "1"], ["NVIDIA H200"]))
    with pytest.raises(BadInputs) as caught:
        backend.submit(request(backend, **fields))
    assert fault in caught.value.messages[0]
    assert list(backend.list(limit=10, ended=True)) == []


def test_what_this_machine_has(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, cpus=1, memory_mib=64))
    assert ended(backend, ref).phase is Phase.SUCCEEDED


def nvidia_smi(folder: Path, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{answer}'\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_gpus_are_shared_out_among_tasks(
    backend: LocalBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(tmp_path, "0, NVIDIA H200\\n1, NVIDIA H200\\n2, NVIDIA H200\\n3, NVIDIA H200\\n", monkeypatch)
    script = f"echo $CUDA_VISIBLE_DEVICES; {met(tmp_path, '$ACCEL_TASK_INDEX', [PARTNER])}"
    ref = backend.submit(request(backend, command=[*SHELL, script], tasks=4, accelerator={"count": 2, "type": "H200"}))
    assert ended(backend, ref).phase is Phase.SUCCEEDED
    assert sorted(texts(backend, ref)) == ["0,1", "0,1", "2,3", "2,3"]


def test_gpus_that_this_process_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, "0, A\\n1, B\\n", monkeypatch)
    assert local.gpus() == (["0", "1"], ["A", "B"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert local.gpus()[0] == ["1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert local.gpus()[0] == []
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert local.gpus() == ([], [])


# --- the life of a job


def test_success(backend: LocalBackend, home: Path) -> None:
    (home / "src").mkdir()
    ref = backend.submit(request(backend, image="local/src", command=[*SHELL, "pwd; env"], env={"EPOCHS": 3}))
    status = ended(backend, ref)
    found = texts(backend, ref)
    assert (status.phase, status.exit_code, status.reason, status.attempts) == (Phase.SUCCEEDED, 0, None, 1)
    assert status.created and status.started and status.stopped
    assert status.created <= status.started <= status.stopped <= datetime.now(UTC)
    assert found[0] == str(home / "src")
    assert {
        "EPOCHS=3",
        "ACCEL_JOB_NAME=digits",
        "ACCEL_TASK_COUNT=1",
        "ACCEL_TASK_INDEX=0",
        "ACCEL_TASK_INDEX_FROM=ACCEL_TASK_INDEX",
        "ACCEL_ATTEMPT=1",
    } <= set(found)
    assert JobRef.parse(str(ref)) == ref and str(ref).startswith("local:/digits-")


def test_failure_keeps_the_exit_code(backend: LocalBackend) -> None:
    status = ended(backend, backend.submit(request(backend, command=[*SHELL, "exit 7"])))
    assert (status.phase, status.exit_code, status.reason) == (Phase.FAILED, 7, "exit code 7")


def test_a_command_that_is_not_there(backend: LocalBackend) -> None:
    status = ended(backend, backend.submit(request(backend, command=["no-such-program"])))
    assert status.exit_code == 127 and status.reason and "not-started" in status.reason


def test_retries_in_order(backend: LocalBackend) -> None:
    script = "echo $ACCEL_ATTEMPT; printf part; [ $ACCEL_ATTEMPT = 3 ]"
    ref = backend.submit(request(backend, command=[*SHELL, script], retries=3))
    status = ended(backend, ref)
    assert (status.phase, status.attempts) == (Phase.SUCCEEDED, 3)
    lines = [(line.source, line.text) for line in backend.logs(ref)]
    assert lines == [
        ("", "1"),
        ("", "part"),
        ("attempt 2", "2"),
        ("attempt 2", "part"),
        ("attempt 3", "3"),
        ("attempt 3", "part"),
    ]


def test_retries_run_out(backend: LocalBackend) -> None:
    status = ended(backend, backend.submit(request(backend, command=["false"], retries=2)))
    assert (status.phase, status.attempts, status.exit_code) == (Phase.FAILED, 3, 1)


@pytest.mark.parametrize("script", sampled(["exec no-such-program", "exec /"], ["exec /"]))
def test_a_command_that_cannot_be_run_is_not_tried_again(backend: LocalBackend, script: str) -> None:
    ref = backend.submit(request(backend, command=[*SHELL, script], retries=3))
    status = ended(backend, ref)
    assert (status.phase, status.attempts) == (Phase.FAILED, 1)
    assert status.exit_code in CANNOT_RUN


def test_a_timeout_is_not_tried_again(backend: LocalBackend) -> None:
    status = ended(backend, backend.submit(request(backend, command=["sleep", "60"], timeout_s=1, retries=3)))
    assert (status.phase, status.attempts, status.reason) == (Phase.FAILED, 1, "ran longer than 1 s")


def test_tasks(backend: LocalBackend) -> None:
    script = "echo $ACCEL_TASK_INDEX of $ACCEL_TASK_COUNT; [ $ACCEL_TASK_INDEX != 2 ] || exit 5"
    ref = backend.submit(request(backend, command=[*SHELL, script], tasks=5, parallelism=3))
    status = ended(backend, ref)
    assert status.tasks == {"SUCCEEDED": 4, "FAILED": 1}
    assert (status.phase, status.exit_code, status.reason) == (
        Phase.FAILED,
        5,
        "1 of 5 tasks failed; task 2: exit code 5",
    )
    assert [(line.source, line.text) for line in backend.logs(ref)] == [(f"task {n}", f"{n} of 5") for n in range(5)]
    assert texts(backend, ref, task=3) == ["3 of 5"]
    with pytest.raises(NotFound, match="has no task 5; it has 0 to 4"):
        backend.logs(ref, task=5)


def test_parallelism(backend: LocalBackend, home: Path, tmp_path: Path) -> None:
    here = met(tmp_path, "$ACCEL_TASK_INDEX", [PARTNER])
    script = f"mkdir run-$ACCEL_TASK_INDEX; {here}; set -- run-*; echo $#; rmdir run-$ACCEL_TASK_INDEX"
    ref = backend.submit(request(backend, command=[*SHELL, script], tasks=4, parallelism=2))
    ended(backend, ref)
    assert max(int(text) for text in texts(backend, ref)) == 2


def test_a_running_job_and_cancel(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, command=["sleep", "60"], retries=5))
    until(lambda: backend.status(ref).phase is Phase.RUNNING)
    backend.cancel(ref, "no longer needed")
    status = ended(backend, ref)
    assert (status.phase, status.reason, status.attempts) == (Phase.FAILED, "cancelled: no longer needed", 1)
    backend.cancel(ref, "again")
    assert backend.status(ref) == status


def test_cancel_of_many_tasks(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, command=["sleep", "60"], tasks=20, parallelism=4))
    until(lambda: backend.status(ref).tasks.get("RUNNING") == 4)
    backend.cancel(ref, "x")
    assert ended(backend, ref).tasks == {"FAILED": 4, "QUEUED": 16}


def test_list_newest_first(backend: LocalBackend) -> None:
    refs = [backend.submit(request(backend)) for _ in range(3)]
    sleeping = backend.submit(request(backend, command=["sleep", "60"]))
    for ref in refs:
        ended(backend, ref)
    assert [status.ref for status in backend.list(limit=10, ended=True)] == [sleeping, *reversed(refs)]
    assert [status.ref for status in backend.list(limit=2, ended=True)] == [sleeping, refs[2]]
    assert [status.ref for status in backend.list(limit=10, ended=False)] == [sleeping]
    backend.cancel(sleeping, "x")


def test_again(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, command=[*SHELL, "exit 3"]))
    made = backend.resubmit_request(ref, keys.submission_key(str(ref), "second"))
    second = backend.submit(made)
    assert second != ref and second.id.startswith("digits-")
    assert ended(backend, second).exit_code == 3
    assert backend.submit(backend.resubmit_request(ref, keys.submission_key(str(ref), "second"))) == second


@pytest.mark.parametrize("name", ["gone-1", "", ".", "..", "../x", "a/../../b", "a\0b", "/etc"])
def test_unknown_references(name: str, backend: LocalBackend) -> None:
    for ask in (backend.status, lambda ref: backend.cancel(ref, "x"), backend.logs):
        with pytest.raises(NotFound):
            ask(JobRef("local", "", name))


# --- keys


def test_the_same_key_is_the_same_job(backend: LocalBackend, home: Path) -> None:
    command = [*SHELL, "echo ran >> runs"]
    refs = {backend.submit(request(backend, "k", command=command)) for _ in range(3)}
    assert len(refs) == 1
    ended(backend, *refs)
    assert backend.submit(request(backend, "k", command=command)) in refs
    assert (home / "runs").read_text() == "ran\n"
    assert backend.submit(request(backend, "other", command=command)) not in refs


def test_the_same_key_with_another_job_is_refused(backend: LocalBackend) -> None:
    backend.submit(request(backend, "k", command=["true"]))
    with pytest.raises(BadInput, match="exists with another content under the same key"):
        backend.submit(request(backend, "k", command=["false"]))


# --- what cannot be seen is not failed


def test_a_killed_supervisor_is_seen(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, command=[*SHELL, "echo $$; sleep 60"]))
    until(lambda: len(texts(backend, ref)) == 1)
    supervisor = json.loads((state() / "local" / ref.id / "supervisor.json").read_text())
    os.kill(supervisor["pid"], signal.SIGKILL)
    status = ended(backend, ref)
    assert status.phase is Phase.FAILED and status.reason and status.reason.startswith("runner is gone")
    pid = int(texts(backend, ref)[0])
    until(lambda: not Path(f"/proc/{pid}").exists())


NO_PID = 2**22 - 1


@pytest.mark.parametrize(
    "noted, phase",
    [
        ({"host": "elsewhere", "pid": NO_PID}, Phase.RUNNING),
        ({"namespace": "pid:[1]", "pid": NO_PID}, Phase.RUNNING),
        ({"boot": "other"}, Phase.FAILED),
        ({"pid": NO_PID}, Phase.FAILED),
        ({"started": "1"}, Phase.FAILED),
    ],
)
def test_a_supervisor_of_elsewhere_is_unknown_and_one_that_is_gone_is_proven_so(
    noted: dict[str, object], phase: Phase, backend: LocalBackend
) -> None:
    ref = backend.submit(request(backend, command=["sleep", "60"]))
    until(lambda: backend.status(ref).phase is Phase.RUNNING)
    path = state() / "local" / ref.id / "supervisor.json"
    true = json.loads(path.read_text())
    path.write_text(json.dumps(true | noted))
    assert backend.status(ref).phase is phase
    path.write_text(json.dumps(true))
    backend.cancel(ref, "x")


@pytest.mark.parametrize("name", sampled(["status.json", "supervisor.json", "request.json"], ["status.json"]))
def test_what_cannot_be_read_is_silence(name: str, backend: LocalBackend) -> None:
    ref = backend.submit(request(backend))
    ended(backend, ref)
    (state() / "local" / ref.id / name).write_text('{"pha')
    with pytest.raises(CloudSilent, match=name):
        backend.status(ref)


def test_a_submit_that_was_cut_short_is_queued(backend: LocalBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_supervise", lambda folder: None)
    asked = request(backend, "k")
    ref = backend.submit(asked)
    assert backend.status(ref).phase is Phase.QUEUED
    assert "same --key" in (backend.status(ref).reason or "")
    monkeypatch.undo()


def test_a_cancelled_claim_never_runs(backend: LocalBackend, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(backend, "k", command=["touch", "ran"])
    with monkeypatch.context() as patch:
        patch.setattr(local, "_supervise", lambda folder: None)
        ref = backend.submit(asked)
    backend.cancel(ref, "changed my mind")
    assert backend.status(ref).phase is Phase.FAILED
    assert backend.submit(asked) == ref
    assert ended(backend, ref).reason == "cancelled: changed my mind"
    assert not (home / "ran").exists()


# --- following


def test_follow_loses_and_doubles_nothing(backend: LocalBackend) -> None:
    script = """
import random, sys, time
random.seed(3)
text = "".join(f"line {n}\\n" for n in range(20000)) + "end"
while text:
    size = random.randint(1, 40000)
    sys.stdout.write(text[:size])
    sys.stdout.flush()
    text = text[size:]
    time.sleep(random.random() * 0.1)
"""
    ref = backend.submit(request(backend, command=["python", "-c", script]))
    assert texts(backend, ref, follow=True) == [*(f"line {n}" for n in range(20_000)), "end"]
    assert backend.status(ref).phase is Phase.SUCCEEDED
    assert len(texts(backend, ref)) == 20_001


def test_the_last_lines(backend: LocalBackend, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    command = f"seq 100; echo go >&2; {until_there(go_on)}; seq 101 103"
    ref = backend.submit(request(backend, command=[*SHELL, command]))
    lines = backend.logs(ref, follow=True)
    while next(lines).text != "go":
        pass
    last = backend.logs(ref, follow=True, tail=3)
    assert [next(last).text for _ in range(3)] == ["99", "100", "go"]
    go_on.touch()
    assert [line.text for line in last] == ["101", "102", "103"]
    assert texts(backend, ref, tail=2) == ["102", "103"]
    assert texts(backend, ref, tail=500) == [*map(str, range(1, 101)), "go", "101", "102", "103"]


def test_follow_sees_lines_soon(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, command=[*SHELL, "echo first; sleep 600"]))
    begun = time.monotonic()
    assert next(backend.logs(ref, follow=True)).text == "first"
    assert time.monotonic() - begun < 20
    backend.cancel(ref, "x")


def test_output_that_is_no_text(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, command=[*SHELL, r"printf '\377\000\n\n'; head -c 3000000 /dev/zero"]))
    ended(backend, ref)
    found = texts(backend, ref)
    assert found[:2] == ["�\0", ""]
    assert sum(map(len, found[2:])) == 3_000_000


def test_a_state_folder_that_cannot_be_written(
    backend: LocalBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(JobsError, match="cannot be kept in") as caught:
        backend.submit(request(backend))
    assert "XDG_STATE_HOME" in (caught.value.hint or "")


def test_files_are_private(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, env={"TOKEN": "x"}))
    assert (state() / "local" / ref.id).stat().st_mode & 0o077 == 0
