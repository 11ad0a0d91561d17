"""Where checkpoints lie: a folder of this machine, or a bucket. A store knows names and files, and not what is in them.

A checkpoint has a name of its own that no other attempt has, so nothing is ever written over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, NamedTuple

from .gcs import Gcs
from .s3 import S3
from .writing import MANIFEST, flush, write

WRITING, GOING = ".writing-", ".deleting-"
UPLOADS = 4
"""Files at once; each of a large file's parts has a connection of its own besides."""


class Got(NamedTuple):
    """A checkpoint's files on this machine; `held` keeps a downloaded folder from being deleted."""

    folder: Path
    held: Any


class Folder:
    """On a disk of this machine, or one that several mount. A name appears by a rename: whole, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, name: str) -> str:
        """Of a checkpoint, in words."""
        return str(self.path / name)

    def names(self) -> dict[str, dict[str, int]]:
        """Each checkpoint's files with their sizes, complete or not."""
        found: dict[str, dict[str, int]] = {}
        for path in self.path.iterdir() if self.path.is_dir() else ():
            if path.is_dir() and not path.name.startswith("."):
                found[path.name] = {
                    file.relative_to(path).as_posix(): file.stat().st_size for file in path.rglob("*") if file.is_file()
                }
        return found

    def prepare(self) -> None:
        """Makes the folder, so that a place that cannot be written is an error at the start; ends deletions."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._delete(GOING)

    def begin(self, name: str) -> Path:
        """A new folder to write into. What a killed attempt left half written goes: one job writes here at a time."""
        self.prepare()
        self._delete(WRITING)
        folder = self.path / (WRITING + name)
        folder.mkdir()
        return folder

    def commit(self, name: str, folder: Path, manifest: bytes) -> None:
        """Makes it complete, whose files are on the disk."""
        write(folder / MANIFEST, manifest)
        for root, _, _ in os.walk(str(folder)):
            flush(Path(root))
        folder.rename(self.path / name)
        flush(self.path)

    def manifest(self, name: str) -> bytes | None:
        """None where it has none."""
        try:
            return (self.path / name / MANIFEST).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def fetch(self, name: str, files: list[str]) -> Got:
        """It is here."""
        return Got(self.path / name, None)

    def remove(self, name: str) -> None:
        """Out of the list first, so that a kill leaves none that looks complete."""
        going = self.path / (GOING + name)
        (self.path / name).rename(going)
        shutil.rmtree(str(going))

    def abandon(self, folder: Path) -> None:
        """Deletes what was begun."""
        shutil.rmtree(str(folder), ignore_errors=True)

    def _delete(self, kind: str) -> None:
        for left in self.path.iterdir():
            if left.name.startswith(kind):
                shutil.rmtree(str(left), ignore_errors=True)


class Bucket:
    """Objects below a prefix: the files first, the manifest last. `client` is one of s3.py or gcs.py."""

    def __init__(self, client: Any, url: str, prefix: str, scratch: str | None) -> None:
        self.client = client
        self.url = url.rstrip("/")
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self.scratch = scratch

    def place(self, name: str) -> str:
        """Of a checkpoint, in words."""
        return f"{self.url}/{name}"

    def names(self) -> dict[str, dict[str, int]]:
        """Each checkpoint's objects with their sizes, complete or not."""
        found: dict[str, dict[str, int]] = {}
        for key, size in self.client.sizes(self.prefix).items():
            name, cut, file = key[len(self.prefix) :].partition("/")
            if cut:
                found.setdefault(name, {})[file] = size
        return found

    def prepare(self) -> None:
        """A bucket has no folders."""

    def begin(self, name: str) -> Path:
        """A folder of this machine; what is in it is uploaded once it is whole."""
        return Path(tempfile.mkdtemp(prefix="accel-checkpoint-", dir=self.scratch))

    def commit(self, name: str, folder: Path, manifest: bytes) -> None:
        """Uploads the files, then the manifest."""
        files = [path for path in folder.rglob("*") if path.is_file()]
        self._each(lambda path: self.client.put(self._key(name, path.relative_to(folder).as_posix()), path), files)
        self.client.put_bytes(self._key(name, MANIFEST), manifest)
        shutil.rmtree(str(folder), ignore_errors=True)

    def manifest(self, name: str) -> bytes | None:
        """None where it has none."""
        return self.client.get_bytes(self._key(name, MANIFEST))

    def fetch(self, name: str, files: list[str]) -> Got:
        """Downloads it. Raises FileNotFoundError where an object is gone."""
        held = tempfile.TemporaryDirectory(prefix="accel-checkpoint-", dir=self.scratch)
        folder = Path(held.name)
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
        self._each(lambda file: self.client.get(self._key(name, file), folder / file), files)
        return Got(folder, held)

    def remove(self, name: str) -> None:
        """The manifest first, so that a kill leaves none that looks complete."""
        self.client.delete(self._key(name, MANIFEST))
        self._each(self.client.delete, list(self.client.sizes(f"{self.prefix}{name}/")))

    def abandon(self, folder: Path) -> None:
        """Deletes what is on this machine; objects without a manifest go with the next save."""
        shutil.rmtree(str(folder), ignore_errors=True)

    def _key(self, name: str, file: str) -> str:
        return f"{self.prefix}{name}/{file}"

    def _each(self, work: Callable[[Any], Any], items: list[Any]) -> None:
        with ThreadPoolExecutor(UPLOADS, "accel-objects") as pool:
            for each in [pool.submit(work, item) for item in items]:
                each.result()


def store(where: str, scratch: str | None) -> Folder | Bucket:
    """Of a path or a URL. Raises ValueError for a URL of another kind, ImportError where s3:// lacks boto3."""
    scheme, cut, rest = where.partition("://")
    if not cut:
        return Folder(Path(where))
    bucket, _, prefix = rest.partition("/")
    if scheme not in ("s3", "gs") or not bucket:
        raise ValueError(f"{where!r}: must be a folder, s3://<bucket>/<prefix> or gs://<bucket>/<prefix>")
    if scheme == "s3":
        return Bucket(S3(bucket), where, prefix, scratch)

    return Bucket(Gcs(bucket), where, prefix, scratch)
