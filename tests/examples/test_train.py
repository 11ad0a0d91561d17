"""examples/: real training runs that are killed, stopped and resumed, and the job files."""

import importlib.util
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

from jobs.model.job import Job
from jobs.runtime import lines as protocol
from tests.support.soak import SOAK, soak_only

EXAMPLES = Path(__file__).parents[2] / "examples"
JOB_FILES = sorted((EXAMPLES / "jobs").glob("*.yaml"))
EPOCHS, PER_EPOCH = 4, 11
KILLS = 20 if SOAK else 1
SMALL = {"EPOCHS": str(EPOCHS), "BATCH_SIZE": "128", "HIDDEN": "32"}
EPOCH_LINE = re.compile(r"^epoch (\d+)/4 loss (\d+\.\d{4}) accuracy ([01]\.\d{4}) seconds \d+\.\d\d$", re.MULTILINE)


def start(env: dict[str, str], *command: str) -> subprocess.Popen[str]:
    clean = {"PATH": os.environ["PATH"], "JAX_PLATFORMS": "cpu"}
    command = command or (sys.executable, "train.py")
    return subprocess.Popen(
        command, cwd=EXAMPLES, env=clean | env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()  # after a time-out; one that has ended is not touched
    return process.returncode, out, err


def run(env: dict[str, str], *command: str) -> tuple[int, str, str]:
    return finish(start(env, *command))


def interrupt(folder: Path, epochs: int, number: int) -> tuple[int, str, str]:
    """Starts a slow run and sends it the signal as soon as so many epochs are saved."""
    process = start(SMALL | {"CHECKPOINT_DIR": str(folder), "STEP_SLEEP_MS": "60"})
    until = time.monotonic() + 600
    while (
        not list(folder.glob(f"step-{epochs * PER_EPOCH:08d}-*"))
        and process.poll() is None
        and time.monotonic() < until
    ):
        time.sleep(0.01)
    process.send_signal(number)
    return finish(process)


def place(folder: Path, step: int) -> Path:
    (found,) = folder.glob(f"step-{step:08d}-*")
    return found


def saved(folder: Path) -> dict[str, np.ndarray]:
    with np.load(sorted(folder.glob("step-*"))[-1] / "arrays.npz") as file:
        return dict(file)


def assert_same_model(one: Path, other: Path) -> None:
    ours, theirs = saved(one), saved(other)
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train", EXAMPLES / "train.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("unbroken")
    code, out, err = run(SMALL | {"CHECKPOINT_DIR": str(folder)})
    assert code == 0, err
    return folder, out


@pytest.fixture(scope="module")
def no_jax(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PYTHONPATH on which importing jax ends the run: a bad setting must be found before that."""
    folder = tmp_path_factory.mktemp("no-jax")
    (folder / "jax.py").write_text("raise SystemExit('jax was imported')")
    return str(folder)


def test_loss_falls_and_two_checkpoints_are_kept(unbroken: tuple[Path, str]) -> None:
    folder, out = unbroken
    lines = EPOCH_LINE.findall(out)
    assert [int(epoch) for epoch, _, _ in lines] == [1, 2, 3, 4]
    assert float(lines[-1][1]) < float(lines[0][1]) / 2
    assert float(lines[-1][2]) > 0.9
    assert out.startswith("device cpu")
    assert sorted(file.name[:13] for file in folder.iterdir()) == ["step-00000033", "step-00000044"]
    told = [found for line in out.splitlines() if (found := protocol.read(line))]
    assert [each["step"] for each in told if each.get("event") == "checkpoint"] == [11, 22, 33, 44]
    assert told[-1]["event"] == "end"
    reports = [each for each in told if "steps" in each]
    assert reports[-1]["step"] == reports[-1]["steps"] == 44
    assert {"loss", "accuracy"} <= {name for each in told for name in each.get("metrics", {})}
    assert int(saved(folder)["epoch"]) == EPOCHS


@soak_only
def test_killed_run_resumes_over_a_damaged_checkpoint_to_the_same_model(
    unbroken: tuple[Path, str], tmp_path: Path
) -> None:
    code, out, _ = interrupt(tmp_path, 2, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert "epoch 2/4" in out
    whole = place(tmp_path, 22)
    truncated, empty = tmp_path / "step-00000033-00000000", tmp_path / "step-00000044-00000000"
    shutil.copytree(whole, truncated)
    (truncated / "arrays.npz").write_bytes((whole / "arrays.npz").read_bytes()[:-100])
    empty.mkdir()
    code, out, err = run(SMALL | {"CHECKPOINT_DIR": str(tmp_path)})
    assert code == 0, err
    assert f"checkpoint {truncated} is truncated or corrupt: skipped" in out
    assert f"checkpoint {empty} is not complete: skipped" in out
    assert f"resumed from {whole}: 2 epochs, 22 steps" in out
    assert [line[0] for line in EPOCH_LINE.findall(out)] == ["3", "4"]
    assert out.splitlines()[-1] == unbroken[1].splitlines()[-1]
    assert_same_model(tmp_path, unbroken[0])


def test_sigterm_saves_in_the_middle_of_an_epoch_and_the_rest_gives_the_same_model(
    unbroken: tuple[Path, str], tmp_path: Path
) -> None:
    code, out, err = interrupt(tmp_path, 1, signal.SIGTERM)
    assert (code, err) == (143, "")
    stopped = re.search(r"^stopped by SIGTERM after (\d+) steps: saved in ", out, re.MULTILINE)
    assert stopped
    step = int(stopped[1])
    assert PER_EPOCH < step < EPOCHS * PER_EPOCH
    assert step % PER_EPOCH, "the signal was meant to arrive inside an epoch"
    code, out, err = run(SMALL | {"CHECKPOINT_DIR": str(tmp_path)})
    assert code == 0, err
    assert re.search(rf"step-{step:08d}-\w+: {step // PER_EPOCH} epochs, {step} steps", out)
    assert_same_model(tmp_path, unbroken[0])


def killed(folder: Path, after_s: float) -> bool:
    """Goes on with the training, and kills it so long after it has begun; whether it had not ended by then."""
    process = start(SMALL | {"CHECKPOINT_DIR": str(folder), "STEP_SLEEP_MS": "30"})
    # What it resumes from is told before its device.
    assert process.stdout and any(line.startswith("device cpu") for line in process.stdout)
    time.sleep(after_s)
    before = process.poll()
    process.kill()
    code, _, err = finish(process)
    assert before in (None, 0), err
    return code == -signal.SIGKILL


@soak_only
def test_kills_at_any_moment_leave_the_bytes_of_an_unbroken_run(unbroken: tuple[Path, str], tmp_path: Path) -> None:
    chance, kills = random.Random(11), 0
    while kills < KILLS:
        folder, longest_s = tmp_path / str(kills), 2.0  # its 44 steps take more than 1.3 s
        while killed(folder, chance.uniform(0, longest_s)):
            kills += 1
            longest_s *= 1.5  # on a busy machine the first checkpoint comes later than any of the kills
        ours, theirs = (place(each, EPOCHS * PER_EPOCH) / "arrays.npz" for each in (folder, unbroken[0]))
        assert ours.read_bytes() == theirs.read_bytes()


@soak_only
def test_sigint_exits_130_and_says_that_nothing_is_saved() -> None:
    process = start({"STEP_SLEEP_MS": "50"})
    assert process.stdout
    assert process.stdout.readline().startswith("device cpu")
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, err) == (130, "")
    assert "stopped by SIGINT" in out
    assert "nothing saved, since CHECKPOINT_DIR is not set" in out


@soak_only
def test_finished_run_goes_on_for_more_epochs_only(unbroken: tuple[Path, str], tmp_path: Path) -> None:
    folder = shutil.copytree(unbroken[0], tmp_path / "copy")
    code, out, err = run(SMALL | {"CHECKPOINT_DIR": str(folder), "EPOCHS": "5"})
    assert code == 0, err
    assert re.findall(r"^epoch (\S+) ", out, re.MULTILINE) == ["5/5"]


def test_task_of_a_sweep_takes_its_learning_rate_and_its_folder(tmp_path: Path) -> None:
    env = SMALL | {
        "EPOCHS": "1",
        "LEARNING_RATES": "0.3, 0.1,0.03,0.01",
        "CHECKPOINT_DIR": str(tmp_path),
        "ACCEL_TASK_COUNT": "4",
        "ACCEL_TASK_INDEX_FROM": "AWS_BATCH_JOB_ARRAY_INDEX",
        "AWS_BATCH_JOB_ARRAY_INDEX": "2",
    }
    code, out, err = run(env)
    assert code == 0, err
    assert "LEARNING_RATE=0.03 " in out
    assert float(saved(tmp_path / "task-2")["LEARNING_RATE"]) == 0.03


def test_gpu_can_be_required() -> None:
    code, out, err = run({"REQUIRE_GPU": "1"})
    assert (code, err) == (1, "error: REQUIRE_GPU: is 1, but JAX sees no GPU, only cpu\n")
    assert "epoch 1" not in out


@pytest.mark.parametrize(
    "env, message",
    [
        ({"EPOCHS": "many"}, "EPOCHS: must be a whole number from 1 to 10000, is 'many'"),
        ({"EPOCHS": ""}, "EPOCHS: must be a whole number from 1 to 10000, is ''"),
        ({"BATCH_SIZE": "1438"}, "BATCH_SIZE: must be a whole number from 1 to 1437, is '1438'"),
        ({"LEARNING_RATE": "nan"}, "LEARNING_RATE: must be a number from 1e-06 to 10.0, is 'nan'"),
        ({"SEED": "-1"}, "SEED: must be a whole number from 0 to 4294967295, is '-1'"),
        ({"HIDDEN": "6.5"}, "HIDDEN: must be a whole number from 1 to 16384, is '6.5'"),
        ({"REQUIRE_GPU": "true"}, "REQUIRE_GPU: must be a whole number from 0 to 1, is 'true'"),
        ({"CHECKPOINT_DIR": ""}, "CHECKPOINT_DIR: is empty; name a folder or leave it out"),
        (
            {"LEARNING_RATES": "1", "LEARNING_RATE": "1"},
            "LEARNING_RATE: is set besides LEARNING_RATES; keep one",
        ),
        ({"LEARNING_RATES": "0.1,0.2"}, "ACCEL_TASK_INDEX: must be a whole number from 0 to 1, is ''"),
        (
            {"LEARNING_RATES": "0.1,0.2", "ACCEL_TASK_INDEX_FROM": "INDEX", "INDEX": "2"},
            "INDEX: must be a whole number from 0 to 1, is '2'",
        ),
        (
            {"LEARNING_RATES": "0.1,", "ACCEL_TASK_INDEX": "1"},
            "LEARNING_RATE: must be a number from 1e-06 to 10.0, is ''",
        ),
    ],
)
def test_bad_setting_is_one_line_before_jax_is_imported(env: dict[str, str], message: str, no_jax: str) -> None:
    assert run(env | {"PYTHONPATH": no_jax}) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("name, value", [("HIDDEN", "16"), ("SEED", "1"), ("BATCH_SIZE", "64"), ("LEARNING_RATE", "1")])
def test_checkpoint_of_another_run_is_refused(name: str, value: str, unbroken: tuple[Path, str], no_jax: str) -> None:
    code, out, err = run(SMALL | {"CHECKPOINT_DIR": str(unbroken[0]), name: value, "PYTHONPATH": no_jax})
    assert code == 2
    assert [line for line in out.splitlines() if not line.startswith(protocol.MARK)] == []
    assert err.startswith(f"error: {name}: is ")
    assert err.endswith(f"{place(unbroken[0], 44)}\n")
    assert err.count("\n") == 1


def test_folder_that_cannot_be_used_is_one_line(tmp_path: Path, no_jax: str) -> None:
    file = tmp_path / "file"
    file.touch()
    code, _, err = run({"CHECKPOINT_DIR": str(file / "folder"), "PYTHONPATH": no_jax})
    assert code == 1
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_no_damage_goes_unseen(
    script: ModuleType, unbroken: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shutil.copytree(place(unbroken[0], 44), tmp_path / place(unbroken[0], 44).name)
    path = found / "arrays.npz"
    whole = path.read_bytes()
    checkpoints = script.runtime.Checkpoints(tmp_path)
    assert script.newest(checkpoints)[0] == str(found)
    chance = np.random.default_rng(0)
    for position in chance.integers(0, len(whole), 100):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << chance.integers(8)
        for damaged in bytes(flipped), whole[:position]:
            path.write_bytes(damaged)
            assert script.newest(checkpoints) == (None, {})
    assert capsys.readouterr().out.count("skipped") == 200


def test_full_disk_leaves_the_older_checkpoint(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = script.runtime.Checkpoints(tmp_path)
    script.save(checkpoints, {"step": 1, "weights": np.ones(3)})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        script.save(checkpoints, {"step": 2, "weights": np.zeros(3)})
    path, arrays = script.newest(checkpoints)
    assert path == str(place(tmp_path, 1))
    assert len(list(tmp_path.iterdir())) == 1
    assert arrays["weights"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("path", JOB_FILES, ids=lambda path: path.stem)
def test_job_file(path: Path, script: ModuleType) -> None:
    text = path.read_text()
    schema, *lines = text.splitlines()
    assert schema.startswith("# yaml-language-server: $schema=")
    assert re.match(r"# .+\n# .+\n[^#]", "\n".join(lines)), "goes on with two lines on what it shows"
    job = Job.model_validate(yaml.safe_load(text))
    assert job.name == path.stem
    assert job.image
    if job.image.startswith("local/"):
        assert job.image == f"local/{EXAMPLES.name}"
        python, program = job.command
        assert python == "python" and (EXAMPLES / program).is_file()
        task = {"ACCEL_TASK_COUNT": str(job.tasks), "ACCEL_TASK_INDEX": str(job.tasks - 1)}
        script.read_settings(job.env | task)


def test_job_files_are_the_described_ones() -> None:
    names = [path.stem for path in JOB_FILES]
    smoke = ["tpu-smoke-jax", "tpu-smoke-torch-xla"]
    assert sorted(names) == ["digits", "digits-resume", "digits-sweep", "multi-gpu", *smoke]
    readme = (EXAMPLES / "README.md").read_text()
    assert [name for name in names if f"{name}.yaml" not in readme] == []


def test_sweep_has_a_rate_for_each_task() -> None:
    job = Job.model_validate(yaml.safe_load((EXAMPLES / "jobs/digits-sweep.yaml").read_text()))
    assert job.sweep and job.sweep.grid
    assert len(job.sweep.grid["LEARNING_RATE"]) == job.tasks == 4


def test_script_of_the_multi_gpu_job_adds_up_over_four_devices() -> None:
    job = Job.model_validate(yaml.safe_load((EXAMPLES / "jobs/multi-gpu.yaml").read_text()))
    python, option, text = job.command
    assert (python, option) == ("python", "-c")
    small = text.replace("2**22", "2**10")
    code, out, err = run({"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, sys.executable, "-c", small)
    assert code == 0, err
    assert out.startswith("4 GPUs: all-reduce")


def test_dockerfile() -> None:
    lines = [line for line in (EXAMPLES / "Dockerfile").read_text().splitlines() if line and line[0] != "#"]
    assert [line.split("=")[0] for line in lines if line.startswith("ARG")] == ["ARG BASE"]
    assert [line for line in lines if line.startswith("FROM")] == ["FROM ${BASE}"]
    user = next(index for index, line in enumerate(lines) if line.startswith("USER "))
    assert re.fullmatch(r"USER [1-9][0-9]*", lines[user]), "by its number, which Kubernetes can tell from root's"
    assert not [line for line in lines[user:] if line.startswith(("RUN", "COPY"))]
    # A job's `command` replaces CMD only; what an entry point holds would come before it.
    assert lines[-2:] == ["ENTRYPOINT []", 'CMD ["python3", "train.py"]']
    pinned = (EXAMPLES.parent / "requirements-dev.txt").read_text()
    for name, version in re.findall(r"\"?([a-z-]+)(?:\[cuda12\])?==([\d.]+)", "\n".join(lines)):
        assert f"{name}=={version}" in pinned
