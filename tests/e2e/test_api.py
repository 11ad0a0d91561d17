"""Programs that use `jobs` from Python, on AWS Batch, on Google Batch, and on this machine."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import Sandbox
from tests.support.project import Stack
from tests.support.soak import sampled, soak_only
from tests.support.wheel import run as installed_run

from .conftest import Shell, shell_on

HEAD = """
import asyncio, json, sys, time
from jobs import Job, Phase, aio, errors, get, list_targets, ls, submit, submit_many, wait

to = sys.argv[1]

def job(name, code, **fields):
    return Job(name=f"{name}-{to}", image="local/examples", command=["python", "-c", code], **fields)

hello = job("hello", "print('hello')", retries=0)
fails = job("fails", "raise SystemExit(7)", retries=0)
long = job("long", "import time; print('began', flush=True); time.sleep(600)", retries=0)
"""
PLAIN = """
request = submit(hello, to, dry_run=True)
assert request["target"] == to and to in list_targets().entries

run = submit(hello, to, key="k")
assert submit(hello, to, key="k").ref == run.ref
status = run.wait(timeout=240)
assert (status.phase, status.exit_code, status.attempts) == (Phase.SUCCEEDED, 0, 1), status
assert [line.text for line in run.logs()] == ["hello"]
assert get(str(run)).status() == status and run.ref in [each.ref for each in ls(to, ended=True)]

failed = submit(fails, to)
try:
    wait(failed, 240)
    raise AssertionError("it did not fail")
except errors.JobFailed as error:
    assert str(failed) in error.message and error.exit_code == 125
assert failed.status().exit_code == 7 and failed.explain().cause == "exit-code", failed.explain()

stopped = submit(long, to)
for line in stopped.logs(follow=True):
    assert line.text == "began"
    stopped.cancel("seen enough")
    break
assert stopped.wait(240, check=False).phase is Phase.FAILED

many = submit_many([hello.but(name=f"many-{number}", env={"N": number}) for number in range(12)], to, key="k")
assert {status.phase for status in wait(many, 240)} == {Phase.SUCCEEDED}
assert len({run.ref for run in many}) == 12
again = many[0].retry()
assert again.ref != many[0].ref and again.wait(240).phase is Phase.SUCCEEDED
print(json.dumps(request))
"""
IN_A_LOOP = """
async def main():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    request = await aio.submit(hello, to, dry_run=True)
    run = await aio.submit(hello, to, key="loop")
    assert (await aio.wait(run, 240)).phase is Phase.SUCCEEDED
    assert [line.text async for line in aio.logs(run)] == ["hello"]
    assert (await aio.status(run)).exit_code == 0

    stopped = await aio.submit(long, to)
    lines = aio.logs(stopped, follow=True)
    assert (await anext(lines)).text == "began"
    waiting = asyncio.create_task(aio.wait(stopped, 240, check=False))
    await aio.cancel(stopped)
    assert (await waiting).phase is Phase.FAILED
    await lines.aclose()

    many = await aio.submit_many([hello.but(name=f"loop-{number}") for number in range(6)], to)
    many += await asyncio.gather(*(aio.submit(hello.but(name=f"alone-{number}"), to) for number in range(6)))
    ended = await asyncio.gather(*(aio.wait(run, 240) for run in many))
    assert {status.phase for status in ended} == {Phase.SUCCEEDED}
    assert ticks > 10
    # The plain functions too, as in a cell of a notebook.
    assert wait(submit(hello, to), 240).phase is Phase.SUCCEEDED
    print(json.dumps(request))

asyncio.run(main())
"""
SUBMITS = """
runs = submit_many([hello.but(name=f"twice-{number}") for number in range(8)], to, key="twice")
wait(runs, 240)
print(json.dumps([str(run) for run in runs]))
"""
PROGRAMS = pytest.mark.parametrize("program", sampled([PLAIN, IN_A_LOOP], [IN_A_LOOP]), ids=["plain", "in-a-loop"])


def begun(program: str, to: str, shell: Shell) -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", HEAD + program, to]
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=shell.folder, env=shell.variables, text=True, **pipes)


def printed(process: "subprocess.Popen[str]") -> str:
    """What the program itself printed; `jobs` prints nothing beside it."""
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0 and err == "", out + err
    return out.strip()


def same_request(told: str, to: str, shell: Shell, folder: Path) -> None:
    """As the command's own --dry-run of the same job."""
    path = folder / "hello.yaml"
    fields = f"name: hello-{to}\nimage: local/examples\ncommand: [python, -c, \"print('hello')\"]\nretries: 0\n"
    path.write_text(fields)
    assert json.loads(told) == json.loads(shell.jobs("submit", str(path), "--to", to, "--dry-run"))


@PROGRAMS
@pytest.mark.parametrize("to", sampled(["gpu", "local"], ["gpu"]))
def test_on_aws_batch_and_here(to: str, program: str, shell: Shell, tmp_path: Path) -> None:
    same_request(printed(begun(program, to, shell)), to, shell, tmp_path)
    assert shell.jobs("ls", "--to", to, "-o", "id") == ""


@PROGRAMS
def test_on_google_batch(program: str, services: Stack, managed: Sandbox, tmp_path: Path) -> None:
    shell = shell_on(managed, services.folder / "targets.json", tmp_path)
    same_request(printed(begun(program, "batch", shell)), "batch", shell, tmp_path)
    assert shell.jobs("ls", "--to", "batch", "-o", "id") == ""


@soak_only
def test_two_programs_with_one_key_make_one_job_each(shell: Shell) -> None:
    both = [begun(SUBMITS, "gpu", shell) for _ in range(2)]
    first, second = [json.loads(printed(process)) for process in both]
    assert first == second and len(set(first)) == 8


@pytest.mark.slow
def test_it_is_part_of_the_wheel(shell: Shell, installed: Path, tmp_path: Path) -> None:
    environ = {name: value for name, value in shell.variables.items() if name.startswith(("AWS_", "ACCEL_", "XDG_"))}
    program = (HEAD + "print(wait(submit(hello, to), 240).phase)").replace("from jobs import", "from accel.jobs import")
    assert installed_run(installed / "python", "-c", program, "gpu", cwd=tmp_path, **environ) == "SUCCEEDED\n"
    (marker,) = installed.parent.glob("lib/python3*/site-packages/accel/py.typed")
    assert marker.is_file()
