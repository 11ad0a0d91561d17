"""Claims of one machine."""

from contextlib import AbstractContextManager
from dataclasses import asdict, replace

from accel import folders
from accel.clouds.conditional_store import Fields
from accel.clouds.conditional_store.files import Files, digest

from .claim import BY_HAND, Claim, claim_of
from .store import StoreClaims


class FileClaims(StoreClaims):
    """For targets without a table, under $XDG_STATE_HOME/accel/claims.

    Whoever holds the file's lock is alone; the kernel frees it when a process dies. So a claim without a job that
    another process left is always free.
    """

    shared = False

    def __init__(self, scope: str) -> None:
        self._files = Files(folders.state() / "claims" / digest(scope)[:16], BY_HAND)
        super().__init__(self._files)
        self._owner = ""

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Hold the lock on the key's file."""
        return self._files.lock(key)

    def read(self, key: str) -> Claim | None:
        """Read the claim; without its owner's process its lease counts for nothing."""
        claim = super().read(key)
        if claim is None or claim.owner == self._owner:
            return claim
        return replace(claim, lease_until=min(claim.lease_until, self.now() - 1))

    def put(self, claim: Claim) -> None:
        """Create the file."""
        self._owner = claim.owner
        super().put(claim)

    def take_over(self, seen: Claim, claim: Claim) -> None:
        """Replace the file."""
        self._owner = claim.owner
        super().take_over(seen, claim)

    def end_lease(self, claim: Claim) -> None:
        """Do nothing: see read."""

    def _claim_of(self, key: str, fields: Fields) -> Claim:
        return claim_of(fields, str(self._files.path(key)))

    def _fields(self, claim: Claim) -> Fields:
        return asdict(claim)
