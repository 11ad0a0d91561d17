"""Prints docs/explain.md."""

import sys

from ...causes import table
from .table import CAUSES

_HEAD = """\
# Why a job waits or failed

```sh
accel-jobs explain REF            # one reason, what shows it, the next step
accel-jobs explain REF -o json    # {"ref", "cause", "reason", "evidence", "next_step", "not_read"}
```

It reads only, and names a cause only where what it read shows it; otherwise it says `unknown` and what it looked at.
Facts are read as they are needed, cheapest first: the job, its queue and environments, the front of the queue, then
launches (Auto Scaling), instances (EC2) and whether they joined (ECS), and only for an instance that did not join its
role (IAM) and network (EC2). Of a failed job the end of its log. What may not be read is listed as such, with the
permission's name, and says nothing. Of an array one task is explained: the first that failed, or waits.

A queue that is DISABLED takes no new jobs and goes on with those that it has: no job waits because of it.

The exit code is 0 whatever the cause; 3 without credentials, 4 or 9 where the job itself cannot be read.

`cause` is one of these. AWS's own words, where it has any, are among the evidence.

This page is written by `python -m jobs.backends.aws_batch.explain > docs/explain.md`.

"""


def page() -> str:
    """The page, as Markdown."""
    return _HEAD + table(CAUSES)


if __name__ == "__main__":
    sys.stdout.write(page())
