"""Labels of machines and other resources of Google that jobs and declared queues make: by them others tell whose they
are."""

MAKER, JOBS, QUEUES = "accel-maker", "jobs", "queues"
"""Label of everything that jobs make, and that a stack's queues make, and its values."""
JOB = "accel-job"
"""Label: the job's name. Metadata of a job's machines: where its record is."""
TARGET = "accel-target"
"""Label: the target's name, as far as a label can hold it."""
QUEUE = "accel-queue"
"""Label: the author's key of a declared queue. Metadata of its nodes: where its record is."""
EXPIRES = "accel-expires"
"""Label: seconds since 1970, after which nobody needs the machine any more."""
