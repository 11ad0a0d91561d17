"""Packages of a new virtual environment: installed by uv, which takes seconds where pip takes minutes, or by pip.

    python sandbox/toolchain/packages.py REQUIREMENTS CONSTRAINTS

This runs before any package is there, so it imports none. uv follows pip's own settings where both have the same one.
Where pip has been told anything else (a second index, hashes, no index), pip does it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PIP = (sys.executable, "-m", "pip")
QUIET = ("--quiet", "--disable-pip-version-check")

# https://docs.astral.sh/uv/reference/environment/ and https://pip.pypa.io/en/stable/cli/pip/#general-options
SAME: Mapping[str, str] = {
    "index-url": "UV_DEFAULT_INDEX",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "find-links": "UV_FIND_LINKS",
}
"""Settings of pip, and the variables in which uv takes them."""
WITHOUT_EFFECT = frozenset(
    {
        "disable-pip-version-check",
        "no-cache-dir",
        "cache-dir",
        "progress-bar",
        "quiet",
        "verbose",
        "no-color",
        "retries",
    }
    | {"require-virtualenv", "no-input", "no-warn-script-location", "root-user-action", "break-system-packages"}
)
"""Settings of pip that change nothing in what is installed from where."""


def uv_settings(listed: str) -> dict[str, str] | None:
    """Return pip's settings as variables of uv; None where uv has no equal. `listed` is what `pip config list` prints,
    a `SCOPE.NAME='VALUE'` a line; the later scope wins."""
    variables: dict[str, str] = {}
    for scope, name, value in re.findall(r"^([^.]+)\.([\w-]+)='(.*)'$", listed, re.MULTILINE):
        if name in WITHOUT_EFFECT or scope not in ("global", "site", "user", "install", ":env:"):
            continue
        if name not in SAME:
            return None
        if name == "find-links":
            value = ",".join(value.replace("\\n", " ").split())
        variables[SAME[name]] = value
    return variables


def uv_requirement(requirements: Path) -> str:
    (line,) = re.findall(r"^uv==\S+", requirements.read_text(), re.MULTILINE)
    return line


def install(requirements: Path, constraints: Path) -> int:
    packages = ("-r", str(requirements), "-c", str(constraints))
    settings = own_settings()
    if settings is not None:
        subprocess.run([*PIP, "install", *QUIET, "--no-deps", uv_requirement(requirements)], check=False)
        uv = Path(sys.executable).with_name("uv")
        if uv.exists():
            command = (str(uv), "pip", "install", "--quiet", "--python", sys.executable, *packages)
            if subprocess.run(command, env={**settings, **os.environ}, check=False).returncode == 0:
                return 0
            sys.stderr.write("uv could not install the packages; pip does\n")
    return subprocess.run([*PIP, "install", *QUIET, *packages], check=False).returncode


def own_settings() -> dict[str, str] | None:
    """Return uv_settings of this machine's pip."""
    return uv_settings(subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout)


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1]), Path(sys.argv[2])))
