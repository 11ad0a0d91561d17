"""Prints docs/explain-vms.md."""

import sys

from ...causes import table
from .table import CAUSES

_HEAD = """\
# Why a job on TPU VMs or GPU VMs waits or failed

```sh not-run
accel-jobs explain REF            # one reason, what shows it, the next step
accel-jobs explain REF -o json    # {"ref", "cause", "reason", "evidence", "next_step", "not_read"}
```

It reads only, and names a cause only where what it read shows it; otherwise it says `unknown` and what it looked at.
Facts are read as they are needed: the job's record in the bucket, its machines (the queued resource and its nodes, the
instance or the group), what each host left in the bucket, then health, symptoms, maintenance, operations of the zone
(which Google keeps for some weeks), the serial port of a machine that never spoke, and of a failed job the end of its
log. What may not be read is listed as such, and says nothing. Of several hosts the first that failed by itself counts.

No service of Google's moves such a job on: an attempt that is lost is followed by the next when a client looks, with
`wait`, `submit --wait`, `logs -f` or `tend`. `explain` changes nothing, and says where that is what is missing.

`cause` is one of these. The words of Google and of docker are among the evidence.

This page is written by `python -m jobs.backends.vm.explain > docs/explain-vms.md`.

"""


def page() -> str:
    """The page, as Markdown."""
    return _HEAD + table(CAUSES)


if __name__ == "__main__":
    sys.stdout.write(page())
