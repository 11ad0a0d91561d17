"""What GKE's autoscaler knows of machine types beside the catalogue: sizes of CPU machines, local SSDs, placement.

Read from Google's own source, GoogleCloudPlatform/cluster-autoscaler, whose date is inferred (2026).
"""

from functools import cache

from accel.catalog.machines import Machine, kinds
from accel.catalog.machines import machine as machine_named
from accel.catalog.nearest import UnknownName
from accel.catalog.tables import rows


@cache
def _shapes() -> dict[str, tuple[str, int, int]]:
    """Series, vCPUs and MiB of memory of each CPU machine type."""
    found: dict[str, tuple[str, int, int]] = {}
    for row in rows("gke_cpu_shapes.csv"):
        for vcpus in map(int, row.parts("vcpus")):
            name = f"{row['series']}-{row['shape']}-{vcpus}"
            found[name] = row["series"], vcpus, round(vcpus * row.figure("gib_a_vcpu") * 1024)
    return found


def has_size(name: str) -> bool:
    """Whether node_machine() knows it, which an UnknownName says far later: it looks for the nearest names."""
    return name in _shapes() or kinds("gcp").get(name) in ("accelerator", "cpu", "tpu-host")


def node_machine(name: str) -> Machine:
    """The machine type of a node: of the catalogue, or a CPU machine of GKE's. Raises UnknownName with the nearest."""
    if name not in _shapes() or name in kinds("gcp"):
        try:
            return machine_named("gcp", name)
        except UnknownName as unknown:
            near = [each for each in _shapes() if each.startswith(name.rpartition("-")[0] + "-")]
            raise UnknownName("machine type", name, [*near, *_shapes(), *unknown.nearest]) from None
    series, vcpus, memory_mib = _shapes()[name]
    return Machine(
        cloud="gcp", name=name, family=series, kind="cpu", status="", vcpus=vcpus, memory_mib=memory_mib,
        cpu_arch="x86_64", accelerator="", accelerator_count=0, accelerator_memory_gib=None, local_ssd_gb=None,
        local_ssd_mode="", network_gbps=None, efa_interfaces=0, gpudirect="", intra_node="", capacity_block=False,
        gke_label="", sources=(), unverified=(), notes="",
    )  # fmt: skip


def series(machine_type: str) -> str:
    """The series that a machine type begins with: n2 of n2-standard-8, n1 of a custom type without one."""
    first = machine_type.partition("-")[0]
    return "n1" if first == "custom" else first


@cache
def _ssds() -> dict[str, tuple[tuple[int, ...], bool]]:
    return {
        row["machine"]: (tuple(map(int, row.parts("counts"))), row["comes_with_machine"] == "yes")
        for row in rows("gke_local_ssds.csv")
    }


def local_ssd_counts(machine_type: str) -> tuple[int, ...]:
    """The numbers of local SSDs that a machine type takes; none where it is not known."""
    return (_ssds().get(machine_type) or _ssds().get(series(machine_type)) or ((), False))[0]


def included_local_ssds(machine_type: str) -> int:
    """The local SSDs that a machine type always has; 0 where they are chosen, or not known."""
    counts, included = _ssds().get(machine_type, ((), False))
    return counts[0] if included else 0


@cache
def _series() -> dict[str, tuple[str, tuple[str, ...]]]:
    return {row["series"]: (row["compact_placement"], row.parts("boot_disks")) for row in rows("gke_series.csv")}


def compact_placement() -> dict[str, bool]:
    """Whether a series takes a compact placement; one that is not listed is not known."""
    return {name: able == "yes" for name, (able, _) in _series().items() if able}


def boot_disks(machine_type: str) -> tuple[str, ...]:
    """The types of boot disk that a machine takes; none where it is not known."""
    return (_series().get(machine_type) or _series().get(series(machine_type)) or ("", ()))[1]
