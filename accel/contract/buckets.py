"""Layout and write access of the bucket that a stack provides for jobs.

Names that begin with `accel-` belong to the stack and its clients. The jobs' own account may write only below JOBS,
except for code and RECORDS: nothing that a job can write determines where credentials go or what is created.
"""

RESERVED = "accel-"
"""Prefix of names that jobs may not write."""
JOBS = "accel-jobs"
"""Folder of the jobs' records, results and outputs. The bucket deletes them after a time."""
TARGETS = "accel-targets"
"""Folder with a file for each target."""
QUEUES = "accel-queues"
"""Folder of declared TPUs, which are requested until they exist: a <key>.json for each, and the record of the result,
<name>/record.json. No lifecycle rule deletes them."""
CODE = f"{JOBS}/code"
"""Folder of uploaded code, which the bucket deletes after a time as well."""
RECORD, DEADLINE, ON_DEMAND = RECORDS = ("record.json", "deadline.json", "on-demand.json")
"""Files in a job's folder that clients rely on: the job on machines of its own, its deadline, and its move to on
demand."""
VARIABLE = "BUCKET"
"""Environment variable of the scheduled function that moves jobs on: the bucket of their records."""
UPLOAD_DAYS = 7
"""Days after which a bucket deletes the parts of incomplete uploads, which no listing shows but which are billed.
Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpu-abort-incomplete-mpu-lifecycle-config.html,
https://docs.cloud.google.com/storage/docs/lifecycle#abort-mpu"""
