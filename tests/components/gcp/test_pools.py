"""Node pools as they are sent to the engine, and as the contract tells jobs of them."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from accel.contract.gke import Taint
from components.gcp.cpu_pool import CpuPool, CpuPoolArgs, CpuPoolSpec
from components.gcp.gpu_pool import GpuPool, GpuPoolArgs, GpuPoolSpec
from components.gcp.node_labels import gke_pool
from components.gcp.pool_hooks import pool_hooks
from components.gcp.tpu_pool import TpuPool, TpuPoolArgs, TpuPoolSpec
from tests.support import memory

ZONES = ["us-central1-a"]
WIRED: dict[str, Any] = {
    "cluster": "ml",
    "location": "us-central1",
    "service_account": "nodes@p.iam.gserviceaccount.com",
}


def gpu(**values: Any) -> GpuPoolSpec:
    return GpuPoolSpec.model_validate({"machine_type": "a2-highgpu-4g", "max_nodes": 4, "zones": ZONES, **values})


def tpu(**values: Any) -> TpuPoolSpec:
    return TpuPoolSpec.model_validate({"machine_type": "ct5lp-hightpu-4t", "topology": "4x4", "zones": ZONES, **values})


def registered(make: Callable[[], object]) -> memory.Registration:
    return memory.run(make).one("container/nodePool:NodePool")


def sent(spec: CpuPoolSpec | GpuPoolSpec | TpuPoolSpec, **wired: Any) -> dict[str, Any]:
    args = {**WIRED, **wired}
    if isinstance(spec, GpuPoolSpec):
        return registered(lambda: GpuPool("pool", GpuPoolArgs(spec=spec, **args))).inputs
    if isinstance(spec, TpuPoolSpec):
        return registered(lambda: TpuPool("pool", TpuPoolArgs(spec=spec, **args))).inputs
    return registered(lambda: CpuPool("pool", CpuPoolArgs(spec=spec, **args))).inputs


def faults(make: Callable[[], object]) -> str:
    with pytest.raises(ValidationError) as refused:
        make()
    return str(refused.value)


def test_the_guides_pool() -> None:
    """G-56 to G-58 and G-61."""
    spec = gpu(accelerator="nvidia-tesla-a100", accelerator_count=4, initial_nodes=2)
    pool = sent(spec)
    (accelerator,) = pool["nodeConfig"]["guestAccelerators"]
    assert accelerator == {
        "type": "nvidia-tesla-a100",
        "count": 4,
        "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
    }
    assert (pool["initialNodeCount"], "nodeCount" in pool) == (2, False)
    assert pool["autoscaling"] == {"totalMinNodeCount": 0, "totalMaxNodeCount": 4, "locationPolicy": "ANY"}
    assert "name" not in pool


def test_the_autoscalers_numbers_are_left_alone() -> None:
    pool = registered(lambda: GpuPool("pool", GpuPoolArgs(spec=gpu(), **WIRED)))
    assert pool.ignore_changes == ["initialNodeCount", "nodeCount"]


@pytest.mark.parametrize(
    "driver, image, version, label",
    [
        ("default", "COS_CONTAINERD", "DEFAULT", "default"),
        ("latest", "COS_CONTAINERD", "LATEST", "latest"),
        ("daemonset", "COS_CONTAINERD", "INSTALLATION_DISABLED", None),
        ("operator", "UBUNTU_CONTAINERD", "INSTALLATION_DISABLED", None),
    ],
)
def test_one_driver_owner(driver: str, image: str, version: str, label: str | None) -> None:
    spec = gpu(driver=driver, image_type=image, secure_boot=False)
    config = sent(spec)["nodeConfig"]
    assert config["guestAccelerators"][0]["gpuDriverInstallationConfig"] == {"gpuDriverVersion": version}
    own = config.get("labels", {})
    operators = {"gke-no-default-nvidia-gpu-device-plugin": "true"} if driver == "operator" else {}
    assert own == {"accel.dev/pool": "pool", **operators}
    labels = gke_pool("pool", spec, "pool-1", ZONES).labels
    assert labels.get("cloud.google.com/gke-gpu-driver-version") == label
    assert own.items() <= labels.items()


def test_sharing_and_partitions_multiply() -> None:
    spec = gpu(mig_partition="1g.5gb", sharing={"strategy": "time-sharing", "clients": 3})
    (accelerator,) = sent(spec)["nodeConfig"]["guestAccelerators"]
    assert accelerator["gpuPartitionSize"] == "1g.5gb"
    assert accelerator["gpuSharingConfig"] == {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 3}
    pool = gke_pool("gpu", spec, "pool-1", ZONES)
    assert (pool.gpus, pool.gpu_partition, pool.gpu_sharing) == (4 * 7 * 3, "1g.5gb", "time-sharing")
    assert pool.labels["cloud.google.com/gke-gpu-partition-size"] == "1g.5gb"
    assert pool.labels["cloud.google.com/gke-max-shared-clients-per-gpu"] == "3"


def test_an_attached_gpu() -> None:
    spec = gpu(machine_type="n1-standard-8", accelerator="nvidia-tesla-t4", accelerator_count=2, limits="per-zone")
    (accelerator,) = sent(spec)["nodeConfig"]["guestAccelerators"]
    assert (accelerator["type"], accelerator["count"]) == ("nvidia-tesla-t4", 2)
    pool = gke_pool("t4", spec, "t4-1", ["us-central1-a", "us-central1-b"])
    assert (pool.gpus, pool.max_nodes, pool.accelerator) == (2, 8, "nvidia-tesla-t4")


def test_flex_start_is_what_google_asks_for() -> None:
    pool = sent(gpu(capacity="flex-start", queued_provisioning=True, max_run_duration_s=86_400))
    config = pool["nodeConfig"]
    assert (config["flexStart"], config["maxRunDuration"]) == (True, "86400s")
    assert config["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert pool["management"] == {"autoRepair": False, "autoUpgrade": True}
    assert pool["queuedProvisioning"] == {"enabled": True}
    assert pool["autoscaling"]["locationPolicy"] == "ANY"
    assert "upgradeSettings" not in pool and "spot" not in config


def test_a_queued_pool_says_so() -> None:
    pool = gke_pool("gpu", gpu(capacity="flex-start", queued_provisioning=True), "pool-1", ZONES)
    assert pool.queued
    assert Taint(key="cloud.google.com/gke-queued", value="true", effect="NO_SCHEDULE") in pool.taints
    assert pool.labels["cloud.google.com/gke-flex-start"] == "true"
    assert pool.labels["cloud.google.com/gke-provisioning"] == "flex-start"


@pytest.mark.parametrize(
    "reservation, path",
    [
        ({"name": "r"}, "r"),
        ({"name": "r", "project": "p"}, "projects/p/reservations/r"),
        ({"name": "r", "project": "p", "block": "b"}, "projects/p/reservations/r/reservationBlocks/b"),
    ],
)
def test_a_reservation_is_named(reservation: dict[str, str], path: str) -> None:
    spec = gpu(capacity="reservation", reservation=reservation)
    assert sent(spec)["nodeConfig"]["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [path],
    }


def test_spot_labels_and_settings() -> None:
    spec = gpu(machine_type="g2-standard-8", capacity="spot")
    assert sent(spec)["nodeConfig"]["spot"] is True
    assert gke_pool("l4", spec, "l4-1", ZONES).labels["cloud.google.com/gke-spot"] == "true"


def test_upgrades() -> None:
    assert sent(gpu())["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}
    settings = sent(gpu(upgrade={"strategy": "blue-green", "batch_percent": 25, "pool_soak_s": 60}))["upgradeSettings"]
    assert settings == {
        "strategy": "BLUE_GREEN",
        "blueGreenSettings": {
            "nodePoolSoakDuration": "60s",
            "standardRolloutPolicy": {"batchPercentage": 0.25, "batchSoakDuration": "0s"},
        },
    }


@pytest.mark.parametrize(
    "machine, disk",
    [("a2-highgpu-4g", "pd-balanced"), ("a4-highgpu-8g", "hyperdisk-balanced"), ("g2-standard-8", None)],
)
def test_a_boot_disk_that_the_machine_takes(machine: str, disk: str | None) -> None:
    assert sent(gpu(machine_type=machine, capacity="spot"))["nodeConfig"].get("diskType") == disk


def test_local_ssds() -> None:
    block = sent(gpu(local_ssds={"count": 8, "use": "block"}))["nodeConfig"]
    assert block["localNvmeSsdBlockConfig"] == {"localSsdCount": 8} and "ephemeralStorageLocalSsdConfig" not in block
    spec = gpu(local_ssds={"count": 4})
    assert sent(spec)["nodeConfig"]["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 4}
    assert gke_pool("gpu", spec, "p", ZONES).disk_gib > 1000 > gke_pool("gpu", gpu(), "p", ZONES).disk_gib


def test_a_slice_of_several_hosts() -> None:
    pool = sent(tpu())
    assert pool["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x4"}
    assert pool["autoscaling"] == {"minNodeCount": 0, "maxNodeCount": 4, "locationPolicy": "ANY"}
    assert pool["initialNodeCount"] == 0 and "guestAccelerators" not in pool["nodeConfig"]
    known = gke_pool("tpu", tpu(), "tpu-1", ZONES)
    assert (known.hosts, known.tpu_chips, known.max_nodes, known.tpu_topology) == (4, 4, 4, "4x4")
    assert known.labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v5-lite-podslice"
    assert [taint.key for taint in known.taints] == ["google.com/tpu"]


def test_slices_of_one_host() -> None:
    spec = tpu(machine_type="ct6e-standard-8t", topology="2x4", max_nodes=6, zones=["us-east5-a", "us-east5-b"])
    pool = sent(spec)
    assert "placementPolicy" not in pool
    assert pool["autoscaling"]["totalMaxNodeCount"] == 6
    assert gke_pool("tpu", spec, "tpu-1", spec.zones or []).hosts == 1


def test_a_slice_scales_by_its_hosts() -> None:
    assert "is 2, and topology 4x4 on ct5lp-hightpu-4t is 4 nodes" in faults(lambda: tpu(max_nodes=2))
    assert "min_nodes: is 2" in faults(lambda: tpu(min_nodes=2))


def test_a_cpu_pool() -> None:
    spec = CpuPoolSpec(max_nodes=3, labels={"role": "system"})
    pool = sent(spec, zones=ZONES)
    assert pool["nodeLocations"] == ZONES
    assert pool["nodeConfig"]["machineType"] == "e2-standard-4"
    assert pool["autoscaling"]["locationPolicy"] == "BALANCED"
    known = gke_pool("cpu", spec, "cpu-1", ZONES)
    assert (known.gpus, known.taints, known.labels["role"]) == (0, [], "system")
    assert 3900 <= known.cpu_m < 4000


def test_nodes_are_shielded_private_and_without_the_nodes_identity() -> None:
    pool = sent(gpu())
    config = pool["nodeConfig"]
    assert config["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert config["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert config["metadata"] == {"disable-legacy-endpoints": "true"}
    assert pool["networkConfig"] == {"enablePrivateNodes": True}
    assert config["serviceAccount"] == WIRED["service_account"]


@pytest.mark.parametrize(
    "values, said",
    [
        ({"min_nodes": 5}, "min_nodes: is 5, more than max_nodes (4)"),
        ({"initial_nodes": 5}, "initial_nodes: is 5, not within"),
        ({"accelerator_count": 3}, "accelerator_count: is 3, and a2-highgpu-4g has 4"),
        ({"accelerator": "nvidia-l4"}, "accelerator: is nvidia-l4, and a2-highgpu-4g has 4 nvidia-tesla-a100"),
        ({"driver": "latest", "image_type": "UBUNTU_CONTAINERD"}, "driver: is latest"),
        ({"mig_partition": "1g.10gb"}, 'mig_partition: is "1g.10gb", which nvidia-tesla-a100 has not'),
        (
            {"machine_type": "g4-standard-48", "mig_partition": "2g.48gb", "driver": "daemonset"},
            "mig_partition: is 2g.48gb of nvidia-rtx-pro-6000, which the DaemonSet's partitioner",
        ),
        ({"sharing": {"strategy": "mps", "clients": 60}}, "sharing.clients: must be 2 to 48, is 60"),
        ({"capacity": "reservation"}, "reservation: is missing"),
        ({"queued_provisioning": True}, "queued_provisioning: is true, and capacity is on-demand"),
        ({"compact_placement": True, "zones": ["us-central1-a", "us-central1-b"]}, "zones: are 2"),
        (
            {"capacity": "flex-start", "compact_placement": True, "zones": ["us-central1-a"]},
            "compact_placement: is true, for a2-highgpu-4g with capacity flex-start",
        ),
        ({"capacity": "flex-start", "max_run_duration_s": 599}, "max_run_duration_s: must be 600 to 604800, is 599"),
        ({"machine_type": "a3-highgpu-1g"}, "capacity: is on-demand, and a3-highgpu-1g is available as Spot"),
        ({"labels": {"kubernetes.io/x": "y"}}, "labels.kubernetes.io/x"),
        ({"machine_type": "e2-standard-4"}, "which has no GPU, in a pool of kind gpu"),
        ({"local_ssds": {"count": 3}}, "local_ssds.count: is 3, and a2-highgpu-4g takes 4, 8"),
    ],
)
def test_what_google_would_refuse(values: dict[str, Any], said: str) -> None:
    assert said in faults(lambda: gpu(**values))


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ({"machine_type": "n1-standard-8", "accelerator": "nvidia-tesla-t4"}, True),
        ({"machine_type": "a4x-highgpu-4g"}, True),
        ({"machine_type": "g4-standard-48"}, False),
        ({"machine_type": "g2-standard-24"}, False),
        ({}, False),
    ],
)
def test_gpus_without_flex_start_are_warned_of(values: dict[str, Any], warned: bool) -> None:
    found = [finding.rule for finding in gpu(capacity="flex-start", **values).findings]
    assert ("gke.flex-start.series" in found) == warned


def test_a_zone_without_the_gpu_is_warned_of() -> None:
    assert "gcp.zones.not-listed" in [finding.rule for finding in gpu(zones=["us-central1-z"]).findings]


def test_a_deletion_is_announced_in_a_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text: warned.append(text))
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
    bound: list[pulumi.ResourceHookBinding] = []
    memory.run(lambda: bound.append(pool_hooks()))
    (hook,) = bound[0].before_delete or []
    inputs = {"name": "gpu-1", "nodeConfig": {"machineType": "a2-highgpu-4g"}}
    args = pulumi.ResourceHookArgs(
        urn="urn", id="id", name="gpu", type="t", new_inputs=None, old_inputs=inputs, new_outputs=None, old_outputs=None
    )
    hook.callback(args)  # type: ignore[union-attr]
    assert len(warned) == 1 and "gpu-1 (a2-highgpu-4g)" in warned[0]
