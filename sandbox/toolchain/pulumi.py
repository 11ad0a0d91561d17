"""Pulumi engine: from PATH, from the cache, by the vendor's installer, or built with Go."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

from . import making
from .making import MODULES, ToolchainError, Version, go_build, parse_version, pinned_version, say, version_of

SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
ENGINE_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
LANGUAGE_PACKAGE = "github.com/pulumi/pulumi/sdk/python/cmd/pulumi-language-python/v3"
LANGUAGE_HOST = "pulumi-language-python"
DOWNLOAD_TIMEOUT_S = 120

ENGINE_VERSION = pinned_version("pulumi")
WHAT_TO_INSTALL = (
    f"install Pulumi {ENGINE_VERSION} or a later 3.x (curl -fsSL https://get.pulumi.com/install.sh | sh -s -- "
    f"--version {ENGINE_VERSION}) and put it on PATH, or install Go, and run this again"
)
"""Vendor's installer with its options, as pulumi.automation's PulumiCommand.install runs it:
https://github.com/pulumi/pulumi/blob/master/sdk/python/lib/pulumi/automation/_cmd.py"""
INSTALLER = (
    "import sys, semver; from pulumi.automation import PulumiCommand; "
    "PulumiCommand.install(root=sys.argv[1], version=semver.VersionInfo.parse(sys.argv[2]))"
)


def accepts(version: Version) -> bool:
    """Return whether an engine of this version runs the project: not older than the SDK, of the same major version."""
    oldest = parse_version(ENGINE_VERSION)
    return oldest <= version < (oldest[0] + 1,)


def engine_root() -> Path:
    """Return the folder of the pinned engine in the cache; the commands are in its `bin`."""
    return making.cache() / "engine" / f"{ENGINE_VERSION}-{making.SYSTEM}"


@functools.cache
def engine() -> Path:
    """Return a folder that holds `pulumi`, and the Python language host beside it or on PATH. The first call on a
    machine may download or build, for some minutes, with progress on stderr. Two processes at once do that once: the
    second waits for the first. Raise ToolchainError where nothing is found and nothing can be made."""
    found = _on_path() or _cached()
    if found:
        return found
    root = engine_root()
    with making.alone(root, "the engine"):
        return _cached() or _make(root)


def _on_path() -> Path | None:
    command = shutil.which("pulumi")
    if not command:
        return None
    if not accepts(version_of(command, "version")):
        say(f"{command} is not an engine from {ENGINE_VERSION} up; looking further")
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
    return accepts(version_of(str(folder / "pulumi"), "version"))


def _make(root: Path) -> Path:
    return making.make_folder(root, _fill) / "bin"


def _fill(partial: Path) -> None:
    try:
        _download(partial)
    except ToolchainError as unavailable:
        say(f"{unavailable}; building it")
        _build(partial / "bin")
    if not _is_whole(partial / "bin"):
        raise ToolchainError(f"the engine made here does not run as {ENGINE_VERSION}")


def _download(root: Path) -> None:
    """Run the SDK's own installer, in a process of its own because it has no timeout."""
    with tempfile.TemporaryFile("w+") as trace:
        try:
            install = [sys.executable, "-c", INSTALLER, str(root), ENGINE_VERSION]
            label = f"downloading pulumi {ENGINE_VERSION}"
            making.run(install, label, timeout_s=DOWNLOAD_TIMEOUT_S, stderr=trace.fileno())
        except ToolchainError as failure:
            trace.seek(0)
            reason = (trace.read().strip().splitlines() or [str(failure)])[-1]
            raise ToolchainError(f"pulumi {ENGINE_VERSION} cannot be downloaded: {reason}") from failure


def _build(folder: Path) -> None:
    """Build the engine and the language host from the modules that `toolchain/` pins."""
    go = making.go("pulumi", LANGUAGE_HOST)
    folder.mkdir(parents=True, exist_ok=True)
    stamp = f"-X {SDK_MODULE}/go/common/version.Version=v{ENGINE_VERSION}"
    go_build(go, MODULES / "pulumi", {"pulumi": ENGINE_PACKAGE}, folder, stamp)
    host = MODULES / LANGUAGE_HOST
    go_build(go, host, {LANGUAGE_HOST: LANGUAGE_PACKAGE}, folder)
    # The module cache is read-only, so a plain copy would be a script that nothing may run.
    script = folder / f"{LANGUAGE_HOST}-exec"
    shutil.copyfile(making.source_of(go, host, SDK_MODULE) / "python" / "cmd" / script.name, script)
    script.chmod(0o755)
