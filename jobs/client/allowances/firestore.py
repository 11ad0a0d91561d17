"""A ledger in the stack's Firestore database: documents, which a commit writes all or none.

A precondition compares nothing but the time of a document's last update. So who holds money reads the balance, and
writes it on the condition that nobody has since; what moves a balance back needs no such condition, and increments it.
Sources: Write, Precondition and FieldTransform of https://firestore.googleapis.com/$discovery/rest?version=v1
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from accel.clouds.conditional_store import WriteConflict
from accel.clouds.conditional_store.firestore import encode, find, no_document, refusals, version
from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, entries, mapping, path_segment
from accel.clouds.timeouts import Timing
from accel.contract import allowances as columns
from accel.diagnostics.errors import CloudSilent

from .reservation import Balance, Change, Hold, balance_change, balance_of, parse_hold, serialize_hold

Json = dict[str, Any]

TITLE = "ledger"
"""Of messages."""
_FEW = 10
"""Holds up to which each is read alone."""
_PAGE = 300


class FirestoreLedger:
    """`database`: projects/<p>/databases/<d>."""

    shared = True

    def __init__(self, database: str, timing: Timing | None = None) -> None:
        self._google = Google(timing)
        self._documents = f"{database}/documents"

    def now(self) -> float:
        """Google's own time: the clocks of two machines that submit may be minutes apart."""
        return self._google.clock

    def balance(self, team: str, period: str) -> Balance:
        """One GET, strongly consistent."""
        return self._balance(team, period)[0]

    def read(self, team: str, keys: Sequence[str]) -> dict[str, Hold]:
        """A GET each; of many, those of the team that are asked for."""
        if len(keys) > _FEW:
            wanted = set(keys)
            return {hold.key: hold for hold in self.holds(team) if hold.key in wanted}
        found = (find(self._google, f"v1/{self._hold_name(team, key)}") for key in keys)
        return {hold.key: hold for each in found if each for hold in [_hold(each)]}

    def holds(self, team: str) -> list[Hold]:
        """The list of the team's documents, page by page."""
        path = f"v1/{self._team(team)}/{columns.HOLDS}"
        return [_hold(each) for each in self._google.pages("firestore", path, "documents", pageSize=_PAGE)]

    def add(self, holds: Sequence[Hold], limit: int | None) -> None:
        """On the condition that the balance is as it was read here, and the keys are new."""
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
        """On the condition that the holds are as they were read; the balance is moved whatever it is."""
        writes: list[Json] = []
        if (by := balance_change(changes)) != Balance():
            steps = [
                {"fieldPath": name, "increment": {"integerValue": str(value)}}
                for name, value in ((columns.USED, by.used), (columns.SETTLED, by.settled))
            ]
            # With a mask that names nothing, what is not incremented stays.
            name = self._balance_name(changes[0].seen.team, changes[0].seen.period)
            balance: Json = {"update": {"name": name}, "updateMask": {"fieldPaths": []}}
            writes.append({**balance, "updateTransforms": steps})
        for seen, new in changes:
            same = {"updateTime": seen.version}
            gone = {"delete": self._hold_name(seen.team, seen.key), "currentDocument": same}
            writes.append(gone if new is None else self._put(new, same))
        self._commit(writes)

    def _balance(self, team: str, period: str) -> tuple[Balance, str | None]:
        """And the time of its last update; None where there is none."""
        document = find(self._google, f"v1/{self._balance_name(team, period)}")
        if document is None:
            return Balance(), None
        fields = mapping(document.get("fields")) or {}
        values = [
            int((mapping(fields.get(name)) or {}).get("integerValue", 0)) for name in (columns.USED, columns.SETTLED)
        ]
        return Balance(*values), version(document, TITLE)

    def _commit(self, writes: list[Json]) -> None:
        """May be made twice: at least one of the documents is written on a condition that the first commit ends."""
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
    terms = mapping((mapping(document.get("fields")) or {}).get(columns.TERMS)) or {}
    if "stringValue" not in terms:
        raise no_document(TITLE)
    return parse_hold(str(terms["stringValue"]), version(document, TITLE))
