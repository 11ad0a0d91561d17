"""One record of this machine that is damaged: it is named, and every other job goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import CloudSilent
from accel.folders import state
from jobs.backends.claims.claim import Claim
from jobs.backends.claims.files import FileClaims
from jobs.backends.local import LocalBackend
from jobs.client import history
from tests.jobs.backends.test_local import ended, request
from tests.support.soak import SOAK, sampled
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("home")

Invoke = Callable[..., Result]
ATTEMPT = ("tasks/0/1/status.json", "tasks/0/1/spec.json")
FILES = ("request.json", "supervisor.json", "status.json", "cancel.json", *ATTEMPT)
DAMAGES: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"not JSON at all",
    "a list": b"[1, 2]",
    "a text": b'"text"',
    "null": b"null",
    "a number": b"7",
    "nothing in it": b"{}",
    "binary": bytes(range(256)),
}
OWN = (["get"], ["explain"], ["logs"], ["cancel", "--yes"], ["report", "--out", "-"])
WRONG = (None, 7, "text", [1], {"a": 1}) if SOAK else ()


def damages(whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Every way in which a file may be damaged: what it is, and its bytes then."""
    yield from (DAMAGES if SOAK else {name: DAMAGES[name] for name in ("no JSON", "a list", "nothing in it")}).items()
    yield "truncated", whole[: len(whole) // 2]
    document: dict[str, Any] = json.loads(whole)
    for at in ([], ["body"]) if "body" in document else ([],):
        for key in document["body"] if at else document:
            for value in (..., *WRONG):
                copy = json.loads(whole)
                inside = copy["body"] if at else copy
                if value is ...:
                    del inside[key]
                else:
                    inside[key] = value
                what = "missing" if value is ... else f"is {value!r}"
                yield f"{'.'.join([*at, key])} {what}", json.dumps(copy).encode()


@pytest.fixture
def backend(home: Path) -> LocalBackend:
    (home / "targets.json").write_text(json.dumps({"here": {"kind": "local", "root": str(home)}}))
    return LocalBackend("here", LocalTarget(root=str(home)))


def told(result: Result, *codes: int) -> str:
    assert result.exit_code in codes and "unexpected" not in result.output, result.output
    return result.output


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_record_hides_no_other_job(invoke: Invoke, backend: LocalBackend, name: str) -> None:
    jobs = [backend.submit(request(backend, key, command=["sh", "-c", f"exit {key}"])) for key in ("0", "3", "4")]
    good, other, bad = (ended(backend, each).ref for each in jobs)
    assert backend.status(other).exit_code == 3
    folder = state() / "local" / bad.id
    if name == "cancel.json":
        (folder / name).write_text('{"reason": "any"}')
    kept = (folder / name).read_bytes()
    wrong: list[str] = []
    for what, data in damages(kept):
        (folder / name).write_bytes(data)
        listed = told(invoke("ls", "-a", "--targets", "targets.json", "-o", "wide"), 0)
        wrong += [f"{what}: ls lacks {each}" for each in (good, other) if str(each) not in listed]
        wrong += [] if listed.count(bad.id) == 1 else [f"{what}: ls names it {listed.count(bad.id)} times"]
        wrong += [] if "3" in told(invoke("explain", str(other)), 0) else [f"{what}: explain of another"]
        told(invoke("wait", str(good), "--timeout", "5s"), 0)
        told(invoke("cancel", str(other), "--yes"), 0)
        for verb in OWN if name != "request.json" else (*OWN, ["retry"]):
            own = invoke(verb[0], str(bad), *verb[1:])
            fine = own.exit_code in (0, 9) and "unexpected" not in own.output
            wrong += [] if fine else [f"{what}: {verb[0]}: {own.exit_code}: {own.output[:300]}"]
        (folder / name).write_bytes(kept)
    assert not wrong, "\n".join(wrong)


def test_a_job_beside_a_damaged_one_is_cancelled(invoke: Invoke, backend: LocalBackend) -> None:
    bad, other = (backend.submit(request(backend, key, command=["sleep", "60"])) for key in ("a", "b"))
    file = state() / "local" / bad.id / "request.json"
    kept = file.read_bytes()
    file.write_bytes(b"[")
    assert f"cannot read {file}" in told(invoke("cancel", str(bad), str(other), "--yes"), 9)
    assert ended(backend, other).reason == "cancelled: cancelled by the user"
    file.write_bytes(kept)
    backend.cancel(bad, "test")
    assert ended(backend, bad)


def test_what_a_runner_left_in_pieces_is_a_failed_attempt(backend: LocalBackend) -> None:
    """Its supervisor goes on with the other tasks."""
    job = request(backend, tasks=2)
    folder = state() / "local" / job.name / "tasks/0/1"
    spoilt = f"kill -9 $PPID; sleep 0.1; echo '[' > {folder}/status.json"
    job.body["command"] = ["sh", "-c", f"[ $ACCEL_TASK_INDEX = 1 ] || {{ {spoilt}; }}"]
    status = ended(backend, backend.submit(job))
    assert (status.tasks, status.reason) == (
        {"FAILED": 1, "SUCCEEDED": 1},
        "1 of 2 tasks failed; task 0: its runner was killed",
    )


def test_a_damaged_cancellation_cancels(backend: LocalBackend) -> None:
    ref = backend.submit(request(backend, command=["sleep", "60"]))
    folder = state() / "local" / ref.id
    (folder / "cancel.json").write_bytes(b"[1")
    until(lambda: (folder / "tasks/0/1/status.json").exists())
    os.kill(json.loads((folder / "supervisor.json").read_bytes())["pid"], signal.SIGTERM)
    assert ended(backend, ref).reason == "terminated: the supervisor of the job was asked to stop"


@pytest.mark.parametrize("data", [*DAMAGES.values(), b'{"key": "k"', b'{"key": "k"}'])
def test_a_damaged_claim_is_named_and_others_are_read(data: bytes) -> None:
    claims = FileClaims("scope")
    for key in ("bad", "good"):
        with claims.alone(key):
            claims.put(Claim(key, "hash", "me", 0, "digits"))
    (path,) = [each for each in (state() / "claims").glob("*/*.json") if '"bad"' in each.read_text()]
    path.write_bytes(data)
    with pytest.raises(CloudSilent, match=f"cannot read {path}") as error:
        claims.read("bad")
    assert "remove" in str(error.value.hint)
    assert claims.read("good") == Claim("good", "hash", "me", 0, "digits")


LINES = (b"[1]", b"null", b"7", b'"text"', b"{", b"\xff\x00", b'{"ref": 7, "name": "x"}', b'{"ref": "no"}',
         b'{"ref": "local:/y", "target": "here"}', b'{"ref": "none", "name": "x", "target": "here"}',
         b'{"ref": "local:/z", "name": "z"}', b'{"ref": "local:/w", "name": 7, "target": []}')  # fmt: skip


@pytest.mark.parametrize("line", sampled(LINES, [LINES[0], LINES[-1]]))
def test_a_damaged_line_of_the_history_is_named_and_others_are_found(
    invoke: Invoke, backend: LocalBackend, line: bytes
) -> None:
    ref = backend.submit(request(backend))
    history.append(str(ref), "digits", "here", "k")
    with history.path().open("ab") as file:
        file.write(line + b"\n\n")
    ended(backend, ref)
    for verb in (["get"], ["explain"], ["wait"], ["cancel", "--yes"]):
        told(invoke(verb[0], "digits", *verb[1:]), 0)
    told(invoke("ls", "-a", "--targets", "targets.json"), 0)
    assert "history.jsonl: line 2: " in told(invoke("get", "nowhere"), 6)
    assert "warn  history: line 2: " in invoke("doctor", "--targets", "targets.json").output
