"""Where jobs of Google Batch and Vertex AI may run, and what a stack keeps for them."""

from accel.rules import gcp_jobs_ground

from .case import Case

HERE = "us-central1"
RESERVATION = "projects/p/zones/us-central1-a/reservations/r"


CASES = [
    Case(
        "gcp.job-target.subnet", "region", ("us-east5", "in us-central1 only"), "add a subnet in us-east5",
        lambda: gcp_jobs_ground.subnet("us-east5", [HERE]), lambda: gcp_jobs_ground.subnet(HERE, [HERE]),
    ),
    Case(
        "gcp.job-target.reservation", "reservation", ("us-central1-a", "target is in us-east1"), "of the region",
        lambda: gcp_jobs_ground.reservation(RESERVATION, "us-east1"),
        lambda: gcp_jobs_ground.reservation(RESERVATION, HERE),
    ),
    Case(
        "gcp.job-target.template", "template", ("has none",), "add template",
        lambda: gcp_jobs_ground.template(True, None, HERE, HERE),
        lambda: gcp_jobs_ground.template(True, "spot", HERE, HERE),
    ),
    Case(
        "gcp.vertex.network-attachment", "network_attachment", ("us-east1",), f"use one of {HERE}",
        lambda: gcp_jobs_ground.attachment("projects/p/regions/us-east1/networkAttachments/a", HERE),
        lambda: gcp_jobs_ground.attachment("projects/p/regions/us-central1/networkAttachments/a", HERE),
    ),
    Case(
        "gcp.firestore.database", "database", ("projects/p/databases/claims",), "its id alone",
        lambda: gcp_jobs_ground.database("projects/p/databases/claims"),
        lambda: gcp_jobs_ground.database("(default)"),
    ),
    Case(
        "gcp.persistent-resource.unknown", "persistent_resource", ('"kpet"',), "use kept",
        lambda: gcp_jobs_ground.kept("kpet", ["kept"]), lambda: gcp_jobs_ground.kept("kept", ["kept"]),
    ),
    Case(
        "gcp.persistent-resource.replicas", "max_replicas", ("is 2", "min_replicas (2)"), "write more",
        lambda: gcp_jobs_ground.replicas(2, 2, 2), lambda: gcp_jobs_ground.replicas(2, 2, 3),
    ),
    Case(
        "gcp.persistent-resource.machine", "machine_type", ("ct5lp-hightpu-4t", "a TPU"), "a machine with GPUs",
        lambda: gcp_jobs_ground.kept_machine("ct5lp-hightpu-4t", None, None),
        lambda: gcp_jobs_ground.kept_machine("g2-standard-24", None, None),
    ),
]  # fmt: skip
