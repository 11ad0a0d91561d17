"""The claim on a submission key: who may submit it, and which job came of it.

A write happens only while its condition holds, and says nothing of whether it did: a client may send it twice, and a
proxy may answer for the service. Whoever writes reads again; what is read is the truth.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Claim:
    """A row of the claim table. With a job id it is final; without one it is free after its lease."""

    key: str
    spec_hash: str
    owner: str
    lease_until: float
    job_name: str
    job_id: str | None = None


class Claims(Protocol):
    """Where claims are kept."""

    shared: bool
    """Whether all who submit here see the same claims."""

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Held while a key is worked on."""
        ...

    def read(self, key: str) -> Claim | None:
        """The row as it is now, never an older one."""
        ...

    def now(self) -> float:
        """Unix seconds, at the last read, of the clock that leases are written in."""
        ...

    def put(self, claim: Claim) -> None:
        """Makes the row if there is none."""
        ...

    def take_over(self, seen: Claim, claim: Claim) -> None:
        """Replaces the row if it still is the one that was seen, without a job."""
        ...

    def finish(self, claim: Claim, job_id: str) -> None:
        """Writes the job's id if the row is the claim's owner's and has none."""
        ...

    def forget(self, claim: Claim) -> None:
        """Removes the row if it is the claim's owner's and has no job."""
        ...

    def end_lease(self, claim: Claim) -> None:
        """Lets the next client take the row over at once, if it is the claim's owner's and has no job."""
        ...
