"""Claims in the stack's Firestore database: a document for each key.

A condition that does not hold is answered with 409 ALREADY_EXISTS, 404 NOT_FOUND or 400 FAILED_PRECONDITION. Sources:
https://docs.cloud.google.com/firestore/docs/reference/rest/v1/projects.databases.documents,
https://github.com/firebase/firebase-admin-node/issues/2587, https://github.com/floci-io/floci-gcp/issues/113
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, Conflict, Garbled, Unmet, mapping, part
from accel.contract import claims as columns
from accel.diagnostics.errors import NotFound

from .claim import Claim, claim_of

REMEMBERED_S = columns.REMEMBERED_DAYS * 86_400

Values = dict[str, dict[str, Any]]

_UNMET = (Unmet, Conflict, NotFound)
"""The document is not as it was read."""


class FirestoreClaims:
    """`database`: projects/<p>/databases/<d>. For one submit: a condition is that the document is as it was read."""

    shared = True

    def __init__(self, google: Google, database: str) -> None:
        self._google = google
        self._collection = f"v1/{database}/documents/{columns.COLLECTION}"
        self._clock = google.clock
        self._version: str | None = None
        """updateTime of the document at the last read; None: there was none."""

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Nothing: the document itself keeps others out."""
        return nullcontext()

    def now(self) -> float:
        """Google's own time: the clocks of two machines that submit may be minutes apart."""
        return self._clock

    def read(self, key: str) -> Claim | None:
        """One GET, strongly consistent. A database that is not there is taken for one without the document; the write
        that comes next tells of it. Source:
        https://firebase.google.com/docs/firestore/reference/rest/latest/projects.databases.documents/get"""
        try:
            document = self._google.get("firestore", self._path(key))
        except NotFound:
            document = None
        self._clock = self._google.clock
        if document is None:
            self._version = None
            return None
        fields, version = mapping(document.get("fields")), document.get("updateTime")
        if fields is None or not isinstance(version, str):
            raise Garbled(f"claim {key[:12]}: the answer is no document", REACH)
        self._version = version
        return _of_fields(fields, f"claim {key} of {self._collection}")

    def put(self, claim: Claim) -> None:
        """On the condition that the key is new."""
        document, query = {"fields": self._fields(claim)}, {"documentId": claim.key}
        with suppress(Conflict):
            self._google.post("firestore", self._collection, document, repeat=True, **query)

    def take_over(self, seen: Claim, claim: Claim) -> None:
        """Replaces the whole document."""
        self._change(claim.key, self._fields(claim))

    def finish(self, claim: Claim, job_id: str) -> None:
        """Adds the job's id."""
        self._change(claim.key, {columns.JOB_ID: {"stringValue": job_id}}, columns.JOB_ID)

    def end_lease(self, claim: Claim) -> None:
        """Puts the lease's end into the past."""
        self._change(claim.key, {columns.LEASE_UNTIL: _number(self._clock - 1)}, columns.LEASE_UNTIL)

    def forget(self, claim: Claim) -> None:
        """Deletes the document."""
        with suppress(*_UNMET):
            self._google.delete("firestore", self._path(claim.key), **self._condition)

    def _change(self, key: str, fields: Values, only: str | None = None) -> None:
        """Of one field, or of all."""
        query = {**self._condition, "updateMask.fieldPaths": only}
        with suppress(*_UNMET):
            self._google.patch("firestore", self._path(key), {"fields": fields}, **query)

    @property
    def _condition(self) -> dict[str, Any]:
        return {"currentDocument.updateTime": self._version}

    def _path(self, key: str) -> str:
        return f"{self._collection}/{part(key)}"

    def _fields(self, claim: Claim) -> Values:
        expires = datetime.fromtimestamp(self._clock + REMEMBERED_S, UTC)
        return {
            columns.KEY: {"stringValue": claim.key},
            columns.SPEC_HASH: {"stringValue": claim.spec_hash},
            columns.OWNER: {"stringValue": claim.owner},
            columns.LEASE_UNTIL: _number(claim.lease_until),
            columns.JOB_NAME: {"stringValue": claim.job_name},
            columns.EXPIRES: {"timestampValue": f"{expires:%Y-%m-%dT%H:%M:%SZ}"},
        }


def _number(value: float) -> dict[str, Any]:
    return {"integerValue": str(int(value))}


def _of_fields(fields: Mapping[str, Any], where: str) -> Claim:
    values = {name: mapping(fields.get(column)) or {} for name, column in columns.BY_FIELD.items()}
    lease = str(values["lease_until"].get("integerValue", ""))
    texts = {name: value.get("stringValue", value or None) for name, value in values.items()}
    return claim_of(texts | {"lease_until": float(lease) if lease.isdecimal() else None}, where)
