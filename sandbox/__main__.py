"""`python -m sandbox start | stop | status | env | config`: the embedded cloud of this project."""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from accel.console.errors import code_of, silence_stdout
from accel.diagnostics.redaction import own, redact_output

from . import SandboxError, toolchain
from .environment import PERSONAL, environment, home_of, project
from .grants import GRANTS, grant
from .processes import AWS, PARTS, running, start, stop, wanted_parts
from .toolchain import WHAT_TO_INSTALL, ToolchainError

NEEDS = {"aws": "cloud", "gcp": "kubernetes"}
"""Part of the sandbox without which a cloud's section cannot be deployed."""
CLOUDS = tuple(NEEDS)


def config_of(home: Path, cloud: str | None, running: Collection[str]) -> Path:
    """Write the config file into the sandbox's folder. Raises SandboxError for a cloud whose part does not run."""
    document: Any = yaml.safe_load((project() / "Pulumi.sandbox.yaml").read_text())
    environment = document["config"]["accel:environment"]
    for name, part in NEEDS.items():
        if name == cloud and part not in running:
            raise SandboxError(
                6, f"{name} needs the sandbox's part {part}, which does not run", "python -m sandbox start"
            )
        if cloud not in (None, name) or part not in running:
            if cloud is None:
                sys.stderr.write(f"warning: {name} is left out: the sandbox's part {part} does not run\n")
            environment.pop(name, None)
    path = home / "Pulumi.sandbox.yaml"
    kept = yaml.safe_load(path.read_text()) if path.exists() else {}
    # What Pulumi itself wrote, the salt of the stack's secrets, stays.
    path.write_text(yaml.safe_dump({**document, **kept, "config": document["config"]}, sort_keys=False))
    return path


ONLY = "ACCEL_SANDBOX_ONLY"
_UNSAID = frozenset({"pid", "token", "ca"})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--home", type=Path, help="where its state is kept (SANDBOX_HOME, else .sandbox)")
    verbs = parser.add_subparsers(dest="verb", required=True)
    starting = verbs.add_parser("start", help="start what does not run yet")
    starting.add_argument("--only", choices=["aws"], help=f"without Google and Kubernetes (also by {ONLY}=aws)")
    starting.add_argument("--no-grants", action="store_true", help="AWS as it opens an account: no vCPUs of any GPU")
    stopping = verbs.add_parser("stop", help="end every process of it, jobs too")
    stopping.add_argument("--wipe", action="store_true", help="delete its state as well")
    verbs.add_parser("status", help="a line for each part; exit code 6 where one does not run")
    verbs.add_parser("env", help='the variables that lead to it, for eval "$(...)"')
    config = verbs.add_parser("config", help="a copy of Pulumi.sandbox.yaml that this sandbox can deploy; its path")
    config.add_argument("--cloud", choices=CLOUDS, help="only this one; without it, all that runs here")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _status(home: Path) -> int:
    parts, asked = running(home), wanted_parts(home)
    for name in PARTS:
        part = parts.get(name)
        about = json.dumps({k: v for k, v in part.told.items() if k not in _UNSAID}) if part else ""
        state = f"running, pid {part.process.pid} {about}" if part else "not running" if name in asked else "left out"
        _say(f"{name}: {state}")
    if cloud := parts.get("cloud"):
        granted = grant(home, cloud.told["url"], {})
        rows = ", ".join(f"{code} {value:.0f}" for code, value in granted.items())
        _say(f"granted on AWS: {rows or 'nothing'}; the rest is as in a new account")
    return 0 if set(asked) <= parts.keys() else 6


def _parts(only: str | None) -> Collection[str]:
    if (only or os.environ.get(ONLY)) == "aws":
        return AWS
    try:
        toolchain.kubernetes()
    except (ToolchainError, OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"warning: no Kubernetes in this sandbox: {error}; {WHAT_TO_INSTALL}\n")
        return [name for name in PARTS if name != "kubernetes"]
    return PARTS


def main(arguments: list[str] | None = None) -> int:
    with redact_output():
        try:
            code = _run(_parser().parse_args(arguments))
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            silence_stdout()
            return 141  # as if SIGPIPE had ended it
        except OSError as error:
            return code_of(error, debug=False)


def _run(given: argparse.Namespace) -> int:
    home = home_of(given.home)
    try:
        match given.verb:
            case "start":
                start(home, _parts(given.only), {} if given.no_grants else GRANTS)
                return _status(home)
            case "stop":
                ended = stop(home, given.wipe)
                _say("\n".join(f"stopped {line}" for line in ended) or "nothing was running")
            case "status":
                return _status(home)
            case "config":
                _say(str(config_of(home, given.cloud, running(home).keys())))
            case _:
                if not set(wanted_parts(home)) <= running(home).keys():
                    raise SandboxError(6, f"the sandbox of {home} is not running", "start it: python -m sandbox start")
                values = environment(home)
                # A profile, a token or an endpoint for one service would lead past the sandbox.
                for name in sorted(name for name in os.environ if name.startswith(PERSONAL) and name not in values):
                    _say(f"unset {name}")
                # A shell reads this, so the keys may only be the sandbox's. `accel-jobs` finds what `pulumi up` deploys
                # from here.
                told = {**values, "ACCEL_EXPORT": values["ACCEL_TARGETS"]}
                own(sys.stdout).writelines(f"export {name}={shlex.quote(value)}\n" for name, value in told.items())
    except SandboxError as fault:
        sys.stderr.write(f"error: {fault}\nhint: {fault.hint}\n")
        return fault.code
    except ToolchainError as error:
        sys.stderr.write(f"error: {error}\nhint: set ACCEL_PULUMI_BIN to a folder with pulumi\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
