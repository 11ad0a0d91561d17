"""Policies on the settings of machines, nodes and clusters."""

from collections.abc import Iterator

from ..guard import ResourcePolicy, Settings
from ..resource import Resource, batch_containers

_CLUSTER = "gcp:container/cluster:Cluster"
_NODE_POOL = "gcp:container/nodePool:NodePool"
_GKE = "https://docs.cloud.google.com/kubernetes-engine/docs/how-to/"


def _imdsv2(resource: Resource, settings: Settings) -> Iterator[str]:
    view = resource.view
    if view.text("metadataOptions.httpEndpoint") == "disabled":
        return
    if view.text("metadataOptions.httpTokens") != "required":
        yield "metadataOptions.httpTokens is not required, so that a request without a token gets credentials"
    hops = view.number("metadataOptions.httpPutResponseHopLimit")
    if hops is not None and hops > settings["hops"]:
        yield f"metadataOptions.httpPutResponseHopLimit is {hops:g}, more than {settings['hops']:g}"


IMDSV2 = ResourcePolicy(
    id="imdsv2",
    severity="high",
    summary="EC2 instances give their credentials for a session token only, and not beyond the instance",
    fix="set metadataOptions: httpTokens required, httpPutResponseHopLimit 1",
    source="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html",
    also=("CKV_AWS_79", "CKV_AWS_341"),
    settings={"hops": {"type": "integer", "minimum": 1, "default": 1, "description": "the most that are allowed"}},
    types=("aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance"),
    check=_imdsv2,
)


def _privileged(resource: Resource, _: Settings) -> Iterator[str]:
    for container in batch_containers(resource.view):
        if container.true("privileged"):
            yield f"{container.where}.privileged is true: a job is root on the instance"


PRIVILEGED = ResourcePolicy(
    id="no-privileged-jobs",
    severity="high",
    summary="Containers of AWS Batch jobs are not privileged",
    fix="leave privileged out; devices and volumes can be given one by one",
    source="https://docs.aws.amazon.com/batch/latest/userguide/job_definition_parameters.html",
    also=("CKV_AWS_210",),
    types=("aws:batch/jobDefinition:JobDefinition",),
    check=_privileged,
)


def _shielded(resource: Resource, _: Settings) -> Iterator[str]:
    view = resource.view
    if resource.type == _CLUSTER:
        if view.at("enableShieldedNodes") is False:
            yield "enableShieldedNodes is false"
        return
    shielded = "nodeConfig.shieldedInstanceConfig"
    # Enabled by default: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/shielded-gke-nodes
    if view.at(f"{shielded}.enableIntegrityMonitoring") is False:
        yield f"{shielded}.enableIntegrityMonitoring is false"
    # A driver that GKE does not install may be unsigned, and does not load with secure boot.
    modes = {
        gpu.text("gpuDriverInstallationConfig.gpuDriverVersion") for gpu in view.each("nodeConfig.guestAccelerators")
    }
    if not view.true(f"{shielded}.enableSecureBoot") and "INSTALLATION_DISABLED" not in modes:
        yield f"{shielded}.enableSecureBoot is not true"


SHIELDED = ResourcePolicy(
    id="shielded-nodes",
    severity="medium",
    summary="GKE's nodes are Shielded VMs with secure boot, but for those whose driver is somebody else's",
    fix="set shieldedInstanceConfig: enableSecureBoot and enableIntegrityMonitoring, and enableShieldedNodes",
    source=f"{_GKE}shielded-gke-nodes",
    also=("CKV_GCP_71", "CKV_GCP_68", "CKV_GCP_72"),
    types=(_CLUSTER, _NODE_POOL),
    check=_shielded,
)


def _workload_identity(resource: Resource, _: Settings) -> Iterator[str]:
    if resource.type == _CLUSTER:
        if not resource.view.text("workloadIdentityConfig.workloadPool") and not resource.view.true("enableAutopilot"):
            yield "workloadIdentityConfig.workloadPool is not set"
    elif resource.view.text("nodeConfig.workloadMetadataConfig.mode") != "GKE_METADATA":
        yield "nodeConfig.workloadMetadataConfig.mode is not GKE_METADATA, so that pods get the node's credentials"


WORKLOAD_IDENTITY = ResourcePolicy(
    id="workload-identity",
    severity="high",
    summary="Pods act as accounts of their own, and not as their node",
    fix="set the cluster's workloadPool, and GKE_METADATA on each pool",
    source=f"{_GKE}workload-identity",
    also=("CKV_GCP_69",),
    types=(_CLUSTER, _NODE_POOL),
    check=_workload_identity,
)


def _private_nodes(resource: Resource, _: Settings) -> Iterator[str]:
    view = resource.view
    if resource.type == _NODE_POOL:
        # A pool without the setting follows its cluster, which has a check of its own.
        if view.at("networkConfig.enablePrivateNodes") is False:
            yield "networkConfig.enablePrivateNodes is false"
    elif not view.true("privateClusterConfig.enablePrivateNodes"):
        yield "privateClusterConfig.enablePrivateNodes is not true"


PRIVATE_NODES = ResourcePolicy(
    id="private-nodes",
    severity="high",
    summary="GKE's nodes have no addresses on the internet",
    fix="set enablePrivateNodes on the cluster and its pools",
    source=f"{_GKE}legacy/network-isolation",
    also=("CKV_GCP_64", "CKV_GCP_25"),
    types=(_CLUSTER, _NODE_POOL),
    check=_private_nodes,
)

POLICIES = (IMDSV2, PRIVILEGED, SHIELDED, WORKLOAD_IDENTITY, PRIVATE_NODES)
