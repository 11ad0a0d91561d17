"""GPU VMs, their images, and TPU VMs that a stack owns."""

from datetime import date
from typing import Any

from accel.catalog.gcp_images import CURRENT, DEEP_LEARNING
from accel.rules import Finding
from accel.rules.gcp import images, tpu_vms, vm_targets, vms

from .case import Case

DAY = date(2026, 11, 22)
OLD = "pytorch-2-7-cu128-ubuntu-2204-nvidia-570"


def vm(machine_type: str | None, accelerator: str | None = None, count: int | None = None) -> list[Finding]:
    return vms.gpu_machine(machine_type, accelerator, count, "us-central1-a", "on-demand")


def image(name: str, day: date = DAY) -> list[Finding]:
    return images.family(name, DEEP_LEARNING, today=day)


def disk(accelerator_type: str = "v5p-8", **values: Any) -> list[Finding]:
    given = {"size_gib": 100, "source": None, "kind": None, "read_only": False, "field": "data_disks.d", **values}
    return tpu_vms.data_disk(accelerator_type, **given)


def saved(wait_s: int, notice_s: int | None) -> list[Finding]:
    return vms.checkpoint("training.service", None, wait_s, "spot", notice_s)


VMS = [
    Case(
        "gcp.vm.machine", "machine_type", ("e2-standard-4", "no GPU"), "g2-standard-8",
        lambda: vm("e2-standard-4"), lambda: vm("g2-standard-8"),
    ),
    Case(
        "gcp.vm.maintenance", "on_host_maintenance", ("MIGRATE",), "TERMINATE",
        lambda: vms.maintenance("MIGRATE"), lambda: vms.maintenance("TERMINATE"),
    ),
    Case(
        "gcp.vm.restart", "automatic_restart", ("true", "spot"), "leave it out",
        lambda: vms.provisioning("spot", automatic_restart=True),
        lambda: vms.provisioning("on-demand", automatic_restart=True),
    ),
    Case(
        "gcp.vm.reservation", "reservation", ("is mine", "spot"), "capacity: reservation",
        lambda: vms.provisioning("spot", reservation="mine"),
        lambda: vms.provisioning("reservation", reservation="mine"),
    ),
    Case(
        "gcp.vm.duration", "max_run_duration_s", ("604801", "flex-start"), "at most 604800",
        lambda: vms.provisioning("flex-start", max_run_duration_s=604_801),
        lambda: vms.provisioning("flex-start", max_run_duration_s=604_800),
    ),
    Case(
        "gcp.vm.termination", "termination_action", ("STOP", "flex-start"), "leave it out",
        lambda: vms.provisioning("flex-start", max_run_duration_s=60, termination_action="STOP"),
        lambda: vms.provisioning("spot", termination_action="STOP"),
    ),
    Case(
        "gcp.vm.notice", "preemption_notice_s", ("is 60", "spot"), "write 120",
        lambda: vms.provisioning("spot", notice_s=60), lambda: vms.provisioning("spot", notice_s=120),
    ),
    Case(
        "gcp.vm.checkpoint-wait", "checkpoint.wait_s", ("is 60", "has 30"), "preemption_notice_s: 120",
        lambda: saved(60, None), lambda: saved(60, 120),
    ),
    Case(
        "gcp.vm.checkpoint", "checkpoint", ("neither unit nor pid_file",), "one of the two",
        lambda: vms.checkpoint(None, None, None, "spot", None), lambda: saved(30, None),
    ),
    Case(
        "gcp.vm.disk-type", "disk.type", ("pd-ssd", "a4-highgpu-8g"), "hyperdisk-balanced",
        lambda: vms.boot_disk("pd-ssd", "a4-highgpu-8g"), lambda: vms.boot_disk("pd-ssd", "a2-highgpu-1g"),
    ),
    Case(
        "gcp.vm.secure-boot", "secure_boot", ("true",), "driver",
        lambda: vms.secure_boot(True), lambda: vms.secure_boot(False),
    ),
    Case(
        "gcp.vm.compact", "compact_placement", ("n1-standard-8",), "a2",
        lambda: vms.group("n1-standard-8", "spot", compact=True),
        lambda: vms.group("a2-highgpu-8g", "spot", compact=True),
    ),
    Case(
        "gcp.vm.group-flex-start", "capacity", ("flex-start",), "kind gce",
        lambda: vms.group("g2-standard-8", "flex-start", compact=False),
        lambda: vms.group("g2-standard-8", "spot", compact=False),
    ),
    Case(
        "gcp.vm.own-key", "metadata", ("ssh-keys",), "OS Login",
        lambda: vms.own_keys({}, {"ssh-keys": "me:ssh-ed25519 AAAA"}),
        lambda: vms.own_keys({"team": "ml"}, {"serial-port-enable": "TRUE"}),
    ),
]  # fmt: skip

IMAGES = [
    Case(
        "gcp.image.old-name", "image_family", ("pytorch-latest-gpu",), CURRENT,
        lambda: image("pytorch-latest-gpu"), lambda: image(CURRENT), CURRENT,
    ),
    Case(
        "gcp.image.tensorflow", "image_family", ("tf-latest-gpu",), "common-cu129",
        lambda: image("tf-latest-gpu"), lambda: image(CURRENT),
    ),
    Case(
        "gcp.image.patched", "image_family", ("patched until 2026-04-13",), CURRENT,
        lambda: image(OLD), lambda: image(OLD, date(2026, 4, 13)),
    ),
    Case(
        "gcp.image.gone", "image_family", ("available until 2027-04-13",), CURRENT,
        lambda: image(OLD, date(2027, 4, 14)), lambda: image(OLD, date(2027, 4, 13)),
    ),
    Case(
        "gcp.image.unknown", "image_family", ("pytorch-9-9",), CURRENT,
        lambda: image("pytorch-9-9-cu140"), lambda: images.family("pytorch-9-9-cu140", "mine", today=DAY),
    ),
    Case(
        "gcp.image.driver", "image_project", ("ubuntu-os-cloud", "startup script"), DEEP_LEARNING,
        lambda: images.driver("ubuntu-os-cloud", install=True),
        lambda: images.driver("ubuntu-os-accelerator-images", install=True),
    ),
    Case(
        "gcp.image.architecture", "image_family", ("a4x-highgpu-4g is an Arm machine",), "arm64-with-nvidia-580",
        lambda: images.architecture(DEEP_LEARNING, "a4x-highgpu-4g"),
        lambda: images.architecture(DEEP_LEARNING, "a4-highgpu-8g"),
    ),
]  # fmt: skip

TPUS = [
    Case(
        "gcp.tpu.zone", "zone", ("us-central1-a", "v4-8 is in us-central2-b"), "us-central2-b",
        lambda: tpu_vms.zone("us-central1-a", "v4-8"), lambda: tpu_vms.zone("us-central2-b", "v4-8"),
    ),
    Case(
        "gcp.tpu.queue-field", "spot", ("nothing that the provider",), "accel-jobs submit",
        lambda: tpu_vms.queue_fields(["spot"]), lambda: tpu_vms.queue_fields(["zone"]),
    ),
    Case(
        "gcp.tpu.queue-account", "accelerator_type", ("default one",), "TpuVm",
        tpu_vms.queue_account, lambda: tpu_vms.queue_fields(["zone"]),
    ),
    Case(
        "gcp.tpu.queue-valid", "valid_until", ("2027-01-31T08:00:00", "without a zone"), "2027-01-31T08:00:00Z",
        lambda: tpu_vms.valid(None, "2027-01-31T08:00:00"), lambda: tpu_vms.valid(None, "2027-01-31T08:00:00Z"),
    ),
    Case(
        "gcp.tpu.queue-reservation", "reservation", ("capacity is spot",), "capacity: reserved",
        lambda: tpu_vms.queue_reservation("spot", "mine"), lambda: tpu_vms.queue_reservation("reserved", "m"),
    ),
    Case(
        "gcp.tpu.disk", "data_disks.d", ("neither size_gib nor source",), "source for one that is there",
        lambda: disk(size_gib=None), disk,
    ),
    Case(
        "gcp.tpu.disk-shared", "data_disks.d", ("v5p-16 has 2 hosts",), "read-only",
        lambda: disk("v5p-16"), lambda: disk("v5p-16", size_gib=None, source="d", read_only=True),
    ),
    Case(
        "gcp.tpu.disk-type", "data_disks.d.type", ("pd-balanced", "hyperdisk-balanced or hyperdisk-ml"), "hyperdisk",
        lambda: disk("v6e-8", kind="pd-balanced"), lambda: disk("v5p-8", kind="pd-balanced"),
    ),
]  # fmt: skip

TARGETS = [
    Case(
        "gcp.vm-target.zones", "zones[1]", ("us-central1-a again",), "once",
        lambda: vm_targets.zones(["us-central1-a", "us-central1-a"]),
        lambda: vm_targets.zones(["us-central1-a", "us-central1-b"]),
    ),
    Case(
        "gcp.vm.subnet", "zone", ("us-east5-b", "us-central1 only"), "a subnet in us-east5",
        lambda: vm_targets.subnet("us-east5-b", ["us-central1"]),
        lambda: vm_targets.subnet("us-central1-b", ["us-central1"]),
    ),
]  # fmt: skip

CASES = VMS + IMAGES + TPUS + TARGETS
