"""Prints docs/explain-vertex.md."""

import sys

from ...causes import table
from .table import CAUSES

_HEAD = """\
# Why a custom job of Vertex AI waits or failed

```sh not-run
accel-jobs explain REF            # one reason, what shows it, the next step
accel-jobs explain REF -o json    # {"ref", "cause", "reason", "evidence", "next_step", "not_read"}
```

It reads only, and names a cause only where what it read shows it; otherwise it says `unknown` and what it looked at.
Facts are read as they are needed: the custom job with its error, what Vertex itself said of it, for a job that is
queued the limits of Vertex's own quotas and what the region's other jobs have of them, and of a job that failed the end
of the log of the replica that the error names. What may not be read is listed as such, and says nothing.

Vertex AI counts custom training in quotas of its own, `custom_model_training_*` of aiplatform.googleapis.com by region;
those of Spot and flex-start have `preemptible` in their names. Quotas of Compute Engine do not hold its machines.

`cause` is one of these. Vertex's words are among the evidence.

This page is written by `python -m jobs.backends.vertex.explain > docs/explain-vertex.md`.

"""


def page() -> str:
    """The page, as Markdown."""
    return _HEAD + table(CAUSES)


if __name__ == "__main__":
    sys.stdout.write(page())
