"""The `gcp` section of an environment: the deployment to one project of Google Cloud."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from accel.catalog.nearest import nearest
from accel.contract.gke import GkePool
from accel.diagnostics.faults import several
from accel.diagnostics.findings import Finding, under
from accel.rules.gcp import accounts as account_rules
from accel.rules.gcp import budgets as budget_rules
from accel.rules.gcp import network as network_rules
from accel.rules.gke import access as access_rules
from accel.rules.gke import clusters as cluster_rules
from accel.rules.gke import labels
from accel.rules.gke import nodes as gke_nodes
from components.base import Name, Spec
from components.gcp.budget import GcpBudgetSpec
from components.gcp.budget_stop import GcpBudgetStopSpec
from components.gcp.cluster import GkeClusterSpec
from components.gcp.cpu_pool import CpuPoolSpec
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.image_repository import GcpImageRepositorySpec
from components.gcp.network import GcpNetworkSpec, SubnetSpec
from components.gcp.node_labels import NodePoolSpec, gke_pool
from components.gcp.service_accounts import NodeServiceAccountSpec, WorkloadServiceAccountSpec
from components.gcp.tpu_pool import TpuPoolSpec

from ..existing import ExistingAccount, OtherStack
from ..gke.config import Workloads
from .jobs_config import GoogleBatch, Vertex, one_name
from .vms_config import Vms

AnyPool = CpuPoolSpec | GpuPoolSpec | TpuPoolSpec


class CreatedNetwork(GcpNetworkSpec):
    """A network that this stack creates and owns."""

    kind: Literal["create"]


class ExistingSubnet(Spec):
    """An existing subnet with its two secondary ranges."""

    subnetwork: str = Field(
        description="Subnet, in a Shared VPC that of the host project: projects/<p>/regions/<r>/subnetworks/<s>"
    )
    pods_range: str = Field(min_length=1, description="Name of the secondary range for pods")
    services_range: str = Field(min_length=1, description="Name of the secondary range for services")
    max_pods_per_node: int = network_rules.PODS_PER_NODE_DEFAULT

    def check(self) -> list[Finding]:
        return network_rules.pods_per_node(self.max_pods_per_node)


class ExistingNetwork(Spec):
    """An existing network."""

    kind: Literal["existing"]
    network: str = Field(description="VPC network: projects/<p>/global/networks/<n>")
    subnets: dict[str, ExistingSubnet] = Field(min_length=1, description="Subnets by region")

    def check(self) -> list[Finding]:
        found = network_rules.network_path(self.network)
        for region, subnet in self.subnets.items():
            found += network_rules.subnet_path(subnet.subnetwork, region, f"subnets.{region}.subnetwork")
        return found


class StackNetwork(OtherStack):
    """The `gcp_network` output of another stack."""


Network = Annotated[CreatedNetwork | ExistingNetwork | StackNetwork, Field(discriminator="kind")]


class CreatedCluster(GkeClusterSpec):
    """A cluster that this stack creates and owns."""

    kind: Literal["create"]


class ExistingCluster(Spec):
    """An existing cluster, without the pools that others created in it."""

    kind: Literal["existing"]
    key: Name = Field(default="cluster", description="Key of the cluster in the `clusters` output")
    name: str
    location: str
    endpoint: str = Field(description="Host, or host:port, of the API server")
    ca_certificate: str = Field(description="CA certificate of the API server, PEM in base64; it is not secret")

    def check(self) -> list[Finding]:
        places = [one for one in cluster_rules.location(self.location, []) if one.rule == cluster_rules.LOCATION.id]
        return places + access_rules.cluster_access(self.endpoint, self.ca_certificate)


class StackCluster(OtherStack):
    """A cluster from the `clusters` output of another stack, with the pools listed there."""

    key: Name = Field(
        default="cluster",
        description="Key of the cluster in the `clusters` output of the other stack, and in that of this stack",
    )


Cluster = Annotated[CreatedCluster | ExistingCluster | StackCluster, Field(discriminator="kind")]


class CreatedNodeAccount(NodeServiceAccountSpec):
    """An account for nodes that this stack creates."""

    kind: Literal["create"]


class ExistingNodeAccount(ExistingAccount):
    """An existing account for nodes, with the roles that they need."""


NodeAccount = Annotated[CreatedNodeAccount | ExistingNodeAccount, Field(discriminator="kind")]


class Accounts(Spec):
    """Google service accounts of nodes and of pods."""

    nodes: NodeAccount = CreatedNodeAccount(kind="create")
    workloads: dict[Name, WorkloadServiceAccountSpec] = Field(default_factory=dict[str, WorkloadServiceAccountSpec])

    def check(self) -> list[Finding]:
        keys = [finding for key in self.workloads for finding in account_rules.key(key, f"workloads.{key}")]
        names = {key: (one.namespace, one.service_account) for key, one in self.workloads.items()}
        return keys + under("workloads", account_rules.identities(names))


class Gcp(Spec):
    """The resources of one environment in one region of a project; machines of `vms` have zones of their own. A stack
    may hold only one layer: the network, or the cluster with its pools on the network of another stack, or pools in the
    cluster of another stack."""

    project: str = Field(description="Project id; nothing in other projects is changed")
    region: str
    network: Network | None = Field(
        default=None, description="Network of a cluster that is created here, and of the machines of `vms` and `batch`"
    )
    cluster: Cluster | None = None
    pools: dict[Name, NodePoolSpec] = Field(
        default_factory=dict[str, NodePoolSpec], description="Node pools of the cluster"
    )
    accounts: Accounts = Accounts()
    vms: Vms | None = Field(default=None, description="TPU VMs, GPU VMs, and targets of jobs that create their own")
    batch: GoogleBatch | None = Field(
        default=None, description="Google Batch: resources that its jobs need, and their targets"
    )
    vertex: Vertex | None = Field(
        default=None, description="Custom jobs of Vertex AI: resources that they need, and their targets"
    )
    images: dict[Name, GcpImageRepositorySpec] = Field(
        default_factory=dict[str, GcpImageRepositorySpec], description="Repositories for images of jobs"
    )
    workloads: Workloads | None = Field(
        default=None, description="Contents of the cluster: drivers, queues, volumes, targets of jobs"
    )

    budgets: dict[Name, GcpBudgetSpec] = Field(default_factory=dict[str, GcpBudgetSpec])
    budget_stop: GcpBudgetStopSpec = GcpBudgetStopSpec()

    @model_validator(mode="after")
    def _references(self) -> Self:
        faults: list[tuple[str, str]] = []
        alone = self.accounts.workloads or self.batch or self.vertex or self.images or self.budgets
        if self.network is None and self.cluster is None and not alone:
            faults.append(("network", "is missing, and cluster and accounts.workloads too: nothing would be made"))
        if isinstance(self.cluster, CreatedCluster):
            if self.network is None:
                faults.append(("network", "is missing; a cluster that is made needs one (create, existing or stack)"))
            elif (subnets := self._subnets()) is not None and self.region not in subnets:
                near = nearest(self.region, list(subnets), 1) or sorted(subnets)
                faults.append(
                    ("network.subnets", f"has none in {self.region}, where the cluster is; nearest: {', '.join(near)}")
                )
        if self.vms is not None and self.network is None:
            faults.append(("network", "is missing; machines of vms need one (create, existing or stack)"))
        if self.batch is not None and self.network is None:
            faults.append(("network", "is missing; VMs of batch need one (create, existing or stack)"))
        parts = {name: getattr(self, name) for name in ("vms", "batch", "vertex", "workloads")}
        faults += one_name({name: list(part.targets) for name, part in parts.items() if part is not None})
        for field in ("pools", "workloads"):
            if getattr(self, field) and self.cluster is None:
                faults.append((field, "are in no cluster; add cluster (create, existing or stack)"))
        if self.workloads:
            unknown = self.workloads.unknown_accounts(self.accounts.workloads)
            faults += [(f"workloads.{path}", text) for path, text in unknown]
        if self.workloads and self.knows_pools and not faults:
            faults += [(f"workloads.{path}", text) for path, text in self.workloads.unknown_pools(self.pools)]
        if faults:
            raise several(faults)
        return self

    @property
    def knows_pools(self) -> bool:
        """Return whether every pool of the cluster is in this section."""
        return not isinstance(self.cluster, StackCluster)

    def pool_facts(self, key: str, physical_name: str) -> GkePool:
        spec = self.pools[key]
        return gke_pool(key, spec, physical_name, self.node_zones(spec), self._most_pods())

    def _most_pods(self) -> int:
        """Return the cluster's pods per node, as far as it is known here; pools may override it."""
        subnet = (self._subnets() or {}).get(self.region)
        return subnet.max_pods_per_node if subnet else network_rules.PODS_PER_NODE_DEFAULT

    def _subnets(self) -> Mapping[str, SubnetSpec | ExistingSubnet] | None:
        """Return the subnets by region; None where another stack has them."""
        return None if self.network is None or isinstance(self.network, StackNetwork) else self.network.subnets

    def check(self) -> list[Finding]:
        found = account_rules.project(self.project) + network_rules.region(self.region, "region")
        if isinstance(self.cluster, CreatedCluster | ExistingCluster):
            found += under("cluster", cluster_rules.in_region(self.cluster.location, self.region))
        if isinstance(self.cluster, CreatedCluster) and any(spec.stop for spec in self.budgets.values()):
            closed, few = self.cluster.private_endpoint, self.cluster.authorized_networks is not None
            found += budget_rules.cluster_reach(private_endpoint=closed, authorized=few)
        # Pools without a cluster are reported above.
        for key, pool in self.pools.items() if self.cluster else ():
            found += under(f"pools.{key}", self._zones(pool)) + labels.pool_name(key, f"pools.{key}")
        if self.vms and (subnets := self._subnets()) is not None:
            found += under("vms", self.vms.in_subnets(list(subnets)))
        if self.batch:
            known = self._subnets()
            found += under("batch", self.batch.in_section(self.region, None if known is None else list(known)))
        if self.vertex:
            found += under("vertex", self.vertex.in_section(self.region))
        if self.pools and isinstance(self.cluster, CreatedCluster):
            cpu = [pool for pool in self.pools.values() if isinstance(pool, CpuPoolSpec) and not pool.taints]
            found += cluster_rules.system_pool(sum(pool.min_nodes for pool in cpu))
        if isinstance(self.cluster, CreatedCluster) and self.workloads:
            releases = [(each.release, each.install, each.installed_by) for each in self.workloads.releases]
            found += under("workloads", cluster_rules.controllers(releases))
        if isinstance(self.network, CreatedNetwork):
            found += self._ranges(self.network)
        if self.workloads and self.workloads.queueing and self.cluster and self.knows_pools:
            facts = {key: self.pool_facts(key, key) for key in self.pools}
            found += under("workloads.queueing", self.workloads.queueing.against(facts))
        if self.workloads and self.knows_pools and (self.workloads.queueing or self.workloads.targets):
            used = self.workloads.used_pools(self.pools)
            for key, pool in self.pools.items():
                found += [] if isinstance(pool, CpuPoolSpec) else gke_nodes.unused_pool(key, used, f"pools.{key}")
        return found

    def _zones(self, pool: AnyPool) -> list[Finding]:
        zones = self.node_zones(pool)
        if pool.zones or not zones:
            return cluster_rules.pool_zones(zones, self.region)
        return pool.in_zones(zones)

    def node_zones(self, pool: AnyPool) -> list[str]:
        """Return the zones that nodes of a pool may be in: its own, or those that the cluster was created with."""
        if pool.zones or not isinstance(self.cluster, CreatedCluster):
            return list(pool.zones or [])
        return ([self.cluster.location] if self.cluster.zonal else []) + self.cluster.node_locations

    def _ranges(self, network: CreatedNetwork) -> list[Finding]:
        cluster, subnet = self.cluster, network.subnets.get(self.region)
        if not isinstance(cluster, CreatedCluster) or subnet is None:
            return []
        found = under(
            "cluster",
            access_rules.snat(default_snat=cluster.default_snat, private_nodes=cluster.private_nodes, pods=subnet.pods),
        )
        if cluster.control_plane_cidr:
            control = {"cluster.control_plane_cidr": cluster.control_plane_cidr}
            every = {f"network.{field}": cidr for field, cidr in network.ranges().items()} | control
            found += [one for one in network_rules.ranges(every) if one.field in control]
        pools = {
            key: (
                pool.most_nodes(len(self.node_zones(pool)) or 1),
                pool.max_pods_per_node or subnet.max_pods_per_node,
            )
            for key, pool in self.pools.items()
        }
        return found + network_rules.growth(pools, subnet.nodes, subnet.pods)
