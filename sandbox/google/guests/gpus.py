"""The GPUs that a machine shows, by its type or as attached, from the catalogue."""

import uuid
from typing import Any

from accel.catalog.accelerators import accelerator
from accel.catalog.machines import machine as machine_type
from accel.catalog.nearest import UnknownName

from .machine import Machine

# Nothing here depends on them; they are of the right form.
DRIVER, IDLE = "570.158.01", {"temperature.gpu": 34, "utilization.gpu": 0}


def gpu_rows(machine: Machine) -> list[dict[str, Any]]:
    """What nvidia-smi says of each GPU, by the names of its --query-gpu. The name is the catalogue's."""
    kind, count = machine.gpu, machine.gpus
    if not kind and machine.machine_type:
        try:
            found = machine_type("gcp", machine.machine_type)
        except UnknownName:  # a type without an accelerator: the catalogue has few of them
            return []
        kind, count = found.accelerator, found.whole_accelerators
    if not kind or not accelerator(kind).is_nvidia_gpu:
        return []
    about = accelerator(kind)
    return [
        {
            "index": index,
            "name": f"NVIDIA {about.skypilot_name}",
            "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{machine.key}/{machine.number}/{index}')}",
            "driver_version": DRIVER,
            "memory.total": int(about.memory_gib * 1024),
            **IDLE,
        }
        for index in range(count)
    ]
