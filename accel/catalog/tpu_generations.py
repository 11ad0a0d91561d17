"""The generations of TPUs: slice names, hosts and software versions.

Sources: https://docs.cloud.google.com/tpu/docs/v4, .../v5e, .../v5p, .../v6e and .../tpu7x (sizes, shapes, hosts),
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus (machine types, labels, shapes of v3),
https://cloud.google.com/tpu/docs/v2 (sizes). The shapes and hosts of v2 above one host are from memory (`recalled`).
"""

from dataclasses import dataclass
from typing import Literal

Api = Literal["tpu", "gke-only"]

_RUNTIMES = "https://docs.cloud.google.com/tpu/docs/runtimes"


@dataclass(frozen=True, slots=True)
class Host:
    """A TPU host with `chips` chips. `machine_type` is the name on GCE and GKE, or None."""

    chips: int
    machine_type: str | None
    gke_label: str


@dataclass(frozen=True, slots=True)
class Runtime:
    """A TPU software version (`runtime_version`), its frameworks, and the page that documents them."""

    name: str
    frameworks: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Generation:
    """A TPU generation. `prefix` begins the names of its slices; `version` is the `type` of the Cloud TPU API's
    AcceleratorConfig, empty if the API has none; `accelerator` is the key of accelerators.csv. `sizes_2d` are all
    shapes of a two-dimensional generation. A three-dimensional one has shapes of whole 4x4x4 cubes up to `pod_chips`,
    with a name every 64 chips up to `stepped_chips` and the names of `larger_chips` above. `published_chips` is the
    largest slice in Google's tables. `single` lists the hosts of single-host slices, `several` is the host of larger
    ones, and `devices` are further machine types of GKE, for one host only. `recalled`: shapes and hosts were not
    compared with a page, so nothing is rejected because of them."""

    prefix: str
    version: str
    accelerator: str
    product: str
    cores_per_chip: int
    counts: Literal["cores", "chips"]
    pod_chips: int
    published_chips: int
    single: tuple[Host, ...]
    several: Host
    runtime: Runtime | None
    sizes_2d: tuple[tuple[int, int], ...] = ()
    stepped_chips: int = 0
    larger_chips: tuple[int, ...] = ()
    aliases: tuple[str, ...] = ()
    devices: tuple[Host, ...] = ()
    api: Api = "tpu"
    recalled: bool = False

    @property
    def dimensions(self) -> int:
        return 2 if self.sizes_2d else 3

    @property
    def machine_types(self) -> dict[str, Host]:
        return {host.machine_type: host for host in (self.several, *self.single, *self.devices) if host.machine_type}

    @property
    def per_chip(self) -> int:
        """What each chip adds to the number in a name."""
        return self.cores_per_chip if self.counts == "cores" else 1


def _hosts(label: str, machine: str, *chips: int) -> tuple[Host, ...]:
    return tuple(Host(each, f"{machine}-{each}t", label) for each in chips)


def _runtime(name: str) -> Runtime:
    return Runtime(name, ("jax", "pytorch"), _RUNTIMES)


_SQUARES = ((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16), (16, 32), (32, 32))
_LITE = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_BASE = _runtime("tpu-ubuntu2204-base")

GENERATIONS: tuple[Generation, ...] = (
    Generation(
        "v2", "V2", "tpu-v2", "TPU v2", 2, "cores", 256, 256,
        (Host(4, None, ""),), Host(4, None, ""), _BASE, sizes_2d=((2, 2), (4, 4), (8, 8), (8, 16), (16, 16)),
        recalled=True,
    ),
    Generation(
        "v3", "V3", "tpu-v3", "TPU v3", 2, "cores", 1024, 1024,
        _hosts("tpu-v3-device", "ct3-hightpu", 4), _hosts("tpu-v3-slice", "ct3p-hightpu", 4)[0], _BASE,
        sizes_2d=_SQUARES,
    ),
    Generation(
        "v4", "V4", "tpu-v4", "TPU v4", 2, "cores", 4096, 2048,
        _hosts("tpu-v4-podslice", "ct4p-hightpu", 4), _hosts("tpu-v4-podslice", "ct4p-hightpu", 4)[0], _BASE,
        stepped_chips=4096,
    ),
    Generation(
        "v5litepod", "V5LITE_POD", "tpu-v5litepod", "TPU v5e", 1, "chips", 256, 256,
        _hosts("tpu-v5-lite-podslice", "ct5lp-hightpu", 1, 4, 8),
        _hosts("tpu-v5-lite-podslice", "ct5lp-hightpu", 4)[0], _runtime("v2-alpha-tpuv5-lite"),
        sizes_2d=_LITE, aliases=("v5e", "v5lite"), devices=_hosts("tpu-v5-lite-device", "ct5l-hightpu", 1, 4, 8),
    ),
    Generation(
        "v5p", "V5P", "tpu-v5p", "TPU v5p", 2, "cores", 8960, 6144,
        _hosts("tpu-v5p-slice", "ct5p-hightpu", 4), _hosts("tpu-v5p-slice", "ct5p-hightpu", 4)[0],
        _runtime("v2-alpha-tpuv5"), stepped_chips=6144, larger_chips=(6912, 8960),
    ),
    Generation(
        "v6e", "V6E", "tpu-v6e", "TPU v6e (Trillium)", 1, "chips", 256, 256,
        _hosts("tpu-v6e-slice", "ct6e-standard", 1, 4, 8), _hosts("tpu-v6e-slice", "ct6e-standard", 4)[0],
        _runtime("v2-alpha-tpuv6e"), sizes_2d=_LITE, aliases=("trillium",),
    ),
    Generation(
        "tpu7x", "", "tpu7x", "TPU7x (Ironwood)", 2, "cores", 9216, 9216,
        _hosts("tpu7x", "tpu7x-standard", 1, 4), _hosts("tpu7x", "tpu7x-standard", 4)[0], None,
        stepped_chips=6144, larger_chips=(6912, 8192, 8960, 9216), aliases=("v7x", "ironwood"), api="gke-only",
    ),
)  # fmt: skip
"""Generations, oldest first. v4's published table ends at 2,048 chips, its pod has 4,096; v5p's ends at 6,144 of
8,960."""
