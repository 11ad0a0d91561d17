"""What a command needs in its environment to reach the sandbox, and nothing but the sandbox."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from . import Fault, toolchain

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def project() -> Path:
    return Path(__file__).resolve().parent.parent


def home_of(given: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The sandbox's folder: as given, else of SANDBOX_HOME, else `.sandbox` in the project."""
    return (given or Path(environ.get("SANDBOX_HOME") or project() / ".sandbox")).absolute()


def environment(home: Path | None = None) -> dict[str, str]:
    """The variables that lead `pulumi`, boto3 and `jobs` to the running sandbox of `home`.

    Raises Fault (exit code 6) where it is not running.
    """
    home = home_of(home)
    try:
        cloud, plugins = (json.loads((home / f"{part}.json").read_text()) for part in ("cloud", "plugins"))
    except FileNotFoundError as error:
        raise Fault(6, f"the sandbox of {home} is not running", "start it: python -m sandbox start") from error
    engine = os.environ.get("ACCEL_PULUMI_BIN") or str(toolchain.engine())
    first = [engine, str(Path(sys.executable).parent)]
    rest = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part not in first]
    return {
        "PATH": os.pathsep.join([*first, *rest]),
        "SANDBOX_HOME": str(home),
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_BACKEND_URL": (home / "backend").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "sandbox",
        "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{port}" for name, port in plugins["providers"].items()),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{cloud['port']}",
        "AWS_ACCESS_KEY_ID": "sandbox",
        "AWS_SECRET_ACCESS_KEY": "sandbox",
        "AWS_EC2_METADATA_DISABLED": "true",
        # Empty files: a person's own profile can never be reached from here.
        "AWS_CONFIG_FILE": str(home / "aws-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "aws-config"),
        "ACCEL_TARGETS": str(project() / ".accel" / "targets.json"),
    }


def require_sandbox(environ: Mapping[str, str] = os.environ) -> None:
    """Refuse (Fault, exit code 2) an environment that does not lead to the sandbox alone."""
    backend, home = urlsplit(environ.get("PULUMI_BACKEND_URL", "")), home_of(environ=environ)
    hint = 'set the sandbox\'s environment first: eval "$(python -m sandbox env)"'
    if backend.scheme != "file" or not Path(backend.path).resolve().is_relative_to(home.resolve()):
        shown = environ.get("PULUMI_BACKEND_URL") or "not set"
        raise Fault(2, f"PULUMI_BACKEND_URL is {shown}, not a file:// folder under {home}", hint)
    if urlsplit(environ.get("AWS_ENDPOINT_URL", "")).hostname not in _LOOPBACK:
        raise Fault(2, f"AWS_ENDPOINT_URL is {environ.get('AWS_ENDPOINT_URL') or 'not set'}, not loopback", hint)
