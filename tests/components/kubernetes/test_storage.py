"""What each kind of volume becomes."""

import pytest

from components.kubernetes.storage import BucketVolume, DiskVolume, FilestoreVolume, JobVolume, JobVolumeArgs
from tests.support import memory

from . import makers
from .test_components import inputs, refused


def test_a_new_disk_waits_for_its_pod_and_outlives_the_claim() -> None:
    seen = memory.run(lambda: makers.volume("data", DiskVolume(size_gib=500, iops=6000, throughput_mib_s=300)))
    storage_class = seen.one(":StorageClass").inputs
    assert storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
    assert storage_class["reclaimPolicy"] == "Retain"
    assert storage_class["parameters"] == {
        "type": "hyperdisk-balanced",
        "provisioned-iops-on-create": "6000",
        "provisioned-throughput-on-create": "300Mi",
    }
    claim = seen.one(":PersistentVolumeClaim")
    assert claim.inputs["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim.retain_on_delete and not claim.protect


def test_what_is_not_retained_goes_with_the_claim() -> None:
    seen = memory.run(lambda: makers.volume("data", DiskVolume(size_gib=500, retain=False, protect=True)))
    assert seen.one(":StorageClass").inputs["reclaimPolicy"] == "Delete"
    claim = seen.one(":PersistentVolumeClaim")
    assert claim.protect and not claim.retain_on_delete


def test_a_disk_that_many_read_is_there_and_keeps_to_its_zone() -> None:
    seen = memory.run(lambda: makers.MAKERS["volume-disk-readers"]("data"))
    spec = seen.one(":PersistentVolume").inputs["spec"]
    assert spec["csi"] == {
        "driver": "pd.csi.storage.gke.io",
        "volumeHandle": makers.DISK,
        "fsType": "ext4",
        "readOnly": True,
    }
    assert spec["accessModes"] == ["ReadOnlyMany"]
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["us-central1-a"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"


def test_a_bucket_is_mounted_in_part_and_says_what_pods_need() -> None:
    seen = memory.run(lambda: makers.MAKERS["volume-bucket"]("data"))
    spec = seen.one(":PersistentVolume").inputs["spec"]
    assert spec["mountOptions"] == ["implicit-dirs", "only-dir=2026"]
    assert spec["csi"] == {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": "corpus"}
    outputs = next(found for urn, found in seen.outputs.items() if urn.endswith("::data"))
    assert outputs["annotations"] == {"gke-gcsfuse/volumes": "true"}
    assert outputs["read_only"] is False


def test_a_bucket_may_be_read_only() -> None:
    seen = memory.run(lambda: makers.volume("data", BucketVolume(kind="bucket", bucket="corpus", read_only=True)))
    spec = seen.one(":PersistentVolume").inputs["spec"]
    assert (spec["accessModes"], spec["csi"]["readOnly"]) == (["ReadOnlyMany"], True)


def test_a_share_is_found_by_its_instance() -> None:
    spec = inputs(lambda: makers.MAKERS["volume-filestore-there"]("data"), "PersistentVolume")["spec"]
    assert spec["csi"]["volumeHandle"] == "modeInstance/us-central1-a/shared/vol1"
    assert spec["csi"]["volumeAttributes"] == {"ip": "10.0.0.2", "volume": "vol1"}


def test_a_tier_is_spelt_as_filestore_does() -> None:
    made = inputs(
        lambda: makers.volume("data", FilestoreVolume(kind="filestore", size_gib=2560, tier="basic-ssd")),
        "StorageClass",
    )
    assert made["parameters"] == {"tier": "BASIC_SSD", "network": "default"}


@pytest.mark.parametrize(
    "disk, claim, says",
    [("hyperdisk-ml", "Data", 'claim: is "Data"'), ("pd-balanced", "data", "type: is pd-balanced.*a4x-highgpu-4g")],
)
def test_what_cannot_be_mounted_is_refused(disk: str, claim: str, says: str) -> None:
    args = JobVolumeArgs(
        spec=DiskVolume(type=disk, size_gib=10), claim=claim, namespace="ml", machine_types=["a4x-highgpu-4g"]
    )
    refused(lambda: JobVolume("data", args), says)
