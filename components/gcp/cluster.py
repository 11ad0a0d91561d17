"""A Standard cluster of GKE without nodes, and its maintenance windows: pools are components of their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal, cast

import pulumi
from pydantic import AwareDatetime, Field

from accel.diagnostics.findings import Finding
from accel.rules.gke import access as access_rules
from accel.rules.gke import clusters as rules
from accel.rules.gke import maintenance as maintenance_rules

from ..base import Component, Name, Spec, map_present
from ..sdk import gcp

_Day = Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"]

_DAYS: tuple[_Day, ...] = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_ANY_MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
"""Start of the weekly window; Google keeps only time and length of it."""

Metrics = Literal[
    "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER", "STORAGE", "HPA", "POD", "DAEMONSET", "DEPLOYMENT", "STATEFULSET",
    "CADVISOR", "KUBELET", "DCGM", "JOBSET",
]  # fmt: skip
Logs = Literal["WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER", "KCP_CONNECTION", "KCP_SSHD", "KCP_HPA"]


class AddonsSpec(Spec):
    """Addons that Google runs in the cluster."""

    gcs_fuse: bool = Field(default=True, description="Mount Cloud Storage buckets as volumes")
    filestore: bool = Field(default=False, description="Mount Filestore as volumes")
    lustre: bool = Field(default=False, description="Mount Managed Lustre as volumes")
    secret_manager: bool = Field(default=False, description="Mount secrets of Secret Manager as volumes")
    node_local_dns: bool = Field(default=True, description="Run a DNS cache on each node; a change recreates all nodes")


class WindowSpec(Spec):
    """Hours of the week in which Google upgrades, in UTC."""

    days: list[_Day] = Field(default=["SA", "SU"], min_length=1, description="Days on which the window opens")
    start: str = Field(
        default="02:00", pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="Time at which the window opens: HH:MM, UTC"
    )
    hours: int = Field(default=6, description="Length of the window in hours, 4 to 24")

    def check(self) -> list[Finding]:
        return maintenance_rules.window(self.days, self.hours)


class ExclusionSpec(Spec):
    """A period in which Google does not upgrade."""

    start: AwareDatetime = Field(description="Start of the exclusion, with its time zone, such as 2026-01-01T00:00:00Z")
    end: AwareDatetime | None = Field(
        default=None, description="End of the exclusion, with its time zone. null: the end of support of the version"
    )
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = Field(
        default="NO_MINOR_OR_NODE_UPGRADES",
        description="Upgrades to exclude; NO_MINOR_OR_NODE_UPGRADES leaves nodes, and with them jobs, undisturbed",
    )


class MaintenanceSpec(Spec):
    """Times of upgrades. Google overrides them for grave faults and at the end of a version's support."""

    window: WindowSpec | None = Field(
        default=WindowSpec(), description="Weekly maintenance window. null: upgrades at any time"
    )
    exclusions: dict[Name, ExclusionSpec] = Field(default_factory=dict[str, ExclusionSpec])

    def check(self) -> list[Finding]:
        each = [
            finding
            for name, one in self.exclusions.items()
            for finding in maintenance_rules.exclusion(one.scope, one.start, one.end, f"exclusions.{name}")
        ]
        return each + maintenance_rules.exclusions([one.scope for one in self.exclusions.values()])


class GkeClusterSpec(Spec):
    """A cluster that this stack creates. A change of location, of the ranges or of the data plane replaces it."""

    key: Name = Field(
        default="cluster", description="Key of the cluster in the `clusters` output, and beginning of its name"
    )
    location: str = Field(
        description="Region, or zone for a single control plane; the first zonal cluster has no management fee"
    )
    node_locations: list[str] = Field(
        default_factory=list,
        description="Zones of the nodes, in addition to a zonal location. Default: the zones of the location",
    )
    channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"] = "REGULAR"
    version: str | None = Field(default=None, description="Minimum version of the control plane, such as 1.33")
    private_nodes: bool = Field(default=True, description="Create nodes without public IP addresses")
    private_endpoint: bool = Field(default=False, description="Give the API server no public IP address")
    dns_endpoint: bool = Field(
        default=False, description="Serve the API at a DNS name as well, to principals that IAM allows"
    )
    authorized_networks: dict[str, str] | None = Field(
        default=None,
        description="CIDR ranges that may reach the API server, each under a name of your choice. null: no restriction "
        "by address",
    )
    control_plane_cidr: str | None = Field(
        default=None, description="Private /28 range of the control plane. null: taken from the subnet"
    )
    webhook_ports: list[int] = Field(
        default=[9443],
        description="Ports of nodes that the API server calls for webhooks; opened if control_plane_cidr is set",
    )
    default_snat: bool = Field(
        default=True,
        description="Replace the source address of packets that pods send out of the VPC with that of their node",
    )
    metrics: list[Metrics] = Field(
        default=["POD", "DAEMONSET", "DEPLOYMENT", "STATEFULSET", "STORAGE", "CADVISOR", "KUBELET", "DCGM", "JOBSET"],
        description="Metrics packages to collect, in addition to system metrics",
    )
    logs: list[Logs] = Field(default=["WORKLOADS"], description="Logs to keep, in addition to system logs")
    managed_prometheus: bool = True
    addons: AddonsSpec = AddonsSpec()
    maintenance: MaintenanceSpec = MaintenanceSpec()
    autoscaling_profile: Literal["BALANCED", "OPTIMIZE_UTILIZATION"] = Field(
        default="OPTIMIZE_UTILIZATION",
        description="Autoscaling profile; OPTIMIZE_UTILIZATION removes idle nodes, which cost money, sooner than "
        "BALANCED",
    )
    binary_authorization: bool = False
    intranode_visibility: bool = Field(default=False, description="Include traffic within a node in flow logs")
    secrets_key: str | None = Field(
        default=None,
        description="Cloud KMS key that encrypts Secrets in the API server's database: projects/.../cryptoKeys/k",
    )
    security_group: str | None = Field(
        default=None, description="Google group for RBAC with Google Groups: gke-security-groups@<domain>"
    )
    deletion_protection: bool = Field(
        default=False, description="Prevent deletion and replacement of the cluster by `pulumi`"
    )

    def check(self) -> list[Finding]:
        return [
            *rules.key(self.key),
            *rules.location(self.location, self.node_locations),
            *rules.version(self.channel, self.version, self.metrics),
            *access_rules.access(
                private_nodes=self.private_nodes,
                private_endpoint=self.private_endpoint,
                dns_endpoint=self.dns_endpoint,
                authorized=self.authorized_networks,
            ),
            *(access_rules.control_plane(self.control_plane_cidr) if self.control_plane_cidr else []),
            *access_rules.snat(default_snat=self.default_snat, private_nodes=self.private_nodes),
            *access_rules.ports(self.webhook_ports),
        ]

    @property
    def zonal(self) -> bool:
        return rules.is_zone(self.location)


@dataclass(frozen=True, kw_only=True)
class GkeClusterArgs:
    """The spec, the ranges of nodes, services and pods (sized for `max_pods_per_node`), and the nodes' account."""

    spec: GkeClusterSpec
    project: str
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    pods_range: pulumi.Input[str]
    services_range: pulumi.Input[str]
    max_pods_per_node: pulumi.Input[int]
    node_service_account: pulumi.Input[str]


class GkeCluster(Component):
    """A VPC-native cluster with Dataplane V2 and workload identity. Replacing it ends everything that runs there."""

    TYPE = "accel:gcp:GkeCluster"

    name: pulumi.Output[str]
    location: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    ca_certificate: pulumi.Output[str]
    workload_pool: pulumi.Output[str]

    def __init__(self, name: str, args: GkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        cluster = _cluster(self, name, args)
        if args.spec.control_plane_cidr and args.spec.webhook_ports:
            _webhooks(self, name, args, args.spec.control_plane_cidr)
        self.name = cluster.name
        self.location = cluster.location
        self.endpoint = cluster.endpoint
        # The certificate is public; the secret that could come with it, a client's key, is never issued.
        self.ca_certificate = pulumi.Output.unsecret(
            map_present(cluster.master_auth, lambda auth: cast(str, auth.cluster_ca_certificate))
        )
        self.workload_pool = cluster.id.apply(lambda _: f"{args.project}.svc.id.goog")
        self.finish()


def _cluster(self: Component, name: str, args: GkeClusterArgs) -> gcp.container.Cluster:
    spec = args.spec
    return gcp.container.Cluster(
        name,
        project=args.project,
        location=spec.location,
        node_locations=spec.node_locations or None,
        network=args.network,
        subnetwork=args.subnetwork,
        networking_mode="VPC_NATIVE",
        ip_allocation_policy=gcp.container.ClusterIpAllocationPolicyArgs(
            cluster_secondary_range_name=args.pods_range, services_secondary_range_name=args.services_range
        ),
        default_max_pods_per_node=args.max_pods_per_node,
        datapath_provider="ADVANCED_DATAPATH",
        enable_intranode_visibility=spec.intranode_visibility,
        default_snat_status=gcp.container.ClusterDefaultSnatStatusArgs(disabled=not spec.default_snat),
        **_default_pool(args),
        **_versions(spec),
        **_access(spec),
        **_security(spec, args.project),
        **_observed(spec),
        addons_config=_addons(spec.addons),
        cluster_autoscaling=gcp.container.ClusterClusterAutoscalingArgs(
            enabled=False, autoscaling_profile=spec.autoscaling_profile
        ),
        gateway_api_config=gcp.container.ClusterGatewayApiConfigArgs(channel="CHANNEL_DISABLED"),
        maintenance_policy=_maintenance_policy(spec.maintenance),
        deletion_protection=spec.deletion_protection,
        # The pool of node_config is gone after the first update, and the block then looks like a change that replaces
        # the cluster: https://github.com/hashicorp/terraform-provider-google/issues/17511
        opts=self.child(ignore_changes=["nodeConfig"]),
    )


def _default_pool(args: GkeClusterArgs) -> dict[str, Any]:
    """Request a pool with one node, which is deleted at once: a cluster cannot be created without a pool."""
    return {
        "initial_node_count": 1,
        "remove_default_node_pool": True,
        # Without it that node needs the project's default account, which a well-maintained project does not have.
        "node_config": gcp.container.ClusterNodeConfigArgs(service_account=args.node_service_account),
    }


def _versions(spec: GkeClusterSpec) -> dict[str, Any]:
    return {
        "release_channel": gcp.container.ClusterReleaseChannelArgs(channel=spec.channel),
        "min_master_version": spec.version,
    }


def _access(spec: GkeClusterSpec) -> dict[str, Any]:
    given: dict[str, Any] = {
        "master_auth": gcp.container.ClusterMasterAuthArgs(
            client_certificate_config=gcp.container.ClusterMasterAuthClientCertificateConfigArgs(
                issue_client_certificate=False
            )
        )
    }
    if spec.private_nodes:
        given["private_cluster_config"] = gcp.container.ClusterPrivateClusterConfigArgs(
            enable_private_nodes=True,
            enable_private_endpoint=spec.private_endpoint,
            master_ipv4_cidr_block=spec.control_plane_cidr,
        )
    # A private endpoint requires the block, which may be empty:
    # https://github.com/GoogleCloudPlatform/magic-modules/pull/8338
    if spec.authorized_networks is not None or spec.private_endpoint:
        given["master_authorized_networks_config"] = gcp.container.ClusterMasterAuthorizedNetworksConfigArgs(
            cidr_blocks=[
                gcp.container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=cidr, display_name=label)
                for label, cidr in sorted((spec.authorized_networks or {}).items())
            ],
            gcp_public_cidrs_access_enabled=False,
        )
    if spec.dns_endpoint:
        given["control_plane_endpoints_config"] = gcp.container.ClusterControlPlaneEndpointsConfigArgs(
            dns_endpoint_config=gcp.container.ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs(
                allow_external_traffic=True
            )
        )
    return given


def _security(spec: GkeClusterSpec, project: str) -> dict[str, Any]:
    given: dict[str, Any] = {
        "workload_identity_config": gcp.container.ClusterWorkloadIdentityConfigArgs(
            workload_pool=f"{project}.svc.id.goog"
        ),
        "enable_shielded_nodes": True,
        "enable_legacy_abac": False,
        # Dataplane V2 enforces network policies by itself, and Calico's switch must be off beside it.
        "network_policy": gcp.container.ClusterNetworkPolicyArgs(enabled=False),
        "security_posture_config": gcp.container.ClusterSecurityPostureConfigArgs(mode="BASIC"),
        "rbac_binding_config": gcp.container.ClusterRbacBindingConfigArgs(
            enable_insecure_binding_system_authenticated=False, enable_insecure_binding_system_unauthenticated=False
        ),
        "binary_authorization": gcp.container.ClusterBinaryAuthorizationArgs(
            evaluation_mode="PROJECT_SINGLETON_POLICY_ENFORCE" if spec.binary_authorization else "DISABLED"
        ),
        "secret_manager_config": gcp.container.ClusterSecretManagerConfigArgs(enabled=spec.addons.secret_manager),
    }
    if spec.secrets_key:
        given["database_encryption"] = gcp.container.ClusterDatabaseEncryptionArgs(
            state="ENCRYPTED", key_name=spec.secrets_key
        )
    if spec.security_group:
        given["authenticator_groups_config"] = gcp.container.ClusterAuthenticatorGroupsConfigArgs(
            security_group=spec.security_group
        )
    return given


def _observed(spec: GkeClusterSpec) -> dict[str, Any]:
    return {
        "logging_config": gcp.container.ClusterLoggingConfigArgs(
            enable_components=["SYSTEM_COMPONENTS", *dict.fromkeys(spec.logs)]
        ),
        "monitoring_config": gcp.container.ClusterMonitoringConfigArgs(
            enable_components=["SYSTEM_COMPONENTS", *dict.fromkeys(spec.metrics)],
            managed_prometheus=gcp.container.ClusterMonitoringConfigManagedPrometheusArgs(
                enabled=spec.managed_prometheus
            ),
        ),
        "cost_management_config": gcp.container.ClusterCostManagementConfigArgs(enabled=True),
    }


def _addons(spec: AddonsSpec) -> gcp.container.ClusterAddonsConfigArgs:
    return gcp.container.ClusterAddonsConfigArgs(
        gce_persistent_disk_csi_driver_config=gcp.container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs(
            enabled=True
        ),
        gcs_fuse_csi_driver_config=gcp.container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(enabled=spec.gcs_fuse),
        gcp_filestore_csi_driver_config=gcp.container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs(
            enabled=spec.filestore
        ),
        lustre_csi_driver_config=gcp.container.ClusterAddonsConfigLustreCsiDriverConfigArgs(enabled=True)
        if spec.lustre
        else None,
        dns_cache_config=gcp.container.ClusterAddonsConfigDnsCacheConfigArgs(enabled=spec.node_local_dns),
    )


def _maintenance_policy(spec: MaintenanceSpec) -> gcp.container.ClusterMaintenancePolicyArgs | None:
    if spec.window is None and not spec.exclusions:
        return None
    return gcp.container.ClusterMaintenancePolicyArgs(
        recurring_window=_window(spec.window) if spec.window else None,
        maintenance_exclusions=[_exclusion(name, spec.exclusions[name]) for name in sorted(spec.exclusions)] or None,
    )


def _window(spec: WindowSpec) -> gcp.container.ClusterMaintenancePolicyRecurringWindowArgs:
    days = [day for day in _DAYS if day in spec.days]
    opens = time.fromisoformat(spec.start)
    first = _ANY_MONDAY + timedelta(days=_DAYS.index(days[0]), hours=opens.hour, minutes=opens.minute)
    return gcp.container.ClusterMaintenancePolicyRecurringWindowArgs(
        start_time=_zulu(first),
        end_time=_zulu(first + timedelta(hours=spec.hours)),
        recurrence=f"FREQ=WEEKLY;BYDAY={','.join(days)}",
    )


def _exclusion(name: str, spec: ExclusionSpec) -> gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgs:
    return gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
        exclusion_name=name,
        start_time=_zulu(spec.start),
        end_time=_zulu(spec.end) if spec.end else None,
        exclusion_options=gcp.container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
            scope=spec.scope, end_time_behavior=None if spec.end else "UNTIL_END_OF_SUPPORT"
        ),
    )


def _zulu(moment: datetime) -> str:
    # Google returns a time in this spelling; any other would look like a change on every update.
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _webhooks(self: Component, name: str, args: GkeClusterArgs, control_plane: str) -> None:
    """Open the ports of admission webhooks. By default GKE lets the control plane reach nodes at 443 and 10250 only.
    Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/private-clusters#add_firewall_rules"""
    gcp.compute.Firewall(
        f"{name}-webhooks",
        project=args.project,
        network=args.network,
        direction="INGRESS",
        source_ranges=[control_plane],
        target_service_accounts=[args.node_service_account],
        allows=[
            gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[str(port) for port in sorted(args.spec.webhook_ports)])
        ],
        description="from the control plane to admission webhooks",
        opts=self.child(),
    )
