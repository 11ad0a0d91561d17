"""What runs inside a job, on NVIDIA's own driver: on a machine without a GPU there is nothing to run.

    python -m pytest --noconftest tests/hardware

needs a Python with pytest, PyYAML, pydantic, click, boto3 and platformdirs; with torch and JAX it trains too.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from jobs.backends import local
from jobs.client import runtime_wheel
from jobs.runtime.gpus import Source
from jobs.runtime.gpus_nvml import LIBRARY, Nvml, Smi
from jobs.runtime.gpus_stats import Stats

ROOT = Path(__file__).parents[2]
LOAD = ROOT / "tests/support/gpu_load.py"
PATIENCE_S = 120
ILLEGAL_ADDRESS = (13, 31)
"""An XID of either number is the driver's for a program that writes where it may not, by the GPU's generation.
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"""


def _there() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return shutil.which("nvidia-smi") is not None


pytestmark = pytest.mark.skipif(not _there(), reason="no GPU of NVIDIA's with its driver")


def smi(query: str) -> list[str]:
    """A column of nvidia-smi, without units."""
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@contextmanager
def busy(mib: int = 0) -> Generator[None]:
    """The first GPU at work, with so much of its memory taken."""
    load = subprocess.Popen([sys.executable, LOAD, "busy", "60", str(mib)], stdout=subprocess.PIPE, text=True)
    assert load.stdout and load.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        load.kill()
        load.communicate()


@pytest.fixture(params=["nvml", "nvidia-smi"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    opened = Nvml() if request.param == "nvml" else Smi()
    yield opened
    opened.close()


def test_every_gpu_is_read_as_the_driver_tells_it(source: Source) -> None:
    names, totals = smi("name"), [int(each) for each in smi("memory.total")]
    readings = source.read()
    assert [each["name"] for each in readings] == names
    assert [each["memory_total_mib"] for each in readings] == totals
    assert {source.driver()} == set(smi("driver_version"))
    for each in readings:
        assert {"use", "memory_use", "memory_mib", "power_w", "temperature_c"} <= each.keys(), each
        assert 0 <= each["use"] <= 100 and 5 < each["temperature_c"] < 100 and each["power_w"] > 5


def test_the_state_of_every_gpu_is_read_by_both_ways_alike() -> None:
    nvml, command = Nvml(), Smi()
    assert nvml.states() == command.states()
    state = nvml.states()[0]
    assert (state.fault, state.parts) == ("", 1)
    assert state.pci and "{:08X}:{:02X}:{:02X}.0".format(*state.pci) == smi("pci.bus_id")[0].upper()
    nvml.close()


def test_a_gpu_at_work_is_seen_to_work(source: Source) -> None:
    before = source.read()[0]
    with busy(mib=2048):
        time.sleep(3)  # the driver's own figure is an average over the time before
        now = source.read()[0]
    assert now["use"] > 90 >= before["use"], (before, now)
    assert 2048 <= now["memory_mib"] - before["memory_mib"] < 4096
    assert now["power_w"] > before["power_w"] * 0.9


def test_an_error_of_the_gpu_is_an_event_in_the_log() -> None:
    said: list[dict[str, Any]] = []
    with Stats(every_s=0.5, write=lambda line: said.append(json.loads(line.partition(" ")[2]))):
        time.sleep(1)
        wrong = subprocess.run([sys.executable, LOAD, "fault"], capture_output=True, text=True, check=False)
        time.sleep(2)
    assert wrong.returncode == 1, wrong.stderr
    numbers = [number for line in said for gpu in line.get("gpus", ()) for number in gpu.get("xid", ())]
    assert numbers and set(numbers) <= set(ILLEGAL_ADDRESS), said
    (event,) = [line["said"] for line in said if line.get("event") == "health"]
    assert event == f"XID {numbers[0]} on GPU 0: an error that programs can cause"
    health = check("--gpus", str(len(smi("index"))))
    assert health.returncode == 0, f"a program's own fault makes no machine unfit: {health.stderr}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runtime_wheel.write(tmp_path_factory.mktemp("wheel"))


def check(*words: str, path: str = str(ROOT)) -> "subprocess.CompletedProcess[str]":
    package = "accel_runtime" if path.endswith(".whl") else "jobs.runtime"
    command = [sys.executable, "-m", f"{package}.health", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip


def test_a_fit_machine_runs_the_command_and_another_is_left(wheel: Path) -> None:
    count = len(smi("index"))
    fit = check("--gpus", str(count), "--", "echo", "trained", path=str(wheel))
    assert (fit.returncode, fit.stdout.splitlines()[-1]) == (0, "trained"), fit.stderr
    line = json.loads(fit.stdout.splitlines()[0].partition(" ")[2])
    counted = "1 GPU" if count == 1 else f"{count} GPUs"
    assert line["said"].startswith(f"{counted}, driver {smi('driver_version')[0]}: fit")
    unfit = check("--gpus", str(count + 1), "--", "echo", "trained", path=str(wheel))
    assert (unfit.returncode, "trained" in unfit.stdout) == (75, False)
    assert unfit.stderr == f"error: {count} of {count + 1} GPUs are there [count]\n"


def test_the_probe_of_a_machine_tells_its_gpus() -> None:
    names = smi("name")
    probe, shell = ((ROOT / "jobs/client/machine_check" / name).read_text() for name in ("probe.py", "probe.sh"))
    for command in ([sys.executable, "-c", probe], ["sh", "-c", shell.replace("python3", "no-python"), "sh", probe]):
        done = subprocess.run(command, input="\n", capture_output=True, text=True, check=True)
        told = json.loads(done.stdout.splitlines()[0])
        assert (told["gpus"], told["gpu_names"], told["driver"]) == (len(names), names, smi("driver_version")[0])
    assert local.gpus() == (smi("index"), sorted(set(names)))


TRAIN = """
import os, signal, sys, time
import torch
import accel_runtime as runtime

runtime.watch()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters())
checkpoints, step = runtime.Checkpoints(sys.argv[1]), 0
kill_at, signal_at = (int(each) for each in sys.argv[2:4])
if found := checkpoints.resume():
    state = runtime.hooks.torch_load(found, map_location="cuda")
    model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"])
    step = found.step
    print("resumed", step, flush=True)
while step < 60:
    inputs = torch.randn(256, 64, generator=torch.Generator().manual_seed(step)).cuda()
    loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    step += 1
    if step == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    if step == signal_at:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)
    if runtime.should_stop() or step % 10 == 0:
        checkpoints.save(step, runtime.hooks.torch({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
    if runtime.should_stop():
        break
print(f"loss {loss.item():.6f}", flush=True)
runtime.finish(done=step >= 60)
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="no torch")
def test_a_training_that_is_killed_goes_on_to_the_same_loss(wheel: Path, tmp_path: Path) -> None:
    def train(folder: str, kill_at: int = 0, signal_at: int = 0) -> tuple[int, list[str]]:
        command = [sys.executable, "-c", TRAIN, str(tmp_path / folder), str(kill_at), str(signal_at)]
        path = os.pathsep.join([str(wheel), os.environ.get("PYTHONPATH", "")])
        # One way to add up, whatever else the GPU does: https://docs.pytorch.org/docs/stable/notes/randomness.html
        variables = {**os.environ, "PYTHONPATH": path, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=variables)
        assert done.returncode in (0, 143, -signal.SIGKILL), done.stderr
        return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("@accel")]

    whole = train("whole")
    assert whole[0] == 0
    assert train("cut", kill_at=25) == (-signal.SIGKILL, [])
    stopped = train("cut", signal_at=37)
    assert (stopped[0], stopped[1][0]) == (143, "resumed 20")
    assert train("cut") == (0, ["resumed 37", *whole[1]])


@pytest.mark.skipif(find_spec("jax") is None, reason="no JAX")
def test_the_example_runs_as_a_local_job_on_the_gpu(tmp_path: Path) -> None:
    def jobs(*words: str) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        variables = {**os.environ, "PYTHONPATH": path, "XDG_STATE_HOME": str(tmp_path), "ACCEL_IMAGE_CHECK": "off"}
        command = [sys.executable, "-m", "jobs", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=variables)

    text = (ROOT / "examples/jobs/digits.yaml").read_text() + "  REQUIRE_GPU: 1\naccelerator: {count: 1}\n"
    (tmp_path / "job.yaml").write_text(text.replace("[python,", f"[{sys.executable},"))
    done = jobs("submit", str(tmp_path / "job.yaml"), "--to", "local", "--wait", "-o", "id")
    assert done.returncode == 0, done.stdout + done.stderr
    log = jobs("logs", done.stdout.strip())
    assert re.search(r"^device gpu \(.+\)$", log.stdout, re.MULTILINE), log.stdout + log.stderr
    assert "trained: loss " in log.stdout

    count = len(smi("index"))
    (tmp_path / "job.yaml").write_text(text.replace("count: 1", f"count: {count + 1}"))
    refused = jobs("submit", str(tmp_path / "job.yaml"), "--to", "local")
    assert refused.returncode == 2, refused.stderr
    assert f"accelerator.count: asks for {count + 1}, this machine has {count} GPU(s)" in refused.stderr
