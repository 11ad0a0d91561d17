"""Definition of a machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox import loopback


def _nothing() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Machine:
    """One VM, or one host of a TPU slice; hosts of a slice share a key and differ in `number`.

    key           API and name of its resource: "compute/projects/p/zones/z/instances/n" or
                  "tpu/projects/p/locations/z/nodes/n"
    name          hostname, which instance/name is
    number        worker number of a TPU host
    account       email of its service account; "": it has none, and gets no token
    id            numeric; the disk of a machine outlives a stop, and is empty under a new id
    more          instance/attributes of the platform: agent-worker-number, tpu-env, ...
    machine_type  "a2-highgpu-1g"; "" for a TPU host
    gpu, gpus     accelerator type and number as in guestAccelerators; "" and 0: what machine_type has
    driver        whether the boot image brings an NVIDIA driver, or installs one
    """

    key: str
    name: str
    zone: str
    number: int = 0
    metadata: Mapping[str, str] = field(default_factory=_nothing)
    account: str = ""
    id: str = ""
    more: Mapping[str, str] = field(default_factory=_nothing)
    machine_type: str = ""
    gpu: str = ""
    gpus: int = 0
    driver: bool = True

    @property
    def ip(self) -> str:
        return loopback.address(self.key, self.number)
