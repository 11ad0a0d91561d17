"""Jobs on VMs of Compute Engine: one breach and one near miss for each rule."""

from accel.rules.gcp import gpu_vm_jobs

from .case import Case

PLACES = {"us-central1": ("us-central1-a",), "us-east4": ()}

CASES = [
    Case(
        "gce.job.fit", "cpus", ("is 64", "g2-standard-32, has 32 vCPUs"), "ask for less",
        lambda: gpu_vm_jobs.fit({"cpus": 64, "memory_mib": None}, "g2-standard-32", 32, 131_072),
        lambda: gpu_vm_jobs.fit({"cpus": 32, "memory_mib": 131_072}, "g2-standard-32", 32, 131_072),
    ),
    Case(
        "gce.job.zones", "zones", ("are us-central1-b", "g2-standard-8 is not known"), "make sure",
        lambda: gpu_vm_jobs.zones(["us-central1-b"], "g2-standard-8", PLACES)[1],
        lambda: gpu_vm_jobs.zones(["us-central1-a", "us-east4-c"], "g2-standard-8", PLACES)[1],
    ),
    Case(
        "gce.job.flex-start", "provisioning", ("is flex-start", "beside nodes: 2"), "one node",
        lambda: gpu_vm_jobs.flex_start("a3-highgpu-1g", 1, 2, spot=False, max_run_s=604_800),
        lambda: gpu_vm_jobs.flex_start("a3-highgpu-1g", 1, 1, spot=False, max_run_s=604_800),
    ),
    Case(
        "gce.job.notice", "notice_s", ("is 120", "is not Spot"), "spot: true",
        lambda: gpu_vm_jobs.notice(120, spot=False), lambda: gpu_vm_jobs.notice(120, spot=True),
    ),
    Case(
        "gce.job.max-run", "max_run", ("is 7199", "timeout_s is 3600"), "at least 7200",
        lambda: gpu_vm_jobs.max_run(7199, 3600, 3600),
        lambda: (
            gpu_vm_jobs.max_run(7200, 3600, 3600)
            + gpu_vm_jobs.max_run(3601, None, 3600)
            + gpu_vm_jobs.max_run(None, 9, 9)
        ),
    ),
    Case(
        "gce.job.env", "env.PET_NNODES", ("set by the platform",), "leave it out",
        lambda: gpu_vm_jobs.environment({"PET_NNODES": "1"}), lambda: gpu_vm_jobs.environment({"MASTER_PORT": "1"}),
    ),
]  # fmt: skip
