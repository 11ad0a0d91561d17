"""The stop of a stack whose budget is crossed: one document beside its claims, which clients read before they submit.

In DynamoDB it is a row of the claim table, in Firestore a document of the same collection; its key is no submission
key, since those are hashes. Absent, or without STOPPED: the stack takes jobs.
"""

TABLE_KEY = "submission_key"
"""The partition key of the claim table (claims.KEY): here too, so that this file can stand alone in an archive."""
KEY = "accel-budget-stop"
"""The row's partition key, the document's id."""
KEYS = "accel-*"
"""A pattern of the keys that are no submission keys, which policies keep from whoever submits."""
STOPPED = "stopped"
"""A string: why, in one line. Absent: nobody has stopped the stack."""
STATE = "state"
"""A string: accel.budget.state as JSON. Of the function and of `stacks budget` alone."""
VERSION = "version"
"""A number, one more with every save: a save is on the condition that nobody else has saved."""
