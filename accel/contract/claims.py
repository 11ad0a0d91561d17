"""The claim table: one row a submission key, so that one key makes one job, for two clients at once too.

AWS Batch's SubmitJob takes no idempotency token (https://github.com/aws/containers-roadmap/issues/2798), so the stack
owns this table and every client puts a row conditionally before it submits.
"""

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
"""Unix seconds, the table's time-to-live attribute: a key is remembered this long."""
REMEMBERED_DAYS = 30
