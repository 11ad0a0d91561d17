"""`make soak`: every test with the full counts, in parts that can run side by side, and one table of them all.

    python -m tests.soak [--at-once N] [PART...]

What a part came to is kept in .pytest_cache, by commit: a soak that was cut off goes on with the parts that it lacks,
and those that failed. Of files that were changed since the commit nothing is kept.
"""

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / ".pytest_cache" / "soak"
PARTS: Mapping[str, tuple[str, ...]] = {
    "again": ("tests/test_make_again.py", "tests/e2e/test_first_hour.py"),
    "kills": ("tests/engine/test_recover_kills.py",),
    "recover": (
        "tests/engine/test_recover.py",
        "tests/engine/test_recover_again.py",
        "tests/engine/test_recover_google.py",
    ),
    "submits": (
        "tests/jobs/backends/test_aws_batch_faults.py",
        "tests/jobs/backends/test_gke_submit.py",
        "tests/jobs/backends/test_google_batch_submit.py",
        "tests/jobs/backends/test_local_crashes.py",
        "tests/jobs/backends/test_vertex_submit.py",
        "tests/jobs/backends/test_vms_faults.py",
        "tests/jobs/backends/test_vms_killed.py",
    ),
    "budgets": ("tests/components/test_budget_sequences.py",),
    "engine": ("tests/engine",),
    "e2e": ("tests/e2e",),
    "jobs": ("tests/jobs",),
    "stacks": ("tests/stacks",),
    "sandbox": ("tests/sandbox",),
    "rest": ("tests",),
}
"""Files and folders of each part; a file belongs to the first that names it or a folder above it."""


@dataclass(frozen=True)
class Result:
    """What a part came to."""

    passed: int
    failed: int
    skipped: int
    seconds: float
    failures: tuple[str, ...]


def files_of(part: str) -> list[str]:
    """Return the test files of a part."""
    return [path for path, owner in owners().items() if owner == part]


def owners() -> dict[str, str]:
    """Return the part of each test file."""
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    return {path: next(part for part, places in PARTS.items() if _is_of(path, places)) for path in paths}


def _is_of(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def read(path: Path) -> Result | None:
    """Return what pytest wrote; None where it wrote nothing whole."""
    try:
        suite = ElementTree.parse(path).getroot().find("testsuite")  # noqa: S314 - pytest wrote it
    except (OSError, ElementTree.ParseError):
        return None
    if suite is None:
        return None
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    wrong = [case for case in suite.iter("testcase") if {"failure", "error"} & {child.tag for child in case}]
    failed = count["failures"] + count["errors"]
    return Result(
        count["tests"] - failed - count["skipped"],
        failed,
        count["skipped"],
        float(suite.get("time", 0)),
        tuple(f"{case.get('classname')}::{case.get('name')}" for case in wrong),
    )


def run(part: str, path: Path) -> Result:
    """Run a part, its output beside its result."""
    before = read(path)
    if before and before.passed and not before.failed:
        print(f"{part}: passed before", flush=True)
        return before
    path.unlink(missing_ok=True)
    print(f"{part}: {len(files_of(part))} files, output in {path.with_suffix('.txt').relative_to(ROOT)}", flush=True)
    started = time.monotonic()
    with path.with_suffix(".txt").open("w") as output:
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "3", f"--junit-xml={path}", *files_of(part)],
            cwd=ROOT,
            env={**os.environ, "ACCEL_SOAK": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return read(path) or Result(0, 1, 0, time.monotonic() - started, ("pytest did not come to its end",))


def table(results: Mapping[str, Result]) -> list[str]:
    """Return a line for each part, the sum, and each failure."""
    rows = [
        (part, str(each.passed), str(each.failed), str(each.skipped), f"{each.seconds:.0f} s")
        for part, each in results.items()
    ]
    total = [
        sum(getattr(each, name) for each in results.values()) for name in ("passed", "failed", "skipped", "seconds")
    ]
    rows = [("PART", "PASSED", "FAILED", "SKIPPED", "TIME"), *rows, ("all", *map(str, total[:3]), f"{total[3]:.0f} s")]
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    lines = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return [*lines, *(f"{part}: {failure}" for part, each in results.items() for failure in each.failures)]


def main() -> int:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all of them without")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="so many parts side by side")
    chosen = parser.parse_args()
    if unknown := [part for part in chosen.parts if part not in PARTS]:
        parser.error(f"{unknown[0]}: no part; one of {', '.join(PARTS)}")
    describe = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=-changed"]
    state = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    folder = RESULTS / state
    folder.mkdir(parents=True, exist_ok=True)
    if state.endswith("-changed") or state == "unknown":
        for old in folder.glob("*.xml"):
            old.unlink()
    names = chosen.parts or list(PARTS)
    with ThreadPoolExecutor(chosen.at_once) as pool:
        results = dict(zip(names, pool.map(lambda part: run(part, folder / f"{part}.xml"), names), strict=True))
    print("\n".join(table(results)))
    return 1 if any(each.failed for each in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
