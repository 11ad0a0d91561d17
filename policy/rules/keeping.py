"""Policies on the protection of data, on logs and images, and on the labels of the bill."""

from collections.abc import Iterator, Mapping
from typing import Any

from accel.rules.gcp.labels import key as google_key

from ..guard import ResourcePolicy, Settings, texts
from ..resource import Resource, UnknownValue, View, batch_containers

_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def _encrypted(resource: Resource, _: Settings) -> Iterator[str]:
    view = resource.view
    match resource.type:
        case "aws:ec2/launchTemplate:LaunchTemplate":
            disks = view.each("blockDeviceMappings")
            if not disks:
                yield "blockDeviceMappings are not given, so that the image and the account decide"
            for disk in disks:
                if disk.at("ebs") is not None and not disk.true("ebs.encrypted"):
                    yield f"{disk.path('ebs.encrypted')} is not true"
        case "aws:ec2/instance:Instance":
            for disk in (*view.each("rootBlockDevice"), *view.each("ebsBlockDevices")):
                if not disk.true("encrypted"):
                    yield f"{disk.path('encrypted')} is not true"
        case _:
            if not view.true("encrypted"):
                yield "encrypted is not true"


ENCRYPTED = ResourcePolicy(
    id="disks-encrypted",
    severity="high",
    summary="Volumes and file systems of AWS are encrypted; Google's always are",
    fix="set encrypted, on every volume of a launch template",
    source="https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html",
    also=("CKV_AWS_3", "CKV_AWS_8", "CKV_AWS_42"),
    types=(_TEMPLATE, "aws:ec2/instance:Instance", "aws:ebs/volume:Volume", "aws:efs/fileSystem:FileSystem"),
    check=_encrypted,
)

_PROTECTED_BY: Mapping[str, tuple[str, Any]] = {
    "aws:s3/bucket:Bucket": ("", None),
    "aws:s3/bucketV2:BucketV2": ("", None),
    "aws:ecr/repository:Repository": ("", None),
    "aws:efs/fileSystem:FileSystem": ("", None),
    "aws:fsx/lustreFileSystem:LustreFileSystem": ("", None),
    "aws:kms/key:Key": ("", None),
    "aws:dynamodb/table:Table": ("deletionProtectionEnabled", True),
    "gcp:storage/bucket:Bucket": ("", None),
    "gcp:artifactregistry/repository:Repository": ("", None),
    "gcp:filestore/instance:Instance": ("deletionProtectionEnabled", True),
    "gcp:firestore/database:Database": ("deleteProtectionState", "DELETE_PROTECTION_ENABLED"),
    "gcp:container/cluster:Cluster": ("deletionProtection", True),
    "gcp:kms/cryptoKey:CryptoKey": ("", None),
}
"""Protection of resources that cannot be recreated: the cloud's own property for it, and its value."""


def _protected(resource: Resource, _: Settings) -> Iterator[str]:
    if resource.protect or resource.retained:
        return
    field, value = _PROTECTED_BY[resource.type]
    if field and resource.view.at(field) == value:
        return
    besides = f", and {field} is not {value}" if field else ""
    yield f"it is neither protected nor kept when it is deleted{besides}"


PROTECTED = ResourcePolicy(
    id="protected-state",
    severity="high",
    summary="What holds data, images or a cluster's state cannot be deleted by a mistake",
    fix="set protect: true (deletion_protection: true of a cluster) where the environment makes it",
    source="https://www.pulumi.com/docs/iac/concepts/resources/options/protect/",
    types=tuple(_PROTECTED_BY),
    check=_protected,
)


def _retention(resource: Resource, settings: Settings) -> Iterator[str]:
    days = resource.view.number("retentionInDays")
    if not days:
        yield "retentionInDays is not set: it is kept, and paid for, forever"
    elif days < settings["least_days"]:
        yield f"retentionInDays is {days:g}, less than {settings['least_days']:g}"


RETENTION = ResourcePolicy(
    id="log-retention",
    severity="medium",
    summary="Logs are kept for a time that somebody chose",
    fix="set retentionInDays",
    source="https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html",
    also=("CKV_AWS_66", "CKV_AWS_338"),
    settings={
        "least_days": {"type": "integer", "minimum": 1, "default": 7, "description": "fewer are not allowed"},
    },
    types=("aws:cloudwatch/logGroup:LogGroup",),
    check=_retention,
)

_WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "ReplicaSet")
_JOB = "kubernetes:batch/v1:Job"
_DEFINITION = "aws:batch/jobDefinition:JobDefinition"


def _images(resource: Resource) -> Iterator[tuple[str, str]]:
    """Yield path and image of each container."""
    view = resource.view
    if resource.type == _DEFINITION:
        containers = batch_containers(view)
    else:
        spec = view.inside("spec.template.spec")
        containers = [
            part
            for part in (*spec.each("initContainers"), *spec.each("containers"))
            if part.text("imagePullPolicy") != "Never"  # what the node's own image brings has no registry
        ]
    for part in containers:
        if image := part.text("image"):
            yield part.path("image"), image


def _digest(resource: Resource, settings: Settings) -> Iterator[str]:
    for path, image in _images(resource):
        if "@sha256:" not in image and not image.startswith(tuple(settings["allow"])):
            yield f"{path} is {image}, which may be another image tomorrow"


DIGEST = ResourcePolicy(
    id="images-by-digest",
    severity="medium",
    summary="Container images are named by their digest",
    fix="write <repository>@sha256:<digest>",
    source="https://kubernetes.io/docs/concepts/containers/images/#image-names",
    also=("CKV_K8S_43",),
    settings={"allow": texts(["local/"], "beginnings of names whose tags are trusted")},
    types=(_DEFINITION, _JOB, *(f"kubernetes:apps/v1:{kind}" for kind in _WORKLOADS)),
    check=_digest,
)

_LABELLED = {
    "aws:batch/computeEnvironment:ComputeEnvironment": "computeResources.tags",
    _TEMPLATE: "tagSpecifications",
    "aws:ec2/instance:Instance": "tags",
    "aws:ec2/natGateway:NatGateway": "tags",
    "aws:efs/fileSystem:FileSystem": "tags",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "tags",
    "aws:s3/bucket:Bucket": "tags",
    "aws:ecr/repository:Repository": "tags",
    "gcp:container/nodePool:NodePool": "nodeConfig.resourceLabels",
    "gcp:container/cluster:Cluster": "resourceLabels",
    "gcp:compute/instance:Instance": "labels",
    "gcp:compute/instanceTemplate:InstanceTemplate": "labels",
    "gcp:tpu/v2Vm:V2Vm": "labels",
    "gcp:storage/bucket:Bucket": "labels",
    "gcp:filestore/instance:Instance": "labels",
    "gcp:vertex/aiPersistentResource:AiPersistentResource": "labels",
}
"""Properties with the bill's labels. Default labels of a provider reach the resource itself, but not the machines that
AWS Batch, a launch template or a node pool creates."""
_MADE_BY_OTHERS = ("computeResources.tags", "tagSpecifications", "nodeConfig.resourceLabels")


def _labels(resource: Resource, settings: Settings) -> Iterator[str]:
    path = _LABELLED[resource.type]
    if path == "tagSpecifications":
        found = {each.text("resourceType"): each.inside("tags").values for each in resource.view.each(path)}
        for kind in ("instance", "volume"):
            yield from _missing(resource, settings, found.get(kind, {}), f"{path} of {kind}")
        return
    own = dict(resource.view.inside(path).values)
    if path not in _MADE_BY_OTHERS:
        own |= _defaults(resource)
    yield from _missing(resource, settings, own, path)


def _missing(resource: Resource, settings: Settings, own: Mapping[str, Any], path: str) -> Iterator[str]:
    google = resource.type.startswith("gcp:")
    wanted = [google_key(key) if google else key for key in settings["keys"]]
    lacking = [key for key in wanted if key not in own]
    if lacking:
        yield f"{path} lacks {', '.join(lacking)}"


def _defaults(resource: Resource) -> Mapping[str, Any]:
    """Return the labels that the provider sets on everything. Raise UnknownValue where the provider is not known."""
    if resource.provider is None:
        raise UnknownValue("provider")
    provider = View(resource.provider, "provider")  # which has objects as JSON text
    if resource.type.startswith("gcp:"):
        return provider.document("defaultLabels").values
    return provider.document("defaultTags").inside("tags").values


LABELS = ResourcePolicy(
    id="cost-labels",
    severity="medium",
    summary="What costs money says whose it is",
    fix="deploy it with the environment's own provider, whose labels name the owner, the project and the stack",
    source="https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/cost-alloc-tags.html",
    also=("CKV_GCP_21",),
    settings={
        "keys": texts(
            ["accel:owner", "accel:project", "accel:stack"],
            "that must be there; on Google Cloud as its labels are spelt",
        )
    },
    types=tuple(_LABELLED),
    check=_labels,
)


def _public_bucket(resource: Resource, _: Settings) -> Iterator[str]:
    if resource.view.text("publicAccessPrevention") != "enforced":
        yield "publicAccessPrevention is not enforced"
    if not resource.view.true("uniformBucketLevelAccess"):
        yield "uniformBucketLevelAccess is not true: single objects can be made public"


PUBLIC_BUCKET = ResourcePolicy(
    id="no-public-buckets",
    severity="critical",
    summary="Buckets of Cloud Storage cannot be made public",
    fix="set publicAccessPrevention: enforced and uniformBucketLevelAccess: true",
    source="https://docs.cloud.google.com/storage/docs/public-access-prevention",
    also=("CKV_GCP_114", "CKV_GCP_29"),
    types=("gcp:storage/bucket:Bucket",),
    check=_public_bucket,
)

POLICIES = (ENCRYPTED, PROTECTED, RETENTION, DIGEST, LABELS, PUBLIC_BUCKET)
