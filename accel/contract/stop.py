"""The stop of a stack whose budget is crossed: one document next to its claims, which clients read before they submit.
In DynamoDB it is a row of the claim table, in Firestore a document of the same collection, under a key that cannot be a
submission key, since those are hashes. If it is absent or has no STOPPED, the stack accepts jobs."""

TABLE_KEY = "submission_key"
"""Partition key of the claim table (claims.KEY), repeated here so that this file can stand alone in an archive."""
KEY = "accel-budget-stop"
"""Partition key of the row, or id of the document."""
KEYS = "accel-*"
"""Pattern of the keys that are not submission keys, which policies protect from submitters."""
STOPPED = "stopped"
"""A string: the reason, in one line. If absent, the stack is not stopped."""
STATE = "state"
"""A string: accel.budget.state as JSON, for the function and `stacks budget` only."""
VERSION = "version"
"""A number, increased with every save. A save requires that nobody else has saved."""
