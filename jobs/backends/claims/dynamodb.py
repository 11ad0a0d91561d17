"""Claims in the stack's DynamoDB table: one item a key."""

from accel.clouds.aws.clients import Clients
from accel.clouds.conditional_store.dynamodb import Table
from accel.contract import claims as columns

from .store import StoreClaims


class TableClaims(StoreClaims):
    """Claims in one table."""

    def __init__(self, clients: Clients, table: str) -> None:
        store = Table(clients, table, f"claim table {table}", columns.KEY)
        super().__init__(store, f"in table {table}")
