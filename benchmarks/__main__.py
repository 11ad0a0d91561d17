"""Runs every benchmark, or those named: a line for each ratio. Ends with 1 where a stated limit is broken, and with 2
where something could not be measured."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from . import (
    bulk,
    catalog,
    commands,
    deadline,
    gke,
    google_jobs,
    gpus,
    ledger,
    market,
    policy,
    preview,
    program,
    report,
    runtime,
    up,
    vms,
    watch,
)
from .measure import Failed

# `up` first: the commands submit to the targets that it exports.
BENCHMARKS = {
    "up": up,
    "preview": preview,
    "policy": policy,
    "report": report,
    "commands": commands,
    "catalog": catalog,
    "market": market,
    "ledger": ledger,
    "program": program,
    "bulk": bulk,
    "gke": gke,
    "vms": vms,
    "watch": watch,
    "google_jobs": google_jobs,
    "runtime": runtime,
    "gpus": gpus,
    "deadline": deadline,
}


def main() -> int:
    """Run them on the sandbox that the environment points to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all without one")
    names: list[str] = parser.parse_args().names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if not os.environ.get("PULUMI_BACKEND_URL", "").startswith("file://"):
        sys.stderr.write("error: the sandbox's variables are not set\nhint: make bench\n")
        return 2
    code = 0
    for name in names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            try:
                for line in BENCHMARKS[name].measure(Path(scratch)):
                    print(line, flush=True)
                    code = max(code, int(line.broken))
            except Failed as failure:
                sys.stderr.write(f"error: {name}: {failure}\n")
                code = 2
        sys.stderr.write(f"{name} took {time.monotonic() - started:.0f} s\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
