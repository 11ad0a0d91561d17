"""The health check: each fault by a sick GPU, and the command in a process of its own, as a job's image has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from accel.catalog.xids import cordoning, xids
from accel.rules.jobs import exit_codes
from jobs.runtime import gpus_xids, health, lines, stop
from jobs.runtime.gpus import Source, Unreadable
from jobs.runtime.gpus_nvml import Nvml
from jobs.runtime.gpus_xids import Xid, read_xids
from tests.support import fake_nvml

needs_compiler = pytest.mark.skipif(fake_nvml.compiler() is None, reason="no C compiler")

Look = Callable[..., health.Health]
RUNTIME = Path(health.__file__).parent


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def look(library: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """The check of a machine whose GPUs are as told: `look("0.lost=1", gpus=8)`."""

    def call(text: str, gpus: int = 4, log: list[Xid] | None = None, **options: object) -> health.Health:
        monkeypatch.setenv("FAKE_NVML", f"gpus=4;{text}")
        return health.check(gpus, open_source=lambda: Nvml(str(library)), log=lambda: log, **options)

    return call


@needs_compiler
@pytest.mark.parametrize(
    ("text", "check", "words"),
    [
        ("gpus=3", "count", "3 of 4 GPUs are there"),
        ("2.lost=1", "lost", "GPU 2 is lost: it fell off the bus"),
        ("2.handle=15", "lost", "GPU 2 is lost: it fell off the bus"),
        ("1.handle=16", "lost", "GPU 1 has to be reset"),
        ("3.action=1", "action", "GPU 3 needs a reset"),
        ("3.action=2", "action", "GPU 3 needs a reboot of the machine"),
        ("3.action=7", "action", "GPU 3 needs recovery action 7"),
        ("0.ecc=2;0.action=-1", "ecc", "GPU 0 had 2 uncorrected memory errors since its driver was loaded"),
        ("0.retired=1", "retired", "GPU 0 has memory pages to be retired when its driver is loaded again"),
        ("0.failed=1", "remap-failed", "GPU 0 has a memory row that could not be remapped"),
        ("init=18", "driver", "NVML: Driver/library version mismatch (error 18)"),
    ],
)
def test_each_fault(look: Look, text: str, check: str, words: str) -> None:
    found = look(text)
    assert health.Fault(check, words) in found.faults
    assert words in found.summary
    allowed = look(text, allowed=[check])
    assert check not in [each.check for each in allowed.faults]
    assert f"allowed: {words}" in allowed.notes


@needs_compiler
def test_a_sound_machine_and_what_is_only_noted(look: Look) -> None:
    sound = look("", log=[])
    assert (sound.faults, sound.notes, sound.summary) == ([], [], "4 GPUs, driver 580.95.05: fit")
    assert look("", gpus=2, log=[]).faults == [], "more than were asked for"
    assert look("gpus=1", gpus=1, log=[]).summary == "1 GPU, driver 580.95.05: fit"
    # https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
    noted = look("0.pending=1;1.ecc=3", log=None)
    assert noted.faults == []
    assert [note.partition(" ")[0] for note in noted.notes] == ["GPU", "GPU", "the"]
    assert "the kernel's log cannot be read here" in noted.summary


@needs_compiler
def test_parts_of_a_gpu_count_as_gpus(look: Look) -> None:
    cut = "gpus=1;0.mig=1;0.parts=7"
    assert look(cut, gpus=4, log=[]).faults == []
    assert look(cut, gpus=5, log=[]).summary == "4 of 5 GPUs are there"


@needs_compiler
def test_errors_in_the_kernels_log_are_those_of_these_gpus(look: Look) -> None:
    log = [
        Xid((0, 0x12, 0), 79, "pid=1, GPU has fallen off the bus."),
        Xid((0, 0x12, 0), 79, "again"),
        Xid((0, 0x77, 0), 79, "the GPU of another job"),
        Xid((0, 0x10, 0), 63, "Row Remapper: New row marked for remapping, reset gpu to activate."),
        Xid((0, 0x11, 0), 154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
        Xid((0, 0x13, 0), 154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
        Xid((0, 0x13, 0), 154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"),
    ]
    assert [each.words for each in look("", log=log).faults] == [
        "XID 154 on GPU 1: the driver asks for a reset or a reboot",
        "XID 79 on GPU 2: GPU fell off the bus",
    ]


def test_the_list_of_errors_is_the_catalogues() -> None:
    assert sorted(gpus_xids.BAD) == cordoning()
    known = xids()
    for number, what in gpus_xids.BAD.items():
        assert number == 154 or what == known[number].what


def test_the_kernels_log(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(
        "6,1,100,-;Linux version 6.1\n"
        "3,2,200,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.\n"
        " SUBSYSTEM=pci\n"
        "3,3,300,-;NVRM: Xid (0000:5E:00): 31, Ch 0000000b, engmask 00000120\n"
    )
    assert read_xids(str(log)) == [
        Xid((0, 0x3B, 0), 79, "pid=1234, name=python, GPU has fallen off the bus."),
        Xid((0, 0x5E, 0), 31, "Ch 0000000b, engmask 00000120"),
    ]
    assert read_xids(str(tmp_path / "none")) is None
    log.chmod(0)
    assert os.geteuid() == 0 or read_xids(str(log)) is None


def test_a_machine_without_a_driver() -> None:
    found = health.check(1, open_source=lambda: None)
    assert found.summary == "there is neither NVIDIA's library (NVML) nor nvidia-smi"


def test_a_driver_that_hangs_is_given_up() -> None:
    let_go = threading.Event()

    def hang() -> Source | None:
        let_go.wait(60)
        raise Unreadable("too late")

    assert health.check(1, timeout_s=0.05, open_source=hang).summary == "NVIDIA's driver did not answer within 0.05 s"
    let_go.set()


def test_backends_know_the_codes_and_make_none_of_them_final() -> None:
    assert (health.BAD_NODE, stop.STOPPED) == (exit_codes.BAD_NODE, exit_codes.STOPPED)
    assert not {0, *exit_codes.CANNOT_RUN} & set(exit_codes.LOST)


@needs_compiler
def test_on_aws_batch_the_code_is_the_one_that_its_rules_know(
    command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert command("gpus=7", "--gpus", "8", AWS_BATCH_JOB_ID="1").returncode == stop.STOPPED


# --- the command


@pytest.fixture
def command(library: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`python -m accel_runtime.health`, with the package as an image has it."""
    shutil.copytree(RUNTIME, tmp_path / "accel_runtime", ignore=shutil.ignore_patterns("__pycache__"))

    def call(text: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path), "FAKE_NVML": text, **more}
        environment["LD_LIBRARY_PATH"] = str(library.parent) if text else ""
        return subprocess.run(
            [sys.executable, "-S", "-m", "accel_runtime.health", *arguments],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return call


@needs_compiler
def test_the_command_runs_what_follows_on_a_sound_machine(
    command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = command("gpus=2", "--gpus", "2", "--", sys.executable, "-c", "import sys; print('trained'); sys.exit(9)")
    assert done.returncode == 9, done.stderr
    first, second = done.stdout.splitlines()
    told = lines.read(first)
    assert told and told["event"] == "health" and told["said"].startswith("2 GPUs, driver 580.95.05: fit")
    assert second == "trained"
    assert command("gpus=2").returncode == 0
    assert command("gpus=1", "--", "no-such-program").returncode == 127


@needs_compiler
@pytest.mark.parametrize("text", ["gpus=7", "gpus=8;5.lost=1", "gpus=8;5.action=1", "init=18", ""])
def test_the_command_ends_with_a_code_that_is_tried_again(
    command: Callable[..., subprocess.CompletedProcess[str]], text: str
) -> None:
    done = command(text, "--gpus", "8", "--", sys.executable, "-c", "print('trained')")
    assert done.returncode == health.BAD_NODE == 75
    assert "trained" not in done.stdout
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


@needs_compiler
def test_the_command_gives_up_a_driver_that_hangs(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = command("hang=600", "--timeout", "0.2")
    assert done.returncode == health.BAD_NODE
    assert "did not answer within 0.2 s" in done.stderr


def test_the_command_refuses_a_check_that_is_none(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = command("", "--allow", "eec")
    assert done.returncode == 2
    assert "eec" in done.stderr and "remap-failed" in done.stderr
