"""How long the catalogue takes to answer its first questions, and a decision over targets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from accel.catalog import accelerator, interruption, machine, machines_for, price, zones
from accel.contract.targets import AwsBatchEnvironment
from jobs.client.offers import decide
from jobs.client.targets import Entry
from jobs.model.job import Job
from tests.jobs.backends.aws_batch_target import make_target

from .measure import PYTHON, ROOT, Line, medians_s

LOOK_UP = """
from accel.catalog import machine, price, zones
machine("aws", "g6.xlarge"), price("aws", "us-east-1", "g6.xlarge"), zones("aws", "us-east-1", "g6.xlarge")
"""
FIRST_LIMIT_MS = 60
WARM = 1000
WARM_LIMIT_MS = 100
"""For `WARM` look-ups of each kind."""
OFFERS = (PYTHON, "-m", "jobs", "offers", "examples/jobs/digits.yaml")
DRY_RUN = (PYTHON, "-m", "jobs", "submit", "examples/jobs/digits.yaml", "--to", "gpu", "--dry-run")
DECISION_LIMIT_MS = 100
TARGETS = 10
NEW_JOB_LIMIT_MS = 2
AGAIN_LIMIT_MS = 0.1
RUNS = 9


def measure(scratch: Path) -> Iterator[Line]:
    """Require a target that `make up` has exported."""
    commands = [((PYTHON, "-c", code), ROOT) for code in ("pass", LOOK_UP)] + [(OFFERS, ROOT), (DRY_RUN, ROOT)]
    bare, first, offers, dry = (1000 * value for value in medians_s(commands, RUNS))
    yield Line(
        "catalogue: import, machine, price, zones",
        first - bare,
        "ms",
        "python -c pass",
        bare,
        FIRST_LIMIT_MS,
    )
    yield Line(f"{WARM} warm look-ups, the slowest kind", _warm_ms(), "ms", limit=WARM_LIMIT_MS)
    # A dry run reads the same file and target and renders once; what offers takes longer is the decision.
    yield Line("jobs offers over a dry run", max(offers - dry, 0.0), "ms", "the dry run", dry, DECISION_LIMIT_MS)
    new, again = _decisions_ms()
    name = f"decision over {TARGETS} AWS Batch targets, a new job"
    yield Line(name, new, "ms", limit=NEW_JOB_LIMIT_MS)
    yield Line("the same job again", again, "ms", limit=AGAIN_LIMIT_MS)


def _warm_ms() -> float:
    calls: tuple[Callable[[], object], ...] = (
        lambda: machine("gcp", "a2-highgpu-1g"),
        lambda: accelerator("h100"),
        lambda: price("gcp", "us-central1", "a2-highgpu-1g"),
        lambda: zones("gcp", "us-central1", "a2-highgpu-1g"),
        lambda: interruption("us-east-1", "g5.xlarge"),
        lambda: machines_for("l4", 1),
    )
    taken: list[float] = []
    for call in calls:
        call()
        start = time.process_time()
        for _ in range(WARM):
            call()
        taken.append(1000 * (time.process_time() - start))
    return max(taken)


def _decisions_ms() -> tuple[float, float]:
    """Return the medians for jobs of a size that was not asked about before, and for a job that was."""
    kinds = (("g5", "g6"), ("g5.8xlarge", "g6.8xlarge", "g6.12xlarge"))
    targets = [
        make_target(
            environments=[
                AwsBatchEnvironment(
                    name=capacity,
                    arn="arn",
                    capacity=capacity,
                    instance_types=list(kinds[index % 2]),
                    max_vcpus=192,
                    disk_gib=200,
                )
                for capacity in ("spot", "on-demand")
            ],
            region=("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1")[index % 5],
        )
        for index in range(TARGETS)
    ]
    entries = {f"q{index}": Entry(f"q{index}", each.kind, each, None) for index, each in enumerate(targets)}
    seconds: list[list[float]] = [[], []]
    for size in range(100):
        job = Job(name="new", command=["true"], timeout_s=3600, memory_mib=20000 + size)
        for kept in seconds:
            started = time.perf_counter()
            decide(job, entries)
            kept.append(time.perf_counter() - started)
    new, again = (1000 * statistics.median(kept) for kept in seconds)
    return new, again
