"""Prints docs/explain-google-batch.md."""

import sys

from ...causes import table
from .table import CAUSES

_HEAD = """\
# Why a job on Google Batch waits or failed

```sh not-run
accel-jobs explain REF            # one reason, what shows it, the next step
accel-jobs explain REF -o json    # {"ref", "cause", "reason", "evidence", "next_step", "not_read"}
```

It reads only, and names a cause only where what it read shows it; otherwise it says `unknown` and what it looked at.
Facts are read as they are needed: the job with its events, the tasks that tell how it goes, and then the end of what
Batch's agent and the decisive task wrote to Cloud Logging. What may not be read is listed as such, and says nothing.

A task's last state counts, not an event of an attempt before: a job whose VM was taken away and that succeeded in the
next attempt has succeeded, whatever exit code (50001) its events keep. Of several tasks or nodes one is explained: the
first that failed for a reason of its own.

`cause` is one of these. The words of Google and of docker are among the evidence.

This page is written by `python -m jobs.backends.google_batch.explain > docs/explain-google-batch.md`.

"""


def page() -> str:
    """The page, as Markdown."""
    return _HEAD + table(CAUSES)


if __name__ == "__main__":
    sys.stdout.write(page())
