"""What must be so in a store for a claim to be written: its owner and lease as the claim has them, and no job."""

from collections.abc import Sequence
from typing import Any

from accel.clouds.conditional_store import Fields, Record
from accel.contract import claims as columns
from jobs.backends.claims.claim import Claim
from jobs.backends.claims.store import StoreClaims

MINE = Claim(key="k", spec_hash="h", owner="me", lease_until=7, job_name="a")
THEIRS = {columns.KEY: "k", columns.SPEC_HASH: "h", columns.OWNER: "they", columns.LEASE_UNTIL: 99,
          columns.JOB_NAME: "a", columns.JOB_ID: "their-job"}  # fmt: skip


class Store:
    """Keeps what each write was to be conditioned on."""

    def __init__(self) -> None:
        self.conditions: list[dict[str, Any]] = []

    def now(self) -> float:
        return 0.0

    def read(self, key: str) -> Record[Fields]:
        return Record(THEIRS, "version")

    def _write(self, key: str, seen: Record[Fields], *rest: Any, same: Sequence[str] = ()) -> None:
        self.conditions.append({name: seen.value.get(name) for name in same} | {"version": seen.version})

    create = replace = update = delete = _write


def test_a_row_that_another_has_taken_since_is_not_written() -> None:
    store = Store()
    claims = StoreClaims(store)
    claims.read("k")
    claims.finish(MINE, "my-job")
    claims.end_lease(MINE)
    claims.forget(MINE)
    owned = {columns.OWNER: "me", columns.JOB_ID: None, "version": "version"}
    assert store.conditions == [owned] * 3
    claims.take_over(MINE, MINE)
    assert store.conditions[3:] == [owned | {columns.LEASE_UNTIL: 7}]
