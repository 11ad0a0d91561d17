"""The claim on a submission key: who may submit it, and which job came of it.

A write happens only while its condition holds, and says nothing of whether it did: a client may send it twice, and a
proxy may answer for the service. Whoever writes reads again; what is read is the truth.
"""

import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from accel.diagnostics.errors import CloudSilent

BY_HAND = "`accel-jobs ls -a` shows whether the job was made; then remove the claim and submit again"


@dataclass(frozen=True)
class Claim:
    """A row of the claim table. With a job id it is final; without one it is free after its lease."""

    key: str
    spec_hash: str
    owner: str
    lease_until: float
    job_name: str
    job_id: str | None = None


def claim_of(fields: Mapping[str, Any], where: str) -> Claim:
    """The claim of a row's values by the names of Claim; `where`: of the row, in words.

    Raises CloudSilent for a row that is damaged: whether its job was made is not known."""
    wrong = [name for name in ("key", "spec_hash", "owner", "job_name") if not isinstance(fields.get(name), str)]
    wrong += [] if isinstance(fields.get("lease_until"), int | float) else ["lease_until"]
    wrong += [] if isinstance(fields.get("job_id"), str | None) else ["job_id"]
    if wrong:
        raise CloudSilent(f"cannot read {where}: {', '.join(wrong)} is missing or no such value", BY_HAND)
    return Claim(**{field.name: fields[field.name] for field in dataclasses.fields(Claim) if field.name in fields})


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
