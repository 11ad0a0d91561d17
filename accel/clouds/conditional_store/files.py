"""JSON files of this machine, one per record. The holder of a key's lock has exclusive access; the kernel releases it
when a process dies."""

import json
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from ... import folders
from ...diagnostics.errors import CloudSilent
from . import Fields, Record, WriteConflict


class Files:
    """One folder. Writes require lock(key). `by_hand` is the hint for a damaged file."""

    def __init__(self, folder: Path, by_hand: str | None = None) -> None:
        self._folder, self._by_hand = folder, by_hand

    @contextmanager
    def lock(self, key: str) -> Generator[None]:
        """Wait for the current holder."""
        import fcntl  # not on Windows

        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{digest(key)}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def now(self) -> float:
        return time.time()

    def read(self, key: str) -> Record[Fields] | None:
        """Raise CloudSilent if the file is damaged."""
        path = self.path(key)
        if not path.exists():
            return None
        try:
            data = path.read_bytes()
            fields: Any = json.loads(data)
        except (OSError, ValueError, RecursionError) as error:
            raise CloudSilent(f"cannot read {path}: {error}", self._by_hand) from error
        return Record(cast("Fields", fields) if isinstance(fields, dict) else {}, digest_of(data))

    def create(self, key: str, value: Fields) -> None:
        if self.path(key).exists():
            raise WriteConflict(f"{self.path(key)} exists")
        folders.write_json(self.path(key), value)

    def replace(self, key: str, seen: Record[Fields], value: Fields, *, same: Sequence[str] = ()) -> None:
        self._check(key, seen)
        folders.write_json(self.path(key), value)

    def update(self, key: str, seen: Record[Fields], fields: Fields, *, same: Sequence[str] = ()) -> None:
        self.replace(key, seen, {**seen.value, **fields})

    def delete(self, key: str, seen: Record[Fields], *, same: Sequence[str] = ()) -> None:
        self._check(key, seen)
        self.path(key).unlink(missing_ok=True)

    def path(self, key: str) -> Path:
        return self._folder / f"{digest(key)}.json"

    def _check(self, key: str, seen: Record[Fields]) -> None:
        path = self.path(key)
        if not path.exists() or digest_of(path.read_bytes()) != seen.version:
            raise WriteConflict(f"{path} is not as it was read")


def digest(text: str) -> str:
    return digest_of(text.encode())


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()
