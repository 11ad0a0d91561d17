"""What a job's tasks have mounted: buckets, shares of NFS, and disks of their VMs."""

from dataclasses import dataclass
from typing import Any

from accel.rules import Finding, under
from accel.rules.batch import runnables

from ...model.blocks_google import GoogleBatch
from ...model.fields import Mount
from ...model.job import Job

ROOT = "/mnt/disks"
"""Below it alone does the system for containers let folders be made. Source:
https://github.com/GoogleCloudPlatform/batch-samples/issues/21"""
GCS, NFS = "gs://", "nfs://"


@dataclass(frozen=True)
class MountedVolume:
    """A volume of the task at `host` on the VM, seen at `path` by the job."""

    volume: dict[str, Any]
    host: str
    path: str
    read_only: bool

    @property
    def bind(self) -> str:
        """As docker run takes it. Without its last part, disks that exist would be read-only."""
        return f"{self.host}:{self.path}:{'ro' if self.read_only else 'rw'}"


def mounted_volumes(job: Job, block: GoogleBatch, *, scripts: bool) -> list[MountedVolume]:
    """The job's mounts and disks. Scripts see the VM itself, so that what they use is there under its own path."""
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
        # Without implicit folders, those that nobody made are not seen. One option each: a comma is refused.
        # https://github.com/nextflow-io/nextflow/pull/5991, https://github.com/nextflow-io/nextflow/issues/4331
        options = ["-o ro" if mount.read_only else "-o rw", "-implicit-dirs"]
        return {"gcs": {"remotePath": mount.source.removeprefix(GCS).rstrip("/")}, "mountOptions": options}
    server, _, share = mount.source.removeprefix(NFS).partition("/")
    nfs: dict[str, Any] = {"nfs": {"server": server, "remotePath": f"/{share}"}}
    return {**nfs, "mountOptions": ["ro"]} if mount.read_only else nfs


def findings(job: Job, block: GoogleBatch) -> list[Finding]:
    """Of sources and paths, and of the folder for logs."""
    found: list[Finding] = []
    for i, mount in enumerate(job.mounts):
        found += under(f"mounts[{i}]", runnables.mount(mount.source))
    paths = {f"mounts[{i}].path": mount.path for i, mount in enumerate(job.mounts)}
    paths |= {f"disks[{i}].path": disk.path for i, disk in enumerate(block.disks)}
    writable = [mount.path for mount in job.mounts if not mount.read_only]
    return found + runnables.mount_paths(paths) + runnables.logs_path(block.logs_path, writable)


def disks(block: GoogleBatch) -> list[dict[str, Any]]:
    """The new disks of each VM."""
    return [{"deviceName": disk.name, "newDisk": {"sizeGb": disk.gib, "type": disk.type}} for disk in block.disks]


def logs(block: GoogleBatch, volumes: list[MountedVolume]) -> dict[str, Any]:
    """The logs policy; a folder is the VM's, not the container's."""
    if block.logs_path is None:
        return {"destination": "CLOUD_LOGGING"}
    for each in volumes:
        if block.logs_path == each.path or block.logs_path.startswith(each.path.rstrip("/") + "/"):
            return {"destination": "PATH", "logsPath": each.host + block.logs_path[len(each.path.rstrip("/")) :]}
    return {"destination": "PATH", "logsPath": block.logs_path}
