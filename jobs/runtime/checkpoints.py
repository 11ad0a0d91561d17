"""Checkpoints that are complete or absent, whenever the program is killed. They lie in a store, which is a folder of
this machine or a bucket. A store knows names and files, not their content. Each checkpoint has a name that no other
attempt uses, so nothing is ever overwritten."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple

from .gcs import Gcs
from .nodes import first_process, task
from .reporting import event
from .s3 import S3
from .writing import MANIFEST, PIECE, File, Writing, check_name, flush, read, threads, write

NAME = re.compile(r"step-(\d{8,})-[0-9a-f]{8}")
VERSION = 1


class Checkpoint:
    """A complete checkpoint, whose digests were right when it was found."""

    def __init__(self, step: int, place: str, folder: Path, files: dict[str, File], held: Any = None) -> None:
        self.step = step
        """Number of steps done."""
        self.place = place
        """Folder or URL, to show to people."""
        self.folder = folder
        """Folder on this machine with its files."""
        self.files = files
        self._held = held

    def path(self, name: str) -> Path:
        """Return the path of a file or a folder in the checkpoint. Raise FileNotFoundError if it is missing."""
        path = self.folder / check_name(name)
        if not path.exists():
            raise FileNotFoundError(f"{self.place} holds no {name}; there is {', '.join(sorted(self.files))}")
        return path

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading. Raise FileNotFoundError if it is missing."""
        return self.path(name).open("rb")


class _Damaged(Exception):
    pass


class Checkpoints:
    """Checkpoints of one job in a folder, `s3://bucket/prefix` or `gs://bucket/prefix`.

        checkpoints = Checkpoints("gs://runs/digits", keep=3, interval_s=600)
        found = checkpoints.resume()                  # None: begin anew
        checkpoints.save(step, lambda into: torch.save(state, into.open("state.pt")))

    Each task of an array uses the folder `task-<index>` in it, unless `shared` is set; a smoke run uses `smoke`. If a
    job has several nodes or processes, only one writes: the one with rank 0, unless `writer` says otherwise. In the
    others, `save` does nothing. Two programs that write to one place at the same time delete each other's unfinished
    checkpoints.

    Raises:
        ValueError: a URL of another kind, or a number out of range.
        ImportError: s3:// without boto3 in the image.
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        keep: int = 2,
        interval_s: float = 600.0,
        scratch: str | None = None,
        shared: bool = False,
        writer: bool | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if keep < 1 or interval_s < 0:
            raise ValueError(f"keep must be at least 1 and interval_s at least 0, are {keep} and {interval_s}")
        own = task()
        place = os.fspath(where).rstrip("/") or "/"
        if os.environ.get("ACCEL_SMOKE") == "1":
            place = f"{place}/smoke"
        if own.count > 1 and not shared:
            place = f"{place}/task-{own.index}"
        self.keep = keep
        self.interval_s = interval_s
        self.place = place
        self.writer = first_process() if writer is None else writer
        self._store = _store(place, scratch)
        self._say = say or _print
        self._begun = time.monotonic()
        self._got: Checkpoint | None = None

    def due(self) -> bool:
        """Return whether `interval_s` has passed since the last save or the start. A kill loses no more than that."""
        return time.monotonic() - self._begun >= self.interval_s

    def save(self, step: int, write: Callable[[Writing], object]) -> str | None:
        """Write a checkpoint, and delete older ones beyond the newest `keep`.

        Return its place, or None if another process writes. `write` opens files in its argument
        (`into.open("state.pt")`), or puts them into its folder (`into.folder / "model"`). The checkpoint is complete
        when this returns; until then, and after any error, it is absent.

        Raises:
            ValueError: nothing was written, or the step is negative.
            OSError: the disk or the bucket refused; s3.StoreError for a bucket. What `write` raises is passed on.
        """
        if not self.writer:
            return None
        if step < 0:
            raise ValueError(f"step: must be at least 0, is {step}")
        started = time.monotonic()
        name = f"step-{step:08d}-{os.urandom(4).hex()}"
        folder = self._store.begin(name)
        try:
            with threads() as pool:
                into = Writing(folder, pool)
                try:
                    write(into)
                    files = into.files()
                except BaseException:
                    into.abandon()
                    raise
            self._store.commit(name, folder, _manifest(name, step, files))
        except BaseException:
            self._store.abandon(folder)
            raise
        self._begun = time.monotonic()
        self._tell("checkpoint", f"{self._store.place(name)} in {self._begun - started:.1f} s", step)
        self._delete(self._older(name, step))
        return self._store.place(name)

    def resume(self) -> Checkpoint | None:
        """Return the newest complete and undamaged checkpoint, or None if there is none.

        Its files are then on this machine. Report each checkpoint that is skipped. In the process that writes, delete
        older ones that a kill left half deleted. A checkpoint that cannot be inspected is an error, never "none". Read
        the files before the next `save`, which may delete them.

        Raises:
            OSError: the place cannot be read; s3.StoreError for a bucket.
        """
        self._got = None
        if self.writer:
            self._store.prepare()
        names = self._store.names()
        for name in sorted(filter(NAME.fullmatch, names), key=self._age, reverse=True):
            try:
                self._got = self._load(name, names[name])
            except _Damaged as damage:
                self._say(f"checkpoint {self._store.place(name)} is {damage}: skipped")
                continue
            self._begun = time.monotonic()
            self._tell("resume", self._got.place, self._got.step)
            if self.writer:
                left = [each for each in names if NAME.fullmatch(each) and MANIFEST not in names[each]]
                self._delete([each for each in left if _step(each) < self._got.step])
            return self._got
        return None

    def _age(self, name: str) -> tuple[int, float]:
        """Return the sort key: the step, and the time of writing, since two checkpoints can have one step."""
        manifest = self._manifest(name)
        return _step(name), manifest["at"] if manifest else 0.0

    def _manifest(self, name: str) -> dict[str, Any] | None:
        """Return None if the manifest is missing or damaged."""
        try:
            text = self._store.manifest(name)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return None
        try:
            told = json.loads(text or b"")
            files = {check_name(file): File(int(size), str(digest)) for file, (size, digest) in told["files"].items()}
            right = (told["version"], told["name"], told["step"]) == (VERSION, name, _step(name)) and bool(files)
            return {"files": files, "at": float(told["at"]), "piece": max(1, int(told["piece"]))} if right else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _complete(self, name: str, sizes: dict[str, int]) -> bool:
        """Return whether the manifest is there, and all files in their sizes. The files' content is not read."""
        manifest = self._manifest(name) if MANIFEST in sizes else None
        return manifest is not None and all(sizes.get(f) == file.size for f, file in manifest["files"].items())

    def _load(self, name: str, sizes: dict[str, int]) -> Checkpoint:
        manifest = self._manifest(name)
        if manifest is None or not self._complete(name, sizes):
            raise _Damaged("truncated or corrupt" if MANIFEST in sizes else "not complete")
        files: dict[str, File] = manifest["files"]
        try:
            got = self._store.fetch(name, list(files))
            with threads() as pool:
                right = all(read(got.folder / f, pool, manifest["piece"]) == file for f, file in files.items())
        except FileNotFoundError:
            raise _Damaged("not complete") from None
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise _Damaged(f"not readable: {error.strerror}") from None
        if not right:
            raise _Damaged("truncated or corrupt")
        return Checkpoint(_step(name), self._store.place(name), got.folder, files, got.held)

    def _older(self, newest: str, step: int) -> Iterator[str]:
        """Yield the older checkpoints except the newest `keep - 1` complete ones. Leave out the one just written, and
        those of later steps, which are damaged or of a run that went further."""
        names = self._store.names()
        older = [name for name in names if NAME.fullmatch(name) and name != newest and _step(name) <= step]
        complete = sorted((name for name in older if self._complete(name, names[name])), key=self._age)
        kept = complete[len(complete) - min(self.keep - 1, len(complete)) :]
        yield from (name for name in older if name not in kept)

    def _delete(self, names: Iterable[str]) -> None:
        """Delete checkpoints. Report a failure and go on: newer ones are safe, and the next save tries again."""
        try:
            for name in names:
                self._store.remove(name)
        except OSError as error:
            self._say(f"older checkpoints in {self.place} cannot be deleted: {error}")

    def _tell(self, kind: str, said: str, step: int) -> None:
        event(kind, said, step)


def _manifest(name: str, step: int, files: dict[str, File]) -> bytes:
    told = {"version": VERSION, "name": name, "step": step, "at": time.time(), "piece": PIECE, "files": files}
    return json.dumps(told, indent=1).encode()


def _step(name: str) -> int:
    found = NAME.fullmatch(name)
    assert found
    return int(found[1])


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201


_WRITING, _DELETING = ".writing-", ".deleting-"
_UPLOADS = 4
"""Files transferred at once. Each part of a large file has a connection of its own besides."""


class _Fetched(NamedTuple):
    """A checkpoint's files on this machine; `held` keeps a downloaded folder from being deleted."""

    folder: Path
    held: Any


class _Folder:
    """Store on a disk of this machine, or on one that several machines mount. A rename makes a checkpoint appear, so it
    is complete or absent."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, name: str) -> str:
        return str(self.path / name)

    def names(self) -> dict[str, dict[str, int]]:
        """Return the sizes of each checkpoint's files. Include incomplete checkpoints."""
        found: dict[str, dict[str, int]] = {}
        for path in self.path.iterdir() if self.path.is_dir() else ():
            if path.is_dir() and not path.name.startswith("."):
                found[path.name] = {
                    file.relative_to(path).as_posix(): file.stat().st_size for file in path.rglob("*") if file.is_file()
                }
        return found

    def prepare(self) -> None:
        """Create the folder, so that an unwritable place is an error at the start. Finish interrupted deletions."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._delete(_DELETING)

    def begin(self, name: str) -> Path:
        """Delete what a killed attempt left half written: only one job writes here at a time."""
        self.prepare()
        self._delete(_WRITING)
        folder = self.path / (_WRITING + name)
        folder.mkdir()
        return folder

    def commit(self, name: str, folder: Path, manifest: bytes) -> None:
        """Expect the files to be on the disk already."""
        write(folder / MANIFEST, manifest)
        for root, _, _ in os.walk(str(folder)):
            flush(Path(root))
        folder.rename(self.path / name)
        flush(self.path)

    def manifest(self, name: str) -> bytes | None:
        try:
            return (self.path / name / MANIFEST).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def fetch(self, name: str, files: list[str]) -> _Fetched:
        return _Fetched(self.path / name, None)

    def remove(self, name: str) -> None:
        """Rename the checkpoint before deleting it, so that a kill leaves none that looks complete."""
        going = self.path / (_DELETING + name)
        (self.path / name).rename(going)
        shutil.rmtree(str(going))

    def abandon(self, folder: Path) -> None:
        shutil.rmtree(str(folder), ignore_errors=True)

    def _delete(self, kind: str) -> None:
        for left in self.path.iterdir():
            if left.name.startswith(kind):
                shutil.rmtree(str(left), ignore_errors=True)


class _Bucket:
    """Store below a prefix of a bucket. The manifest is uploaded last and deleted first. `client` is one of s3.py or
    gcs.py."""

    def __init__(self, client: Any, url: str, prefix: str, scratch: str | None) -> None:
        self.client = client
        self.url = url.rstrip("/")
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self.scratch = scratch

    def place(self, name: str) -> str:
        return f"{self.url}/{name}"

    def names(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for key, size in self.client.sizes(self.prefix).items():
            name, cut, file = key[len(self.prefix) :].partition("/")
            if cut:
                found.setdefault(name, {})[file] = size
        return found

    def prepare(self) -> None:
        """Do nothing: a bucket has no folders."""

    def begin(self, name: str) -> Path:
        """Return a new folder on this machine. Its files are uploaded once all of them are written."""
        return Path(tempfile.mkdtemp(prefix="accel-checkpoint-", dir=self.scratch))

    def commit(self, name: str, folder: Path, manifest: bytes) -> None:
        files = [path for path in folder.rglob("*") if path.is_file()]
        self._each(lambda path: self.client.put(self._key(name, path.relative_to(folder).as_posix()), path), files)
        self.client.put_bytes(self._key(name, MANIFEST), manifest)
        shutil.rmtree(str(folder), ignore_errors=True)

    def manifest(self, name: str) -> bytes | None:
        return self.client.get_bytes(self._key(name, MANIFEST))

    def fetch(self, name: str, files: list[str]) -> _Fetched:
        """Raise FileNotFoundError if an object is gone."""
        held = tempfile.TemporaryDirectory(prefix="accel-checkpoint-", dir=self.scratch)
        folder = Path(held.name)
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
        self._each(lambda file: self.client.get(self._key(name, file), folder / file), files)
        return _Fetched(folder, held)

    def remove(self, name: str) -> None:
        """Delete the manifest first, so that a kill leaves no checkpoint that looks complete."""
        self.client.delete(self._key(name, MANIFEST))
        self._each(self.client.delete, list(self.client.sizes(f"{self.prefix}{name}/")))

    def abandon(self, folder: Path) -> None:
        """Leave objects without a manifest to the next save, which deletes them."""
        shutil.rmtree(str(folder), ignore_errors=True)

    def _key(self, name: str, file: str) -> str:
        return f"{self.prefix}{name}/{file}"

    def _each(self, work: Callable[[Any], Any], items: list[Any]) -> None:
        with ThreadPoolExecutor(_UPLOADS, "accel-objects") as pool:
            for each in [pool.submit(work, item) for item in items]:
                each.result()


def _store(where: str, scratch: str | None) -> _Folder | _Bucket:
    """Raise ValueError for another kind of URL, ImportError for s3:// without boto3."""
    scheme, cut, rest = where.partition("://")
    if not cut:
        return _Folder(Path(where))
    bucket, _, prefix = rest.partition("/")
    if scheme not in ("s3", "gs") or not bucket:
        raise ValueError(f"{where!r}: must be a folder, s3://<bucket>/<prefix> or gs://<bucket>/<prefix>")
    if scheme == "s3":
        return _Bucket(S3(bucket), where, prefix, scratch)

    return _Bucket(Gcs(bucket), where, prefix, scratch)
