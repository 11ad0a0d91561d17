"""The parts that an instance and an instance template share, as arguments of either."""

from __future__ import annotations

from typing import Any

from accel.catalog import machine as machine_named

from .gpu_vm_spec import GpuVmSpec
from .vm_spec import SCOPES, VmArgs

_MODELS = {"spot": "SPOT", "flex-start": "FLEX_START"}


def parts(spec: GpuVmSpec, args: VmArgs) -> dict[str, Any]:
    return {
        "project": args.project,
        "machine_type": spec.machine,
        "network_interfaces": [
            {
                "network": args.network,
                "subnetwork": args.subnetwork,
                "nic_type": "GVNIC",
                **({"access_configs": [{}]} if spec.external_address else {}),
            }
        ],
        # Machines with GPUs built in have no such block: Google fills it in.
        "guest_accelerators": [{"type": spec.accelerator_type, "count": spec.gpus}] if spec.attached else None,
        "scheduling": _scheduling(spec),
        "reservation_affinity": _reservation(spec),
        "service_account": {"email": args.service_account, "scopes": SCOPES},
        "shielded_instance_config": {
            "enable_secure_boot": spec.secure_boot,
            "enable_vtpm": True,
            "enable_integrity_monitoring": True,
        },
        "metadata": spec.all_metadata,
        "labels": spec.all_labels,
        "tags": spec.tags or None,
    }


def _scheduling(spec: GpuVmSpec) -> dict[str, Any]:
    spot, flex = spec.capacity == "spot", spec.capacity == "flex-start"
    model = "RESERVATION_BOUND" if spec.reservation_bound else _MODELS.get(spec.capacity, "STANDARD")
    said: dict[str, Any] = {
        "on_host_maintenance": "TERMINATE",
        "provisioning_model": model,
        "preemptible": spot,
        "automatic_restart": not (spot or flex) if spec.automatic_restart is None else spec.automatic_restart,
    }
    if spec.ending:
        said["instance_termination_action"] = spec.ending
    if spec.max_run_duration_s:
        said["max_run_duration"] = {"seconds": spec.max_run_duration_s}
        if spec.ending == "STOP" and _local_ssd(spec):
            # Google does not stop a VM with local SSDs by itself, unless it may discard their content.
            said["on_instance_stop_action"] = {"discard_local_ssd": True}
    if spec.preemption_notice_s:
        said["preemption_notice_duration"] = {"seconds": spec.preemption_notice_s}
    return said


def _local_ssd(spec: GpuVmSpec) -> bool:
    return not spec.attached and machine_named("gcp", spec.machine).local_ssd_mode == "bundled"


def _reservation(spec: GpuVmSpec) -> dict[str, Any] | None:
    if spec.reservation:
        named = {"key": "compute.googleapis.com/reservation-name", "values": [spec.reservation.path]}
        return {"type": "SPECIFIC_RESERVATION", "specific_reservation": named}
    return {"type": "NO_RESERVATION"} if spec.capacity == "flex-start" else None
