"""Jobs on TPU VMs: one breach and one near miss for each rule."""

from accel.catalog.tpu import tpu
from accel.rules.gcp import tpu_jobs

from .case import Case

V5E, V2 = tpu("v5e-16"), tpu("v2-8")

CASES = [
    Case(
        "gcp.tpu.job-zones", "zones", ("are us-central2-b", "v5litepod-16 is not known"), "make sure",
        lambda: tpu_jobs.zones(["us-central2-b"], V5E)[1],
        lambda: tpu_jobs.zones(["us-central2-b", "us-east5-b"], V5E)[1],
    ),
    Case(
        "gcp.tpu.job-hosts", "nodes", ("is 4", "2 slices of v5e-16 are 8 hosts of 4 chips"), "nodes: 8 and count: 4",
        lambda: tpu_jobs.hosts(V5E, 2, 4, 1),
        lambda: [
            finding
            for nodes, count in ((1, 1), (8, 4), (1, 16), (8, 1))
            for finding in tpu_jobs.hosts(V5E, 2, nodes, count)
        ],
    ),
    Case(
        "gcp.tpu.job-host-size", "cpus", ("is 113", "has 112 vCPUs"), "ask for less",
        lambda: tpu_jobs.host_size(V5E, 113, None),
        lambda: tpu_jobs.host_size(V5E, 112, 196_608) + tpu_jobs.host_size(V2, None, None),
    ),
    Case(
        "gcp.tpu.job-disk", "disk_gib", ("is 1", "cannot be resized"), "a bucket",
        lambda: tpu_jobs.disk(1), lambda: tpu_jobs.disk(None),
    ),
    Case(
        "gcp.tpu.job-env", "env.MEGASCALE_SLICE_ID", ("set by the platform",), "another name",
        lambda: tpu_jobs.environment({"MEGASCALE_SLICE_ID": "1"}),
        lambda: tpu_jobs.environment({"PJRT_DEVICE": "TPU"}),
    ),
    Case(
        "gcp.tpu.job-size", "request", ("has 258049 bytes", "258048"), "into a file",
        lambda: tpu_jobs.size(258_049), lambda: tpu_jobs.size(258_048),
    ),
]  # fmt: skip
