"""The `vms` part of the Google Cloud section as components: capacity, machines, and the targets of jobs that create
machines of their own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from accel.contract import buckets
from accel.contract import google_vms as contract
from accel.contract.targets import write
from components.base import join
from components.gcp.commitment import Commitment, CommitmentArgs
from components.gcp.future_reservation import FutureReservation, FutureReservationArgs
from components.gcp.gpu_vm import GpuVm, GpuVmArgs
from components.gcp.gpu_vm_group import GpuVmGroup, GpuVmGroupArgs
from components.gcp.placement import Placement, PlacementArgs
from components.gcp.pool_spec import ReservationSpec as Named
from components.gcp.queued_tpu import QueuedTpu, QueuedTpuArgs
from components.gcp.reconcile_function import ReconcileFunction, ReconcileFunctionArgs, ReconcileSpec
from components.gcp.reservation import Reservation, ReservationArgs
from components.gcp.tpu_queue import TpuQueue, TpuQueueArgs
from components.gcp.tpu_vm import TpuVm, TpuVmArgs
from components.gcp.vm_account import VmAccount, VmAccountArgs
from components.gcp.vm_jobs import TAG, BucketTargets, BucketTargetsArgs, BucketTargetsSpec, VmJobs, VmJobsArgs

from ..allowances import Wired
from ..export_model import promise_output
from .budgets import Stopping
from .capacity_config import Capacity
from .config import Gcp
from .network import ClusterNetwork
from .vms_config import AnyVmTarget, ExistingVmAccount, GceTarget, Vms


@dataclass(frozen=True)
class CapacityResources:
    """Resources that machines and targets may name by key."""

    reservations: Mapping[str, Reservation]
    placements: Mapping[str, Placement]

    def placement(self, name: str | None) -> pulumi.Output[str] | None:
        found = self.placements.get(name or "")
        return found.path if found else None

    def of_target(self, spec: AnyVmTarget) -> dict[str, pulumi.Output[str]]:
        """Return paths of the stack's resources that a target of GPU VMs names; reservations of TPUs are others."""
        if not isinstance(spec, GceTarget):
            return {}
        reserved, placement = self.reservations.get(spec.reservation or ""), self.placement(spec.placement)
        found = {"placement": placement, "reservation": reserved.path if reserved else None}
        return {name: path for name, path in found.items() if path is not None}

    def options(self, reservation: Named | None, on_gcp: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
        """Return the options of a machine: it is created after its reservation, and deleted before it."""
        if reservation is None or reservation.project or reservation.name not in self.reservations:
            return on_gcp
        after = pulumi.ResourceOptions(depends_on=[self.reservations[reservation.name]])
        return pulumi.ResourceOptions.merge(on_gcp, after)


def deploy(
    section: Gcp,
    place: ClusterNetwork | None,
    labels: Mapping[str, str],
    hooks: Sequence[pulumi.ResourceHookBinding],
    on_gcp: pulumi.ResourceOptions,
    wired: Wired,
    stop: Stopping | None = None,
) -> dict[str, pulumi.Output[dict[str, Any]]]:
    """Return the targets of jobs by name. `hooks`: those of the provider's queued resources, and of declared ones.
    `labels`: those of what jobs create. `wired`: values for every target."""
    vms = section.vms
    if vms is None:
        return {}
    assert place is not None  # the section was checked for it
    capacity = _capacity(section.project, vms, on_gcp)
    account = _account(section, vms, on_gcp) if vms.own else ""
    queued, told = _machines(section, vms, place, capacity, account, hooks[0], on_gcp)
    if stop:
        stop.tpu_queues.extend(queued)
    ground = _ground(section, vms, place, on_gcp)
    if ground is not None:
        told |= _declared(section, vms, place, ground, labels, account, hooks[1], on_gcp)
    if told:
        pulumi.export("vms", told)
    if ground is None:
        return {}
    if stop:
        stop.buckets["jobs"] = ground.bucket
    if vms.reconcile is not None:
        _reconciled(section, vms.reconcile, ground, {"machines": account} if vms.queued_tpus else {}, on_gcp)
    targets = {
        key: _target(section, key, spec, place, ground, labels, {**capacity.of_target(spec), **wired})
        for key, spec in vms.targets.items()
    }
    published = BucketTargets(
        "targets",
        BucketTargetsArgs(
            spec=BucketTargetsSpec(),
            bucket=ground.bucket,
            targets={
                name: target.apply(lambda value: json.dumps(value, sort_keys=True)) for name, target in targets.items()
            },
        ),
        on_gcp,
    )
    pulumi.export("vm_targets", published.source)
    return targets


def _capacity(project: str, spec: Capacity, on_gcp: pulumi.ResourceOptions) -> CapacityResources:
    """Export `capacity`: by kind and key, what its users need to know."""
    told: dict[str, dict[str, Any]] = {}
    reservations: dict[str, Reservation] = {}
    for key, each in spec.reservations.items():
        kept = reservations[key] = Reservation(key, ReservationArgs(spec=each, project=project), on_gcp)
        told.setdefault("reservations", {})[key] = {
            "name": kept.name,
            "zone": kept.zone,
            "machine_type": kept.machine_type,
            "count": kept.count,
            "affinity": kept.affinity,
        }
    for key, each in spec.future_reservations.items():
        later = FutureReservation(key, FutureReservationArgs(spec=each, project=project), on_gcp)
        told.setdefault("future_reservations", {})[key] = {
            "name": later.name,
            "zone": later.zone,
            "reservation": later.reservation,
        }
    placements: dict[str, Placement] = {}
    for key, each in spec.placements.items():
        policy = placements[key] = Placement(key, PlacementArgs(spec=each, project=project), on_gcp)
        told.setdefault("placements", {})[key] = {"path": policy.path, "kind": policy.kind}
    for key, each in spec.commitments.items():
        of = reservations[each.reservation].link if each.reservation in reservations else each.reservation
        bought = Commitment(key, CommitmentArgs(spec=each, project=project, reservation=of), on_gcp)
        told.setdefault("commitments", {})[key] = {
            "name": bought.name,
            "region": bought.region,
            "plan": bought.plan,
            "saving": bought.saving,
            "break_even": bought.break_even,
        }
    if told:
        pulumi.export("capacity", told)
    return CapacityResources(reservations, placements)


def _machines(
    section: Gcp,
    vms: Vms,
    place: ClusterNetwork,
    capacity: CapacityResources,
    account: pulumi.Input[str],
    hooks: pulumi.ResourceHookBinding,
    on_gcp: pulumi.ResourceOptions,
) -> tuple[list[pulumi.Output[str]], dict[str, dict[str, Any]]]:
    """Return the TPU requests by their full names, and by kind and key, what a person needs to reach each machine."""
    queued: list[pulumi.Output[str]] = []
    told: dict[str, dict[str, Any]] = {}

    def common(zone: str) -> dict[str, Any]:
        subnetwork = place.subnetwork_in(zone.rpartition("-")[0])
        return {"project": section.project, "network": place.network, "subnetwork": subnetwork}

    for key, spec in vms.tpus.items():
        made = TpuVm(key, TpuVmArgs(spec=spec, service_account=account, **common(spec.zone)), on_gcp)
        told.setdefault("tpus", {})[key] = {
            "name": made.name,
            "zone": made.zone,
            "accelerator_type": made.accelerator_type,
            "workers": made.worker_count,
            "ssh": made.ssh_commands,
        }
    for key, spec in vms.tpu_queues.items():
        queue = TpuQueue(key, TpuQueueArgs(spec=spec, hooks=hooks, **common(spec.zone)), on_gcp)
        place_of = f"projects/{section.project}/locations/{spec.zone}/queuedResources/"
        queued.append(join(place_of, queue.name))
        told.setdefault("tpu_queues", {})[key] = {"name": queue.name, "zone": queue.zone, "node": queue.node}
    for key, spec in vms.gpus.items():
        placement = capacity.placement(spec.placement)
        args = GpuVmArgs(spec=spec, service_account=account, placement=placement, **common(spec.zone))
        vm = GpuVm(key, args, capacity.options(spec.reservation, on_gcp))
        told.setdefault("gpus", {})[key] = {
            "name": vm.name,
            "zone": vm.zone,
            "machine_type": vm.machine_type,
            "gpus": vm.gpus,
            "ssh": vm.ssh_command,
        }
    for key, spec in vms.gpu_groups.items():
        of_group = GpuVmGroupArgs(
            spec=spec,
            service_account=account,
            placement=capacity.placement(spec.placement),
            workload=vms.workload_policy(spec.placement),
            **common(spec.zone),
        )
        group = GpuVmGroup(key, of_group, capacity.options(spec.reservation, on_gcp))
        told.setdefault("gpu_groups", {})[key] = {"name": group.name, "zone": group.zone, "size": group.size}
    return queued, told


def _ground(section: Gcp, vms: Vms, place: ClusterNetwork, on_gcp: pulumi.ResourceOptions) -> VmJobs | None:
    if vms.jobs is None:
        return None
    args = VmJobsArgs(
        spec=vms.jobs,
        project=section.project,
        region=section.region,
        network=place.network,
        kinds={target.kind for target in vms.targets.values()},
    )
    return VmJobs("jobs", args, on_gcp)


def _declared(
    section: Gcp,
    vms: Vms,
    place: ClusterNetwork,
    ground: VmJobs,
    labels: Mapping[str, str],
    account: pulumi.Input[str],
    hooks: pulumi.ResourceHookBinding,
    on_gcp: pulumi.ResourceOptions,
) -> dict[str, dict[str, Any]]:
    told: dict[str, Any] = {}
    for key, spec in vms.queued_tpus.items():
        args = QueuedTpuArgs(
            spec=spec,
            project=section.project,
            network=place.network,
            subnetwork=place.subnetwork_in(spec.region),
            service_account=account,
            bucket=ground.bucket,
            stack_labels=labels,
            hooks=hooks,
        )
        made = QueuedTpu(key, args, on_gcp)
        told[key] = {"declaration": made.declaration, "zone": made.zone, "nodes": made.nodes}
    return {"queued_tpus": told} if told else {}


def _reconciled(
    section: Gcp,
    spec: ReconcileSpec,
    ground: VmJobs,
    runs_as: Mapping[str, pulumi.Input[str]],
    on_gcp: pulumi.ResourceOptions,
) -> None:
    # Imported here: most stacks have no function of their own code.
    from .reconcile_archive import archive

    args = ReconcileFunctionArgs(
        spec=spec,
        project=section.project,
        region=section.region,
        bucket=ground.bucket,
        files=archive(),
        environment={buckets.VARIABLE: ground.bucket},
        runs_as={"jobs": ground.service_account, **runs_as},
    )
    made = ReconcileFunction("reconcile", args, on_gcp)
    pulumi.export("reconcile", {"function": made.function, "schedule": made.schedule})


def _account(section: Gcp, vms: Vms, on_gcp: pulumi.ResourceOptions) -> pulumi.Input[str]:
    if isinstance(vms.account, ExistingVmAccount):
        return vms.account.email
    return VmAccount("machines", VmAccountArgs(spec=vms.account, project=section.project), on_gcp).email


def _target(
    section: Gcp,
    name: str,
    spec: AnyVmTarget,
    place: ClusterNetwork,
    ground: VmJobs,
    labels: Mapping[str, str],
    own: Wired,
) -> pulumi.Output[dict[str, Any]]:
    regions = dict.fromkeys(zone.rpartition("-")[0] for zone in spec.zones)
    known = pulumi.Output.all(
        network=place.network,
        subnetworks={region: place.subnetwork_in(region) for region in regions},
        service_account=ground.service_account,
        bucket=ground.bucket,
        **({"machine_prefix": ground.machine_prefix} if isinstance(spec, GceTarget) else {}),
        **own,
    )
    return promise_output(known, lambda wired: write({name: _contract(section, spec, labels, wired)})[name])


def _contract(
    section: Gcp, spec: AnyVmTarget, labels: Mapping[str, str], wired: Mapping[str, Any]
) -> contract.TpuVmTarget | contract.GceTarget:
    common = {"project": section.project, "tags": [TAG], "labels": dict(labels), **wired}
    said = spec.model_dump(exclude={"kind", *wired})
    return (
        contract.GceTarget(**common, **said) if isinstance(spec, GceTarget) else contract.TpuVmTarget(**common, **said)
    )
