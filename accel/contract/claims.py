"""The claim table: one row per submission key, so that one key makes one job, even with two concurrent clients.

Neither AWS Batch's SubmitJob (https://github.com/aws/containers-roadmap/issues/2798) nor Vertex AI's customJobs.create
(https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/create) accepts an
idempotency token. The stack therefore owns this table, in DynamoDB or Firestore, and every client puts a row
conditionally before it submits. In Firestore rows are documents whose id is the key.
"""

COLLECTION = "accel-claims"
"""Firestore collection of the claims."""
KEY = "submission_key"
"""Partition key, a string: the submission key."""
SPEC_HASH = "spec_hash"
OWNER = "owner"
"""Random id of the client that owns the claim."""
LEASE_UNTIL = "lease_until"
"""Unix seconds, a number. Another client may take over a claim that has no job after this time."""
JOB_NAME = "job_name"
JOB_ID = "job_id"
"""Id of the job, set once it is known to exist."""
EXPIRES = "expires"
"""Time-to-live attribute, Unix seconds in DynamoDB and a timestamp in Firestore: how long a key is remembered."""
BY_FIELD = {
    "key": KEY,
    "spec_hash": SPEC_HASH,
    "owner": OWNER,
    "lease_until": LEASE_UNTIL,
    "job_name": JOB_NAME,
    "job_id": JOB_ID,
}
"""Columns by the field names of a client's claim."""
REMEMBERED_DAYS = 30
