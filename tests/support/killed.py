"""Runs of the engine that are killed, with their language host and, as where a container ends, their providers; or of
which one part is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from sandbox.environment import environment, project
from sandbox.processes import running

from .engine import SKIP_CHECKPOINTS, Engine, start

GIVE_UP_S = 120
AT_EACH_STEP = {SKIP_CHECKPOINTS: "false"}
"""The state is written as users have it."""


def run(engine: Engine, verb: str, *, after: int) -> int:
    """Runs `pulumi <verb>` and kills it, with all that it started, at its event number `after`.

    The number of events that it had written when it ended: less than `after` where it came to its own end.
    """
    process, log = _started(engine, verb, after)
    process.kill()  # first, so that it does not see its language host end
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _lines(log)


def strike(engine: Engine, verb: str, victim: str, *, after: int, delay_s: float) -> list[psutil.Process]:
    """Runs `pulumi <verb>` and kills a part of it, so long after its event number `after`: the `engine`, the `program`
    or the `provider`. Returns what the engine had started, when it has ended."""
    process, _ = _started(engine, verb, after)
    time.sleep(delay_s)
    children: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
    if victim == "engine":
        process.kill()
    elif victim == "provider":
        running(engine.sandbox.home)["plugins"].process.kill()
    else:
        for each in children:
            with suppress(psutil.NoSuchProcess):
                if "program_client.py" in " ".join(each.cmdline()):
                    each.kill()
    process.wait(GIVE_UP_S)
    return children


@contextmanager
def stopped(engine: Engine, verb: str, *, after: int) -> Generator[None]:
    """Within it, `pulumi <verb>` stands still since its event number `after`; then it goes on to its end."""
    process, _ = _started(engine, verb, after)
    _halt(process)
    while not _whole(engine):  # it was about to write its state
        process.send_signal(signal.SIGCONT)
        time.sleep(0.01)
        _halt(process)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
        assert process.wait(GIVE_UP_S) == 0


def _started(engine: Engine, verb: str, after: int) -> tuple[subprocess.Popen[bytes], Path]:
    log = engine.folder / "killed.json"
    log.unlink(missing_ok=True)
    command = [which(engine), verb, "--yes", "--skip-preview", "--stack", engine.stack, "--event-log", str(log)]
    process = subprocess.Popen(
        [*command, "--non-interactive"],
        cwd=engine.folder,
        env={**engine.variables, **AT_EACH_STEP},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    give_up = time.monotonic() + GIVE_UP_S
    while (seen := _lines(log)) < after and process.poll() is None:
        assert time.monotonic() < give_up, f"{seen} events of {after}"
        time.sleep(0.002)
    return process, log


def _halt(process: subprocess.Popen[bytes]) -> None:
    """Returns when the last of its threads stands still: a signal that was sent is not yet one that has arrived."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def forget(engine: Engine, *types: str, never: str = "") -> None:
    """Makes the state that of a run that was killed just after its cloud had made these: creates that are pending.
    Those of the type `never` it had not come to."""
    path = state_of(engine)
    state = json.loads(path.read_text())
    latest = state["checkpoint"]["latest"]
    made = [each for each in latest["resources"] if each["type"] in types]
    assert {each["type"] for each in made} == set(types)
    latest["resources"] = [each for each in latest["resources"] if each not in made and each["type"] != never]
    unknown = ("id", "outputs", "created", "modified")
    begun = [{name: value for name, value in each.items() if name not in unknown} for each in made]
    kept = latest.get("pending_operations") or []
    latest["pending_operations"] = [*({"resource": each, "type": "creating"} for each in begun), *kept]
    path.write_text(json.dumps(state))


def state_of(engine: Engine) -> Path:
    """The file of its state."""
    return engine.sandbox.home / "backend" / ".pulumi" / "stacks" / engine.project / f"{engine.stack}.json"


def pending(engine: Engine) -> list[str]:
    """What the state says is under way."""
    state = json.loads(engine.run("stack", "export", "--stack", engine.stack).stdout)["deployment"]
    return [f"{each['type']} {each['resource']['urn']}" for each in state.get("pending_operations") or ()]


def restart_providers(engine: Engine) -> None:
    """Kills the provider plugins in the middle of what they do, and starts others."""
    home = engine.sandbox.home
    if plugins := running(home).get("plugins"):
        plugins.process.kill()
        psutil.wait_procs([plugins.process], timeout=GIVE_UP_S)
    for name in ("cloud", "google"):
        if part := running(home).get(name):
            _quiet(part.process)
    start(home)
    engine.variables.update(environment(home))


def recover(engine: Engine, *options: str) -> subprocess.CompletedProcess[str]:
    """`stacks recover` in the program's folder. What is not found is not looked for again: nothing runs any more."""
    return subprocess.run(
        [sys.executable, "-m", "stacks", "recover", engine.stack, "--settle", "0", *options],
        cwd=engine.folder,
        env={**engine.variables, **AT_EACH_STEP, "PYTHONPATH": str(project())},
        capture_output=True,
        text=True,
        timeout=300,
    )


def run_and_check(engine: Engine, verb: str, *, after: int) -> subprocess.CompletedProcess[str]:
    """Kills a run and its providers; `stacks recover --check` tells of it."""
    run(engine, verb, after=after)
    restart_providers(engine)
    left = recover(engine, "--check")
    assert left.returncode == 4, left.stdout + left.stderr
    return left


def which(engine: Engine) -> str:
    """The engine's command."""
    found = shutil.which("pulumi", path=engine.variables["PATH"])
    assert found
    return found


def _quiet(cloud: psutil.Process) -> None:
    """Waits until a cloud has carried out what it was asked by somebody who is dead: it then closes the connection."""
    give_up = time.monotonic() + GIVE_UP_S
    while any(each.status == psutil.CONN_CLOSE_WAIT for each in cloud.net_connections("tcp")):
        assert time.monotonic() < give_up
        time.sleep(0.02)


def _whole(engine: Engine) -> bool:
    """Whether its state can be read, and the file that the backend keeps beside it and does not write in one step."""
    state = state_of(engine)
    try:
        for each in (state, state.with_name(f"{state.name}.attrs")):
            json.loads(each.read_text())
    except (OSError, ValueError):
        return False
    return True


def _lines(log: Path) -> int:
    """Its events, but for what the program says."""
    whole = log.read_bytes() if log.exists() else b""
    return sum(line.endswith(b"\n") and b'"diagnosticEvent"' not in line for line in whole.splitlines(keepends=True))
