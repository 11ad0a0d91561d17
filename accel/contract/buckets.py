"""What is where in the bucket of a ground of jobs."""

JOBS = "accel-jobs"
"""Folder of what jobs keep: records, results, outputs. A ground's bucket forgets it after a time."""
TARGETS = "accel-targets"
"""Folder with a file for each target."""
CODE = f"{JOBS}/code"
"""Folder of the code that jobs were sent with; likewise forgotten."""
