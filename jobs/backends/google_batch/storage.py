"""Mounts of a job's tasks: buckets, NFS shares, and disks of their VMs."""

from dataclasses import dataclass
from typing import Any

from accel.rules import Finding, under
from accel.rules.batch import runnables

from ...model.blocks_google import GoogleBatch
from ...model.fields import Mount
from ...model.job import Job

ROOT = "/mnt/disks"
"""Only folder below which the container OS lets folders be created. Source:
https://github.com/GoogleCloudPlatform/batch-samples/issues/21"""
GCS, NFS = "gs://", "nfs://"


@dataclass(frozen=True)
class MountedVolume:
    """Volume of the task at `host` on the VM, at `path` for the job."""

    volume: dict[str, Any]
    host: str
    path: str
    read_only: bool

    @property
    def bind(self) -> str:
        """Argument of docker run. Without its last part, existing disks would be read-only."""
        return f"{self.host}:{self.path}:{'ro' if self.read_only else 'rw'}"


def mounted_volumes(job: Job, block: GoogleBatch, *, scripts: bool) -> list[MountedVolume]:
    """Return the job's mounts and disks. Scripts see the VM itself, so their volumes are mounted at their own paths."""
    found: list[MountedVolume] = []
    for i, mount in enumerate(job.mounts):
        host = mount.path if scripts else f"{ROOT}/mount-{i}"
        found.append(MountedVolume({**_of_mount(mount), "mountPath": host}, host, mount.path, mount.read_only))
    for disk in block.disks:
        host = disk.path if scripts else f"{ROOT}/{disk.name}"
        volume = {"deviceName": disk.name, "mountPath": host, "mountOptions": ["rw", "async"]}
        found.append(MountedVolume(volume, host, disk.path, read_only=False))
    return found


def _of_mount(mount: Mount) -> dict[str, Any]:
    if mount.source.startswith(GCS):
        # Without implicit folders, folders without an object of their own are invisible. One option each: a comma is
        # refused.
        # https://github.com/nextflow-io/nextflow/pull/5991, https://github.com/nextflow-io/nextflow/issues/4331
        options = ["-o ro" if mount.read_only else "-o rw", "-implicit-dirs"]
        return {"gcs": {"remotePath": mount.source.removeprefix(GCS).rstrip("/")}, "mountOptions": options}
    server, _, share = mount.source.removeprefix(NFS).partition("/")
    nfs: dict[str, Any] = {"nfs": {"server": server, "remotePath": f"/{share}"}}
    return {**nfs, "mountOptions": ["ro"]} if mount.read_only else nfs


def findings(job: Job, block: GoogleBatch) -> list[Finding]:
    found: list[Finding] = []
    for i, mount in enumerate(job.mounts):
        found += under(f"mounts[{i}]", runnables.mount(mount.source))
    paths = {f"mounts[{i}].path": mount.path for i, mount in enumerate(job.mounts)}
    paths |= {f"disks[{i}].path": disk.path for i, disk in enumerate(block.disks)}
    writable = [mount.path for mount in job.mounts if not mount.read_only]
    return found + runnables.mount_paths(paths) + runnables.logs_path(block.logs_path, writable)


def disks(block: GoogleBatch) -> list[dict[str, Any]]:
    return [{"deviceName": disk.name, "newDisk": {"sizeGb": disk.gib, "type": disk.type}} for disk in block.disks]


def logs(block: GoogleBatch, volumes: list[MountedVolume]) -> dict[str, Any]:
    """Return the logs policy, whose folder is the VM's, not the container's."""
    if block.logs_path is None:
        return {"destination": "CLOUD_LOGGING"}
    for each in volumes:
        if block.logs_path == each.path or block.logs_path.startswith(each.path.rstrip("/") + "/"):
            return {"destination": "PATH", "logsPath": each.host + block.logs_path[len(each.path.rstrip("/")) :]}
    return {"destination": "PATH", "logsPath": block.logs_path}
