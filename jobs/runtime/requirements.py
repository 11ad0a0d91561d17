"""Installation of the packages that a job asks for, before the job's command: `python3 -m accel_runtime.requirements
FILE COMMAND...`, with FILE's path in the archive that this package was sent in. The packages go into a virtual
environment that sees the image's own packages, so that only missing ones are downloaded. It is kept below
$ACCEL_REQUIREMENTS_CACHE, or ~/.cache/accel/requirements: tasks, nodes and attempts that share the folder install once.
The exit code is FAILED if a package is unavailable."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

FAILED = 69
"""Exit code for packages that cannot be installed: "service unavailable" of sysexits.h."""
CACHE = "ACCEL_REQUIREMENTS_CACHE"
_ARCHIVE = Path(__file__).parents[2]
"""Folder of the unpacked archive, which has this package in .accel."""
_OPTION = re.compile(r"(-[rcef]|--(?:requirement|constraint|editable|find-links)\b)(?:\s*=\s*|\s*)(\S+)")
_ADDRESS = re.compile(r"(?:[a-z]+\+)?[a-z]+://|\$\{", re.IGNORECASE)
_PATH = re.compile(r"\.{0,2}/|file:|[^\s:@]+(?:\.(?:whl|zip|tar\.gz|tgz|tar\.bz2)|/)\s*$|\S+\s*@\s*file:")


def names_a_file(line: str) -> bool:
    """Return whether a line names a file or folder that is sent with this file. Wheels may lie in the image. Source:
    https://pip.pypa.io/en/stable/reference/requirements-file-format/"""
    line = re.split(r"\s#|\s*;", line.strip(), maxsplit=1)[0]
    if option := _OPTION.match(line):
        name, place = option.groups()
        of_image = name in ("-f", "--find-links") and place.startswith("/")
        return place.startswith("file:") or not (of_image or _ADDRESS.match(place))
    return bool(_PATH.match(line))


class InstallError(Exception):
    """The packages cannot be installed."""


def main(words: list[str]) -> None:
    # As process 1 of a container this one would not see SIGTERM otherwise.
    signal.signal(signal.SIGTERM, _stop)
    file, *command = words
    try:
        folder = install(Path(file))
    except (InstallError, OSError) as error:
        _say(f"requirements {file}: {error}")
        sys.exit(FAILED)
    env = os.environ
    env["VIRTUAL_ENV"] = str(folder)
    env["PATH"] = os.pathsep.join([str(folder / "bin"), env.get("PATH") or os.defpath])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), str(_packages(folder))]))
    try:
        os.execvp(command[0], command)  # noqa: S606 - the job's own command
    except OSError as error:
        _say(f"{command[0]}: {error.strerror}")
        sys.exit(127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126)


def install(file: Path) -> Path:
    """Return the environment that has the packages of a file. Raises InstallError, and OSError of a full disk."""
    path = _ARCHIVE / file
    text = path.read_text(encoding="utf-8")
    known = [text, sys.version, sys.prefix]
    if any(map(names_a_file, text.splitlines())):
        known.append(os.environ.get("ACCEL_CODE", ""))
    digest = hashlib.sha256("\0".join(known).encode()).hexdigest()[:16]
    folder = _cache() / digest
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "done").exists():
            _say(f"requirements {file}: installed before, in {folder}")
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder)
        _say(f"requirements {file}: installing into {folder}")
        ended = subprocess.run([*_installer(folder), "-r", str(path)], stdout=sys.stderr, check=False)
        if ended.returncode:
            raise InstallError(f"the installer ended with exit code {ended.returncode}; its words are above")
        (folder / "done").touch()
    return folder


def _cache() -> Path:
    shared = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "accel", "requirements")
    wanted = Path(os.environ.get(CACHE) or shared).expanduser()
    for path in (wanted, Path(tempfile.gettempdir(), f"accel-requirements-{os.getuid()}")):
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK | os.X_OK):
            return path
    raise InstallError(f"neither {wanted} nor {tempfile.gettempdir()} can be written; name another folder in {CACHE}")


def _make(folder: Path) -> None:
    """Make an environment that sees the packages of this Python, also where this is one itself."""
    venv.create(folder, system_site_packages=True, symlinks=True, with_pip=False)
    if sys.prefix != sys.base_prefix:
        # A path alone would leave out what its own .pth files add, such as editable packages.
        lines = [f"import site; site.addsitedir({path!r})\n" for path in site.getsitepackages()]
        (_packages(folder) / "image.pth").write_text("".join(lines))


def _packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def _installer(folder: Path) -> list[str]:
    python = str(folder / "bin" / "python")
    if importlib.util.find_spec("pip"):
        quiet = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
        return [python, "-m", "pip", "install", *quiet]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", python]
    raise InstallError("the image's python3 has no pip, and there is no uv; use an image that has one of them")


def _say(text: str) -> None:
    print(f"accel: {text}", file=sys.stderr, flush=True)  # noqa: T201 - the job's log is where it is read


def _stop(*_: object) -> None:
    """End as SIGTERM does."""
    os._exit(143)


if __name__ == "__main__":
    main(sys.argv[1:])
