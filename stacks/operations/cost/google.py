"""Cost of a Google Cloud section, from its model alone: its cluster and node pools, permanent machines whether used or
not (VMs, TPUs, reservations, commitments, and those that Vertex AI keeps), and their disks."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from accel import cost
from accel.catalog import UnknownName, accelerator
from accel.catalog.disk_prices import disk_price
from accel.catalog.gcp_commitments import commitment_price
from accel.catalog.gke_machines import node_machine
from accel.catalog.node_prices import find_price, slice_host, with_gpus
from accel.catalog.prices import Price
from accel.rules.gcp.tpu_vms import disk_types
from accel.rules.gke.nodes import disk_type
from components.gcp.capacity_spec import LOCAL_SSD_GIB, ReservedSpec
from components.gcp.commitment import CommitmentSpec
from components.gcp.gpu_machine import GpuMachineSpec
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.gpu_vm_group import GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.persistent_resource import PersistentPoolSpec
from components.gcp.reconcile_function import SCHEDULE_USD, SCHEDULES_FREE, VCPU, VCPU_S_FREE, ReconcileSpec
from components.gcp.tpu_pool import TpuPoolSpec

from ...environment.gcp.config import AnyPool, Gcp
from ...environment.gcp.vms_config import Vms
from .lines import Line

CLUSTER_USD_HOUR, CLUSTER_READ = 0.10, "2026-11-23"
"""Fee of a cluster of any size; an extended release costs more. Source:
https://cloud.google.com/kubernetes-engine/pricing, a copy without a date, read on this day."""


def lines(section: Gcp, utilisation: float) -> Iterator[Line]:
    yield from _control_plane(section)
    yield from _pools(section, utilisation)
    yield from machines(section, utilisation)
    yield from _disks(section, utilisation)


def _pools(section: Gcp, utilisation: float) -> Iterator[Line]:
    for key, spec in section.pools.items():
        path = f"gcp.pools.{key}"
        zones = len(section.node_zones(spec)) or 1
        least, most = spec.least_nodes(zones), spec.most_nodes(zones)
        found = _node_price(section.region, spec)
        unknown = (f"{path}: {found.why_unknown}",) if found.on_demand is None else ()
        on_spot = spec.capacity in ("spot", "flex-start")
        vcpus = node_machine(spec.machine_type).vcpus
        option = cost.Option(spec.machine_type, vcpus, found.on_demand, found.spot, found.spot_low)
        envelope = cost.pool(
            [option],
            utilisation=utilisation,
            on_spot=on_spot,
            min_vcpus=round(least * vcpus),
            max_vcpus=round(most * vcpus),
        )
        dates = tuple(date for date in (found.on_demand_date, found.spot_date if on_spot else None) if date)
        what = f"{spec.capacity} {spec.machine_type}, {least} to {most} nodes"
        yield Line(path, what, envelope, tuple(dict.fromkeys(dates)), found.confidence, unknown=unknown)


def _control_plane(section: Gcp) -> Iterator[Line]:
    if section.cluster is not None and section.cluster.kind == "create":
        what = "control plane; one zonal cluster of a billing account is free"
        yield Line("gcp.cluster", what, cost.fixed_cost(CLUSTER_USD_HOUR), (CLUSTER_READ,), "medium")


def _node_price(region: str, spec: AnyPool) -> Price:
    """Return the price of a node: TPUs are priced by the slice, GPUs on N1 beside their host."""
    if isinstance(spec, TpuPoolSpec):
        return slice_host(region, spec.slice)
    if isinstance(spec, GpuPoolSpec) and spec.attached:
        return with_gpus(region, spec.machine_type, accelerator(spec.accelerator_type).name, spec.whole_gpus)
    return find_price("gcp", region, spec.machine_type)


def _reconciled(spec: ReconcileSpec) -> str:
    schedule = f"USD {SCHEDULE_USD:.2f} a month for its schedule, {SCHEDULES_FREE} of a billing account being free"
    free = VCPU_S_FREE / VCPU / spec.looks
    return (
        f"gcp.vms.reconcile: {schedule}; {spec.looks:,} looks a month, free in Cloud Run up to {free:.0f} s each where "
        "nothing else of the billing account runs there"
    )


def excluded_costs(section: Gcp) -> Iterator[str]:
    if section.vms is not None and section.vms.reconcile is not None:
        yield _reconciled(section.vms.reconcile)
    if section.network is not None and section.network.kind == "create":
        yield "gcp.network: Cloud NAT (by the hour and the GB), flow logs and traffic between zones (by the GB)"
    if any(isinstance(spec, TpuPoolSpec) for spec in section.pools.values()):
        yield "gcp.pools: boot disks of TPU hosts (by the GB-month)"
    if section.vms is not None and (section.vms.own or section.vms.tpu_queues):
        yield "gcp.vms: boot disks of TPU hosts, and addresses on the internet (by the hour)"
    if any(part is not None for part in (section.vms and section.vms.jobs, section.batch, section.vertex)):
        yield "gcp: buckets of jobs (by the GB-month), and what jobs themselves run on: accel-jobs cost"
    if section.vertex is not None and section.vertex.tensorboard is not None:
        yield "gcp.vertex.tensorboard: what is stored (by the GB-month)"
    if section.images:
        yield "gcp.images: what is stored, and scanned where the project scans (by the GB-month and the image)"
    if section.workloads is not None and section.workloads.volumes:
        yield "gcp.workloads.volumes: what is stored (by the GB-month)"


VERTEX_FEE = "Compute Engine's price; Vertex AI's own charge on top of it is not counted"
QUEUED = "nothing while it waits in Google's queue"
RESERVED_TPU = "counted at the on-demand price, though a reservation is paid otherwise"


@dataclass(frozen=True)
class Standing:
    """Machines of one kind: from `least` to `most` of them, at the price of one. `covered` is how many of them
    something else pays for, and `notes` name it. `partly`: a charge on top of the price is unknown."""

    path: str
    what: str
    price: Price
    least: int
    most: int
    spot: bool = False
    covered: int = 0
    notes: tuple[str, ...] = ()
    partly: bool = False


def machines(section: Gcp, utilisation: float) -> Iterator[Line]:
    if section.vms is not None:
        for each in [*_of_vms(section.vms), *_tpus(section.vms)]:
            yield _line(each, utilisation)
        for key, spec in section.vms.commitments.items():
            yield _commitment(f"gcp.vms.commitments.{key}", spec)
    if section.vertex is not None:
        for key, spec in section.vertex.persistent_resources.items():
            for name, pool in spec.pools.items():
                path = f"gcp.vertex.persistent_resources.{key}.pools.{name}"
                yield _line(_kept(path, section.region, pool), utilisation)


@dataclass
class CommittedMachines:
    """Machines that commitments pay for and that no line has used yet, by region and machine type."""

    left: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    @classmethod
    def of(cls, vms: Vms) -> "CommittedMachines":
        found = cls()
        for spec in vms.commitments.values():
            if spec.machine_type is not None:
                at = (spec.region, spec.machine_type)
                found.left[at] = found.left.get(at, 0) + (spec.count or 1)
        return found

    def take(self, region: str, machine: str, count: int) -> int:
        """Use up to `count` committed machines, and return how many there were."""
        taken = min(count, self.left.get((region, machine), 0))
        if taken:
            self.left[region, machine] -= taken
        return taken


def _of_vms(vms: Vms) -> Iterator[Standing]:
    """Yield reservations and the machines beside them. A reservation is billed whether it is used or not, so the
    stack's own machines in it cost nothing more; commitments pay for on-demand machines of their type and region."""
    paid = CommittedMachines.of(vms)
    for key, spec in vms.reservations.items():
        yield _paid(_reserved(f"gcp.vms.reservations.{key}", spec), spec, paid)
    for key, spec in vms.future_reservations.items():
        path = f"gcp.vms.future_reservations.{key}"
        if spec.planning_status == "DRAFT":
            yield _reserved(path, spec, 0, ("a draft costs nothing",))
            continue
        end = spec.end_time or f"{spec.duration_s} s later"
        notes = (f"from {spec.start_time} to {end} alone",)
        other = ("a calendar's prices are others: the on-demand price is counted",) if spec.mode == "CALENDAR" else ()
        yield _reserved(path, spec, spec.count, (*notes, *other))
    for key, spec in vms.gpus.items():
        yield _vm(f"gcp.vms.gpus.{key}", spec, 1, vms, paid)
    for key, spec in vms.gpu_groups.items():
        yield _vm(f"gcp.vms.gpu_groups.{key}", spec, spec.size, vms, paid)


def _reserved(path: str, spec: ReservedSpec, count: int | None = None, notes: tuple[str, ...] = ()) -> Standing:
    number = spec.count if count is None else count
    return Standing(path, f"reserved {_name(spec)}, {spec.count} machines", _price(spec), number, number, notes=notes)


def _vm(path: str, spec: GpuVmSpec | GpuVmGroupSpec, count: int, vms: Vms, paid: CommittedMachines) -> Standing:
    machines = f"{count} machines" if isinstance(spec, GpuVmGroupSpec) else "1 machine"
    what, own = f"{spec.capacity} {_name(spec)}, {machines}", spec.reservation
    if own is not None and own.project is None and own.name in vms.reservations:
        note = f"paid with gcp.vms.reservations.{own.name}"
        return Standing(path, what, _price(spec), count, count, covered=count, notes=(note,))
    made = Standing(path, what, _price(spec), count, count, spot=spec.capacity in ("spot", "flex-start"))
    return made if made.spot else _paid(made, spec, paid)


def _paid(made: Standing, spec: GpuMachineSpec, paid: CommittedMachines) -> Standing:
    """Subtract the machines that commitments pay for."""
    taken = 0 if spec.attached else paid.take(spec.region, spec.machine, made.most)
    if not taken:
        return made
    note = f"{taken} of {made.most} paid with gcp.vms.commitments"
    return Standing(made.path, made.what, made.price, made.least, made.most, made.spot, taken, (*made.notes, note))


def _name(spec: GpuMachineSpec) -> str:
    return f"{spec.machine}+{spec.accelerator_type}x{spec.gpus}" if spec.attached else spec.machine


def _price(spec: GpuMachineSpec) -> Price:
    if spec.attached:
        return with_gpus(spec.region, spec.machine, accelerator(spec.accelerator or "").name, spec.gpus)
    return find_price("gcp", spec.region, spec.machine)


def _tpus(vms: Vms) -> Iterator[Standing]:
    for key, spec in vms.tpus.items():
        name, notes = spec.slice.name, (RESERVED_TPU,) if spec.reserved else ()
        bought = "spot" if spec.spot else "reserved" if spec.reserved else "on-demand"
        price = find_price("gcp", spec.region, name)
        yield Standing(f"gcp.vms.tpus.{key}", f"{bought} {name}, 1 slice", price, 1, 1, spec.spot, notes=notes)
    for key, spec in vms.tpu_queues.items():
        name = spec.slice.name
        price = find_price("gcp", spec.zone.rpartition("-")[0], name)
        yield Standing(f"gcp.vms.tpu_queues.{key}", f"on-demand {name}, 1 slice", price, 1, 1, notes=(QUEUED,))
    for key, spec in vms.queued_tpus.items():
        count = spec.slices
        what = f"{spec.capacity} {spec.slice.name}, {count} {'slice' if count == 1 else 'slices'}"
        notes = (QUEUED, RESERVED_TPU) if spec.capacity == "reserved" else (QUEUED,)
        price, spot = find_price("gcp", spec.region, spec.slice.name), spec.capacity == "spot"
        yield Standing(f"gcp.vms.queued_tpus.{key}", what, price, count, count, spot, notes=notes)


def _kept(path: str, region: str, spec: PersistentPoolSpec) -> Standing:
    least = spec.replicas if spec.min_replicas is None else spec.min_replicas
    most = spec.replicas if spec.max_replicas is None else spec.max_replicas
    if spec.accelerator and spec.key != spec.machine_type:
        kind = accelerator(spec.accelerator).name
        price = with_gpus(region, spec.machine_type, kind, spec.accelerator_count or 1)
    else:
        price = find_price("gcp", region, spec.machine_type)
    return Standing(
        path, f"kept {spec.key}, {least} to {most} machines", price, least, most, notes=(VERTEX_FEE,), partly=True
    )


def _line(each: Standing, utilisation: float) -> Line:
    least, most = max(0, each.least - each.covered), max(0, each.most - each.covered)
    dates = [each.price.on_demand_date, each.price.spot_date if each.spot else None]
    notes = list(each.notes)
    if not most:
        return Line(each.path, each.what, cost.fixed_cost(0), _dates(dates), each.price.confidence, tuple(notes))
    unknown = (f"{each.path}: {each.price.why_unknown}",) if each.price.on_demand is None else ()
    if each.spot and each.price.spot is None:
        notes.append("no Spot price is known: on demand is counted")
    option = cost.Option(each.what, 1, each.price.on_demand, each.price.spot, each.price.spot_low)
    envelope = cost.pool([option], min_vcpus=least, max_vcpus=most, utilisation=utilisation, on_spot=each.spot)
    if each.partly:
        envelope = cost.at_least(envelope)
    return Line(each.path, each.what, envelope, _dates(dates), each.price.confidence, tuple(notes), unknown)


def _dates(dates: list[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(date for date in dates if date))


def _commitment(path: str, spec: CommitmentSpec) -> Line:
    """Return a line for the whole term, used or not."""
    years = {"TWELVE_MONTH": "1 year", "THIRTY_SIX_MONTH": "3 years"}[spec.plan]
    name = f"{spec.count or 1} {spec.machine_type}" if spec.machine_type else "resources"
    what = f"commitment of {years}: {name}"
    try:
        price = commitment_price(spec.machine_type, spec.region, spec.plan) if spec.machine_type else None
    except UnknownName:
        price = None
    if price is None:
        unknown = f"{path}: no price of this commitment in {spec.region} was in the lists that were read"
        return Line(path, what, cost.Envelope(cost.UNKNOWN, cost.UNKNOWN, cost.UNKNOWN), unknown=(unknown,))
    return Line(path, what, cost.fixed_cost(price.committed * (spec.count or 1)), (price.date,), "medium")


NODE_DISK = "pd-balanced"
"""GKE's default. Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/custom-boot-disks"""


@dataclass(frozen=True)
class Disks:
    """A range from `least` to `most` disks of `gib` each."""

    path: str
    region: str
    kind: str
    gib: int
    least: int
    most: int


def _disks(section: Gcp, utilisation: float) -> Iterator[Line]:
    for each in [*_pool_disks(section), *(_vm_disks(section.vms) if section.vms else ())]:
        if not each.most:
            continue
        path, what = f"{each.path}.disk", f"disks, {each.kind} {each.gib} GiB a machine"
        found = disk_price(each.region, each.kind)
        if found is None:
            unknown = f"{path}: no price of {each.kind} in {each.region} was in the lists that were read"
            yield Line(path, what, cost.Envelope(cost.UNKNOWN, cost.UNKNOWN, cost.UNKNOWN), unknown=(unknown,))
            continue
        option = cost.Option(each.kind, 1, None)
        envelope = cost.cost_per_instance(
            [option],
            min_vcpus=each.least,
            max_vcpus=each.most,
            utilisation=utilisation,
            each=each.gib * found.usd / cost.HOURS_A_MONTH,
        )
        yield Line(path, what, envelope, (found.date,), found.confidence)


def _pool_disks(section: Gcp) -> Iterator[Disks]:
    for key, spec in section.pools.items():
        zones = len(section.node_zones(spec)) or 1
        named = spec.disk.type or disk_type(spec.machine_type)
        # Newer TPU hosts use Hyperdisks, and no page says which ones.
        if named is None and isinstance(spec, TpuPoolSpec):
            continue
        nodes = spec.least_nodes(zones), spec.most_nodes(zones)
        yield Disks(f"gcp.pools.{key}", section.region, named or NODE_DISK, spec.disk.size_gib, *nodes)


def _vm_disks(vms: Vms) -> Iterator[Disks]:
    for key, spec in vms.gpus.items():
        yield Disks(f"gcp.vms.gpus.{key}", spec.region, spec.disk_type, spec.disk.size_gib, 1, 1)
    for key, spec in vms.gpu_groups.items():
        count = spec.size
        yield Disks(f"gcp.vms.gpu_groups.{key}", spec.region, spec.disk_type, spec.disk.size_gib, count, count)
    for key, spec in vms.tpus.items():
        for name, disk in spec.data_disks.items():
            if disk.size_gib is not None:
                kind, path = disk.type or disk_types(spec.slice.name)[0], f"gcp.vms.tpus.{key}.{name}"
                hosts = spec.slice.hosts
                yield Disks(path, spec.region, kind, disk.size_gib, hosts, hosts)
    for key, spec in vms.reservations.items():
        if spec.local_ssds:
            gib = spec.local_ssds * LOCAL_SSD_GIB
            yield Disks(f"gcp.vms.reservations.{key}", spec.region, "local-ssd", gib, spec.count, spec.count)
