"""Pulumi programs, and the commands in scripts, without two seconds of CPU for the imports of each.

The engine runs what PULUMI_PYTHON_CMD names: a script that asks for a fork of a Python that has imported what programs
import (forking.py). All else that the engine asks of Python it runs with Python. What is deployed with a virtual
environment of its own (by the Makefile, from the wheel) has its own start. A script finds `accel-jobs` and `stacks`,
which go the same way, in the folder that `scripts` makes.
"""

import functools
import os
import shlex
import sys
from pathlib import Path

from sandbox.environment import project

from .forking import SOCKET

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
    """The script, beside the server's socket: that of all workers."""
    names = {"python": sys.executable, "project": project(), "client": CLIENT, "socket": os.environ[SOCKET]}
    script = Path(os.environ[SOCKET]).with_name("python")
    new = script.with_name(f"{script.name}.{os.getpid()}")
    new.write_text(SCRIPT.format(**{name: shlex.quote(str(value)) for name, value in names.items()}))
    new.chmod(0o755)
    new.replace(script)
    return str(script)


def scripts(folder: Path) -> Path:
    """The folder, with `accel-jobs` and `stacks` in it."""
    folder.mkdir()
    for name, module in {"accel-jobs": "jobs", "stacks": "stacks"}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(python())} -m {module} "$@"\n')
        path.chmod(0o755)
    return folder
