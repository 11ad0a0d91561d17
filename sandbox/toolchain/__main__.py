"""`python -m sandbox.toolchain`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from .control_plane import WHAT_TO_INSTALL as FOR_KUBERNETES
from .control_plane import kubernetes
from .making import ToolchainError, say
from .pulumi import WHAT_TO_INSTALL, engine


def main(arguments: Sequence[str] | None = None) -> int:
    """Make sure that there is an engine, and the commands of a Kubernetes control plane where they can be had."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.toolchain", description=main.__doc__)
    parser.add_argument("--print", action="store_true", help="write the engine's folder to stdout")
    options = parser.parse_args(arguments)
    try:
        folder = engine()
    except (ToolchainError, OSError, subprocess.CalledProcessError) as failure:
        sys.stderr.write(f"error: {failure}\nhint: {WHAT_TO_INSTALL}\n")
        return 1
    if options.print:
        sys.stdout.write(f"{folder}\n")
        return 0
    say(f"pulumi is in {folder}")
    try:
        say(f"kubernetes is in {kubernetes()}")
    except (ToolchainError, OSError, subprocess.CalledProcessError) as failure:
        say(f"the sandbox will be without Kubernetes: {failure}; {FOR_KUBERNETES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
