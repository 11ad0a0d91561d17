"""What `exec --check` finds and how it is judged, and what `exec` does on several machines at once."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent
from jobs.backends.base import JobRef, Places, Streams
from jobs.client import resolve
from jobs.client.fanout import LINE_MAX, Lines, everywhere
from jobs.client.machine_check import MachineReport, Skew, ask, command, judge, probe

HERE = Path(probe.__file__).parent
GOOD: dict[str, Any] = {
    "hostname": "a",
    "driver": "570.1",
    "gpus": 2,
    "gpu_names": ["NVIDIA L4", "NVIDIA L4"],
    "chips": 0,
    "ecc_errors": 0,
    "xids": [],
    "disks": {"/": {"mib": 1000, "free_mib": 500}},
}
TWO = Places(None, (0,), gpus=2)
SMI = """#!/bin/sh
case "$*" in
-L) echo 'GPU 0: NVIDIA L4 (UUID: GPU-1)'; echo 'GPU 1: NVIDIA "L4" (UUID: GPU-2)' ;;
*driver_version*) echo 570.158.01; echo 570.158.01 ;;
*ecc*) echo 0; echo '[N/A]'; echo 3 ;;
*) exit 2 ;;
esac
"""
MIG = """#!/bin/sh
[ "$*" = -L ] || exit 2
echo 'GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)'
echo '  MIG 1g.5gb      Device  0: (UUID: MIG-1)'
echo '  MIG 1g.5gb      Device  1: (UUID: MIG-2)'
"""


# --- the probe


def probed(folder: Path, smi: str = "", *, python: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the command prints, in an environment with this nvidia-smi, or with one that fails."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in {"nvidia-smi": smi or "#!/bin/sh\nexit 9\n", "dmesg": "#!/bin/sh\nexit 1\n"}.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    if not python:
        (folder / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
        (folder / "bin" / "python3").chmod(0o755)
    env = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "ACCEL_WORK": str(folder)}
    done = subprocess.run(command(), input="\n", env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    facts, now = done.stdout.splitlines()
    return json.loads(facts), json.loads(now)


@pytest.mark.parametrize("python", [True, False])
def test_the_probe_says_what_is_there(tmp_path: Path, python: bool) -> None:
    facts, now = probed(tmp_path, SMI, python=python)
    assert (facts["driver"], facts["gpus"]) == ("570.158.01", 2)
    assert facts["gpu_names"] == (["NVIDIA L4", 'NVIDIA "L4"'] if python else ["NVIDIA L4", "NVIDIA L4"])
    assert facts["hostname"] and facts["memory_mib"] > facts["memory_free_mib"] > 0 and facts["shm_mib"] > 0
    assert set(facts["disks"]) == {"/", str(tmp_path)}
    assert facts["disks"]["/"]["mib"] >= facts["disks"]["/"]["free_mib"] >= 0
    assert isinstance(now["now"], int | float)
    assert facts.get("ecc_errors") == (3 if python else None)


@pytest.mark.parametrize("python", [True, False])
def test_partitions_are_counted_and_nothing_is_no_fault_of_the_probe(tmp_path: Path, python: bool) -> None:
    facts, _ = probed(tmp_path, MIG, python=python)
    assert (facts["gpus"], facts["gpu_names"]) == (2, ["NVIDIA A100-SXM4-40GB"])
    facts, _ = probed(tmp_path, python=python)
    assert (facts["gpus"], facts["driver"], facts["gpu_names"]) == (0, None, [])


def test_chips_are_device_files(tmp_path: Path) -> None:
    for name in ("accel0", "accel1", "vfio/vfio", "vfio/10", "vfio/11", "vfio/12"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert probe.chips({"libtpu": "0.0.20"}, str(tmp_path)) == {"chips": 3, "libtpu": "0.0.20", "jax": None}


def test_versions_come_from_packages() -> None:
    known = {"torch": "2.8.0+cu128", "nvidia-nccl-cu12": "2.27.3", "nvidia-cuda-runtime-cu12": "12.8.90"}
    told = probe.cuda(known)
    assert (told["torch"], told["nccl"], told["cuda_runtime"]) == ("2.8.0+cu128", "2.27.3", "12.8.90")


def test_the_probe_is_python_of_old() -> None:
    ast.parse((HERE / "probe.py").read_text(), feature_version=(3, 8))


# --- clocks


class Clock:
    """Ours, which a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def answering(clock: Clock, *, ahead: float, whole: bool = False) -> Callable[[Streams], int]:
    """A machine whose clock is ahead, 3 s away; each way takes a quarter of a second once it is connected."""

    def run(streams: Streams) -> int:
        assert streams.read
        clock.now += 3
        streams.write(False, b'{"hostname": "a", ')
        streams.write(False, b'"gpus": 0}\n')
        assert streams.read(10) == b"\n"
        clock.now += 0.25
        now = clock.now + ahead
        clock.now += 0.25
        told: dict[str, Any] = {"now": int(now), "whole": True} if whole else {"now": now}
        streams.write(False, json.dumps(told).encode() + b"\n")
        assert streams.read(10) == b""
        return 0

    return run


@pytest.mark.parametrize("ahead, off", [(0, 0), (1.2, 0.95), (1.5, 1.25), (-1.5, -1.25), (-1.2, -0.95), (40, 39.75)])
def test_a_clock_is_off_by_at_least_so_much(ahead: float, off: float) -> None:
    clock = Clock()
    seen = ask(answering(clock, ahead=ahead), clock)
    assert seen.facts == {"hostname": "a", "gpus": 0}
    assert judge.off(seen.skew) == pytest.approx(off)
    assert seen.skew.estimate_s == pytest.approx(ahead)
    assert bool(judge.faults(seen, Places(None, (0,)))) == (abs(off) > 1)


def test_a_clock_that_tells_whole_seconds_may_be_right() -> None:
    clock = Clock()
    assert ask(answering(clock, ahead=0, whole=True), clock).skew.estimate_s == 0


@pytest.mark.parametrize(
    "out, err, message",
    [
        (b"", b"sh: not found\n", "exit code 127: sh: not found"),
        (b"Welcome!\nagain\n", b"", "exit code 127"),
        (b'{"a": 1}\n{"b": 1}\n', b"", "exit code 127"),
    ],
)
def test_what_tells_nothing_is_said(out: bytes, err: bytes, message: str) -> None:
    def run(streams: Streams) -> int:
        streams.write(True, err)
        streams.write(False, out)
        return 127

    with pytest.raises(CloudSilent, match=message):
        ask(run)


def test_whoever_waits_for_a_machine_that_cannot_be_reached_is_let_go() -> None:
    waiting: list[threading.Thread] = []

    def run(streams: Streams) -> int:
        assert streams.read
        waiting.append(threading.Thread(target=streams.read, args=(1,)))
        waiting[0].start()
        raise CloudRefused("no")

    with pytest.raises(CloudRefused):
        ask(run)
    waiting[0].join(60)
    assert not waiting[0].is_alive()


# --- the verdict


@pytest.mark.parametrize(
    "changes, wanted, faults",
    [
        ({}, TWO, []),
        ({}, Places(None, (0,)), []),
        ({"driver": None}, Places(None, (0,)), []),
        ({"driver": None, "gpus": 0}, TWO, ["no NVIDIA driver answers", "0 of 2 GPUs are there"]),
        ({"gpus": 1}, TWO, ["1 of 2 GPUs are there"]),
        ({"gpus": 4}, TWO, ["4 GPUs are there instead of 2"]),
        ({"chips": 4}, Places(None, (0,), chips=4), []),
        ({}, Places(None, (0,), chips=4), ["0 of 4 TPU chips are there"]),
        ({"ecc_errors": 2}, TWO, ["2 uncorrected ECC errors since the driver was loaded"]),
        ({"xids": [48, 79]}, TWO, ["XID 48, 79 in the kernel's log"]),
        (
            {"disks": {"/": {"mib": 1000, "free_mib": 49}, "/x": {"mib": 1000, "free_mib": 50}, "/y": None}},
            TWO,
            ["4.9% of the disk of / is free (49 of 1,000 MiB)"],
        ),
        ({"disks": {"/proc": {"mib": 0, "free_mib": 0}}}, TWO, []),
    ],
)
def test_what_is_wrong(changes: dict[str, Any], wanted: Places, faults: list[str]) -> None:
    assert judge.faults(MachineReport(GOOD | changes, Skew(-0.1, 0.1)), wanted) == faults


def test_a_clock_that_is_wrong() -> None:
    assert judge.faults(MachineReport(GOOD, Skew(1.1, 1.3)), TWO) == ["its clock is 1.1 s ahead"]
    assert judge.faults(MachineReport(GOOD, Skew(-9, -2.04)), TWO) == ["its clock is 2.0 s behind"]


# --- several at once


def test_lines_of_several_are_whole() -> None:
    out: list[tuple[bool, bytes]] = []
    lines = Lines(lambda is_error, data: out.append((is_error, data)))
    lines.write("node 0", False, b"a\nb")
    lines.write("node 1", False, b"x\r\n")
    lines.write("node 0", True, b"bad")
    lines.write("node 0", False, b"c\n\nd")
    lines.end("node 0")
    lines.end("node 1")
    assert out == [
        (False, b"[node 0] a\n"),
        (False, b"[node 1] x\r\n"),
        (False, b"[node 0] bc\n[node 0] \n"),
        (False, b"[node 0] d\n"),
        (True, b"[node 0] bad\n"),
    ]
    lines.write("node 0", False, b"y" * (LINE_MAX + 1))
    assert len(out[-1][1]) == len("[node 0] ") + LINE_MAX + 2


def test_everywhere_gives_answers_in_order_and_raises_what_is_nobodys_answer() -> None:
    def work(number: int) -> int:
        if number % 3 == 0:
            raise CloudRefused(str(number))
        return number * 10

    found = everywhere(range(100), work)
    assert list(found) == list(range(100)) and found[98] == 980
    assert isinstance(found[99], CloudRefused)

    def broken(number: int) -> int:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        everywhere([1, 2], broken)


# --- the command


class Machines:
    """A backend with four nodes, of which one has not come up."""

    def __init__(self, word: str | None = "node", running: tuple[int, ...] = (0, 1, 3)) -> None:
        self._places = Places(word, running, gpus=2)
        self.asked: list[tuple[int | None, bool, tuple[str, ...]]] = []
        self.facts: dict[int | None, dict[str, Any]] = {}

    def places(self, ref: JobRef) -> Places:
        return self._places

    def run(
        self, ref: JobRef, command: Sequence[str], streams: Streams, *, task: int | None = None, host: bool = False
    ) -> int:
        if command[:2] == ["sh", "-c"]:
            if task == 9:
                raise CloudRefused("SSH does not let you in", "a role is missing")
            code = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert streams.read and code.stdin and code.stdout
            told = json.loads(code.stdout.readline())
            streams.write(False, json.dumps(told | GOOD | self.facts.get(task, {})).encode() + b"\n")
            code.stdin.write(streams.read(10))
            code.stdin.close()
            streams.write(False, code.stdout.readline())
            return code.wait()
        self.asked.append((task, host, tuple(command)))
        if task == 1:
            streams.write(False, b"half")
            raise CloudRefused("SSH does not let you in", "a role is missing")
        streams.write(False, f"{' '.join(command)} {task}\n".encode())
        streams.write(True, streams.read(10) if streams.read else b"")
        return 7 if task == 3 else 0


@pytest.fixture
def machines(home: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines()
    monkeypatch.setattr(resolve, "job", lambda text, reporter: (JobRef("gce", "b", text), made))
    return made


def test_a_command_runs_on_every_machine(invoke: Callable[..., Result], machines: Machines) -> None:
    result = invoke("exec", "j", "--", "nvidia-smi", "-L")
    assert result.exit_code == 4, "of the first that failed, which is node 1"
    assert sorted(result.stdout.splitlines()) == [
        "[node 0] nvidia-smi -L 0",
        "[node 1] half",
        "[node 3] nvidia-smi -L 3",
    ]
    assert result.stderr == "[node 1] error: SSH does not let you in (a role is missing)\n"
    assert sorted(machines.asked)[0] == (0, False, ("nvidia-smi", "-L"))


def test_a_command_on_one_machine(invoke: Callable[..., Result], machines: Machines) -> None:
    result = invoke("exec", "j", "--node", "3", "--host", "--", "hostname")
    assert (result.exit_code, result.stdout) == (7, "hostname 3\n")
    assert machines.asked == [(3, True, ("hostname",))]
    refused = invoke("exec", "j", "--task", "1", "--", "hostname")
    assert (refused.exit_code, refused.stdout) == (4, "half")
    assert refused.stderr == "error: SSH does not let you in\nhint: a role is missing\n"


def test_a_job_of_one_needs_no_number(
    invoke: Callable[..., Result], machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Machines(None, (0,))
    monkeypatch.setattr(resolve, "job", lambda text, reporter: (JobRef("gce", "b", text), one))
    assert invoke("exec", "j", "--", "hostname").stdout == "hostname None\n"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["j"], "COMMAND is missing"),
        (["j", "--check", "--", "true"], "--check: takes no COMMAND"),
        (["j", "--check", "--stdin"], "--check: takes neither --stdin nor --tty"),
        (["j", "--stdin", "--", "cat"], "gce:b/j: --node is missing; nodes that run: 0, 1, 3"),
        (["j", "--tty", "--", "sh"], "--tty: standard input is no terminal"),
    ],
)
def test_bad_words(invoke: Callable[..., Result], machines: Machines, arguments: list[str], message: str) -> None:
    result = invoke("exec", *arguments)
    assert result.exit_code == 2 and result.stderr.startswith(f"error: {message}"), result.stderr
    assert machines.asked == []


def test_a_check_of_machines_that_are_well(invoke: Callable[..., Result], machines: Machines) -> None:
    result = invoke("exec", "j", "--check")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    head, *rows = result.stdout.splitlines()
    assert head.split()[:4] == ["NODE", "HOST", "DEVICES", "DRIVER"] and len(rows) == 3
    assert rows[2].startswith("3     a     2 NVIDIA L4  570.1") and rows[2].endswith("ok")


def test_a_check_of_machines_that_are_not(
    invoke: Callable[..., Result], machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.facts[3] = {"gpus": 1, "gpu_names": ["NVIDIA L4"], "xids": [79]}
    result = invoke("exec", "j", "--check", "-o", "json")
    assert result.exit_code == 125
    assert result.stderr == (
        "node 3: 1 of 2 GPUs are there; XID 79 in the kernel's log\n"
        "error: 1 of 3 machines of gce:b/j are not as they should be\n"
    )
    rows = json.loads(result.stdout)
    assert [row["verdict"] for row in rows] == ["ok", "ok", "1 of 2 GPUs are there; XID 79 in the kernel's log"]
    assert rows[2]["faults"] and rows[0]["skew_s"] == 0 and rows[0]["memory_mib"] > 0
    assert invoke("exec", "j", "--check", "--node", "0").exit_code == 0
    refused = invoke("exec", "j", "--check", "--node", "9")
    assert refused.exit_code == 125 and "node 9: SSH does not let you in\n" in refused.stderr
    assert "unknown" in refused.stdout


def test_a_kind_without_exec(invoke: Callable[..., Result], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "job", lambda text, reporter: (JobRef("aws-batch", "us-east-1", text), object()))
    result = invoke("exec", "j", "--check")
    assert result.exit_code == 2 and "no command can be run in jobs of kind aws-batch" in result.stderr


def test_no_machine_is_entered_of_a_job_that_does_not_run(
    invoke: Callable[..., Result], machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def places(ref: JobRef) -> Places:
        raise BadInput(f"{ref}: it has no machine now")

    monkeypatch.setattr(machines, "places", places)
    result = invoke("exec", "j", "--", "true")
    assert (result.exit_code, result.stderr) == (2, "error: gce:b/j: it has no machine now\n")
