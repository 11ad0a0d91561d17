"""Machine types of AWS and Google Cloud that can be rented whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from accel.catalog.accelerators import accelerator as accelerator_named
from accel.catalog.accelerators import accelerators
from accel.catalog.nearest import UnknownName
from accel.catalog.tables import Row, Table, read, rows

TYPE_CHECKING = False  # typing takes 5 ms to import; the type checker knows this name
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["accelerator", "cpu", "tpu-host", "n1-attach"]
    CpuArch = Literal["x86_64", "arm64"]

CLOUDS = ("aws", "gcp")
CLOUD_NAMES = {"aws": "AWS", "gcp": "Google Cloud"}
_NOUN = {"aws": "instance type", "gcp": "machine type"}
_KINDS = ("accelerator", "cpu", "tpu-host")
"""Kinds that can be rented under their own name; the file also has multi-host TPU slices."""

_ATTACHMENT = "n1-attach"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type, or GPUs to attach to one. `accelerator` is a key of accelerators.csv, empty on a CPU machine;
    `accelerator_count` is a fraction if one is shared (AWS g6f, GCP g4-standard-6). `memory_mib` is what the cloud
    lists, more than a job gets. `local_ssd_gb` is the included storage, `local_ssd_mode` is `bundled`, `optional` or
    `none`; `gpudirect` is empty if none is stated. `sources` are ids of sources.csv; `unverified` names the columns
    taken from memory of vendor pages.

    With `is_attachment`, `name` (`n1+nvidia-tesla-t4x2`) is the catalogue's own: GPUs attached to an N1 machine of
    one's choice, as listed by `hosts`. `vcpus` and `memory_mib` are then the maximum of such a host, and a price covers
    the GPUs alone.
    """

    cloud: str
    name: str
    family: str
    kind: Kind
    status: str
    vcpus: int
    memory_mib: int
    cpu_arch: CpuArch
    accelerator: str
    accelerator_count: int | float
    accelerator_memory_gib: float | None
    local_ssd_gb: float | None
    local_ssd_mode: str
    network_gbps: float | None
    efa_interfaces: int
    gpudirect: str
    intra_node: str
    capacity_block: bool
    gke_label: str
    sources: tuple[str, ...]
    unverified: tuple[str, ...]
    notes: str

    @property
    def whole_accelerators(self) -> int:
        """Those that one job can have to itself: 0 on CPU machines and on shares of one."""
        return int(self.accelerator_count)

    @property
    def is_attachment(self) -> bool:
        """GPUs to attach to a host, which no API accepts as a machine type."""
        return self.kind == _ATTACHMENT


class NoMachine(LookupError):
    """No machine has that many. `counts` are those that exist; empty if it is not rented with machines."""

    def __init__(self, accelerator: str, count: float, counts: tuple[float, ...], why: str) -> None:
        self.accelerator = accelerator
        self.count = count
        self.counts = counts
        super().__init__(f"{accelerator}: {why}")


@cache
def _table() -> Table:
    return read("machines.csv")


@cache
def _lines(cloud: str) -> dict[str, int]:
    check_cloud(cloud)
    return {name: index for index, (of, name) in enumerate(_table().of("cloud", "machine")) if of == cloud}


@cache
def kinds(cloud: str) -> dict[str, str]:
    """Return the kind of all that has a price: machines, attachments (`n1-attach`) and TPU slices (`tpu-slice`)."""
    check_cloud(cloud)
    table = _table()
    found = {name: kind for of, name, kind in table.of("cloud", "machine", "kind") if of == cloud}
    for name, kind in found.items():
        if kind not in (*_KINDS, _ATTACHMENT, "tpu-slice"):
            raise table.row(_lines(cloud)[name]).damaged("kind", f"unknown kind of machine: {kind}")
    return found


def check_cloud(cloud: str) -> None:
    """Raise UnknownName if the catalogue lacks the cloud."""
    if cloud not in CLOUDS:
        raise UnknownName("cloud", cloud, CLOUDS)


def check_name(cloud: str, name: str) -> None:
    """Raise UnknownName unless the cloud has a machine, an attachment or a slice of that name."""
    if name not in _lines(cloud):
        raise UnknownName(_NOUN[cloud], name, _lines(cloud))


def check_names(table: Table, used: Iterable[tuple[str, ...]]) -> None:
    """Raise DamagedData for the first line with an unknown (cloud, machine) pair."""
    for cloud, name in used:
        if cloud in CLOUDS and name in _lines(cloud):
            continue
        line = list(table.of("cloud", "machine")).index((cloud, name))
        column, value = ("cloud", cloud) if cloud not in CLOUDS else ("machine", name)
        raise table.row(line).damaged(column, f"unknown {column}: {value}")


@cache
def _machines(cloud: str) -> dict[str, Machine]:
    table = _table()
    return {name: _machine(table.row(_lines(cloud)[name])) for name, kind in kinds(cloud).items() if kind in _KINDS}


@cache
def _attachments(cloud: str) -> tuple[Machine, ...]:
    table = _table()
    return tuple(_machine(table.row(_lines(cloud)[name])) for name, kind in kinds(cloud).items() if kind == _ATTACHMENT)


def _machine(row: Row) -> Machine:
    most = "_max" if row["kind"] == _ATTACHMENT else ""
    count = row.number("accelerator_count") or 0
    if row["accelerator"] and row["accelerator"] not in accelerators():
        raise row.damaged("accelerator", f"unknown accelerator: {row['accelerator']}")
    return Machine(
        cloud=row["cloud"],
        name=row["machine"],
        family=row["series"],
        kind=_kind(row),
        status=row["status"],
        vcpus=row.integer(f"vcpus{most}"),
        memory_mib=int(row.figure(f"memory_gib{most}") * 1024),
        cpu_arch=_cpu_arch(row),
        accelerator=row["accelerator"],
        accelerator_count=_plain(count),
        accelerator_memory_gib=row.number("accelerator_memory_gib_total"),
        local_ssd_gb=row.number("local_ssd_gb"),
        local_ssd_mode=row["local_ssd_mode"],
        network_gbps=row.number("network_gbps"),
        efa_interfaces=row.integer("efa_max_interfaces"),
        gpudirect=row["gpudirect"],
        intra_node=row["intra_node"],
        capacity_block=row["capacity_block"] == "yes",
        gke_label=row["gke_accelerator_label"],
        sources=row.parts("source"),
        unverified=row.parts("unverified_fields"),
        notes=row["notes"],
    )


def _kind(row: Row) -> Kind:
    match row["kind"]:
        case "accelerator" | "cpu" | "tpu-host" | "n1-attach" as kind:
            return kind
        case other:
            raise row.damaged("kind", f"unknown kind of machine: {other}")


def _cpu_arch(row: Row) -> CpuArch:
    match row["cpu_arch"]:
        case "x86_64" | "arm64" as arch:
            return arch
        case other:
            raise row.damaged("cpu_arch", f"unknown CPU architecture: {other}")


def _plain(count: float) -> int | float:
    return int(count) if count == int(count) else count


def _by_size(machine: Machine) -> tuple[float, ...]:
    return (machine.accelerator_count, machine.vcpus, machine.memory_mib)


@cache
def families(cloud: str) -> tuple[str, ...]:
    """Return names such as `g5`, `p4d`, `a3` in alphabetical order."""
    return tuple(sorted({machine.family for machine in _machines(cloud).values()}))


@cache
def as_of(cloud: str) -> str:
    """Return the day of the newest list of machine types in the catalogue, shipped or refreshed."""
    used = {f"live-{cloud}-types", *(source for each in _machines(cloud).values() for source in each.sources)}
    days = (row["snapshot"] for row in rows("sources.csv") if row["source_id"] in used)
    return max(day for day in days if len(day) == len("2026-01-01") and day[:4].isdigit())


def machine(cloud: str, name: str) -> Machine:
    """Raise UnknownName with the nearest known names."""
    known = _machines(cloud)
    if name not in known:
        raise UnknownName(_NOUN[cloud], name, known)
    return known[name]


@cache
def machines(cloud: str, *, family: str | None = None) -> tuple[Machine, ...]:
    """Return the smallest first. Raise UnknownName."""
    known = _machines(cloud).values()
    if family is not None:
        if family not in families(cloud):
            raise UnknownName(f"{_NOUN[cloud]} family", family, families(cloud))
        known = (machine for machine in known if machine.family == family)
    return tuple(sorted(known, key=lambda machine: (machine.family, *_by_size(machine))))


def expand(names: Iterable[str]) -> tuple[Machine, ...]:
    """Return the instance types that families and sizes refer to, as AWS Batch reads `instanceTypes`: in the given
    order, a family's smaller sizes first, each type once. Raise UnknownName for the first name that is neither."""
    found: dict[str, Machine] = {}
    for name in names:
        if name in families("aws"):
            found.update((machine.name, machine) for machine in machines("aws", family=name))
        elif name in _machines("aws"):
            found[name] = machine("aws", name)
        else:
            raise UnknownName(_NOUN["aws"], name, (*_machines("aws"), *families("aws")))
    return tuple(found.values())


@lru_cache(maxsize=1024)
def resolve_machines(names: tuple[str, ...]) -> tuple[tuple[Machine, ...], tuple[str, ...]]:
    """Return the instance types that `expand` finds, each once, and the names that the catalogue lacks."""
    found: dict[str, Machine] = {}
    unknown: dict[str, None] = {}
    for name in names:
        try:
            found.update((machine.name, machine) for machine in expand([name]))
        except UnknownName:
            unknown[name] = None
    return tuple(found.values()), tuple(unknown)


def machines_for(accelerator: str, count: float, cloud: str | None = None) -> tuple[Machine, ...]:
    """Return the machines with exactly `count` of an accelerator (any of its names; chips of a TPU host; 0.125, 0.25 or
    0.5 is a share of one GPU), smaller ones first, AWS before Google Cloud. A GPU attached to an N1 machine has an
    entry with `is_attachment`; TPU slices of several hosts are not machines. Raise NoMachine with the counts that
    exist, and UnknownName, AmbiguousName or UnavailableName as `accelerator` does."""
    kind = accelerator_named(accelerator)
    sellers = _sellers(kind.name, cloud)
    found = tuple(each for each in sellers if each.accelerator_count == count)
    if found:
        return found
    where = "" if cloud is None else f" of {CLOUD_NAMES[cloud]}"
    counts = counts_of(kind.name, cloud)
    if counts:
        why = f"{count:g} is not a count that any machine{where} has; {', '.join(f'{each:g}' for each in counts)}"
    else:
        why = f"no machine{where} has it" + ("; it is rented by the slice" if kind.is_tpu and cloud != "aws" else "")
    raise NoMachine(kind.name, count, counts, why)


def counts_of(accelerator: str, cloud: str | None = None) -> tuple[float, ...]:
    """Return the numbers on machines of a cloud (None: any), shares of one included, by catalogue key."""
    return tuple(sorted({each.accelerator_count for each in _sellers(accelerator, cloud)}))


def _sellers(accelerator: str, cloud: str | None) -> list[Machine]:
    sold = [sold_with(each) for each in (CLOUDS if cloud is None else (cloud,))]
    return [machine for kinds in sold for machine in kinds.get(accelerator, ())]


@cache
def sold_with(cloud: str) -> dict[str, list[Machine]]:
    """Return machines and attachments by accelerator, smallest first."""
    found: dict[str, list[Machine]] = {}
    for each in sorted((*_machines(cloud).values(), *_attachments(cloud)), key=_by_size):
        if each.accelerator:
            found.setdefault(each.accelerator, []).append(each)
    return found


def hosts(attachment: Machine) -> tuple[Machine, ...]:
    """Return the machine types to attach it to, smallest first. Raise ValueError for any other machine."""
    if not attachment.is_attachment:
        raise ValueError(f"{attachment.name} is a machine of its own, nothing to attach to one")
    return tuple(
        each
        for each in machines(attachment.cloud, family=attachment.family)
        if each.vcpus <= attachment.vcpus and each.memory_mib <= attachment.memory_mib
    )
