"""examples/tpu_smoke_*.py: run for real, on the CPU of this machine."""

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from jobs.model.job import Job

EXAMPLES = Path(__file__).parents[2] / "examples"
JAX, TORCH = "tpu_smoke_jax.py", "tpu_smoke_torch_xla.py"


def start(program: str, **env: str) -> subprocess.Popen[str]:
    clean = {"PATH": os.environ["PATH"], "JAX_PLATFORMS": "cpu", "PJRT_DEVICE": "CPU"}
    command = [sys.executable, program]
    return subprocess.Popen(
        command, cwd=EXAMPLES, env=clean | env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()  # after a time-out; one that has ended is not touched
    return process.returncode, [line for line in out.splitlines() if line.startswith("process ")], err


def run(program: str, **env: str) -> tuple[int, list[str], str]:
    return finish(start(program, **env))


def without(folder: Path, module: str) -> str:
    """A PYTHONPATH on which a module is not to be had."""
    (folder / f"{module}.py").write_text("raise ImportError")
    return str(folder)


def test_jax_on_one_process() -> None:
    code, lines, err = run(JAX, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert code == 0, err
    assert lines == [
        "process 0 of 1: 4 of 4 devices, cpu (cpu)",
        "process 0 of 1: matmul 256.0, expected 256",
        "process 0 of 1: psum 10, expected 10",
    ]


def test_jax_on_two_processes_that_meet() -> None:
    """By the variables that a machine of several is given."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    both = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"}
    processes = [start(JAX, JAX_PROCESS_ID=str(number), **both) for number in (0, 1)]
    for number, (code, lines, err) in enumerate(finish(each) for each in processes):
        assert code == 0, err
        assert lines == [
            f"process {number} of 2: 1 of 2 devices, cpu (cpu)",
            f"process {number} of 2: matmul 256.0, expected 256",
            f"process {number} of 2: psum 3, expected 3",
        ]


@pytest.mark.parametrize(
    "env, code, message",
    [
        ({"REQUIRE_TPU": "1"}, 1, "REQUIRE_TPU: is 1, but JAX sees no TPU, only cpu"),
        ({"REQUIRE_TPU": "yes"}, 2, "REQUIRE_TPU: must be 0 or 1, is 'yes'"),
        (
            {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:1", "JAX_NUM_PROCESSES": "two", "JAX_PROCESS_ID": "0"},
            2,
            "JAX_NUM_PROCESSES: must be a whole number beside JAX_COORDINATOR_ADDRESS, is 'two'",
        ),
    ],
)
def test_jax_says_what_is_wrong_in_one_line(env: dict[str, str], code: int, message: str) -> None:
    ended, _, err = run(JAX, **env)
    assert (ended, err) == (code, f"error: {message}\n")


def test_jax_that_is_missing_is_one_line(tmp_path: Path) -> None:
    code, lines, err = run(JAX, PYTHONPATH=without(tmp_path, "jax"))
    assert (code, lines) == (1, [])
    assert err == "error: jax is not installed here; on a TPU: pip install 'jax[tpu]'\n"


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed here")
def test_torch_that_is_missing_is_one_line() -> None:
    code, lines, err = run(TORCH)
    assert (code, lines) == (1, [])
    assert err == "error: torch is not installed here; on a TPU: pip install torch 'torch_xla[tpu]'\n"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
def test_torch_on_the_cpu() -> None:
    code, lines, err = run(TORCH)
    assert code == 0, err
    assert lines[-1] == "process 0 of 1: matmul 256 to 256, expected 256"


@pytest.mark.parametrize("name, program", [("tpu-smoke-jax", JAX), ("tpu-smoke-torch-xla", TORCH)])
def test_the_job_files_run_them_on_a_slice_of_one_host(name: str, program: str) -> None:
    job = Job.model_validate(yaml.safe_load((EXAMPLES / "jobs" / f"{name}.yaml").read_text()))
    assert job.command == ["python", program]
    assert job.accelerator and job.accelerator.type == "v5litepod-4"
