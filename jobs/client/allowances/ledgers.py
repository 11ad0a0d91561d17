"""Ledgers by the address that allowances name, and the ledger of this machine. SDKs are imported only where needed. An
address is a ledger's place in one word, for the history of this machine: `dynamodb:<region>/<table>`,
`firestore:<database>`, `file:<stack>`."""

import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any
from uuid import uuid4

from accel import folders
from accel.contract.allowances import REMEMBERED_DAYS, Allowances, DynamoDbLedger, FirestoreLedger
from accel.diagnostics.errors import BadInput, JobsError

from .reservation import Balance, Change, Hold, Ledger, balance_change, balance_of, parse_hold, serialize_hold


def address(allowances: Allowances) -> str:
    match allowances.ledger:
        case DynamoDbLedger() as table:
            return f"{table.kind}:{table.region}/{table.table}"
        case FirestoreLedger() as store:
            return f"{store.kind}:{store.database}"
        case None:
            return f"file:{allowances.stack}"


def ledger_at(text: str) -> Ledger:
    """Raise BadInput for an unknown kind."""
    kind, _, place = text.partition(":")
    match kind:
        case "dynamodb":
            from .dynamodb import TableLedger

            region, _, table = place.partition("/")
            return TableLedger(region, table)
        case "firestore":
            from .firestore import FirestoreLedger as Documents

            return Documents(place)
        case "file":
            return FileLedger(place)
        case _:
            raise BadInput(f"ledger {text!r}: unknown kind; known: dynamodb, firestore, file")


WAIT_S = 20
"""Time to wait for another process that writes."""
_TABLES = """
CREATE TABLE IF NOT EXISTS balances (team TEXT, period TEXT, used INTEGER, settled INTEGER, PRIMARY KEY (team, period));
CREATE TABLE IF NOT EXISTS holds (team TEXT, key TEXT, terms TEXT, version TEXT, expires REAL, PRIMARY KEY (team, key));
CREATE INDEX IF NOT EXISTS by_end ON holds (expires);
"""


class FileLedger:
    """Ledger for targets whose stack has none: one SQLite file per scope, under $XDG_STATE_HOME/accel/spend."""

    shared = False

    def __init__(self, scope: str) -> None:
        self._path = folders.state() / "spend" / f"{sha256(scope.encode()).hexdigest()[:16]}.sqlite"

    def now(self) -> float:
        return time.time()

    def balance(self, team: str, period: str) -> Balance:
        with self._opened() as book:
            return _balance(book, team, period)

    def read(self, team: str, keys: Sequence[str]) -> dict[str, Hold]:
        with self._opened() as book:
            return {key: hold for key in keys if (hold := _read(book, team, key))}

    def holds(self, team: str) -> list[Hold]:
        with self._opened() as book:
            rows = book.execute("SELECT terms, version FROM holds WHERE team = ?", (team,))
            return [parse_hold(terms, version) for terms, version in rows]

    def add(self, holds: Sequence[Hold], limit: int | None) -> None:
        first, sum_of = holds[0], balance_of(holds)
        with self._opened(write=True) as book:
            book.execute("DELETE FROM holds WHERE expires < ?", (time.time(),))
            there = any(_read(book, hold.team, hold.key) for hold in holds)
            used = _balance(book, first.team, first.period).used
            if there or (limit is not None and used + sum_of.used > limit):
                return
            _move(book, first, sum_of)
            for hold in holds:
                _put(book, hold)

    def change(self, changes: Sequence[Change]) -> None:
        with self._opened(write=True) as book:
            if any(_read(book, seen.team, seen.key) != seen for seen, _ in changes):
                return
            _move(book, changes[0].seen, balance_change(changes))
            for seen, new in changes:
                if new is None:
                    book.execute("DELETE FROM holds WHERE team = ? AND key = ?", (seen.team, seen.key))
                else:
                    _put(book, new)

    @contextmanager
    def _opened(self, *, write: bool = False) -> Generator[sqlite3.Connection]:
        """Open a new connection for each call: several threads and a fork may use the ledger."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with closing(sqlite3.connect(self._path, timeout=WAIT_S, isolation_level=None)) as book:
                book.executescript(_TABLES)
                # Without IMMEDIATE a reader that begins to write is refused while another writes.
                book.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield book
                book.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise JobsError(f"the ledger {self._path} cannot be used: {error}", "nothing was changed") from error


def _balance(book: sqlite3.Connection, team: str, period: str) -> Balance:
    found: Any = book.execute("SELECT used, settled FROM balances WHERE team = ? AND period = ?", (team, period))
    row = found.fetchone()
    return Balance(*row) if row else Balance()


def _read(book: sqlite3.Connection, team: str, key: str) -> Hold | None:
    found: Any = book.execute("SELECT terms, version FROM holds WHERE team = ? AND key = ?", (team, key))
    row = found.fetchone()
    return parse_hold(*row) if row else None


def _move(book: sqlite3.Connection, of: Hold, by: Balance) -> None:
    if by == Balance():
        return
    book.execute(
        "INSERT INTO balances VALUES (?, ?, ?, ?) ON CONFLICT (team, period) "
        "DO UPDATE SET used = used + excluded.used, settled = settled + excluded.settled",
        (of.team, of.period, by.used, by.settled),
    )


def _put(book: sqlite3.Connection, hold: Hold) -> None:
    expires = None if hold.open else time.time() + REMEMBERED_DAYS * 86_400
    row = (hold.team, hold.key, serialize_hold(hold), uuid4().hex, expires)
    book.execute("INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?, ?)", row)
