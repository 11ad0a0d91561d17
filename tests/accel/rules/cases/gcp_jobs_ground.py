"""Where jobs of Google Batch and Vertex AI may run, and what a stack keeps for them."""

from accel.rules.gcp import job_services

from .case import Case

HERE = "us-central1"
RESERVATION = "projects/p/zones/us-central1-a/reservations/r"


CASES = [
    Case(
        "gcp.job-target.subnet", "region", ("us-east5", "in us-central1 only"), "add a subnet in us-east5",
        lambda: job_services.subnet("us-east5", [HERE]), lambda: job_services.subnet(HERE, [HERE]),
    ),
    Case(
        "gcp.job-target.reservation", "reservation", ("us-central1-a", "target is in us-east1"), "of the region",
        lambda: job_services.reservation(RESERVATION, "us-east1"),
        lambda: job_services.reservation(RESERVATION, HERE),
    ),
    Case(
        "gcp.job-target.template", "template", ("has none",), "add template",
        lambda: job_services.template(True, None, HERE, HERE),
        lambda: job_services.template(True, "spot", HERE, HERE),
    ),
    Case(
        "gcp.vertex.network-attachment", "network_attachment", ("us-east1",), f"use one of {HERE}",
        lambda: job_services.attachment("projects/p/regions/us-east1/networkAttachments/a", HERE),
        lambda: job_services.attachment("projects/p/regions/us-central1/networkAttachments/a", HERE),
    ),
    Case(
        "gcp.firestore.database", "database", ("projects/p/databases/claims",), "its id alone",
        lambda: job_services.database("projects/p/databases/claims"),
        lambda: job_services.database("(default)"),
    ),
    Case(
        "gcp.persistent-resource.unknown", "persistent_resource", ('"kpet"',), "use kept",
        lambda: job_services.persistent_resource_key("kpet", ["kept"]),
        lambda: job_services.persistent_resource_key("kept", ["kept"]),
    ),
    Case(
        "gcp.persistent-resource.replicas", "max_replicas", ("is 2", "min_replicas (2)"), "write more",
        lambda: job_services.replicas(2, 2, 2), lambda: job_services.replicas(2, 2, 3),
    ),
    Case(
        "gcp.persistent-resource.machine", "machine_type", ("ct5lp-hightpu-4t", "a TPU"), "a machine with GPUs",
        lambda: job_services.persistent_machine("ct5lp-hightpu-4t", None, None),
        lambda: job_services.persistent_machine("g2-standard-24", None, None),
    ),
]  # fmt: skip
