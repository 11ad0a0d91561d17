"""Jobs on GKE: one breach and one near miss for each rule."""

from accel.catalog.tpu import forms
from accel.rules.gke import jobs
from accel.rules.gke.jobs import PoolCapacity, Size

from .case import Case

A100 = PoolCapacity("a100", Size(46_000, 320_000, gpus=4, disk_gib=80), 2)
CPU = PoolCapacity("cpu", Size(7500, 27_000), 10)

CASES = [
    Case(
        "gke.job.fit", "accelerator.count", ("is 8", "at most 4 GPUs (a100)"), "ask for less",
        lambda: jobs.fit(Size(1000, 1000, gpus=8), [A100, CPU]),
        lambda: jobs.fit(Size(46_000, 320_000, gpus=4, disk_gib=80), [A100, CPU]),
    ),
    Case(
        "gke.job.nodes", "nodes", ("is 3", "at most 2 nodes: a100 2"), "max_nodes",
        lambda: jobs.nodes(3, [A100]), lambda: jobs.nodes(2, [A100]),
    ),
    Case(
        "gke.job.tpu-slice", "accelerator.count",
        ("is 4 with nodes: 1", "v6e-8 is 1 host of 8 chips or 2 hosts of 4 chips"), "nodes: 2 and count: 4",
        lambda: jobs.tpu_slice(forms("v6e-8"), 1, 4),
        lambda: [
            finding
            for nodes, count in ((1, 1), (1, 8), (2, 1), (2, 4))
            for finding in jobs.tpu_slice(forms("v6e-8"), nodes, count)
        ],
    ),
    Case(
        "gke.job.label", "labels", ('"a b"',), "63 at most",
        lambda: jobs.labels({"a b": ""}), lambda: jobs.labels({"acme.com/a_b.c": "x" * 63}),
    ),
    Case(
        "gke.job.label-reserved", "labels", ("batch.kubernetes.io/x", "reserved"), "your own",
        lambda: jobs.labels({"batch.kubernetes.io/x": "1"}), lambda: jobs.labels({"notk8s.io.com/x": "1"}),
    ),
    Case(
        "gke.job.tasks", "tasks", ("is 100001", "100000"), "several jobs",
        lambda: jobs.tasks(100_001), lambda: jobs.tasks(100_000),
    ),
    Case(
        "gke.job.grace", "gke.grace_s", ("is 16", "15 s"), "spot: false",
        lambda: jobs.grace(16, True), lambda: jobs.grace(15, True) + jobs.grace(600, False),
    ),
    Case(
        "gke.job.env-reserved", "env.JOB_COMPLETION_INDEX", ("set by the platform",), "another name",
        lambda: jobs.environment({"JOB_COMPLETION_INDEX": "1"}), lambda: jobs.environment({"MASTER_PORT": "1"}),
    ),
    Case(
        "gke.job.size", "request", ("bytes", "253952"), "into a file",
        lambda: jobs.size("x" * 253_951), lambda: jobs.size("x" * 253_950),
    ),
    Case(
        "gke.job.lost-retries", "lost_retries", ("is 2", "5 for both"), "leave lost_retries out",
        lambda: jobs.retries(3, 2, 1, True), lambda: jobs.retries(3, None, 1, True),
    ),
    Case(
        "gke.job.nodes-alone", "nodes", ("is 2", "no JobSet"), "--max-restarts",
        lambda: jobs.retries(None, None, 2, False),
        lambda: jobs.retries(None, None, 2, True) + jobs.retries(0, 0, 2, False),
    ),
]  # fmt: skip
