"""The claim on a submission key: who may submit it, and which job came of it. A write happens only if its condition
holds, and does not report whether it did: a client may send it twice, and a proxy may answer for the service. So
writers read after each write, and only what they read counts."""

import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from accel.diagnostics.errors import CloudSilent

BY_HAND = "`accel-jobs ls -a` shows whether the job was made; then remove the claim and submit again"


@dataclass(frozen=True)
class Claim:
    """Row of the claim table. It is final with a job id. Without one, it is free after its lease."""

    key: str
    spec_hash: str
    owner: str
    lease_until: float
    job_name: str
    job_id: str | None = None


def claim_of(fields: Mapping[str, Any], where: str) -> Claim:
    """Raise CloudSilent for a damaged row, called `where`: whether its job was created is unknown."""
    wrong = [name for name in ("key", "spec_hash", "owner", "job_name") if not isinstance(fields.get(name), str)]
    wrong += [] if isinstance(fields.get("lease_until"), int | float) else ["lease_until"]
    wrong += [] if isinstance(fields.get("job_id"), str | None) else ["job_id"]
    if wrong:
        raise CloudSilent(f"cannot read {where}: {', '.join(wrong)} is missing or no such value", BY_HAND)
    return Claim(**{field.name: fields[field.name] for field in dataclasses.fields(Claim) if field.name in fields})


class Claims(Protocol):
    """Store of claims."""

    shared: bool
    """Whether all clients of this target see the same claims."""

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Keep out other users of the key on this machine, if the store does so."""
        ...

    def read(self, key: str) -> Claim | None:
        """Read the row as it is now, never an older version."""
        ...

    def now(self) -> float:
        """Return the time of the clock that leases are written in, in Unix seconds at the last read."""
        ...

    def put(self, claim: Claim) -> None:
        """Create the row if there is none."""
        ...

    def take_over(self, seen: Claim, claim: Claim) -> None:
        """Replace the row if it is still `seen` and has no job."""
        ...

    def finish(self, claim: Claim, job_id: str) -> None:
        """Write the job's id if the row belongs to the claim's owner and has none."""
        ...

    def forget(self, claim: Claim) -> None:
        """Remove the row if it belongs to the claim's owner and has no job."""
        ...

    def end_lease(self, claim: Claim) -> None:
        """Let the next client take over the row at once, if it belongs to the claim's owner and has no job."""
        ...
