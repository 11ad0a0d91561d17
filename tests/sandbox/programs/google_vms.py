"""Every type of the gcp stand-in that has to do with virtual machines. The second version changes what can change."""

import pulumi
import pulumi_gcp as gcp

VERSION = 1
IMAGE = "projects/deeplearning-platform-release/global/images/family/common-cu129-ubuntu-2404-nvidia-580"


def pick(first, second):
    return first if VERSION == 1 else second


image = gcp.compute.get_image(family="debian-12", project="debian-cloud")
zones = gcp.compute.get_zones(region="us-central1")

network = gcp.compute.Network("net", auto_create_subnetworks=False)
subnet = gcp.compute.Subnetwork("sub", network=network.id, region="us-central1", ip_cidr_range="10.0.0.0/20")
account = gcp.serviceaccount.Account("vms", account_id="ml-vms")
compact = gcp.compute.ResourcePolicy(
    "compact",
    region="us-central1",
    group_placement_policy=gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(collocation="COLLOCATED"),
)
data = gcp.compute.Disk("data", zone="us-central1-a", size=20)
more = gcp.compute.Disk("more", zone="us-central1-a", size=20)
gpu = gcp.compute.Instance(
    "gpu",
    zone="us-central1-a",
    machine_type=pick("g2-standard-4", "g2-standard-8"),
    allow_stopping_for_update=True,
    boot_disk=gcp.compute.InstanceBootDiskArgs(
        initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(image=IMAGE, size=100, type="pd-balanced")
    ),
    network_interfaces=[
        gcp.compute.InstanceNetworkInterfaceArgs(
            subnetwork=subnet.id, access_configs=[gcp.compute.InstanceNetworkInterfaceAccessConfigArgs()]
        )
    ],
    scheduling=gcp.compute.InstanceSchedulingArgs(on_host_maintenance="TERMINATE", automatic_restart=pick(True, False)),
    service_account=gcp.compute.InstanceServiceAccountArgs(
        email=account.email, scopes=["https://www.googleapis.com/auth/cloud-platform"]
    ),
    metadata={"enable-oslogin": "TRUE", "stage": pick("a", "b")},
    labels={"stage": pick("a", "b")},
    tags=pick(["ssh"], ["ssh", "web"]),
    attached_disks=[gcp.compute.InstanceAttachedDiskArgs(source=data.self_link)],
    resource_policies=compact.id,
    shielded_instance_config=gcp.compute.InstanceShieldedInstanceConfigArgs(enable_secure_boot=False),
    reservation_affinity=gcp.compute.InstanceReservationAffinityArgs(type="NO_RESERVATION"),
    deletion_protection=pick(True, False),
)
spot = gcp.compute.Instance(
    "spot",
    zone="us-central1-a",
    machine_type="n1-standard-4",
    guest_accelerators=[gcp.compute.InstanceGuestAcceleratorArgs(type="nvidia-tesla-t4", count=pick(1, 2))],
    boot_disk=gcp.compute.InstanceBootDiskArgs(
        initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(image="debian-cloud/debian-12")
    ),
    network_interfaces=[gcp.compute.InstanceNetworkInterfaceArgs(network=network.id, subnetwork=subnet.id)],
    scheduling=gcp.compute.InstanceSchedulingArgs(
        provisioning_model="SPOT",
        preemptible=True,
        automatic_restart=False,
        instance_termination_action="STOP",
        max_run_duration=gcp.compute.InstanceSchedulingMaxRunDurationArgs(seconds=86400),
    ),
    metadata_startup_script="#!/bin/sh\nexit 0\n",
)
stopped = gcp.compute.Instance(
    "stopped",
    zone="us-central1-a",
    machine_type="e2-standard-2",
    desired_status=pick("RUNNING", "TERMINATED"),
    boot_disk=gcp.compute.InstanceBootDiskArgs(
        initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(image=image.self_link)
    ),
    network_interfaces=[gcp.compute.InstanceNetworkInterfaceArgs(subnetwork=subnet.self_link)],
)
gcp.compute.AttachedDisk(
    "mounted",
    disk=more.id,
    instance=spot.id,
    zone="us-central1-a",
    opts=pulumi.ResourceOptions(delete_before_replace=True),
)


def template(kind, name, **extra):
    block = kind.__name__
    return kind(
        name,
        machine_type="g2-standard-4",
        disks=[getattr(gcp.compute, f"{block}DiskArgs")(source_image=IMAGE, auto_delete=True, boot=True)],
        network_interfaces=[getattr(gcp.compute, f"{block}NetworkInterfaceArgs")(subnetwork=subnet.id)],
        scheduling=getattr(gcp.compute, f"{block}SchedulingArgs")(
            on_host_maintenance="TERMINATE", automatic_restart=True
        ),
        labels={"stage": pick("a", "b")},
        metadata={"stage": "a"},
        **extra,
    )


whole = template(gcp.compute.InstanceTemplate, "whole")
regional = template(gcp.compute.RegionInstanceTemplate, "regional", region="us-central1")
policy = gcp.compute.InstanceGroupManagerUpdatePolicyArgs(
    type="PROACTIVE", minimal_action="REPLACE", max_surge_fixed=0, max_unavailable_fixed=1
)
group = gcp.compute.InstanceGroupManager(
    "group",
    zone="us-central1-a",
    base_instance_name="worker",
    versions=[gcp.compute.InstanceGroupManagerVersionArgs(instance_template=whole.self_link)],
    target_size=pick(2, 1),
    update_policy=policy,
    wait_for_instances=True,
)
wide = gcp.compute.RegionInstanceGroupManager(
    "wide",
    region="us-central1",
    base_instance_name="wide",
    versions=[gcp.compute.RegionInstanceGroupManagerVersionArgs(instance_template=regional.self_link)],
    target_size=pick(0, 2),
    distribution_policy_zones=["us-central1-a", "us-central1-b"],
    wait_for_instances=True,
)
gcp.compute.FutureReservation(
    "later",
    name="later",
    zone="us-central1-a",
    planning_status="SUBMITTED",
    time_window=gcp.compute.FutureReservationTimeWindowArgs(
        start_time="2035-01-01T00:00:00Z", end_time="2035-02-01T00:00:00Z"
    ),
    specific_sku_properties=gcp.compute.FutureReservationSpecificSkuPropertiesArgs(
        total_count="2",
        instance_properties=gcp.compute.FutureReservationSpecificSkuPropertiesInstancePropertiesArgs(
            machine_type="a3-highgpu-8g"
        ),
    ),
)
gcp.compute.RegionCommitment(
    "paid",
    region="us-central1",
    plan="TWELVE_MONTH",
    type="ACCELERATOR_OPTIMIZED",
    resources=[
        gcp.compute.RegionCommitmentResourceArgs(type="VCPU", amount="4"),
        gcp.compute.RegionCommitmentResourceArgs(type="MEMORY", amount="16384"),
    ],
)

pulumi.export("image", image.name)
pulumi.export("zones", zones.names)
pulumi.export("address", gpu.network_interfaces[0].network_ip)
pulumi.export("group", group.name)
pulumi.export("gpu", gpu.name)
pulumi.export("spot", spot.name)
