"""The claim on a submission key: who may submit it, and which job came of it.

A write happens only while its condition holds, and says nothing of whether it did: boto3 may send it twice,
and a proxy may answer for DynamoDB. Whoever writes reads again; what is read is the truth.
"""

import json
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from accel.contract import claims as columns

from ... import folders
from .clients import Client
from .errors import asking

REMEMBERED_S = columns.REMEMBERED_DAYS * 86_400


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


class TableClaims:
    """Claims in the stack's DynamoDB table."""

    shared = True

    def __init__(self, dynamodb: Client, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = time.time()

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Nothing: the row itself keeps others out."""
        return nullcontext()

    def now(self) -> float:
        """DynamoDB's own time: the clocks of two machines that submit may be minutes apart."""
        return self._clock

    def read(self, key: str) -> Claim | None:
        """One strongly consistent GetItem."""
        with self._asking("GetItem"):
            answer = self._dynamodb.get_item(TableName=self._table, Key=_key(key), ConsistentRead=True)
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        self._clock = parsedate_to_datetime(date).timestamp() if date else time.time()
        item = answer.get("Item")
        return _of_item(item) if item else None

    def put(self, claim: Claim) -> None:
        """PutItem on the condition that the key is new."""
        names = {"#key": columns.KEY}
        self._write("put_item", Item=self._item(claim), **_if("attribute_not_exists(#key)", names))

    def take_over(self, seen: Claim, claim: Claim) -> None:
        """PutItem on the condition that owner and lease are those seen."""
        names = {"#owner": columns.OWNER, "#lease": columns.LEASE_UNTIL, "#job": columns.JOB_ID}
        values = {":owner": {"S": seen.owner}, ":lease": _number(seen.lease_until)}
        condition = "#owner = :owner AND #lease = :lease AND attribute_not_exists(#job)"
        self._write("put_item", Item=self._item(claim), **_if(condition, names, values))

    def finish(self, claim: Claim, job_id: str) -> None:
        """UpdateItem of the job's id."""
        self._update(claim, "SET #job = :job", {}, {":job": {"S": job_id}})

    def end_lease(self, claim: Claim) -> None:
        """UpdateItem of the lease."""
        ended = {":ended": _number(self._clock - 1)}
        self._update(claim, "SET #lease = :ended", {"#lease": columns.LEASE_UNTIL}, ended)

    def forget(self, claim: Claim) -> None:
        """DeleteItem."""
        self._write("delete_item", Key=_key(claim.key), **_if_owned(claim, {}, {}))

    def _update(self, claim: Claim, change: str, names: Mapping[str, str], values: Mapping[str, Any]) -> None:
        condition = _if_owned(claim, names, values)
        self._write("update_item", Key=_key(claim.key), UpdateExpression=change, **condition)

    def _write(self, operation: str, **arguments: Any) -> None:
        with self._asking(operation):
            try:
                getattr(self._dynamodb, operation)(TableName=self._table, **arguments)
            except self._dynamodb.exceptions.ConditionalCheckFailedException:
                return

    def _asking(self, operation: str) -> AbstractContextManager[None]:
        return asking(f"claim table {self._table}: {operation}")

    def _item(self, claim: Claim) -> dict[str, Any]:
        return {
            **_key(claim.key),
            columns.SPEC_HASH: {"S": claim.spec_hash},
            columns.OWNER: {"S": claim.owner},
            columns.LEASE_UNTIL: _number(claim.lease_until),
            columns.JOB_NAME: {"S": claim.job_name},
            columns.EXPIRES: _number(self._clock + REMEMBERED_S),
        }


class FileClaims:
    """Claims of one machine, for targets without a table, under $XDG_STATE_HOME/accel/claims.

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
        claim = Claim(**json.loads(path.read_text()))
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


def _key(key: str) -> dict[str, Any]:
    return {columns.KEY: {"S": key}}


def _number(value: float) -> dict[str, str]:
    return {"N": str(int(value))}


def _of_item(item: Mapping[str, Any]) -> Claim:
    job_id = item.get(columns.JOB_ID)
    return Claim(
        key=item[columns.KEY]["S"],
        spec_hash=item[columns.SPEC_HASH]["S"],
        owner=item[columns.OWNER]["S"],
        lease_until=float(item[columns.LEASE_UNTIL]["N"]),
        job_name=item[columns.JOB_NAME]["S"],
        job_id=job_id["S"] if job_id else None,
    )


def _if(condition: str, names: Mapping[str, str], values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    expression: dict[str, Any] = {"ConditionExpression": condition, "ExpressionAttributeNames": dict(names)}
    return expression | ({"ExpressionAttributeValues": dict(values)} if values else {})


def _if_owned(claim: Claim, names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    return _if(
        "#owner = :owner AND attribute_not_exists(#job)",
        {"#owner": columns.OWNER, "#job": columns.JOB_ID, **names},
        {":owner": {"S": claim.owner}, **values},
    )
