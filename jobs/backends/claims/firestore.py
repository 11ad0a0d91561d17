"""Claims in the stack's Firestore database: one document a key."""

from accel.clouds.conditional_store.firestore import Documents
from accel.clouds.google.api import Google
from accel.contract import claims as columns

from .store import StoreClaims


class FirestoreClaims(StoreClaims):
    """Claims in one database, given as projects/<p>/databases/<d>."""

    def __init__(self, google: Google, database: str) -> None:
        store = Documents(google, f"{database}/documents/{columns.COLLECTION}", "claim")
        super().__init__(store, f"of {store.path}")
