"""A ledger in the stack's Firestore database, as documents; a commit writes all of them or none. A precondition can
only compare the time of a document's last update. So a reservation reads the balance, and writes it on the condition
that nobody has done so since. A change that lowers a balance needs no such condition, and increments it. Sources:
Write, Precondition and FieldTransform of https://firestore.googleapis.com/$discovery/rest?version=v1"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from accel.clouds.conditional_store import WriteConflict
from accel.clouds.conditional_store.firestore import encode, find, no_document, refusals, version
from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, path_segment
from accel.clouds.timeouts import Timing
from accel.contract import allowances as columns
from accel.diagnostics.errors import CloudSilent
from accel.json_values import entries, object_at

from .reservation import Balance, Change, Hold, balance_change, balance_of, parse_hold, serialize_hold

Json = dict[str, Any]

TITLE = "ledger"
_FEW = 10
"""Number of reservations up to which each is read alone."""
_PAGE = 300


class FirestoreLedger:
    """Ledger in a Firestore database; `database` is projects/<p>/databases/<d>."""

    shared = True

    def __init__(self, database: str, timing: Timing | None = None) -> None:
        self._google = Google(timing)
        self._documents = f"{database}/documents"

    def now(self) -> float:
        """Return Google's own time: the clocks of two machines that submit may be minutes apart."""
        return self._google.clock

    def balance(self, team: str, period: str) -> Balance:
        return self._balance(team, period)[0]

    def read(self, team: str, keys: Sequence[str]) -> dict[str, Hold]:
        if len(keys) > _FEW:
            wanted = set(keys)
            return {hold.key: hold for hold in self.holds(team) if hold.key in wanted}
        found = (find(self._google, f"v1/{self._hold_name(team, key)}") for key in keys)
        return {hold.key: hold for each in found if each for hold in [_hold(each)]}

    def holds(self, team: str) -> list[Hold]:
        path = f"v1/{self._team(team)}/{columns.HOLDS}"
        return [_hold(each) for each in self._google.pages("firestore", path, "documents", pageSize=_PAGE)]

    def add(self, holds: Sequence[Hold], limit: int | None) -> None:
        first, by = holds[0], balance_of(holds)
        now, version = self._balance(first.team, first.period)
        after = Balance(now.used + by.used, now.settled + by.settled)
        if limit is not None and after.used > limit:
            return
        balance = {
            "update": {"name": self._balance_name(first.team, first.period), "fields": _numbers(after)},
            "currentDocument": {"updateTime": version} if version else {"exists": False},
        }
        self._commit([balance, *(self._put(hold, {"exists": False}) for hold in holds)])

    def change(self, changes: Sequence[Change]) -> None:
        writes: list[Json] = []
        if (by := balance_change(changes)) != Balance():
            steps = [
                {"fieldPath": name, "increment": {"integerValue": str(value)}}
                for name, value in ((columns.USED, by.used), (columns.SETTLED, by.settled))
            ]
            # With an empty mask, fields that are not incremented stay as they are.
            name = self._balance_name(changes[0].seen.team, changes[0].seen.period)
            balance: Json = {"update": {"name": name}, "updateMask": {"fieldPaths": []}}
            writes.append({**balance, "updateTransforms": steps})
        for seen, new in changes:
            same = {"updateTime": seen.version}
            gone = {"delete": self._hold_name(seen.team, seen.key), "currentDocument": same}
            writes.append(gone if new is None else self._put(new, same))
        self._commit(writes)

    def _balance(self, team: str, period: str) -> tuple[Balance, str | None]:
        """Return the balance and the time of its last update; None where it has none."""
        document = find(self._google, f"v1/{self._balance_name(team, period)}")
        if document is None:
            return Balance(), None
        fields = object_at(document, "fields")
        values = [int(object_at(fields, name).get("integerValue", 0)) for name in (columns.USED, columns.SETTLED)]
        return Balance(*values), version(document, TITLE)

    def _commit(self, writes: list[Json]) -> None:
        """Repeat a commit safely: the first one ends the condition of at least one document."""
        path = f"v1/{self._documents}:commit"
        with suppress(WriteConflict), refusals():
            answer = self._google.post("firestore", path, {"writes": writes}, repeat=True)
            if len(entries(answer.get("writeResults"))) != len(writes):
                raise CloudSilent("ledger: commit: the answer is not one of Firestore", REACH)

    def _team(self, team: str) -> str:
        return f"{self._documents}/{columns.TEAMS}/{path_segment(team)}"

    def _balance_name(self, team: str, period: str) -> str:
        return f"{self._team(team)}/{columns.BALANCES}/{path_segment(period)}"

    def _hold_name(self, team: str, key: str) -> str:
        return f"{self._team(team)}/{columns.HOLDS}/{path_segment(key)}"

    def _put(self, hold: Hold, condition: Json) -> Json:
        fields: Json = {columns.TERMS: serialize_hold(hold)}
        if not hold.open:
            fields[columns.EXPIRES] = datetime.fromtimestamp(self.now() + columns.REMEMBERED_DAYS * 86_400, UTC)
        return {
            "update": {"name": self._hold_name(hold.team, hold.key), "fields": encode(fields)},
            "currentDocument": condition,
        }


def _numbers(balance: Balance) -> Json:
    return encode({columns.USED: balance.used, columns.SETTLED: balance.settled})


def _hold(document: Mapping[str, Any]) -> Hold:
    terms = object_at(document, "fields", columns.TERMS)
    if "stringValue" not in terms:
        raise no_document(TITLE)
    return parse_hold(str(terms["stringValue"]), version(document, TITLE))
