"""`jobs` against the queue of a deployed environment, and against this machine."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.support.soak import sampled, soak_only
from tests.support.sweeping import sweep, swept

from .conftest import Shell

LOSS = re.compile(r"^(?:\[attempt \d+\] )?epoch (\d+)/\d+ loss ([0-9.]+)", re.MULTILINE)


def losses(log: str) -> list[float]:
    return [float(loss) for _, loss in LOSS.findall(log)]


def test_the_sample_job_trains_on_the_queue(shell: Shell) -> None:
    ref = shell.jobs("submit", "examples/jobs/digits.yaml", "--to", "gpu", "--wait", "--set", "env.STEP_SLEEP_MS=0")
    assert ref.startswith("aws-batch:us-east-1/")
    seen = losses(shell.jobs("logs", ref))
    assert len(seen) > 2 and seen[-1] < seen[0] / 2
    status = json.loads(shell.jobs("get", ref, "-o", "jsonl"))
    assert (status["phase"], status["exit_code"]) == ("SUCCEEDED", 0)


def test_a_smoke_run_is_one_task_that_knows_it_and_is_not_the_job(shell: Shell, job: Any) -> None:
    tell = "import os; print('smoke', os.environ.get('ACCEL_SMOKE'), os.environ['ACCEL_TASK_COUNT'])"
    file = job(name="told", command=["python", "-c", tell], tasks=2, retries=2)
    submit = ("submit", file, "--to", "gpu", "--key", "nightly", "-o", "id", "--wait")
    smoke = shell.jobs(*submit, "--smoke")
    assert shell.jobs(*submit, "--smoke") == smoke
    whole = shell.jobs(*submit)
    assert whole != smoke
    assert shell.jobs("logs", smoke).splitlines() == ["smoke 1 1"]
    assert re.findall(r"smoke \w+ \d", shell.jobs("logs", whole)) == ["smoke None 2"] * 2


@soak_only
def test_the_same_job_trains_here_and_resumes_after_a_kill(shell: Shell, tmp_path: Path) -> None:
    kept = f"CHECKPOINT_DIR={tmp_path / 'kept'}"
    common = ["examples/jobs/digits.yaml", "--to", "local", "-e", kept]
    ref = shell.jobs("submit", *common, "--set", "env.STEP_SLEEP_MS=30", "--set", "env.EPOCHS=6")
    deadline = time.monotonic() + 180
    while not losses(shell.jobs("logs", ref)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    shell.jobs("cancel", ref, "--yes")
    assert "143" in shell.jobs("wait", ref, code=125) + shell.jobs("get", ref)
    before = losses(shell.jobs("logs", ref))
    assert len(before) < 6

    again = shell.jobs("submit", *common, "--set", "env.STEP_SLEEP_MS=0", "--set", "env.EPOCHS=6", "--wait")
    log = shell.jobs("logs", again)
    assert "resum" in log.lower()
    assert LOSS.findall(log)[-1][0] == "6" and losses(log)[-1] < before[0]


def killed(variable: str, value: str) -> bool:
    """Kills the training process with that environment, as the kernel or a lost host would."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(variable) == value and "train.py" in process.cmdline():
                process.kill()
                return True
        except psutil.Error:
            continue
    return False


@pytest.mark.parametrize("target", sampled(["gpu", "local"], ["gpu"]))
def test_a_killed_attempt_is_followed_by_one_that_resumes(shell: Shell, tmp_path: Path, target: str) -> None:
    kept = str(tmp_path / "kept")
    sets = ["retries=1", "env.STEP_SLEEP_MS=20", "env.EPOCHS=6", f"env.CHECKPOINT_DIR={kept}"]
    options = [part for each in sets for part in ("--set", each)]
    ref = shell.jobs("submit", "examples/jobs/digits.yaml", "--to", target, "-o", "id", *options)
    deadline = time.monotonic() + 180
    while not (losses(shell.jobs("logs", ref)) and killed("CHECKPOINT_DIR", kept)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    shell.jobs("wait", ref)
    log = shell.jobs("logs", ref)
    assert "resumed from" in log and log.count("epoch 1/6") == 1
    status = json.loads(shell.jobs("get", ref, "-o", "jsonl"))
    assert (status["phase"], status["attempts"]) == ("SUCCEEDED", 2)


@pytest.mark.parametrize("target", ["gpu", "local"])
def test_a_failed_job_keeps_its_exit_code(shell: Shell, job: Any, target: str) -> None:
    file = job(name="broken", command=["python", "-c", "import sys; print('before'); sys.exit(7)"])
    lines = shell.fails("submit", file, "--to", target, "--wait", code=125)
    assert any(line.startswith("error: ") and "7" in line for line in lines), lines
    ref = shell.jobs("ls", "-a", "-o", "id", "--to", target).splitlines()[0]
    assert shell.jobs("logs", ref) == "before"


@pytest.mark.parametrize("target", sampled(["gpu", "local"], ["gpu"]))
def test_one_key_is_one_job(shell: Shell, job: Any, target: str) -> None:
    file = job(name="keyed")
    running = [shell.start("jobs", "submit", file, "--to", target, "--key", "run-17", "-o", "id") for _ in range(6)]
    refs = {done.communicate(timeout=120)[0].strip() for done in running}
    assert len(refs) == 1 and {done.returncode for done in running} == {0}
    assert shell.jobs("submit", file, "--to", target, "--key", "run-17", "-o", "id") in refs
    other = job(name="keyed", env={"A": "1"})
    (error, *_) = shell.fails("submit", other, "--to", target, "--key", "run-17", code=2)
    assert "run-17" in error or "key" in error


@pytest.mark.parametrize("target", sampled(["gpu", "local"], ["gpu"]))
def test_cancel_and_retry(shell: Shell, job: Any, target: str) -> None:
    file = job(name="long", command=["python", "-c", "import time; print('up', flush=True); time.sleep(60)"])
    ref = shell.jobs("submit", file, "--to", target, "-o", "id")
    shell.jobs("cancel", ref, "--yes")
    shell.fails("wait", ref, "--timeout", "30", code=125)
    again = shell.jobs("retry", ref, "-o", "id")
    assert again != ref
    shell.fails("wait", again, "--timeout", "1", code=124)
    shell.jobs("cancel", again, "--yes")


def test_an_array_runs_every_task(shell: Shell, job: Any) -> None:
    code = "import os; print('task', os.environ[os.environ['ACCEL_TASK_INDEX_FROM']])"
    for target in ("gpu", "local"):
        ref = shell.jobs("submit", job(name="array", command=["python", "-c", code], tasks=3), "--to", target, "--wait")
        assert {line.split()[-1] for line in shell.jobs("logs", ref).splitlines()} == {"0", "1", "2"}


def test_a_sweep_runs_its_failed_tasks_again(shell: Shell, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    (tmp_path / "tuned.yaml").write_text(yaml.safe_dump(sweep(mended)))
    first = shell.jobs("submit", str(tmp_path / "tuned.yaml"), "--to", "gpu", "-o", "id")
    shell.fails("wait", first, code=125)
    mended.touch()
    second = shell.jobs("retry", first, "-o", "id")
    shell.jobs("wait", second)
    found = swept(shell.jobs("results", second, "-o", "json"))
    assert {(each["state"], each["job"] == second) for each in found if each["task"] in (2, 3)} == {("SUCCEEDED", True)}
    assert {each["job"] for each in found if each["task"] not in (2, 3)} == {first}


def test_following_a_log_ends_with_the_job(shell: Shell, job: Any) -> None:
    code = "import time\nfor i in range(5): print(i, flush=True); time.sleep(0.3)"
    for target in ("gpu", "local"):
        ref = shell.jobs("submit", job(name="counts", command=["python", "-c", code]), "--to", target, "-o", "id")
        assert shell.jobs("logs", "-f", ref).splitlines() == ["0", "1", "2", "3", "4"]
        assert shell.jobs("logs", "--tail", "2", ref).splitlines() == ["3", "4"]


@soak_only
def test_interrupting_a_wait_leaves_the_job(shell: Shell, job: Any) -> None:
    file = job(name="waits", command=["python", "-c", "import time; time.sleep(4)"])
    waiting = shell.start("jobs", "submit", file, "--to", "local", "--wait")
    assert waiting.stderr is not None
    while "RUNNING" not in (line := waiting.stderr.readline()):
        assert line
    waiting.send_signal(signal.SIGINT)
    out, _ = waiting.communicate(timeout=90)
    assert waiting.returncode == 130
    shell.jobs("wait", out.strip() or shell.jobs("ls", "-o", "id", "--to", "local").splitlines()[0])


def test_targets_come_from_the_stacks_parameters_too(shell: Shell, job: Any) -> None:
    source = "ssm:us-east-1/accel/e2e/targets"
    assert "gpu" in shell.jobs("targets", "--targets", source)
    head, *rows = shell.jobs("targets", "--targets", source, "-o", "wide").splitlines()
    free = {row.split()[0]: row[head.index("FREE_GPUS") :] for row in rows}
    assert " of " in free["gpu"] and free["local"].startswith("-")
    shell.jobs("submit", job(name="published"), "--to", "gpu", "--wait", ACCEL_TARGETS=source)


BAD = [
    (["--to", "gpuu"], {}, 2, "gpu"),
    (["--to", "gpu", "--set", "cpu=3"], {}, 2, "cpus"),
    (["--to", "gpu", "--set", "accelerator.count=16"], {}, 2, "16"),
    (["--to", "gpu", "--set", "accelerator.count=1.5"], {}, 2, "integer"),
    (["--to", "gpu", "--set", "memory_mib=2000000"], {}, 2, "memory_mib"),
    (["--to", "gpu", "--set", "nodes=2"], {}, 2, "nodes"),
    (["--to", "gpu", "--set", "spot=true"], {}, 2, "spot"),
    (["--to", "local", "--set", "image=python:3.12"], {"DOCKER_HOST": "unix:///nowhere"}, 6, "docker"),
    (["--to", "gpu"], {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, 3, "credentials"),
    (["--to", "gpu"], {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, 9, ""),
]


@pytest.mark.parametrize(
    ("arguments", "environ", "code", "said"), BAD, ids=[" ".join(case[0]) + str(case[2]) for case in BAD]
)
def test_what_can_be_wrong_is_said_in_a_line(
    shell: Shell, job: Any, arguments: list[str], environ: dict[str, str], code: int, said: str
) -> None:
    lines = shell.fails("submit", job(name="bad"), *arguments, code=code, **environ)
    errors = [line for line in lines if line.startswith("error: ")]
    assert errors and said in "\n".join(lines), lines
    assert all(line.startswith(("error: ", "hint: ", "warning: ", "targets come")) for line in lines), lines
