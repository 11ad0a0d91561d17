"""Writing and reading of a checkpoint's files, with their sizes and digests. Hashing runs in parallel with the disk. A
digest is the SHA-256 of the SHA-256s of a file's pieces of 4 MiB, so that several threads can work on one file and on
one write to it. Written data goes to the disk while the rest is still being written."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple, cast

PIECE = 4 << 20
BUFFER = 1 << 20
INLINE = 1 << 16
"""Largest part, in bytes, that is hashed faster than another thread wakes up."""
AHEAD = 64 << 20
"""Bytes after which the kernel begins to write to the disk, so that little is left for the end."""
_WRITE = 2
"""SYNC_FILE_RANGE_WRITE. Source: https://man7.org/linux/man-pages/man2/sync_file_range.2.html"""
WRITE_MAX = 1 << 30
"""Linux writes at most 2 GiB at once. Source: https://man7.org/linux/man-pages/man2/write.2.html#NOTES"""


class File(NamedTuple):
    """Size in bytes, and digest in hexadecimal."""

    size: int
    sha256: str


def threads() -> ThreadPoolExecutor:
    """Return threads for hashing, since SHA-256 is slower than a fast disk, and one that may wait for the disk."""
    return ThreadPoolExecutor(1 + min(4, max(2, os.cpu_count() or 2)), "accel-checkpoint")


class Digest:
    """Digest of a stream that is read in order. The caller lends each part until its futures are done."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.size = 0
        self._pool = pool
        self._pieces: list[Any] = []

    def update(self, part: memoryview) -> list[Future[None]]:
        """Return the work that is not done yet; the caller waits for it."""
        working: list[Future[None]] = []
        at = 0
        while at < len(part):
            inside = self.size % PIECE
            if not inside:
                self._pieces.append(hashlib.sha256())
            take = part[at : at + PIECE - inside]
            piece = self._pieces[-1]
            if len(take) <= INLINE:
                piece.update(take)
            else:
                working.append(self._pool.submit(piece.update, take))
            self.size += len(take)
            at += len(take)
        return working

    def file(self) -> File:
        return File(self.size, _joined([piece.digest() for piece in self._pieces]))


class HashedFile(io.RawIOBase):
    """A new file that only grows. A writer that would seek, such as zipfile, writes it as a stream."""

    def __init__(self, path: Path, pool: ThreadPoolExecutor, done: Callable[[File], None]) -> None:
        self._file = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._digest = Digest(pool)
        self._done = done
        self._pool = pool
        self._begun = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = memoryview(data).cast("B")
        written = self._digest.size
        working = self._digest.update(part)
        if written - self._begun >= AHEAD:
            working.append(self._pool.submit(_begin, self._file, self._begun, written - self._begun))
            self._begun = written
        try:
            _whole(self._file, part)
        finally:
            for each in working:
                each.result()
        return len(part)

    def close(self) -> None:
        """Flush the file to the disk before it counts."""
        if self.closed:
            return
        try:
            os.fsync(self._file)
            self._done(self._digest.file())
        finally:
            os.close(self._file)
            super().close()


class Writing:
    """A checkpoint that is being written: open files in it, or put them into its folder."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor) -> None:
        self.folder = folder
        """Folder for libraries that need a path. Files put there are hashed at the end, which reads them once more."""
        self._pool = pool
        self._files: dict[str, File] = {}
        self._open: list[IO[bytes]] = []

    def open(self, name: str) -> IO[bytes]:
        """Open a new file to write from its beginning to its end; it is hashed on the way. Raise ValueError if the name
        leads out of the checkpoint or is reserved, and FileExistsError if the file exists already."""
        path = self.folder / check_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)

        def done(file: File) -> None:
            self._files[path.relative_to(self.folder).as_posix()] = file

        made = io.BufferedWriter(cast("io.RawIOBase", HashedFile(path, self._pool, done)), BUFFER)
        self._open.append(made)
        return made

    def files(self) -> dict[str, File]:
        """Close the open files, and return all files, flushed to the disk. Raise ValueError if there are none, or if
        one is a link."""
        for file in self._open:
            file.close()
        working: list[Future[None]] = []
        for path in _walk(self.folder):
            name = path.relative_to(self.folder).as_posix()
            if path.is_symlink():
                raise ValueError(f"{name}: is a link; a checkpoint holds files")
            check_name(name)
            if name not in self._files:
                working.append(self._pool.submit(flush, path))
                self._files[name] = read(path, self._pool, PIECE)
        for each in working:
            each.result()
        if not self._files:
            raise ValueError("nothing was written into the checkpoint")
        return self._files

    def abandon(self) -> None:
        """Close the open files, because their folder is about to be deleted."""
        for file in self._open:
            with contextlib.suppress(OSError, ValueError):  # the disk that was full still is
                file.close()


def check_name(name: str) -> str:
    """Return a file's name within a checkpoint, with / between folders. Raise ValueError if it is not allowed."""
    parts = name.split("/")
    if not name or name == MANIFEST or any(part in ("", ".", "..") for part in parts) or "\\" in name:
        raise ValueError(f"{name!r}: is no name for a file of a checkpoint")
    return name


MANIFEST = "manifest.json"
"""File that is written last and makes a checkpoint complete."""


def read(path: Path, pool: ThreadPoolExecutor, piece: int) -> File:
    """Return the size and digest of a file. Several threads read its pieces, each of `piece` bytes."""
    file = os.open(str(path), os.O_RDONLY)
    try:
        size = os.fstat(file).st_size
        pieces = [pool.submit(_piece, file, start, min(piece, size - start)) for start in range(0, size, piece)]
        digests = [each.result() for each in pieces]
    finally:
        os.close(file)
    return File(size, _joined(digests))


def write(path: Path, data: bytes) -> None:
    """Write a new small file. It is on the disk when this returns."""
    file = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _whole(file, memoryview(data))
        os.fsync(file)
    finally:
        os.close(file)


def flush(path: Path) -> None:
    """Flush a file, or the names of a folder's files, to the disk. Without it a power cut can undo a rename."""
    file = os.open(str(path), os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _begin(file: int, start: int, size: int) -> None:
    """Make the kernel write part of a file to the disk, without waiting. The fsync at the end reports what goes wrong.
    An early fsync would do too, but a mounted bucket takes one for the end of an object."""
    with contextlib.suppress(AttributeError, ImportError, OSError):  # Linux alone has it
        import ctypes

        ctypes.CDLL(None).sync_file_range(file, ctypes.c_int64(start), ctypes.c_int64(size), _WRITE)


def _whole(file: int, data: memoryview) -> None:
    at = 0
    while at < len(data):
        at += os.write(file, data[at : at + WRITE_MAX])


def _piece(file: int, start: int, size: int) -> bytes:
    digest, end = hashlib.sha256(), start + size
    while start < end:
        part = os.pread(file, min(BUFFER, end - start), start)
        if not part:
            break  # it has become shorter: another digest
        digest.update(part)
        start += len(part)
    return digest.digest()


def _joined(digests: list[bytes]) -> str:
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(str(folder)):
        for name in folders:
            if Path(root, name).is_symlink():
                yield Path(root, name)
        for name in files:
            yield Path(root, name)
