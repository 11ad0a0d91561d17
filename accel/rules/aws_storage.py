"""What containers see besides their image: EFS, folders of the instance, its local disks, buckets."""

from collections.abc import Sequence

from accel.rules import aws_types, placeholders
from accel.rules.finding import API, Finding, Rule

NO_LOCAL_DISK = Rule(
    "aws.storage.no-local-disk",
    "reject",
    "Local NVMe needs instance types that have such disks",
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-store-volumes.html",
)
ACCESS_POINT_ROOT = Rule(
    "aws.storage.access-point-root",
    "reject",
    "With an EFS access point the folder is the access point's own",
    f"{API}API_EFSVolumeConfiguration.html",
)
BUCKET = Rule(
    "aws.storage.bucket",
    "reject",
    "AWS Batch mounts no bucket: a volume is an EFS file system or a folder of the instance",
    f"{API}API_Volume.html",
)

RULES = (NO_LOCAL_DISK, ACCESS_POINT_ROOT, BUCKET)


def local_nvme(path: str | None, instance_types: Sequence[str], field: str = "local_nvme") -> list[Finding]:
    """A scratch folder on the instance's own NVMe disks: every type has some."""
    if path is None:
        return []
    for i, machine in aws_types.known(instance_types):
        if not machine.local_ssd_gb:
            message = f"is set, and {machine.name} of instance_types[{i}] has no local disk"
            return [NO_LOCAL_DISK.finding(field, message, "leave it out, or name types with local NVMe, such as g6")]
    return []


def efs(file_system: str, folder: str, access_point: str | None) -> list[Finding]:
    """An EFS volume."""
    found = placeholders.resource_id("file_system", file_system, "fs")
    if access_point is None:
        return found
    found += placeholders.resource_id("access_point", access_point, "fsap")
    if folder != "/":
        message = f"is {folder} beside access point {access_point}, which has a folder of its own"
        found.append(ACCESS_POINT_ROOT.finding("folder", message, "leave it out"))
    return found


def bucket(field: str, source: str) -> list[Finding]:
    """A mount whose source is a bucket."""
    if not source.startswith(("s3://", "gs://")):
        return []
    message = f'is "{source}", and AWS Batch mounts no bucket'
    fix = (
        "copy it in the command (`aws s3 cp`, an SDK); what jobs may read is roles.read_buckets of the stack; "
        "efs:// and host:/// are mounted"
    )
    return [BUCKET.finding(field, message, fix)]
