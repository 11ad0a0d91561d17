"""Claims in a conditional store."""

from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime

from accel.clouds.conditional_store import Fields, FieldStore, Record, WriteConflict
from accel.contract import claims as columns

from .claim import Claim, claim_of

REMEMBERED_S = columns.REMEMBERED_DAYS * 86_400
_FREE = (columns.OWNER, columns.LEASE_UNTIL, columns.JOB_ID)
_OWNED = (columns.OWNER, columns.JOB_ID)
"""Fields that must be unchanged since they were read: an owner, and no job."""


class StoreClaims:
    """Claims of one submission, one record a key. A failed condition is no error here: the next read tells."""

    shared = True

    def __init__(self, store: FieldStore, place: str = "") -> None:
        self._store, self._place = store, place
        self._last: dict[str, Record[Fields]] = {}

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Do nothing: the record itself keeps others out."""
        return nullcontext()

    def now(self) -> float:
        return self._store.now()

    def read(self, key: str) -> Claim | None:
        record = self._store.read(key)
        if record is None:
            self._last.pop(key, None)
            return None
        self._last[key] = record
        return self._claim_of(key, record.value)

    def put(self, claim: Claim) -> None:
        with suppress(WriteConflict):
            self._store.create(claim.key, self._fields(claim))

    def take_over(self, seen: Claim, claim: Claim) -> None:
        with suppress(WriteConflict):
            self._store.replace(claim.key, self._seen(seen), self._fields(claim), same=_FREE)

    def finish(self, claim: Claim, job_id: str) -> None:
        self._update(claim, {columns.JOB_ID: job_id})

    def end_lease(self, claim: Claim) -> None:
        self._update(claim, {columns.LEASE_UNTIL: self.now() - 1})

    def forget(self, claim: Claim) -> None:
        with suppress(WriteConflict):
            self._store.delete(claim.key, self._seen(claim), same=_OWNED)

    def _update(self, claim: Claim, fields: Fields) -> None:
        with suppress(WriteConflict):
            self._store.update(claim.key, self._seen(claim), fields, same=_OWNED)

    def _seen(self, claim: Claim) -> Record[Fields]:
        """Return the expected record: with the claim's owner and lease and without a job, whatever was read."""
        last = self._last[claim.key]
        fields = {name: value for name, value in last.value.items() if name != columns.JOB_ID}
        return Record({**fields, columns.OWNER: claim.owner, columns.LEASE_UNTIL: claim.lease_until}, last.version)

    def _claim_of(self, key: str, fields: Fields) -> Claim:
        values = {name: fields.get(column) for name, column in columns.BY_FIELD.items()}
        return claim_of(values, f"claim {key} {self._place}")

    def _fields(self, claim: Claim) -> Fields:
        return {
            columns.KEY: claim.key,
            columns.SPEC_HASH: claim.spec_hash,
            columns.OWNER: claim.owner,
            columns.LEASE_UNTIL: claim.lease_until,
            columns.JOB_NAME: claim.job_name,
            columns.EXPIRES: datetime.fromtimestamp(self.now() + REMEMBERED_S, UTC),
        }
