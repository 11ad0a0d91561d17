"""What is lost with a resource: data that nothing makes again, or capacity that may not be had again."""

from collections.abc import Mapping

from .preview import Change

LOSSES: Mapping[str, str] = {
    "aws:cloudwatch/logGroup:LogGroup": "what jobs printed",
    "aws:dynamodb/table:Table": "its items; of a claim table: which keys were submitted, so that a repeat runs twice",
    "aws:ebs/volume:Volume": "the volume's data",
    "aws:ec2/capacityReservation:CapacityReservation": "reserved capacity, which may not be had again",
    "aws:ec2/eip:Eip": "the address, which others may have allowed",
    "aws:ec2/instance:Instance": "the instance's disks",
    "aws:ecr/repository:Repository": "every image in it",
    "aws:efs/fileSystem:FileSystem": "every file in it",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "every file in it",
    "aws:kms/key:Key": "whatever was encrypted with it",
    "aws:rds/instance:Instance": "the database",
    "aws:s3/bucket:Bucket": "every object in it",
    "aws:s3/bucketV2:BucketV2": "every object in it",
    "aws:secretsmanager/secret:Secret": "its versions",
    "accel:gcp:QueuedTpu": "its TPUs, their boot disks, and what runs on them",
    "gcp:artifactregistry/repository:Repository": "every image in it",
    "gcp:compute/disk:Disk": "the disk's data",
    "gcp:compute/futureReservation:FutureReservation": "capacity that was asked for, which may not be had again",
    "gcp:compute/instance:Instance": "the machine, its boot disk, and what runs on it",
    "gcp:compute/instanceGroupManager:InstanceGroupManager": "its machines, their boot disks, and what runs on them",
    "gcp:compute/reservation:Reservation": "reserved capacity, which may not be had again",
    "gcp:container/cluster:Cluster": "every object in the cluster, and volumes that go with their claims",
    "gcp:filestore/instance:Instance": "every file in it",
    "gcp:firestore/database:Database": "its documents; of a claim database: which keys were submitted",
    "gcp:kms/cryptoKey:CryptoKey": "whatever was encrypted with it",
    "gcp:secretmanager/secret:Secret": "its versions",
    "gcp:storage/bucket:Bucket": "every object in it: records, results and checkpoints of jobs",
    "gcp:tpu/v2QueuedResource:V2QueuedResource": "the place in the queue, or the TPU and what runs on it",
    "gcp:tpu/v2Vm:V2Vm": "the TPU VM, its boot disk, and what runs on it",
    "gcp:vertex/aiTensorboard:AiTensorboard": "its experiments",
    "kubernetes:core/v1:Namespace": "every object in the namespace",
    "kubernetes:core/v1:PersistentVolume": "the volume, where its reclaim policy is Delete",
    "kubernetes:core/v1:PersistentVolumeClaim": "the volume, where its reclaim policy is Delete",
}
"""By Pulumi type."""


def loss(change: Change) -> str | None:
    """What the change would lose for good; None where it loses nothing that lasts."""
    return LOSSES.get(change.type) if change.removes else None
