"""Claims of one machine."""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from accel import folders
from accel.diagnostics.errors import CloudSilent

from .claim import BY_HAND, Claim, claim_of


class FileClaims:
    """For targets without a table, under $XDG_STATE_HOME/accel/claims.

    Whoever holds the file's lock is alone; the kernel lets go of it when a process dies. So a row without a
    job that another process left is always free.
    """

    shared = False

    def __init__(self, scope: str) -> None:
        self._folder = folders.state() / "claims" / _digest(scope)[:16]
        self._owner = ""

    @contextmanager
    def alone(self, key: str) -> Generator[None]:
        """An exclusive lock on the key's file; waits for whoever holds it."""
        import fcntl

        self._folder.mkdir(parents=True, exist_ok=True)
        with self._path(key, "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def now(self) -> float:
        """This machine's time."""
        return time.time()

    def read(self, key: str) -> Claim | None:
        """The row of the key's file."""
        path = self._path(key, "json")
        if not path.exists():
            return None
        try:
            row: Any = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise CloudSilent(f"cannot read {path}: {error}", BY_HAND) from error
        claim = claim_of(cast("dict[str, Any]", row) if isinstance(row, dict) else {}, str(path))
        ended = self.now() - 1
        return claim if claim.owner == self._owner else replace(claim, lease_until=min(claim.lease_until, ended))

    def put(self, claim: Claim) -> None:
        """Writes the row; the lock keeps others out."""
        self._owner = claim.owner
        folders.write_json(self._path(claim.key, "json"), asdict(claim))

    def take_over(self, seen: Claim, claim: Claim) -> None:
        """As put."""
        self.put(claim)

    def finish(self, claim: Claim, job_id: str) -> None:
        """As put, with the job's id."""
        self.put(replace(claim, job_id=job_id))

    def forget(self, claim: Claim) -> None:
        """Removes the row."""
        self._path(claim.key, "json").unlink(missing_ok=True)

    def end_lease(self, claim: Claim) -> None:
        """Nothing: without its owner's process the lease counts for nothing."""

    def _path(self, key: str, kind: str) -> Path:
        return self._folder / f"{_digest(key)}.{kind}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
