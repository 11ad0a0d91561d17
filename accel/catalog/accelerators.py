"""Accelerator kinds, under any of the names that clouds and tools use for them."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.nearest import AmbiguousName, UnavailableName, UnknownName
from accel.catalog.tables import Row, rows


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A kind of GPU, TPU or other accelerator. Figures are per device (a TPU chip); None is unknown. `memory_gib` is
    what the cloud's API reports, `nominal_memory_gb` what the vendor prints. TFLOPS are dense, bandwidths in 10^9 bytes
    per second (`interconnect_gb_s`: between accelerators of this kind). `vertex_name` is Vertex AI's AcceleratorType,
    or None if it has none. `gce_quota_metric` is the regional Compute Engine quota of on-demand use (with
    `PREEMPTIBLE_` before it for Spot), None if no page that was read names one. `unverified` names the columns of
    accelerators.csv that nobody compared with a vendor's page."""

    name: str
    vendor: str
    family: str
    aws_name: str
    gcp_type: str
    gke_label: str
    skypilot_name: str
    vertex_name: str | None
    gce_quota_metric: str | None
    memory_gib: float
    nominal_memory_gb: float
    memory_type: str
    architecture: str
    compute_capability: str
    bf16_tflops: float | None
    fp16_tflops: float | None
    memory_bandwidth_gb_s: float | None
    interconnect: str
    interconnect_gb_s: float | None
    cores_per_chip: int | None
    sources: tuple[str, ...]
    unverified: tuple[str, ...]
    notes: str

    @property
    def is_nvidia_gpu(self) -> bool:
        """Whether a `GPU` reservation of AWS Batch or `nvidia.com/gpu` of Kubernetes counts this accelerator."""
        return self.vendor == "NVIDIA" and self.family == "gpu"

    @property
    def is_tpu(self) -> bool:
        """TPUs are rented by the slice; counts are chips."""
        return self.family == "tpu"


@cache
def accelerators() -> dict[str, Accelerator]:
    """Return all accelerators by catalogue key. Raises DamagedData."""
    return {row["accelerator"]: _accelerator(row) for row in rows("accelerators.csv")}


def _accelerator(row: Row) -> Accelerator:
    return Accelerator(
        name=row["accelerator"],
        vendor=row["vendor"],
        family=row["family"],
        aws_name=row["aws_api_name"],
        gcp_type=row["gcp_accelerator_type"],
        gke_label=row["gke_label"],
        skypilot_name=row["skypilot_name"],
        vertex_name=row["vertex_name"] or None,
        gce_quota_metric=row["gce_quota_metric"] or None,
        memory_gib=row.figure("memory_gib"),
        nominal_memory_gb=row.figure("nominal_memory_gb"),
        memory_type=row["memory_type"],
        architecture=row["architecture"],
        compute_capability=row["cuda_compute_capability"],
        bf16_tflops=row.number("bf16_dense_tflops"),
        fp16_tflops=row.number("fp16_dense_tflops"),
        memory_bandwidth_gb_s=row.number("memory_bandwidth_gb_s"),
        interconnect=row["interconnect"],
        interconnect_gb_s=row.number("interconnect_gb_s"),
        cores_per_chip=row.integer("cores_per_chip") if row["cores_per_chip"] else None,
        sources=row.parts("source"),
        unverified=row.parts("unverified_fields"),
        notes=row["notes"],
    )


def accelerator(name: str) -> Accelerator:
    """Return the accelerator of a name: the catalogue key, that of AWS, GCE, Vertex AI, GKE or SkyPilot, or an alias
    such as `h100`, in any case and with `_` or spaces for `-`. AWS uses V100 and A100 for two memory sizes each; both
    mean the smaller one here, as in SkyPilot and GCE. Raise UnknownName with the nearest names or all known ones,
    AmbiguousName with the choices, UnavailableName with the reason for what exists but cannot be rented: consumer GPUs,
    the K80."""
    names = _names()
    keys = names.get(_folded(name))
    if keys is None:
        raise _refused(name) or UnknownName("accelerator", name, names, (_short(key)[1] for key in accelerators()))
    if len(keys) != 1:
        raise AmbiguousName("accelerator", name, keys)
    return accelerators()[keys[0]]


@cache
def _names() -> dict[str, tuple[str, ...]]:
    sure: dict[str, str] = {}
    loose: dict[str, dict[str, None]] = {}
    for key, each in accelerators().items():
        own = {key, each.gcp_type, each.gke_label, each.skypilot_name, each.vertex_name, *_short(key)}
        sure.update((_folded(name), key) for name in own if name)
        if each.aws_name:
            loose.setdefault(_folded(each.aws_name), {})[key] = None
    for row in rows("accelerator_aliases.csv"):
        if row["accelerator"] not in accelerators():
            raise row.damaged("accelerator", f"unknown accelerator: {row['accelerator']}")
        sure[_folded(row["alias"])] = row["accelerator"]
    # A name that another tool uses for one kind only settles what AWS's name leaves open.
    return {name: tuple(keys) for name, keys in loose.items()} | {name: (key,) for name, key in sure.items()}


def _refused(name: str) -> UnavailableName | None:
    import re  # only here, where a name is wrong

    folded = _folded(name)
    for row in rows("accelerator_refusals.csv"):
        if row["name"] == folded:
            return _not_offered(name, row["reason"], row.parts("nearest"))
    consumer = r"(nvidia-)?(geforce-)?(((rtx|gtx)-?)?(10|16|20|30|40|50)[5-9]0(-?(ti|super|d|laptop|\d+gb))*|titan.*)"
    if re.fullmatch(consumer, folded):
        return _not_offered(name, "is not offered on AWS or Google Cloud", ("nvidia-l4", "nvidia-rtx-pro-6000"))
    return None


def _not_offered(name: str, why: str, keys: tuple[str, ...]) -> UnavailableName:
    shown = ", ".join(f"{key} ({accelerators()[key].nominal_memory_gb:g} GB)" for key in keys)
    return UnavailableName("accelerator", name, f'accelerator "{name}" {why}; nearest: {shown}', keys)


def _short(key: str) -> tuple[str, str]:
    without_vendor = key.removeprefix("nvidia-")
    return without_vendor, without_vendor.removeprefix("tesla-")


def _folded(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")
