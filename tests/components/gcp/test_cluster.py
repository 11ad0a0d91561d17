"""What the cluster component sends."""

from typing import Any

import pytest

from accel.diagnostics.faults import find
from components.gcp.cluster import GkeCluster, GkeClusterSpec
from tests.support import gcp
from tests.support.memory import Registration

from . import makers

NODES = "nodes@ml-dev-1234.iam.gserviceaccount.com"


def sent(**changed: Any) -> Registration:
    return gcp.run(lambda: makers.cluster("main", **changed)).one("container/cluster:Cluster")


def test_a_cluster_without_nodes_of_its_own() -> None:
    made = sent()
    assert (made.inputs["removeDefaultNodePool"], made.inputs["initialNodeCount"]) == (True, 1)
    # The node that is made and deleted does not run as the project's default account ...
    assert made.inputs["nodeConfig"] == {"serviceAccount": NODES}
    # ... and does not replace the cluster in the next update.
    assert made.ignore_changes == ["nodeConfig"]
    assert "name" not in made.inputs, "its name is made up"


def test_vpc_native_with_named_ranges_and_dataplane_v2() -> None:
    inputs = sent(default_snat=False).inputs
    assert inputs["ipAllocationPolicy"] == {
        "clusterSecondaryRangeName": "pods",
        "servicesSecondaryRangeName": "services",
    }
    assert (inputs["networkingMode"], inputs["datapathProvider"]) == ("VPC_NATIVE", "ADVANCED_DATAPATH")
    assert inputs["networkPolicy"] == {"enabled": False}
    assert inputs["defaultMaxPodsPerNode"] == 110
    assert inputs["defaultSnatStatus"] == {"disabled": True}


def test_safe_by_default() -> None:
    inputs = sent().inputs
    assert inputs["workloadIdentityConfig"] == {"workloadPool": "ml-dev-1234.svc.id.goog"}
    assert inputs["privateClusterConfig"] == {"enablePrivateNodes": True, "enablePrivateEndpoint": False}
    assert inputs["enableShieldedNodes"] is True and inputs["enableLegacyAbac"] is False
    assert inputs["masterAuth"] == {"clientCertificateConfig": {"issueClientCertificate": False}}
    assert set(inputs["rbacBindingConfig"].values()) == {False}
    assert inputs["binaryAuthorization"] == {"evaluationMode": "DISABLED"}
    assert inputs["clusterAutoscaling"]["enabled"] is False, "no node auto-provisioning"
    assert inputs["deletionProtection"] is False
    assert sent(deletion_protection=True).inputs["deletionProtection"] is True


def test_what_is_watched() -> None:
    inputs = sent(metrics=["DCGM"], logs=[], managed_prometheus=False).inputs
    assert inputs["monitoringConfig"] == {
        "enableComponents": ["SYSTEM_COMPONENTS", "DCGM"],
        "managedPrometheus": {"enabled": False},
    }
    assert inputs["loggingConfig"] == {"enableComponents": ["SYSTEM_COMPONENTS"]}
    assert inputs["costManagementConfig"] == {"enabled": True}


def test_addons() -> None:
    addons = {"gcs_fuse": False, "filestore": True, "lustre": True, "secret_manager": True, "node_local_dns": False}
    inputs = sent(addons=addons).inputs
    on = {name: one["enabled"] for name, one in inputs["addonsConfig"].items()}
    assert on == {
        "gcePersistentDiskCsiDriverConfig": True,
        "gcsFuseCsiDriverConfig": False,
        "gcpFilestoreCsiDriverConfig": True,
        "lustreCsiDriverConfig": True,
        "dnsCacheConfig": False,
    }
    assert inputs["secretManagerConfig"] == {"enabled": True}


@pytest.mark.parametrize(
    "changed, blocks",
    [
        ({}, None),
        ({"authorized_networks": {}}, []),
        ({"private_endpoint": True}, []),
        (
            {"authorized_networks": {"vpn": "10.9.0.0/24", "ci": "203.0.113.9/32"}},
            [
                {"cidrBlock": "203.0.113.9/32", "displayName": "ci"},
                {"cidrBlock": "10.9.0.0/24", "displayName": "vpn"},
            ],
        ),
    ],
)
def test_who_reaches_the_api(changed: dict[str, Any], blocks: list[dict[str, str]] | None) -> None:
    given = sent(**changed).inputs.get("masterAuthorizedNetworksConfig")
    assert given == (None if blocks is None else {"cidrBlocks": blocks, "gcpPublicCidrsAccessEnabled": False})


def test_a_name_for_the_api() -> None:
    assert "controlPlaneEndpointsConfig" not in sent().inputs
    given = sent(dns_endpoint=True).inputs["controlPlaneEndpointsConfig"]
    assert given == {"dnsEndpointConfig": {"allowExternalTraffic": True}}


def test_public_nodes_have_no_private_cluster_block() -> None:
    assert "privateClusterConfig" not in sent(private_nodes=False).inputs


def test_webhooks_are_let_in_from_the_control_plane_alone() -> None:
    closed = gcp.run(lambda: makers.cluster("main"))
    assert closed.of("compute/firewall:Firewall") == []
    seen = gcp.run(lambda: makers.cluster("main", control_plane_cidr="172.16.0.0/28", webhook_ports=[9443, 8443]))
    rule = seen.one("compute/firewall:Firewall").inputs
    assert rule["sourceRanges"] == ["172.16.0.0/28"] and rule["targetServiceAccounts"] == [NODES]
    assert rule["allows"] == [{"protocol": "tcp", "ports": ["8443", "9443"]}]
    cluster = seen.one("container/cluster:Cluster").inputs
    assert cluster["privateClusterConfig"]["masterIpv4CidrBlock"] == "172.16.0.0/28"


def test_upgrades_come_in_the_window_and_not_in_an_exclusion() -> None:
    maintenance = {
        "window": {"days": ["SU", "WE"], "start": "23:30", "hours": 8},
        "exclusions": {
            "training": {"start": "2026-01-01T00:00:00Z"},
            "launch": {"start": "2026-03-01T02:00:00+02:00", "end": "2026-03-15T00:00:00Z", "scope": "NO_UPGRADES"},
        },
    }
    policy = sent(maintenance=maintenance).inputs["maintenancePolicy"]
    assert policy["recurringWindow"] == {
        "startTime": "2024-01-03T23:30:00Z",  # a Wednesday, the first of its days
        "endTime": "2024-01-04T07:30:00Z",
        "recurrence": "FREQ=WEEKLY;BYDAY=WE,SU",
    }
    assert policy["maintenanceExclusions"] == [
        {
            "exclusionName": "launch",
            "startTime": "2026-03-01T00:00:00Z",
            "endTime": "2026-03-15T00:00:00Z",
            "exclusionOptions": {"scope": "NO_UPGRADES"},
        },
        {
            "exclusionName": "training",
            "startTime": "2026-01-01T00:00:00Z",
            "exclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES", "endTimeBehavior": "UNTIL_END_OF_SUPPORT"},
        },
    ]
    assert "maintenancePolicy" not in sent(maintenance={"window": None}).inputs


def test_what_others_need_of_it() -> None:
    seen = gcp.run(lambda: makers.cluster("main"))
    (component,) = [one.urn for one in seen.registrations if one.type == GkeCluster.TYPE]
    assert seen.outputs[component] == {
        "name": "main-0a1b2c3",
        "location": "us-central1",
        "endpoint": "203.0.113.7",
        "ca_certificate": gcp.CA,
        "workload_pool": "ml-dev-1234.svc.id.goog",
    }


@pytest.mark.parametrize(
    "changed, fault",
    [
        ({"location": "us-central"}, 'location: is "us-central", which is no region and no zone'),
        ({"node_locations": ["us-east1-b"]}, 'node_locations[0]: is "us-east1-b", which is no zone of us-central1'),
        ({"channel": "NONE"}, "channel: must be one of 'RAPID', 'REGULAR', 'STABLE' or 'EXTENDED'"),
        ({"version": "latest"}, 'version: is "latest"'),
        ({"private_nodes": False, "private_endpoint": True}, "private_endpoint: is true, and private_nodes is false"),
        ({"private_nodes": False, "default_snat": False}, "default_snat: is false, and private_nodes is false"),
        ({"authorized_networks": {"ci": "203.0.113.9"}, "private_endpoint": False}, None),
        ({"authorized_networks": {"ci": "here"}}, 'authorized_networks.ci: is "here"'),
        ({"control_plane_cidr": "10.0.0.0/24"}, 'control_plane_cidr: is "10.0.0.0/24"'),
        ({"maintenance": {"window": {"hours": 2}}}, "maintenance.window.hours: must be 4 to 24, is 2"),
        ({"maintenance": {"window": {"start": "2am"}}}, "maintenance.window.start: "),
        (
            {"maintenance": {"exclusions": {"freeze": {"start": "2026-01-01T00:00:00Z", "scope": "NO_UPGRADES"}}}},
            "maintenance.exclusions.freeze.end: is absent, and NO_UPGRADES has to end",
        ),
        ({"maintenance": {"exclusions": {"freeze": {"start": "2026-01-01"}}}}, "maintenance.exclusions.freeze.start: "),
        ({"metrics": ["GPU"]}, "metrics[0]: must be one of"),
        ({"key": "a" * 33}, "key: has 33 characters"),
    ],
)
def test_what_google_would_refuse(changed: dict[str, Any], fault: str | None) -> None:
    found = [str(one) for one in find(GkeClusterSpec, {"location": "us-central1", **changed})]
    if fault is None:
        assert found == []
    else:
        assert [line for line in found if line.startswith(fault)], found
