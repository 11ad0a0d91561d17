"""A claim that pods of a namespace mount: a disk, a Filestore share, or a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import accounts
from accel.rules.gke import names
from accel.rules.gke import storage as rules

from ..base import Component, Spec
from ..sdk import core, meta, storage
from .findings import enforce

_DISK_DRIVER, _FILESTORE_DRIVER, _BUCKET_DRIVER = (
    "pd.csi.storage.gke.io",
    "filestore.csi.storage.gke.io",
    "gcsfuse.csi.storage.gke.io",
)
BUCKET_ANNOTATIONS = {"gke-gcsfuse/volumes": "true"}
"""Annotations for a pod that mounts a bucket; otherwise GKE adds no sidecar to it and the mount fails.
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-pv"""


_LABELS = {"app.kubernetes.io/managed-by": "accel"}
"""Labels of the objects that belong to no namespace."""


class _Volume(Spec):
    """Fields of every kind."""

    retain: bool = Field(
        default=True, description="Keep the stored data when the claim is deleted, also when the stack is destroyed"
    )
    protect: bool = Field(default=False, description="Refuse to delete the claim")


class DiskVolume(_Volume):
    """A Persistent Disk or a Hyperdisk. It follows the first pod that mounts it, to one node of one zone."""

    kind: Literal["disk"] = "disk"
    type: str = Field(
        default="hyperdisk-balanced",
        description="Disk type as Google Cloud names it, such as pd-balanced or hyperdisk-ml",
    )
    size_gib: int = Field(ge=1)
    access: Literal["one-node", "many-readers"] = Field(
        default="one-node",
        description="one-node: pods of one node may write; many-readers: pods of many nodes may read",
    )
    existing: str | None = Field(
        default=None,
        pattern=r"^projects/[^/]+/zones/[^/]+/disks/[^/]+$",
        description="Existing disk: projects/<project>/zones/<zone>/disks/<name>",
    )
    iops: int | None = Field(default=None, ge=1, description="Provisioned IOPS of a new Hyperdisk")
    throughput_mib_s: int | None = Field(
        default=None, ge=1, description="Provisioned throughput of a new Hyperdisk in MiB/s"
    )

    def check(self) -> list[Finding]:
        return rules.disk(
            disk_type=self.type,
            size_gib=self.size_gib,
            many_readers=self.access == "many-readers",
            existing=self.existing is not None,
            iops=self.iops,
            throughput_mib_s=self.throughput_mib_s,
        )


class FilestoreShare(Spec):
    """A share of an existing Filestore instance."""

    location: str = Field(description="Zone of the instance, or region of a regional one")
    instance: str
    share: str
    ip: str


class FilestoreVolume(_Volume):
    """A share that any number of nodes write at once: created for the claim, or existing."""

    kind: Literal["filestore"]
    size_gib: int = Field(ge=1)
    tier: Literal["basic-hdd", "basic-ssd", "zonal", "regional"] = "basic-hdd"
    network: str = Field(default="default", description="VPC of a new instance; has to be the cluster's")
    existing: FilestoreShare | None = None

    def check(self) -> list[Finding]:
        return [] if self.existing else rules.filestore(self.tier, self.size_gib)


class BucketVolume(_Volume):
    """A Cloud Storage bucket as files. The account of the pods needs access to it (roles/storage.objectUser)."""

    kind: Literal["bucket"]
    bucket: str
    only_dir: str | None = Field(default=None, description="Folder of the bucket to mount. Default: the whole bucket")
    read_only: bool = False
    mount_options: list[str] = Field(
        default=["implicit-dirs"], description="Mount options of gcsfuse, in addition to only-dir"
    )

    def check(self) -> list[Finding]:
        return accounts.buckets({"bucket": self.bucket})


JobVolumeSpec = Annotated[DiskVolume | FilestoreVolume | BucketVolume, Field(discriminator="kind")]


@dataclass(frozen=True, kw_only=True)
class JobVolumeArgs:
    """The spec, the claim's name and namespace, and the machines of the pools whose pods mount it."""

    spec: DiskVolume | FilestoreVolume | BucketVolume
    claim: str
    namespace: pulumi.Input[str]
    machine_types: Sequence[str] = field(default_factory=list[str])


class JobVolume(Component):
    """A PersistentVolumeClaim, and the volume or class behind it. With `retain`, neither a destroy nor a renamed claim
    deletes the data: delete it by hand. A change of kind, or of a disk's type, leads to a new, empty volume."""

    TYPE = "accel:kubernetes:JobVolume"

    claim: pulumi.Output[str]
    read_only: pulumi.Output[bool]
    annotations: pulumi.Output[dict[str, str]]

    def __init__(self, name: str, args: JobVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        enforce(names.subdomain(args.claim, "claim"))
        if isinstance(spec, DiskVolume):
            enforce(rules.machines(spec.type, args.machine_types))
        super().__init__(name, spec, opts)
        source = _source(spec)
        if source is not None:
            storage_class, volume_name = "", self._volume(name, args, source).metadata.name
        else:
            storage_class, volume_name = self._class(name, spec).metadata.name, None
        core.PersistentVolumeClaim(
            name,
            metadata=meta.ObjectMetaArgs(
                name=args.claim,
                namespace=args.namespace,
                # It is bound when the first pod mounts it, and no pod comes during an update.
                annotations={"pulumi.com/skipAwait": "true"},
            ),
            spec=core.PersistentVolumeClaimSpecArgs(
                access_modes=[_access(spec)],
                resources=core.VolumeResourceRequirementsArgs(requests={"storage": f"{_size_gib(spec)}Gi"}),
                storage_class_name=storage_class,
                volume_name=volume_name,
            ),
            opts=self._kept(spec),
        )
        read_only = _access(spec) == "ReadOnlyMany"
        self.claim = pulumi.Output.from_input(args.claim)
        self.read_only = pulumi.Output.from_input(read_only)
        self.annotations = pulumi.Output.from_input(BUCKET_ANNOTATIONS if isinstance(spec, BucketVolume) else {})
        self.finish()

    def _kept(self, spec: _Volume) -> pulumi.ResourceOptions:
        return self.child(protect=spec.protect, retain_on_delete=spec.retain)

    def _volume(
        self, name: str, args: JobVolumeArgs, source: core.CSIPersistentVolumeSourceArgs
    ) -> core.PersistentVolume:
        spec = args.spec
        options = (
            [*spec.mount_options, *([f"only-dir={spec.only_dir}"] if spec.only_dir else [])]
            if isinstance(spec, BucketVolume)
            else None
        )
        return core.PersistentVolume(
            f"{name}-volume",
            metadata=meta.ObjectMetaArgs(labels=_LABELS),
            spec=core.PersistentVolumeSpecArgs(
                access_modes=[_access(spec)],
                capacity={"storage": f"{_size_gib(spec)}Gi"},
                # It existed before the claim, so it survives the claim.
                persistent_volume_reclaim_policy="Retain",
                storage_class_name="",
                mount_options=options,
                claim_ref=core.ObjectReferenceArgs(name=args.claim, namespace=args.namespace),
                node_affinity=_zone(spec),
                csi=source,
            ),
            opts=self._kept(spec),
        )

    def _class(self, name: str, spec: DiskVolume | FilestoreVolume | BucketVolume) -> storage.v1.StorageClass:
        provisioner, parameters = _parameters(spec)
        return storage.v1.StorageClass(
            f"{name}-class",
            metadata=meta.ObjectMetaArgs(labels=_LABELS),
            provisioner=provisioner,
            parameters=parameters,
            reclaim_policy="Retain" if spec.retain else "Delete",
            allow_volume_expansion=True,
            # Binds in the pod's zone, not in one that may have no GPUs.
            volume_binding_mode="WaitForFirstConsumer",
            # A retained claim keeps the name of its class.
            opts=self.child(retain_on_delete=spec.retain),
        )


def _access(spec: _Volume) -> str:
    if isinstance(spec, DiskVolume):
        return "ReadWriteOnce" if spec.access == "one-node" else "ReadOnlyMany"
    return "ReadOnlyMany" if isinstance(spec, BucketVolume) and spec.read_only else "ReadWriteMany"


def _size_gib(spec: DiskVolume | FilestoreVolume | BucketVolume) -> int:
    # A bucket has no size, and Kubernetes requires one for a volume.
    return 1 if isinstance(spec, BucketVolume) else spec.size_gib


def _source(spec: DiskVolume | FilestoreVolume | BucketVolume) -> core.CSIPersistentVolumeSourceArgs | None:
    """Return the source of an existing volume; None where the claim creates its own."""
    if isinstance(spec, BucketVolume):
        return core.CSIPersistentVolumeSourceArgs(
            driver=_BUCKET_DRIVER, volume_handle=spec.bucket, read_only=spec.read_only or None
        )
    if spec.existing is None:
        return None
    if isinstance(spec, DiskVolume):
        return core.CSIPersistentVolumeSourceArgs(
            driver=_DISK_DRIVER,
            volume_handle=spec.existing,
            fs_type="ext4",
            read_only=True if spec.access == "many-readers" else None,
        )
    share = spec.existing
    return core.CSIPersistentVolumeSourceArgs(
        driver=_FILESTORE_DRIVER,
        volume_handle=f"modeInstance/{share.location}/{share.instance}/{share.share}",
        volume_attributes={"ip": share.ip, "volume": share.share},
    )


def _zone(spec: DiskVolume | FilestoreVolume | BucketVolume) -> core.VolumeNodeAffinityArgs | None:
    """Return the affinity for a disk's zone: only a node there can attach it."""
    if not isinstance(spec, DiskVolume) or spec.existing is None:
        return None
    zone = core.NodeSelectorRequirementArgs(
        key="topology.gke.io/zone", operator="In", values=[spec.existing.split("/")[3]]
    )
    term = core.NodeSelectorTermArgs(match_expressions=[zone])
    return core.VolumeNodeAffinityArgs(required=core.NodeSelectorArgs(node_selector_terms=[term]))


def _parameters(spec: DiskVolume | FilestoreVolume | BucketVolume) -> tuple[str, dict[str, str]]:
    if isinstance(spec, DiskVolume):
        provisioned = {
            "provisioned-iops-on-create": f"{spec.iops}" if spec.iops else None,
            "provisioned-throughput-on-create": f"{spec.throughput_mib_s}Mi" if spec.throughput_mib_s else None,
        }
        return _DISK_DRIVER, {"type": spec.type, **{key: value for key, value in provisioned.items() if value}}
    assert isinstance(spec, FilestoreVolume)
    return _FILESTORE_DRIVER, {"tier": spec.tier.upper().replace("-", "_"), "network": spec.network}
