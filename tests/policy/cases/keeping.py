"""Cases of the policies of what is kept."""

import json

from policy.resource import UNSEEN, Resource

from .shapes import (
    CLUSTER,
    COMPUTE,
    DEFINITION,
    DIGEST,
    EC2,
    OURS,
    OWN,
    POOL,
    TEMPLATE,
    Case,
    containers,
    each,
    node,
    one,
)

GROUP = "aws:cloudwatch/logGroup:LogGroup"
BUCKET = "gcp:storage/bucket:Bucket"
DISK = {"deviceName": "/dev/xvda", "ebs": {"encrypted": "true"}}
TAGGED = [{"resourceType": kind, "tags": OWN} for kind in ("instance", "volume")]


CASES: dict[str, Case] = {
    "disks-encrypted": each(
        [
            one(TEMPLATE, blockDeviceMappings=[DISK, {"deviceName": "/dev/sdb", "virtualName": "ephemeral0"}]),
            one(EC2, rootBlockDevice={"encrypted": True}),
            one("aws:efs/fileSystem:FileSystem", encrypted=True),
        ],
        [
            (one(TEMPLATE), "blockDeviceMappings are not given"),
            (
                one(TEMPLATE, blockDeviceMappings=[DISK, {"ebs": {"volumeSize": 1}}]),
                "blockDeviceMappings[1].ebs.encrypted",
            ),
            (one(EC2, ebsBlockDevices=[{"volumeSize": 9}]), "ebsBlockDevices[0].encrypted"),
            (one("aws:ebs/volume:Volume", size=10), "encrypted is not true"),
        ],
        [(one("aws:ebs/volume:Volume", encrypted=UNSEEN), "encrypted")],
    ),
    "protected-state": each(
        [
            one("aws:ecr/repository:Repository", protect=True),
            one(CLUSTER, deletionProtection=True),
            one("gcp:firestore/database:Database", deleteProtectionState="DELETE_PROTECTION_ENABLED"),
        ],
        [
            (one("aws:ecr/repository:Repository"), "neither protected nor kept"),
            (one("aws:dynamodb/table:Table", hashKey="k"), "deletionProtectionEnabled is not True"),
            (one(CLUSTER, deletionProtection=False), "deletionProtection is not True"),
        ],
        [(one(CLUSTER, deletionProtection=UNSEEN), "deletionProtection")],
    ),
    "log-retention": each(
        [one(GROUP, retentionInDays=30.0), one(GROUP, retentionInDays=7)],
        [
            (one(GROUP, name="x"), "retentionInDays is not set"),
            (one(GROUP, retentionInDays=0), "retentionInDays is not set"),
            (one(GROUP, retentionInDays=3), "retentionInDays is 3, less than 7"),
        ],
        [(one(GROUP, retentionInDays=UNSEEN), "retentionInDays")],
    ),
    "images-by-digest": each(
        [
            one(DEFINITION, containerProperties=json.dumps({"image": DIGEST})),
            one(DEFINITION, containerProperties=json.dumps({"image": "local/examples"})),
            containers(DIGEST),
            containers("installer:fixed", imagePullPolicy="Never"),
        ],
        [
            (one(DEFINITION, containerProperties=json.dumps({"image": "repo/train:1"})), "image is repo/train:1"),
            (containers(DIGEST, "repo/sidecar"), "spec.template.spec.containers[1].image is repo/sidecar"),
        ],
        [
            (one(DEFINITION, containerProperties=UNSEEN), "containerProperties"),
            (containers(UNSEEN), "spec.template.spec.containers[0].image"),  # type: ignore[arg-type]
        ],
    ),
    "cost-labels": each(
        [
            one("aws:ec2/natGateway:NatGateway"),
            one(TEMPLATE, tagSpecifications=TAGGED),
            one(COMPUTE, computeResources={"tags": OWN}),
            one(POOL, nodeConfig={"resourceLabels": OURS}),
            one(BUCKET, labels={"more": "x"}),
        ],
        [
            (one(TEMPLATE), "tagSpecifications of instance lacks accel:owner, accel:project, accel:stack"),
            (one(TEMPLATE, tagSpecifications=TAGGED[:1]), "tagSpecifications of volume lacks"),
            (one(COMPUTE, computeResources={"tags": {"accel:owner": "ml"}}), "lacks accel:project, accel:stack"),
            (node(machineType="e2-standard-4"), "nodeConfig.resourceLabels lacks accel-owner"),
        ],
        [
            (one(BUCKET, labels=UNSEEN), "labels"),
            (Resource("aws:s3/bucket:Bucket", "b", "urn::b", {}), "provider"),
        ],
    ),
    "no-public-buckets": each(
        [one(BUCKET, publicAccessPrevention="enforced", uniformBucketLevelAccess=True)],
        [
            (one(BUCKET, uniformBucketLevelAccess=True), "publicAccessPrevention is not enforced"),
            (one(BUCKET, publicAccessPrevention="enforced"), "single objects can be made public"),
        ],
        [(one(BUCKET, publicAccessPrevention=UNSEEN), "publicAccessPrevention")],
    ),
}
