"""`python -m stacks` and the like, each in a process of its own, without a second for the imports of each."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .forking import Forked

TIMEOUT_S = 120


def run(module: str, *arguments: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """`python -m module arguments` in a folder, with these variables alone and an empty stdin.

    One that takes longer than TIMEOUT_S is killed: subprocess.TimeoutExpired.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        command = Forked(["-m", module, *arguments], cwd, env, out.fileno(), err.fileno())
        try:
            code = command.wait(TIMEOUT_S)
        finally:
            command.kill()
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess([module, *arguments], code, out.read(), err.read())
