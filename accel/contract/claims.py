"""The claim table: one row a submission key, so that one key makes one job, for two clients at once too.

Neither AWS Batch's SubmitJob (https://github.com/aws/containers-roadmap/issues/2798) nor Vertex AI's customJobs.create
(https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/create) takes an
idempotency token, so the stack owns this table, of DynamoDB or of Firestore, and every client puts a row conditionally
before it submits. In Firestore rows are documents whose id is the key.
"""

COLLECTION = "accel-claims"
"""Of Firestore."""
KEY = "submission_key"
"""Partition key, a string: the submission key."""
SPEC_HASH = "spec_hash"
OWNER = "owner"
"""A random id of the client that holds the claim."""
LEASE_UNTIL = "lease_until"
"""Unix seconds, a number. A claim without a job after this time may be taken over."""
JOB_NAME = "job_name"
JOB_ID = "job_id"
"""Set once the job is known to exist."""
EXPIRES = "expires"
"""Time-to-live attribute, Unix seconds in DynamoDB and a timestamp in Firestore: a key is remembered this long."""
BY_FIELD = {
    "key": KEY,
    "spec_hash": SPEC_HASH,
    "owner": OWNER,
    "lease_until": LEASE_UNTIL,
    "job_name": JOB_NAME,
    "job_id": JOB_ID,
}
"""The columns by the names that a client's claim has for them."""
REMEMBERED_DAYS = 30
