"""Prints docs/explain-gke.md."""

import sys

from ...causes import table
from .table import CAUSES

_HEAD = """\
# Why a job on GKE waits or failed

```sh not-run
accel-jobs explain REF            # one reason, what shows it, the next step
accel-jobs explain REF -o json    # {"ref", "cause", "reason", "evidence", "next_step", "not_read"}
```

It reads only, and names a cause only where what it read shows it; otherwise it says `unknown` and what it looked at.
Facts are read as they are needed: the job, its pods and its Workload in Kueue, then the pod's events (which Kubernetes
keeps for an hour) and the nodes, and of a failed job the end of its log. What may not be read is listed as such, and
says nothing. Of several tasks or nodes one is explained: the last that failed, or the first that waits.

`cause` is one of these. The cluster's own words are among the evidence.

This page is written by `python -m jobs.backends.gke.explain > docs/explain-gke.md`.

"""


def page() -> str:
    """The page, as Markdown."""
    return _HEAD + table(CAUSES)


if __name__ == "__main__":
    sys.stdout.write(page())
