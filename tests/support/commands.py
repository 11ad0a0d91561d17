"""`python -m stacks` and the like, each in a process of its own, without a second for the imports of each.

The process is forked from one that has imported what the commands import. A command's own start, with nothing
imported, is what tests/e2e, tests/engine and the tests of `--help` run.
"""

import functools
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from sandbox.environment import project

IMPORTED = (
    *(
        "boto3",
        "requests",
        "stacks.cli.adopt",
        "stacks.operations.stack_files",
        "stacks.operations.cost.estimate",
        "stacks.environment.deployment",
    ),
    *(
        "stacks.operations.leaks.google",
        "stacks.cli.quota",
        "stacks.cli.refresh",
        "jobs.backends.aws_batch.submit",
        "jobs.backends.vm.gpu",
    ),
    *("jobs.backends.gke", "jobs.backends.google_batch", "jobs.backends.vm.tpu", "jobs.backends.vertex"),
    *("jobs.cli.offers", "jobs.cli.submit", "jobs.client.waiting"),
)
TIMEOUT_S = 120


def run(module: str, *arguments: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """`python -m module arguments` in a folder, with these variables alone and an empty stdin.

    One that takes longer than TIMEOUT_S is killed, and its code is -SIGALRM.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        server = _server()
        assert server.stdin and server.stdout
        print(json.dumps([module, arguments, str(cwd), dict(env), str(out), str(err)]), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess([module, *arguments], code, out.read_text(), err.read_text())


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Ends with this process, at the end of its stdin."""
    command = [sys.executable, "-m", __name__]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, cwd=project(), text=True, start_new_session=True, **pipes)


def serve() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork would be without them"
    gc.collect()
    gc.freeze()
    while line := sys.stdin.readline():
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        module, arguments, cwd, env, *streams = json.loads(line)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, stream in enumerate(streams, 1):
            os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
        signal.alarm(TIMEOUT_S)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        sys.path.insert(0, cwd)
        sys.argv[1:] = arguments
        _end(module)


def _end(module: str) -> NoReturn:
    """Runs it and ends as Python does, but for taking a hundred thousand objects apart first."""
    code: Any = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:  # noqa: BLE001 - as Python: told on stderr
        code = "".join(traceback.format_exc()).rstrip()
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
