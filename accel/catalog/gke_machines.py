"""Facts of GKE's autoscaler that supplement the catalogue: sizes of CPU machines, local SSDs, placement. Read from
Google's own source, GoogleCloudPlatform/cluster-autoscaler, whose date is inferred (2026)."""

from functools import cache

from accel.catalog.machines import Machine, kinds
from accel.catalog.machines import machine as machine_named
from accel.catalog.nearest import UnknownName
from accel.catalog.tables import rows


@cache
def _shapes() -> dict[str, tuple[str, int, int]]:
    found: dict[str, tuple[str, int, int]] = {}
    for row in rows("gke_cpu_shapes.csv"):
        for vcpus in map(int, row.parts("vcpus")):
            name = f"{row['series']}-{row['shape']}-{vcpus}"
            found[name] = row["series"], vcpus, round(vcpus * row.figure("gib_a_vcpu") * 1024)
    return found


def node_machine(name: str) -> Machine:
    """Look in the catalogue and in GKE's CPU machines. Raise UnknownName with the nearest names."""
    if found := find_node_machine(name):
        return found
    near = [each for each in _shapes() if each.startswith(name.rpartition("-")[0] + "-")]
    try:
        return machine_named("gcp", name)
    except UnknownName as unknown:
        raise UnknownName("machine type", name, [*near, *_shapes(), *unknown.nearest]) from None


def find_node_machine(name: str) -> Machine | None:
    """Return None if unknown, without node_machine()'s search for the nearest names."""
    if kinds("gcp").get(name) in ("accelerator", "cpu", "tpu-host"):
        return machine_named("gcp", name)
    if name not in _shapes():
        return None
    series, vcpus, memory_mib = _shapes()[name]
    return Machine(
        cloud="gcp", name=name, family=series, kind="cpu", status="", vcpus=vcpus, memory_mib=memory_mib,
        cpu_arch="x86_64", accelerator="", accelerator_count=0, accelerator_memory_gib=None, local_ssd_gb=None,
        local_ssd_mode="", network_gbps=None, efa_interfaces=0, gpudirect="", intra_node="", capacity_block=False,
        gke_label="", sources=(), unverified=(), notes="",
    )  # fmt: skip


def series(machine_type: str) -> str:
    """Return n2 for n2-standard-8, n1 for a custom type without a series."""
    first = machine_type.partition("-")[0]
    return "n1" if first == "custom" else first


@cache
def _ssds() -> dict[str, tuple[tuple[int, ...], bool]]:
    return {
        row["machine"]: (tuple(map(int, row.parts("counts"))), row["comes_with_machine"] == "yes")
        for row in rows("gke_local_ssds.csv")
    }


def local_ssd_counts(machine_type: str) -> tuple[int, ...]:
    """Return the accepted numbers; empty if unknown."""
    return (_ssds().get(machine_type) or _ssds().get(series(machine_type)) or ((), False))[0]


def included_local_ssds(machine_type: str) -> int:
    """Return the number that a machine type always has; 0 if they are optional or unknown."""
    counts, included = _ssds().get(machine_type, ((), False))
    return counts[0] if included else 0


@cache
def _series() -> dict[str, tuple[str, tuple[str, ...]]]:
    return {row["series"]: (row["compact_placement"], row.parts("boot_disks")) for row in rows("gke_series.csv")}


def compact_placement() -> dict[str, bool]:
    """Return whether each series supports it; a series that is not listed is unknown."""
    return {name: able == "yes" for name, (able, _) in _series().items() if able}


def boot_disks(machine_type: str) -> tuple[str, ...]:
    """Return an empty tuple if unknown."""
    return (_series().get(machine_type) or _series().get(series(machine_type)) or ("", ()))[1]
