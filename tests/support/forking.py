"""Python processes, each forked from one that has imported what they import: the seconds of CPU for that are spent once
in a run of the tests, by all its workers.

A process has streams, folder and variables of its own, and ends with the one that asked for it. The own start of a
command or of a part of the sandbox, with nothing imported, is what the tests of the Makefile, of the wheel and of
`python -m sandbox` run.
"""

import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pydantic
import pytest

from sandbox.environment import project

COMMANDS = (
    *("boto3", "requests", "stacks.cli.adopt", "stacks.operations.stack_files", "stacks.operations.cost.estimate"),
    *("stacks.environment.deployment", "stacks.operations.leaks.google", "stacks.cli.quota", "stacks.cli.refresh"),
    *("jobs.backends.aws_batch.submit", "jobs.backends.vm.gpu", "jobs.backends.gke", "jobs.backends.google_batch"),
    *("jobs.backends.vm.tpu", "jobs.backends.vertex", "jobs.cli.offers", "jobs.cli.submit", "jobs.client.waiting"),
)
PROGRAMS = (
    *("grpc.experimental", "pulumi_aws.sns._inputs"),
    *("stacks.environment.aws.section", "stacks.environment.gcp.section", "stacks.environment.gke.workloads"),
    *(
        f"pulumi_aws.{group}.{part}"
        for group in ("batch", "cloudwatch", "dynamodb", "ec2", "ecr", "iam", "lambda_", "s3", "ssm", "vpc")
        for part in ("_inputs", "outputs")
    ),
    *(
        f"pulumi_gcp.{group}.{part}"
        for group in (
            *("artifactregistry", "compute", "container", "firestore", "projects", "pubsub", "serviceaccount"),
            *("storage", "tpu", "vertex"),
        )
        for part in ("_inputs", "outputs")
    ),
    *(f"pulumi_kubernetes.{group}.v1" for group in ("apiextensions", "apps", "batch", "core", "meta", "rbac")),
)
"""What takes the time: the SDKs import their classes when they are first used."""
SANDBOX = (
    *("sandbox.aws.__main__", "sandbox.google.__main__", "sandbox.kubernetes.__main__", "sandbox.plugins.__main__"),
    *("moto.server", "sandbox.aws.ec2", "sandbox.aws.events", "sandbox.aws.functions", "sandbox.aws.batch.api"),
    *("sandbox.aws.batch.capacity", "sandbox.aws.batch.faults", "sandbox.aws.batch.scheduler"),
    *("sandbox.plugins.server", "sandbox.plugins.aws.plugin", "sandbox.plugins.gcp.plugin"),
    "sandbox.plugins.kubernetes.plugin",
)
SOCKET = "TESTS_FORKING"
"""The variable that tells the workers where the server listens."""
LINE_BYTES = 4096
"""The longest command line that `ps` shows of a process."""


class Forked:
    """A process that the server has forked, as subprocess.Popen would have it."""

    def __init__(
        self, arguments: Sequence[str | Path], cwd: Path, env: Mapping[str, str], stdout: int = 1, stderr: int = 2
    ) -> None:
        """Run `-m module ...` or `script ...` with an empty stdin."""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(os.environ[SOCKET])
        with Path(os.devnull).open() as empty:
            socket.send_fds(self._server, [b"."], [empty.fileno(), stdout, stderr])
        self._server.sendall(json.dumps([[*map(str, arguments)], str(cwd), dict(env)]).encode() + b"\n")
        self._told = self._server.makefile()
        self.pid = int(self._told.readline())
        self.returncode: int | None = None
        _running.add(self)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._server], [], [], 0)[0]:
            self.returncode = int(self._told.readline())
            self._server.close()
            _running.discard(self)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._server], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


_running: set[Forked] = set()
"""Held, because a process ends when its connection is closed."""


def pytest_configure(config: pytest.Config) -> None:
    """Start the server, in the process that starts the workers. It imports nothing before the first call."""
    if hasattr(config, "workerinput"):
        return
    folder = tempfile.mkdtemp(prefix="forking-")
    os.environ[SOCKET] = at = str(Path(folder, "socket"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(at)
        listening.listen(64)
        command = [sys.executable, "-m", __name__, str(listening.fileno()), "-" * LINE_BYTES]
        environ = {**os.environ, "PYTHONPATH": str(project())}
        server = subprocess.Popen(
            command, cwd=project(), env=environ, stdin=subprocess.PIPE, start_new_session=True,
            pass_fds=[listening.fileno()],
        )  # fmt: skip

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    config.add_cleanup(end)


def serve(listening: socket.socket) -> None:
    """Fork for each call, and tell the caller the process's pid and, once it has ended, its exit code."""
    if select.select([listening, 0], [], [])[0] == [0]:
        return
    _import()
    running: dict[int, tuple[int, socket.socket]] = {}
    while 0 not in (ready := select.select([0, listening, *running], [], [])[0]):
        for each in ready:
            if each is listening:
                caller, _ = listening.accept()
                pid = os.fork()
                if pid == 0:
                    listening.close()
                    for ended, (_, other) in running.items():
                        os.close(ended)
                        other.close()
                    _run(caller)
                running[os.pidfd_open(pid)] = pid, caller
            else:
                pid, caller = running.pop(each)
                os.close(each)
                _tell(caller, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                caller.close()


def _import() -> None:
    from sandbox.aws.__main__ import load_moto

    gc.disable()
    load_moto()
    for name in (*COMMANDS, *PROGRAMS, *SANDBOX):
        importlib.import_module(name)

    from sandbox.google.api import Methods

    from . import catalog

    _complete(pydantic.BaseModel)
    Methods()
    catalog.forget()  # a command can be told to read another
    assert threading.active_count() == 1, "a fork would be without them"
    gc.collect()
    gc.freeze()
    gc.enable()


def _complete(model: type[pydantic.BaseModel]) -> None:
    """Build the validators of all models under it, which each process would build when it first needs them."""
    for each in model.__subclasses__():
        if not each.__pydantic_complete__:
            each.model_rebuild()
        _complete(each)


def _tell(caller: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody asks any more
        caller.sendall(b"%d\n" % number)


def _run(caller: socket.socket) -> NoReturn:
    """Be the process that was asked for."""
    os.setsid()
    _, streams, *_ = socket.recv_fds(caller, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with caller.makefile() as told:
        arguments, cwd, environ = json.loads(told.readline())
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    _name([sys.executable, *arguments])
    # The server's own could be files in which they can seek.
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), write_through=True) for number in (1, 2)
    )
    _tell(caller, os.getpid())
    threading.Thread(target=lambda: (caller.recv(1), os._exit(1)), daemon=True).start()
    code: Any = 0
    try:
        if arguments[0] == "-m":
            _, module, *sys.argv[1:] = arguments
            sys.path.insert(0, cwd)
            sys.modules.pop(f"{module}.__main__", None)
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            import pulumi

            pulumi.log.debug = lambda *_, **__: None  # a call of the engine for each
            sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
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


def _name(arguments: Sequence[str]) -> None:
    """Write a command line over that of the server, by which the sandbox finds its parts."""
    with Path("/proc/self/stat").open() as file:
        start, end = map(int, file.read().rpartition(")")[2].split()[45:47])  # proc_pid_stat(5)
    line = b"".join(os.fsencode(each) + b"\0" for each in arguments)[: end - start - 1]
    ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
