"""Pulumi programs, and the commands in scripts, without the seconds of CPU for the imports of each.

The engine runs what PULUMI_PYTHON_CMD names: a script that hands a program to a server, which has imported what
programs import and forks. All else that the engine asks of Python it runs with Python. What is deployed with a virtual
environment of its own (by the Makefile, from the wheel) has its own start. A script finds `accel-jobs` and `stacks`,
which go the same way, in the folder that `scripts` makes.
"""

import atexit
import functools
import gc
import importlib
import io
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import NoReturn

import pulumi

from sandbox.environment import project

from . import commands

IMPORTED = (
    *commands.IMPORTED,
    *("grpc.experimental", "pulumi_aws.sns._inputs"),
    *(
        "stacks.environment.aws.section",
        "stacks.environment.deployment",
        "stacks.environment.gcp.section",
        "stacks.environment.gke.workloads",
    ),
    *(
        f"pulumi_aws.{group}.{part}"
        for group in ("batch", "cloudwatch", "dynamodb", "ec2", "ecr", "iam", "lambda_", "ssm", "vpc")
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
SCRIPT = """#!/bin/sh
case "$*" in
"-m pip list"*)
    kept="$0-$(printf %s "$*" | tr -c a-z- _)"
    [ -s "$kept" ] || {{ {python} "$@" > "$kept.$$" && mv "$kept.$$" "$kept"; }} || exit
    exec cat "$kept"
    ;;
"-m jobs"* | "-m stacks"* | *pulumi-language-python-exec*)
    [ "$PYTHONPATH" != {project} ] || exec {python} -ISu {client} {socket} "$@"
    ;;
esac
exec {python} "$@"
"""
"""The packages are listed before every command of the engine: half a second, always the same."""
CLIENT = Path(__file__).with_name("program_client.py")


@functools.cache
def python() -> str:
    """The script, with a server behind it that ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    names = {"python": sys.executable, "project": project(), "client": CLIENT, "socket": folder / "programs.sock"}
    script = folder / "python"
    script.write_text(SCRIPT.format(**{name: shlex.quote(str(value)) for name, value in names.items()}))
    script.chmod(0o755)
    command = [sys.executable, "-m", __name__, str(names["socket"])]
    environ = {**os.environ, "PYTHONPATH": str(project())}
    server = subprocess.Popen(command, cwd=project(), env=environ, stdin=subprocess.PIPE, start_new_session=True)
    _servers.append(server)
    return str(script)


def scripts(folder: Path) -> Path:
    """The folder, with `accel-jobs` and `stacks` in it."""
    folder.mkdir()
    for name, module in {"accel-jobs": "jobs", "stacks": "stacks"}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(python())} -m {module} "$@"\n')
        path.chmod(0o755)
    return folder


_servers: list[subprocess.Popen[bytes]] = []
"""Held, because their stdin must stay open."""


def serve(at: str) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork would be without them"
    pulumi.log.debug = lambda *_, **__: None  # a call of the engine for each
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{at}.new")
        listening.listen(64)
        Path(f"{at}.new").rename(at)
        while listening in select.select([listening, 0], [], [])[0]:
            client, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _run(client)
            client.close()


def _run(client: socket.socket) -> NoReturn:
    """The program, with the streams, the folder and the variables of the client; ends when the client does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, *_ = socket.recv_fds(client, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with client.makefile() as told:
        arguments, cwd, environ = json.loads(told.readline())
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    # Those of the server can take its streams for files in which they can seek.
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, mode, closefd=False), write_through=True)
        for number, mode in enumerate(("r", "w", "w"))
    )
    threading.Thread(target=lambda: (client.recv(1), os._exit(1)), daemon=True).start()
    code = 0
    try:
        if arguments[0] == "-m":
            _, module, *sys.argv[1:] = arguments
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as Python: told on stderr
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    client.send(b"%d" % code)
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
