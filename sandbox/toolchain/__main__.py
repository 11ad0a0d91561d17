"""`python -m sandbox.toolchain`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from .control_plane import WHAT_TO_INSTALL as FOR_KUBERNETES
from .control_plane import is_whole, kubernetes, root
from .making import ToolchainError, say
from .pulumi import WHAT_TO_INSTALL, engine

_FAILURES = (ToolchainError, OSError, subprocess.CalledProcessError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make sure that there is an engine, and the commands of a Kubernetes control plane where they can be had."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.toolchain", description=main.__doc__)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--print", action="store_true", help="only the engine; write its folder to stdout")
    asked.add_argument("--kubernetes", action="store_true", help="only the commands of Kubernetes")
    asked.add_argument("--check", action="store_true", help="make nothing; exit code 1 where those are missing")
    options = parser.parse_args(arguments)
    if options.check:
        return 0 if is_whole(root()) else 1
    if not options.kubernetes:
        try:
            folder = engine()
        except _FAILURES as failure:
            sys.stderr.write(f"error: {failure}\nhint: {WHAT_TO_INSTALL}\n")
            return 1
        if options.print:
            sys.stdout.write(f"{folder}\n")
            return 0
        say(f"pulumi is in {folder}")
    try:
        say(f"kubernetes is in {kubernetes()}")
    except _FAILURES as failure:
        say(f"the sandbox will be without Kubernetes: {failure}; {FOR_KUBERNETES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
