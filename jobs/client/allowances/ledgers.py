"""The ledger that allowances name. SDKs are imported inside the case.

An address is its place in a word, for the history of this machine: `dynamodb:<region>/<table>`, `firestore:<database>`,
`file:<stack>`.
"""

from accel.contract.allowances import Allowances, DynamoDbLedger, FirestoreLedger
from accel.diagnostics.errors import BadInput

from .reservation import Ledger


def address(allowances: Allowances) -> str:
    """Where the holds of allowances are; without a ledger of the stack, in a file of this machine."""
    match allowances.ledger:
        case DynamoDbLedger() as table:
            return f"{table.kind}:{table.region}/{table.table}"
        case FirestoreLedger() as store:
            return f"{store.kind}:{store.database}"
        case None:
            return f"file:{allowances.stack}"


def ledger_at(text: str) -> Ledger:
    """The ledger of an address. Raises BadInput for what is none."""
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
            from .files import FileLedger

            return FileLedger(place)
        case _:
            raise BadInput(f"ledger {text!r}: unknown kind; known: dynamodb, firestore, file")
