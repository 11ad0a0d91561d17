"""The spec that CPU, GPU and TPU node pools of GKE share."""

from typing import Annotated, Literal

from pydantic import Field

from accel.catalog.gke_machines import included_local_ssds
from accel.contract.gke import Taint
from accel.diagnostics.findings import Finding
from accel.rules.gke import capacity as gke_capacity
from accel.rules.gke import labels as gke_labels
from accel.rules.gke import nodes, pools

from ..base import Spec

Capacity = Literal["on-demand", "spot", "flex-start", "reservation"]


class DiskSpec(Spec):
    """The boot disk of each node."""

    size_gib: int = 100
    type: Literal["pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"] | None = Field(
        default=None, description="Disk type. Default: the one that the machine type needs"
    )


class LocalSsdSpec(Spec):
    """Local SSDs of each node, 375 GiB each on most machines. Machine types with built-in SSDs do not need it."""

    count: int = Field(ge=1)
    use: Literal["ephemeral", "block"] = Field(
        default="ephemeral",
        description="Use of the SSDs: ephemeral for emptyDir volumes and images, block for raw disks",
    )


class ReservationSpec(Spec):
    """A Compute Engine reservation that nodes are created in, and nowhere else."""

    name: str = Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")
    project: str | None = Field(
        default=None,
        description="Project that owns the reservation, if it is a shared one. Default: that of the cluster or VM",
    )
    block: str | None = Field(default=None, description="Single block to use, if the reservation has blocks")

    @property
    def path(self) -> str:
        """Return the path as `reservationAffinity.values` takes it."""
        owner = f"projects/{self.project}/reservations/" if self.project else ""
        return owner + self.name + (f"/reservationBlocks/{self.block}" if self.block else "")


class SurgeSpec(Spec):
    """Replacement of a limited number of nodes at a time."""

    strategy: Literal["surge"] = "surge"
    max_surge: int = Field(
        default=1, description="Maximum number of nodes added at once, which needs quota and capacity for them"
    )
    max_unavailable: int = Field(default=0, description="Maximum number of nodes removed at once")

    def check(self) -> list[Finding]:
        return nodes.surge(self.max_surge, self.max_unavailable)


class BlueGreenSpec(Spec):
    """Creation of all nodes beside the old ones, which are removed in batches. Needs capacity for twice the nodes."""

    strategy: Literal["blue-green"] = "blue-green"
    batch_nodes: int | None = Field(default=None, ge=1)
    batch_percent: float | None = Field(default=None, gt=0, le=100)
    batch_soak_s: int = Field(default=0, ge=0)
    pool_soak_s: int = Field(default=3600, ge=0, description="Seconds that the old nodes stay, to allow a rollback")

    def check(self) -> list[Finding]:
        return nodes.blue_green(self.batch_nodes, self.batch_percent)


UpgradeSpec = Annotated[SurgeSpec | BlueGreenSpec, Field(discriminator="strategy")]


class PoolSpec(Spec):
    """Fields of every node pool."""

    machine_type: str
    zones: list[str] | None = Field(
        default=None, min_length=1, description="Zones of the nodes. Default: those of the cluster"
    )
    min_nodes: int = Field(default=0, description="Minimum number of nodes, which are kept running and billed")
    initial_nodes: int = Field(
        default=0,
        description="Nodes per zone when the pool is created; 0 allows creating it where machines are out of stock",
    )
    limits: Literal["total", "per-zone"] = Field(
        default="total", description="Scope of min_nodes and max_nodes. total: all zones together; per-zone: each zone"
    )
    location_policy: Literal["BALANCED", "ANY"] | None = Field(
        default=None,
        description="Distribution of nodes over zones. Default: ANY, which uses zones with capacity; for CPU nodes on "
        "demand or from a reservation, BALANCED",
    )
    capacity: Capacity = "on-demand"
    reservation: ReservationSpec | None = None
    max_run_duration_s: int | None = Field(
        default=None, description="Maximum run time of a flex-start node, in seconds. Default: seven days"
    )
    placement_policy: str | None = Field(default=None, description="Name of an existing resource policy of your own")
    disk: DiskSpec = DiskSpec()
    local_ssds: LocalSsdSpec | None = None
    image_type: Literal["COS_CONTAINERD", "UBUNTU_CONTAINERD"] = "COS_CONTAINERD"
    image_streaming: bool = True
    preloaded_images: list[str] = Field(
        default_factory=list[str], description="Disk images that contain container images, attached to each node"
    )
    upgrade: UpgradeSpec | None = Field(
        default=None, description="Upgrade strategy. Default: surge, one node at a time"
    )
    auto_upgrade: bool = True
    auto_repair: bool | None = Field(
        default=None, description="Repair unhealthy nodes. Default: true, or false for flex-start"
    )
    labels: dict[str, str] = Field(default_factory=dict[str, str], description="Kubernetes labels of the nodes")
    taints: list[Taint] = Field(default_factory=list[Taint])
    secure_boot: bool = Field(
        default=True, description="Enable Secure Boot of Shielded VMs; unsigned kernel modules do not load with it"
    )
    private_nodes: bool = True
    max_pods_per_node: int | None = Field(default=None, description="Maximum pods per node. Default: the cluster's")

    @property
    def zone_count(self) -> int | None:
        return len(self.zones) if self.zones else None

    def least_nodes(self, zone_count: int) -> int:
        return self.min_nodes * zone_count if self.limits == "per-zone" else self.min_nodes

    def in_zones(self, zones: list[str]) -> list[Finding]:
        """Return the findings that only the cluster's zones cause; a spec without zones was checked without any."""
        placed = self.model_copy(update={"zones": zones})
        return [each for each in placed.findings if each not in self.findings]

    @property
    def node_labels(self) -> dict[str, str]:
        return self.labels

    @property
    def strategy(self) -> str | None:
        return self.upgrade.strategy if self.upgrade else None

    @property
    def ephemeral_ssds(self) -> int:
        """Return those for ephemeral storage; built-in ones count, unless used as raw disks."""
        if self.local_ssds:
            return self.local_ssds.count if self.local_ssds.use == "ephemeral" else 0
        return included_local_ssds(self.machine_type)

    def pool_findings(self, *, max_nodes: int) -> list[Finding]:
        begins, count = self.initial_nodes, self.zone_count
        if self.limits == "total" and count is None:
            # As many zones as the cluster has; their number is unknown here, so only the minimum counts.
            begins = max(begins, self.min_nodes) if begins else 0
        elif self.limits == "total" and count != 1:
            begins = 0
        found = pools.bounds(self.min_nodes, max_nodes, begins or None)
        if self.limits == "total" and not found:
            found += nodes.initial(self.initial_nodes, max_nodes, count or 1, min_nodes=self.min_nodes)
        found += nodes.disk(self.disk.size_gib, self.disk.type, self.machine_type)
        found += nodes.management(self.auto_upgrade, None if self.capacity == "flex-start" else self.auto_repair)
        found += gke_labels.labels(self.labels)
        found += gke_labels.taints([(taint.key, taint.value, taint.effect) for taint in self.taints])
        found += gke_capacity.capacity(
            self.capacity,
            machine_type=self.machine_type,
            reservation=self.reservation.name if self.reservation else None,
            zones=self.zone_count,
            location_policy=self.location_policy,
            max_run_duration_s=self.max_run_duration_s,
        )
        if self.local_ssds:
            found += nodes.local_ssds(self.local_ssds.count, self.machine_type)
        if self.preloaded_images:
            found += nodes.preloaded_images(self.image_streaming)
        return found

    def flex_findings(self, hosts: int = 1) -> list[Finding]:
        if self.capacity != "flex-start":
            return []
        return gke_capacity.flex_start(
            min_nodes=self.min_nodes,
            initial_nodes=self.initial_nodes,
            auto_repair=self.auto_repair,
            location_policy=self.location_policy,
            upgrade=self.strategy,
            hosts=hosts,
        )
