"""One maker for each component of the network, the accounts and the cluster, for tests and laws."""

import pulumi

from components.gcp.cluster import GkeCluster, GkeClusterArgs, GkeClusterSpec
from components.gcp.network import GcpNetwork, GcpNetworkSpec
from components.gcp.service_accounts import (
    NodeServiceAccount,
    NodeServiceAccountArgs,
    NodeServiceAccountSpec,
    WorkloadServiceAccount,
    WorkloadServiceAccountArgs,
    WorkloadServiceAccountSpec,
)
from tests.support.gcp import PROJECT

IMAGES = f"projects/{PROJECT}/locations/us/repositories/images"
SUBNETS = {
    "us-central1": {"nodes": "10.60.0.0/20", "pods": "10.64.0.0/12", "services": "10.61.0.0/20"},
    "us-east5": {"nodes": "10.60.16.0/20", "pods": "10.80.0.0/12", "services": "10.61.16.0/20"},
}


def out(value: str) -> pulumi.Output[str]:
    return pulumi.Output.from_input(value)


def network(name: str, **changed: object) -> GcpNetwork:
    return GcpNetwork(name, GcpNetworkSpec.model_validate({"subnets": SUBNETS, **changed}))


def node_account(name: str, **changed: object) -> NodeServiceAccount:
    spec = NodeServiceAccountSpec.model_validate({"repositories": [IMAGES], **changed})
    return NodeServiceAccount(name, NodeServiceAccountArgs(spec=spec, project=PROJECT))


def workload_account(name: str, **changed: object) -> WorkloadServiceAccount:
    spec = WorkloadServiceAccountSpec.model_validate(
        {
            "namespace": "training",
            "service_account": "trainer",
            "read_buckets": ["data", "models"],
            "write_buckets": ["models"],
            "secrets": ["wandb"],
            "repositories": [IMAGES],
            "roles": ["roles/bigquery.jobUser"],
            **changed,
        }
    )
    args = WorkloadServiceAccountArgs(spec=spec, project=PROJECT, workload_pool=f"{PROJECT}.svc.id.goog")
    return WorkloadServiceAccount(name, args)


def cluster(name: str, **changed: object) -> GkeCluster:
    args = GkeClusterArgs(
        spec=GkeClusterSpec.model_validate({"location": "us-central1", **changed}),
        project=PROJECT,
        network=out("projects/p/global/networks/n"),
        subnetwork=out("projects/p/regions/us-central1/subnetworks/s"),
        pods_range="pods",
        services_range="services",
        max_pods_per_node=110,
        node_service_account=out(f"nodes@{PROJECT}.iam.gserviceaccount.com"),
    )
    return GkeCluster(name, args)
