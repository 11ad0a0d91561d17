"""Claims in files on one machine."""

from contextlib import AbstractContextManager
from dataclasses import asdict, replace

from accel import folders
from accel.clouds.conditional_store import Fields
from accel.clouds.conditional_store.files import Files, digest

from .claim import BY_HAND, Claim, claim_of
from .store import StoreClaims


class FileClaims(StoreClaims):
    """Claims for targets without a table, under $XDG_STATE_HOME/accel/claims. The holder of the file's lock has the key
    to itself. The kernel releases the lock when a process dies, so a claim without a job that another process left is
    always free."""

    shared = False

    def __init__(self, scope: str) -> None:
        self._files = Files(folders.state() / "claims" / digest(scope)[:16], BY_HAND)
        super().__init__(self._files)
        self._owner = ""

    def alone(self, key: str) -> AbstractContextManager[None]:
        return self._files.lock(key)

    def read(self, key: str) -> Claim | None:
        """Treat the lease of another owner as over, because its process no longer runs."""
        claim = super().read(key)
        if claim is None or claim.owner == self._owner:
            return claim
        return replace(claim, lease_until=min(claim.lease_until, self.now() - 1))

    def put(self, claim: Claim) -> None:
        self._owner = claim.owner
        super().put(claim)

    def take_over(self, seen: Claim, claim: Claim) -> None:
        self._owner = claim.owner
        super().take_over(seen, claim)

    def end_lease(self, claim: Claim) -> None:
        """Do nothing, because `read` ignores the lease anyway."""

    def _claim_of(self, key: str, fields: Fields) -> Claim:
        return claim_of(fields, str(self._files.path(key)))

    def _fields(self, claim: Claim) -> Fields:
        return asdict(claim)
