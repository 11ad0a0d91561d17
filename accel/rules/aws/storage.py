"""Storage of containers besides their image: EFS, folders of the instance, its local disks, buckets."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from accel.diagnostics.findings import Finding
from accel.rules.aws import types
from accel.rules.jobs import placeholders
from accel.rules.table import rule

NO_LOCAL_DISK = rule("aws.storage.no-local-disk")
ACCESS_POINT_ROOT = rule("aws.storage.access-point-root")
BUCKET_NAME = rule("aws.storage.bucket-name")
BUCKET_IMAGE = rule("aws.storage.bucket-image")
BUCKET = rule("aws.storage.bucket")

BUCKET_ROOT = "/mnt/s3"
"""Folder of an instance that contains its buckets, each in a folder of its name."""

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def local_nvme(path: str | None, instance_types: Sequence[str], field: str = "local_nvme") -> list[Finding]:
    if path is None:
        return []
    for i, machine in types.find_machines(instance_types):
        if not machine.local_ssd_gb:
            message = f"is set, and {machine.name} of instance_types[{i}] has no local disk"
            return [NO_LOCAL_DISK.finding(field, message, "leave it out, or name types with local NVMe, such as g6")]
    return []


def efs(file_system: str, folder: str, access_point: str | None) -> list[Finding]:
    found = placeholders.resource_id("file_system", file_system, "fs")
    if access_point is None:
        return found
    found += placeholders.resource_id("access_point", access_point, "fsap")
    if folder != "/":
        message = f"is {folder} beside access point {access_point}, which has a folder of its own"
        found.append(ACCESS_POINT_ROOT.finding("folder", message, "leave it out"))
    return found


def bucket_names(field: str, names: Sequence[str]) -> list[Finding]:
    """Check buckets of a role. Policies name them in ARNs, where a * would match every bucket of everybody."""
    fix = "write the name alone, without s3:// and folders, of each bucket that is meant"
    return [
        BUCKET_NAME.finding(f"{field}[{i}]", f'is "{name}", which is no bucket\'s name', fix)
        for i, name in enumerate(names)
        if not _NAME.fullmatch(name)
    ]


def bucket_mounts(buckets: Mapping[str, str], image_type: str) -> list[Finding]:
    found: list[Finding] = []
    for name in buckets:
        if not _NAME.fullmatch(name):
            fix = "write the name alone, without s3:// and folders"
            found.append(BUCKET_NAME.finding(f"buckets.{name}", "is no bucket's name", fix))
    if buckets and not image_type.startswith("ECS_AL2023"):
        message = f"are mounted by Mountpoint for Amazon S3, which {image_type} does not have"
        found.append(BUCKET_IMAGE.finding("buckets", message, "set image_type to ECS_AL2023_NVIDIA, or leave them out"))
    return found


def bucket(
    field: str, source: str, read_only: bool, environments: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> list[Finding]:
    """Check a mount against the buckets that each environment's instances mount."""
    if source.startswith("gs://"):
        message = f'is "{source}", and AWS Batch mounts nothing of Google'
        return [BUCKET.finding(field, message, "copy it in the command (`gcloud storage cp`, an SDK)")]
    if not source.startswith("s3://"):
        return []
    name = source.removeprefix("s3://").partition("/")[0]
    without = [key for key, buckets in environments.items() if name not in buckets]
    if without or not environments:
        message = f'is "{source}", and instances of {", ".join(without) or "the queue"} do not mount {name or "it"}'
        fix = (
            f"add `buckets: {{{name or 'NAME'}: read-only}}` to the environment in the stack, or copy it in the "
            "command (`aws s3 cp`, an SDK): what jobs may read is roles.read_buckets"
        )
        return [BUCKET.finding(field, message, fix)]
    fixed = [key for key, buckets in environments.items() if buckets[name] == "read-only"]
    if fixed and not read_only:
        message = f'is "{source}", which instances of {", ".join(fixed)} mount read-only'
        return [BUCKET.finding(field, message, "add read_only: true to the mount")]
    return []


def folder(source: str) -> str:
    return f"{BUCKET_ROOT}/{source.removeprefix('s3://').rstrip('/')}"
