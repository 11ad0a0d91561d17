"""What is where in the bucket of a ground of jobs, and who may write it.

Whatever begins with `accel-` is the stack's and its clients'. The jobs' own account may write there only what lies in
JOBS, and of that neither code nor RECORDS: nothing that a job can write decides where credentials go or what is made.
"""

RESERVED = "accel-"
"""What names begin with that jobs leave alone."""
JOBS = "accel-jobs"
"""Folder of what jobs keep: records, results, outputs. A ground's bucket forgets it after a time."""
TARGETS = "accel-targets"
"""Folder with a file for each target."""
QUEUES = "accel-queues"
"""Folder of the TPUs that a stack declares and that are asked for until they are there: <key>.json each, and the record
of what came of it, <name>/record.json. No lifecycle rule forgets them."""
CODE = f"{JOBS}/code"
"""Folder of the code that jobs were sent with; likewise forgotten."""
RECORD, DEADLINE, ON_DEMAND = RECORDS = ("record.json", "deadline.json", "on-demand.json")
"""Files of a job's folder that clients go by: the job on machines of its own, and that it was sent with a deadline and
was moved."""
VARIABLE = "BUCKET"
"""Of the scheduled function that moves jobs on: the bucket of their records."""
UPLOAD_DAYS = 7
"""Days after which a bucket drops the parts of an upload that was never completed: no listing shows them, and they are
paid for. Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpu-abort-incomplete-mpu-lifecycle-config.html,
https://docs.cloud.google.com/storage/docs/lifecycle#abort-mpu"""
