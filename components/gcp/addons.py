"""Addons of a cluster."""

from __future__ import annotations

from pydantic import Field

from ..base import Spec
from ..sdk import gcp


class AddonsSpec(Spec):
    """What Google runs in the cluster besides."""

    gcs_fuse: bool = Field(default=True, description="buckets as volumes")
    filestore: bool = Field(default=False, description="Filestore as volumes")
    lustre: bool = Field(default=False, description="Managed Lustre as volumes")
    secret_manager: bool = Field(default=False, description="secrets of Secret Manager as volumes")
    node_local_dns: bool = Field(default=True, description="a DNS cache on each node; a change makes all nodes anew")


def addons(spec: AddonsSpec) -> gcp.container.ClusterAddonsConfigArgs:
    """Each addon as Google takes it."""
    return gcp.container.ClusterAddonsConfigArgs(
        gce_persistent_disk_csi_driver_config=gcp.container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs(
            enabled=True
        ),
        gcs_fuse_csi_driver_config=gcp.container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(enabled=spec.gcs_fuse),
        gcp_filestore_csi_driver_config=gcp.container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs(
            enabled=spec.filestore
        ),
        lustre_csi_driver_config=gcp.container.ClusterAddonsConfigLustreCsiDriverConfigArgs(enabled=True)
        if spec.lustre
        else None,
        dns_cache_config=gcp.container.ClusterAddonsConfigDnsCacheConfigArgs(enabled=spec.node_local_dns),
    )
