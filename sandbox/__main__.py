"""`python -m sandbox start | stop | status | env`: the embedded cloud of this project."""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from . import Fault
from .environment import environment, home_of
from .processes import PARTS, running, start, stop
from .toolchain import ToolchainError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--home", type=Path, help="where its state is kept (SANDBOX_HOME, else .sandbox)")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("start", help="start what does not run yet")
    stopping = verbs.add_parser("stop", help="end every process of it, jobs too")
    stopping.add_argument("--wipe", action="store_true", help="delete its state as well")
    verbs.add_parser("status", help="a line for each part; exit code 6 where one does not run")
    verbs.add_parser("env", help='the variables that lead to it, for eval "$(...)"')
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _status(home: Path) -> int:
    parts = running(home)
    for name in PARTS:
        part = parts.get(name)
        about = json.dumps({k: v for k, v in part.told.items() if k != "pid"}) if part else ""
        _say(f"{name}: running, pid {part.process.pid} {about}" if part else f"{name}: not running")
    return 0 if len(parts) == len(PARTS) else 6


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    home = home_of(given.home)
    try:
        match given.verb:
            case "start":
                start(home)
                return _status(home)
            case "stop":
                ended = stop(home, given.wipe)
                _say("\n".join(f"stopped {line}" for line in ended) or "nothing was running")
            case "status":
                return _status(home)
            case _:
                if len(running(home)) < len(PARTS):
                    raise Fault(6, f"the sandbox of {home} is not running", "start it: python -m sandbox start")
                values = environment(home)
                # A profile, a token or an endpoint for one service would lead past the sandbox.
                for name in sorted(name for name in os.environ if name.startswith("AWS_") and name not in values):
                    _say(f"unset {name}")
                for name, value in values.items():
                    _say(f"export {name}={shlex.quote(value)}")
    except Fault as fault:
        sys.stderr.write(f"error: {fault}\nhint: {fault.hint}\n")
        return fault.code
    except ToolchainError as error:
        sys.stderr.write(f"error: {error}\nhint: set ACCEL_PULUMI_BIN to a folder with pulumi\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
