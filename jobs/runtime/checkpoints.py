"""Checkpoints that are there whole or not at all, whenever the program is killed."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Callable

from .nodes import first_process, task
from .reporting import event
from .stores import store
from .writing import MANIFEST, PIECE, File, Writing, checked, read, threads

NAME = re.compile(r"step-(\d{8,})-[0-9a-f]{8}")
VERSION = 1


class Checkpoint:
    """A complete one, whose digests were right when it was found."""

    def __init__(self, step: int, place: str, folder: Path, files: dict[str, File], held: Any = None) -> None:
        self.step = step
        """Steps that were done."""
        self.place = place
        """Folder or URL, for people."""
        self.folder = folder
        """Its files on this machine."""
        self.files = files
        self._held = held

    def path(self, name: str) -> Path:
        """Of a file or a folder in it. Raises FileNotFoundError."""
        path = self.folder / checked(name)
        if not path.exists():
            raise FileNotFoundError(f"{self.place} holds no {name}; there is {', '.join(sorted(self.files))}")
        return path

    def open(self, name: str) -> IO[bytes]:
        """A file, to read. Raises FileNotFoundError."""
        return self.path(name).open("rb")


class _Damaged(Exception):
    pass


class Checkpoints:
    """Those of one job in a folder, `s3://bucket/prefix` or `gs://bucket/prefix`.

        checkpoints = Checkpoints("gs://runs/digits", keep=3, interval_s=600)
        found = checkpoints.resume()                  # None: begin anew
        checkpoints.save(step, lambda into: torch.save(state, into.open("state.pt")))

    Each task of an array has a folder in it, `task-<index>`, unless `shared`; a smoke run has `smoke`. Where a job has
    several nodes or processes, only one writes: that of rank 0, unless `writer` says; the others' `save` does nothing.
    Two programs that write to one place at the same time delete each other's unfinished checkpoints.

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
        self._store = store(place, scratch)
        self._say = say or _print
        self._begun = time.monotonic()
        self._got: Checkpoint | None = None

    def due(self) -> bool:
        """Whether `interval_s` is over since the last save, or since the start. A kill loses no more than that."""
        return time.monotonic() - self._begun >= self.interval_s

    def save(self, step: int, write: Callable[[Writing], object]) -> str | None:
        """Writes one, and deletes older ones but for the newest `keep`; its place, None where another process writes.

        `write` opens files in what it is given (`into.open("state.pt")`), or puts them into its folder
        (`into.folder / "model"`). It is complete when this returns; until then, and after any error, it is absent.

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
        """The newest one that is complete and undamaged, on this machine; None where there is none.

        Those that are not are skipped, with a line that says so; of older ones the process that writes deletes what a
        kill left half deleted. What cannot be looked at is an error, never "none".
        Read it before the next `save`, which may delete it.

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
        """Step, and when it was written: of two of one step the later one."""
        manifest = self._manifest(name)
        return _step(name), manifest["at"] if manifest else 0.0

    def _manifest(self, name: str) -> dict[str, Any] | None:
        """What a checkpoint says it holds, None where that is missing or damaged."""
        try:
            text = self._store.manifest(name)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return None
        try:
            told = json.loads(text or b"")
            files = {checked(file): File(int(size), str(digest)) for file, (size, digest) in told["files"].items()}
            right = (told["version"], told["name"], told["step"]) == (VERSION, name, _step(name)) and bool(files)
            return {"files": files, "at": float(told["at"]), "piece": max(1, int(told["piece"]))} if right else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _complete(self, name: str, sizes: dict[str, int]) -> bool:
        """Whether it has its manifest and all files in their sizes; their content is not read."""
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
        """The older ones but for `keep - 1`. The one just written is none, nor are those of later steps: of a run that
        went further, or damaged."""
        names = self._store.names()
        older = [name for name in names if NAME.fullmatch(name) and name != newest and _step(name) <= step]
        complete = sorted((name for name in older if self._complete(name, names[name])), key=self._age)
        kept = complete[len(complete) - min(self.keep - 1, len(complete)) :]
        yield from (name for name in older if name not in kept)

    def _delete(self, names: Iterable[str]) -> None:
        """What stays is told: newer ones are safe, and the next save tries again."""
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
