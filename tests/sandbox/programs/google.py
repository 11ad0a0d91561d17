"""Every type of the gcp stand-in. The second version changes what can change."""

import json

import pulumi
import pulumi_gcp as gcp

VERSION = 1


def pick(first, second):
    return first if VERSION == 1 else second


project = gcp.organizations.get_project()
client = gcp.organizations.get_client_config()
versions = gcp.container.get_engine_versions(location="us-central1", version_prefix="1.35.")

network = gcp.compute.Network("net", auto_create_subnetworks=False, routing_mode=pick("REGIONAL", "GLOBAL"))
subnet = gcp.compute.Subnetwork(
    "sub",
    network=network.id,
    region="us-central1",
    ip_cidr_range=pick("10.0.0.0/20", "10.0.0.0/19"),
    private_ip_google_access=pick(False, True),
    secondary_ip_ranges=[
        gcp.compute.SubnetworkSecondaryIpRangeArgs(range_name="pods", ip_cidr_range="10.4.0.0/14"),
        gcp.compute.SubnetworkSecondaryIpRangeArgs(range_name="services", ip_cidr_range="10.8.0.0/20"),
    ],
)
gcp.compute.Subnetwork(
    "moved",
    network=network.self_link,
    region=pick("us-east1", "us-west1"),
    ip_cidr_range=pick("10.9.0.0/24", "10.9.1.0/24"),
)
router = gcp.compute.Router("out", network=network.id, region="us-central1")
gcp.compute.RouterNat(
    "nat",
    router=router.name,
    region=router.region,
    nat_ip_allocate_option="AUTO_ONLY",
    source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
    min_ports_per_vm=pick(64, 128),
)
gcp.compute.Firewall(
    "inside",
    network=network.name,
    allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=["22"])],
    source_ranges=pick(["10.0.0.0/8"], ["10.0.0.0/9"]),
)
gcp.compute.Address("address", region="us-central1", labels={"stage": pick("a", "b")})
gcp.compute.GlobalAddress("everywhere", labels=pick({"a": "1", "b": "2"}, {"a": "1"}))
gcp.compute.ResourcePolicy(
    "compact",
    region="us-central1",
    group_placement_policy=gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(
        collocation="COLLOCATED", vm_count=pick(2, 4)
    ),
)
gcp.compute.Reservation(
    "held",
    zone="us-central1-a",
    specific_reservation=gcp.compute.ReservationSpecificReservationArgs(
        count=pick(1, 2),
        instance_properties=gcp.compute.ReservationSpecificReservationInstancePropertiesArgs(
            machine_type="g2-standard-4"
        ),
    ),
)
gcp.compute.Disk("larger", zone="us-central1-a", size=pick(100, 200), type="pd-ssd", labels={"stage": pick("a", "b")})
gcp.compute.Disk("smaller", zone="us-central1-a", size=pick(200, 100), type="pd-ssd")

nodes = gcp.serviceaccount.Account("nodes", account_id="ml-nodes", display_name=pick("Nodes", "Nodes of ML"))
renamed = gcp.serviceaccount.Account("renamed", account_id=pick("ml-first", "ml-second"))
gcp.projects.IAMCustomRole(
    "release", role_id="release", title="Release", permissions=["compute.instances.delete", "tpu.nodes.delete"]
)
gcp.projects.IAMMember("logs", project="accel-sandbox", role="roles/logging.logWriter", member=nodes.member)
gcp.projects.IAMMember(
    "metrics",
    project="accel-sandbox",
    role=pick("roles/monitoring.viewer", "roles/monitoring.metricWriter"),
    member=nodes.member,
)
gcp.projects.IAMMember(
    "sometimes",
    project="accel-sandbox",
    role="roles/viewer",
    member=nodes.member,
    condition=gcp.projects.IAMMemberConditionArgs(title="soon", expression="request.time < timestamp('2030-01-01')"),
)
gcp.artifactregistry.RepositoryIamMember(
    "images", location="us", repository="images", role="roles/artifactregistry.reader", member=nodes.member
)
gcp.secretmanager.SecretIamMember(
    "token", secret_id="token", role="roles/secretmanager.secretAccessor", member=nodes.member
)
gcp.projects.Service("gke", service="container.googleapis.com", disable_on_destroy=pick(False, True))

cluster = gcp.container.Cluster(
    "ml",
    name="ml",
    location="us-central1",
    node_locations=["us-central1-a"],
    network=network.id,
    subnetwork=subnet.id,
    initial_node_count=1,
    remove_default_node_pool=True,
    deletion_protection=pick(True, False),
    min_master_version="1.35",
    datapath_provider="ADVANCED_DATAPATH",
    release_channel=gcp.container.ClusterReleaseChannelArgs(channel=pick("REGULAR", "RAPID")),
    workload_identity_config=gcp.container.ClusterWorkloadIdentityConfigArgs(workload_pool="accel-sandbox.svc.id.goog"),
    ip_allocation_policy=gcp.container.ClusterIpAllocationPolicyArgs(
        cluster_secondary_range_name="pods", services_secondary_range_name="services"
    ),
    private_cluster_config=gcp.container.ClusterPrivateClusterConfigArgs(
        enable_private_nodes=True, enable_private_endpoint=False, master_ipv4_cidr_block="172.16.0.0/28"
    ),
    addons_config=gcp.container.ClusterAddonsConfigArgs(
        gcs_fuse_csi_driver_config=gcp.container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(
            enabled=pick(False, True)
        )
    ),
    logging_config=gcp.container.ClusterLoggingConfigArgs(
        enable_components=pick(["SYSTEM_COMPONENTS"], ["SYSTEM_COMPONENTS", "WORKLOADS"])
    ),
    monitoring_config=gcp.container.ClusterMonitoringConfigArgs(
        enable_components=["SYSTEM_COMPONENTS"],
        managed_prometheus=gcp.container.ClusterMonitoringConfigManagedPrometheusArgs(enabled=pick(True, False)),
    ),
    maintenance_policy=gcp.container.ClusterMaintenancePolicyArgs(
        recurring_window=gcp.container.ClusterMaintenancePolicyRecurringWindowArgs(
            start_time="2026-01-03T00:00:00Z",
            end_time=pick("2026-01-03T06:00:00Z", "2026-01-03T08:00:00Z"),
            recurrence="FREQ=WEEKLY;BYDAY=SA",
        ),
        maintenance_exclusions=[
            gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
                exclusion_name=name,
                start_time="2026-12-20T00:00:00Z",
                end_time=end,
                exclusion_options=gcp.container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
                    scope="NO_UPGRADES"
                ),
            )
            for name, end in {
                "holidays": pick("2026-12-27T00:00:00Z", "2027-01-02T00:00:00Z"),
                **pick({}, {"launch": "2026-12-22T00:00:00Z"}),
            }.items()
        ],
    ),
    resource_labels={"stage": pick("a", "b")},
)
cpus = gcp.container.NodePool(
    "cpus",
    cluster=cluster.name,
    location=cluster.location,
    node_count=pick(1, 2),
    management=gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=pick(True, False)),
    node_config=gcp.container.NodePoolNodeConfigArgs(machine_type=pick("e2-standard-4", "e2-standard-8")),
)
gpus = gcp.container.NodePool(
    "gpus",
    cluster=cluster.id,
    initial_node_count=1,
    autoscaling=gcp.container.NodePoolAutoscalingArgs(
        min_node_count=0, max_node_count=pick(4, 8), location_policy="ANY"
    ),
    max_pods_per_node=32,
    node_locations=["us-central1-a"],
    upgrade_settings=gcp.container.NodePoolUpgradeSettingsArgs(max_surge=pick(1, 2), max_unavailable=0),
    node_config=gcp.container.NodePoolNodeConfigArgs(
        machine_type="g2-standard-4",
        disk_size_gb=pick(100, 200),
        spot=True,
        service_account=nodes.email,
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        guest_accelerators=[
            gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(
                type="nvidia-l4",
                count=1,
                gpu_driver_installation_config=gcp.container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
                    gpu_driver_version="LATEST"
                ),
                gpu_sharing_config=gcp.container.NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
                    gpu_sharing_strategy="TIME_SHARING", max_shared_clients_per_gpu=2
                ),
            )
        ],
        labels={"accel/pool": "gpus", **pick({}, {"more": "yes"})},
        taints=[gcp.container.NodePoolNodeConfigTaintArgs(key="gpu", value=pick("a", "b"), effect="NO_SCHEDULE")],
        gcfs_config=gcp.container.NodePoolNodeConfigGcfsConfigArgs(enabled=True),
        gvnic=gcp.container.NodePoolNodeConfigGvnicArgs(enabled=True),
        workload_metadata_config=gcp.container.NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
        ephemeral_storage_local_ssd_config=gcp.container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(
            local_ssd_count=1
        ),
        shielded_instance_config=gcp.container.NodePoolNodeConfigShieldedInstanceConfigArgs(enable_secure_boot=True),
    ),
)
gcp.container.NodePool(
    "queued",
    cluster=cluster.id,
    autoscaling=gcp.container.NodePoolAutoscalingArgs(total_min_node_count=0, total_max_node_count=8),
    queued_provisioning=gcp.container.NodePoolQueuedProvisioningArgs(enabled=True),
    placement_policy=gcp.container.NodePoolPlacementPolicyArgs(type="COMPACT"),
    node_config=gcp.container.NodePoolNodeConfigArgs(
        machine_type=pick("g2-standard-8", "g2-standard-12"),
        spot=pick(False, True),
        reservation_affinity=gcp.container.NodePoolNodeConfigReservationAffinityArgs(
            consume_reservation_type="NO_RESERVATION"
        ),
    ),
    opts=pulumi.ResourceOptions(ignore_changes=["initialNodeCount"]),
)
gcp.serviceaccount.IAMMember(
    "identity",
    service_account_id=nodes.name,
    role="roles/iam.workloadIdentityUser",
    member="serviceAccount:accel-sandbox.svc.id.goog[jobs/default]",
    opts=pulumi.ResourceOptions(depends_on=[cluster]),
)

bucket = gcp.storage.Bucket(
    "data",
    location="us-central1",
    force_destroy=True,
    uniform_bucket_level_access=True,
    public_access_prevention="enforced",
    versioning=gcp.storage.BucketVersioningArgs(enabled=pick(False, True)),
    labels=pick({"stage": "a", "old": "x"}, {"stage": "b"}),
    lifecycle_rules=[
        gcp.storage.BucketLifecycleRuleArgs(
            action=gcp.storage.BucketLifecycleRuleActionArgs(type="Delete"),
            condition=gcp.storage.BucketLifecycleRuleConditionArgs(age=pick(30, 60), matches_prefixes=["tmp/"]),
        )
    ],
)
gcp.storage.BucketObject(
    "targets",
    bucket=bucket.name,
    name="accel/targets.json",
    content=json.dumps({"version": VERSION}),
    content_type="application/json",
)
gcp.storage.BucketIAMMember(
    "reads",
    bucket=bucket.name,
    role="roles/storage.objectViewer",
    member=nodes.email.apply(lambda e: f"serviceAccount:{e}"),
)
gcp.filestore.Instance(
    "shared",
    location="us-central1-a",
    tier="ZONAL",
    file_shares=gcp.filestore.InstanceFileSharesArgs(name="share", capacity_gb=pick(1024, 2048)),
    networks=[gcp.filestore.InstanceNetworkArgs(network=network.name, modes=["MODE_IPV4"])],
    labels=pick({"stage": "a", "old": "x"}, {"stage": "b"}),
)

pulumi.export("project", project.number)
pulumi.export("client", client.project)
pulumi.export("versions", versions.valid_master_versions)
pulumi.export("endpoint", cluster.endpoint)
pulumi.export("groups", gpus.instance_group_urls)
