"""One maker for each Kubernetes component: what the laws and the API server's own checks run over."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pulumi

from accel.contract.gke import GkePool, Taint
from components.base import Component
from components.kubernetes.bundle import ReleaseBundle, ReleaseBundleSpec
from components.kubernetes.dcgm import DcgmExporter, DcgmExporterSpec
from components.kubernetes.drivers import DriverInstaller, DriverInstallerArgs, DriverInstallerSpec
from components.kubernetes.health import GpuHealth, GpuHealthSpec
from components.kubernetes.namespace import JobNamespace, JobNamespaceArgs, JobNamespaceSpec
from components.kubernetes.operator import OperatorNamespace, OperatorNamespaceSpec
from components.kubernetes.pools import Pool
from components.kubernetes.probe import DriverProbe, DriverProbeArgs, DriverProbeSpec
from components.kubernetes.provisioning_watchdog import (
    ProvisioningWatchdog,
    ProvisioningWatchdogArgs,
    ProvisioningWatchdogSpec,
)
from components.kubernetes.queueing import (
    LocalQueues,
    LocalQueuesSpec,
    Queueing,
    QueueingArgs,
    QueueingSpec,
    check_name,
)
from components.kubernetes.stop_access import StopAccess, StopAccessArgs, StopAccessSpec
from components.kubernetes.storage import (
    BucketVolume,
    DiskVolume,
    FilestoreShare,
    FilestoreVolume,
    JobVolume,
    JobVolumeArgs,
)
from components.kubernetes.target_map import PublishedTargets, PublishedTargetsArgs, PublishedTargetsSpec

NAMESPACE = "ml"
RELEASE = Path(__file__).with_name("release.yaml")
GPU_TAINT = Taint(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE")
SPOT_TAINT = Taint(key="cloud.google.com/gke-spot", value="true", effect="NO_SCHEDULE")


def out(value: str) -> pulumi.Output[str]:
    return pulumi.Output.from_input(value)


def pool(key: str, **more: object) -> Pool:
    facts = {
        "name": key,
        "key": key,
        "machine_type": "a3-highgpu-8g",
        "zones": ["us-central1-a"],
        "capacity": "on-demand",
        "max_nodes": 4,
        "labels": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb", "team": "ml"},
        "taints": [GPU_TAINT],
        "cpu_m": 206_870,
        "memory_mib": 1_800_000,
        "disk_gib": 300,
        "accelerator": "nvidia-h100-80gb",
        "gpus": 8,
        **more,
    }
    return Pool(facts=GkePool.model_validate(facts), name=f"{key}-0a1b2c3")


SPOT = {"capacity": "spot", "taints": [GPU_TAINT, SPOT_TAINT]}
CPU = {"labels": {}, "taints": [], "accelerator": None, "gpus": 0, "machine_type": "e2-standard-8", "cpu_m": 7_910}
TPU = {
    "labels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "2x2"},
    "taints": [Taint(key="google.com/tpu", value="present", effect="NO_SCHEDULE")],
    "accelerator": None,
    "gpus": 0,
    "tpu_accelerator": "tpu-v6e-slice",
    "tpu_topology": "2x2",
    "tpu_chips": 4,
}
POOLS = {
    "spot": pool("spot", **SPOT),
    "steady": pool("steady"),
    "flex": pool("flex", capacity="flex-start", queued=True),
    "cpu": pool("cpu", **CPU),
    "tpu": pool("tpu", **TPU),
}

QUEUES = {
    "queues": {
        "train": {
            "pools": [
                {"pool": "spot", "nominal": {"nodes": 2}, "borrowing": {"gpus": 8}, "lending": {"nodes": 1}},
                {"pool": "steady"},
                {"pool": "flex"},
            ],
            "cohort": "all",
            "weight": 2,
            "preemption": {"within_queue": "LowerPriority", "reclaim_in_cohort": "Any"},
        },
        "batch": {"pools": [{"pool": "cpu"}, {"pool": "tpu"}], "strategy": "StrictFIFO"},
    },
    "local_queues": {
        "research": {"namespace": NAMESPACE, "queue": "train"},
        "nightly": {"namespace": NAMESPACE, "queue": "batch"},
    },
    "priorities": {"urgent": 1000, "whenever": -10},
    "provisioning": {},
}


def queueing(name: str) -> Queueing:
    return Queueing(name, QueueingArgs(spec=QueueingSpec.model_validate(QUEUES), pools=POOLS))


def local_queues(name: str) -> LocalQueues:
    return LocalQueues(name, LocalQueuesSpec.model_validate({"local_queues": QUEUES["local_queues"]}))


def watchdog(name: str) -> ProvisioningWatchdog:
    pools = {key: POOLS[key] for key in ("steady", "flex")}
    spec = ProvisioningWatchdogSpec(at_limit="recreate")
    return ProvisioningWatchdog(name, ProvisioningWatchdogArgs(spec=spec, check=check_name("q"), pools=pools))


def installer(name: str, **spec: str) -> DriverInstaller:
    args = DriverInstallerArgs(spec=DriverInstallerSpec.model_validate(spec), pool_names=[out("a-1"), out("b-2")])
    return DriverInstaller(name, args)


def volume(name: str, spec: DiskVolume | FilestoreVolume | BucketVolume, claim: str = "data") -> JobVolume:
    args = JobVolumeArgs(spec=spec, claim=claim, namespace=NAMESPACE, machine_types=["a3-highgpu-8g"])
    return JobVolume(name, args)


def namespace(name: str, **spec: object) -> JobNamespace:
    args = JobNamespaceSpec.model_validate({"namespace": name, **spec})
    return JobNamespace(name, JobNamespaceArgs(spec=args, google_account=out("jobs@p.iam.gserviceaccount.com")))


def release(**more: object) -> ReleaseBundleSpec:
    digest = hashlib.sha256(RELEASE.read_bytes()).hexdigest()
    return ReleaseBundleSpec.model_validate({"release": "jobset", "path": str(RELEASE), "sha256": digest, **more})


DISK = "projects/p/zones/us-central1-a/disks/weights"
SHARE = FilestoreShare(location="us-central1-a", instance="shared", share="vol1", ip="10.0.0.2")

MAKERS: dict[str, Callable[[str], Component]] = {
    "job-namespace": lambda name: namespace(name, quota={"pods": "50"}, network="own-namespace"),
    "driver-installer-cos": installer,
    "driver-installer-latest": lambda name: installer(name, version="latest"),
    "driver-installer-ubuntu": lambda name: installer(name, node_image="ubuntu", version="R580"),
    "operator-namespace": lambda name: OperatorNamespace(name, OperatorNamespaceSpec()),
    "driver-probe": lambda name: DriverProbe(
        name,
        DriverProbeArgs(
            spec=DriverProbeSpec(ttl_s=600),
            namespace=NAMESPACE,
            pools={"spot": POOLS["spot"], "steady": POOLS["steady"]},
        ),
    ),
    "gpu-health": lambda name: GpuHealth(name, GpuHealthSpec()),
    "dcgm-exporter": lambda name: DcgmExporter(name, DcgmExporterSpec(namespace=NAMESPACE)),
    "release-bundle": lambda name: ReleaseBundle(name, release()),
    "release-bundle-there": lambda name: ReleaseBundle(name, ReleaseBundleSpec(release="kueue", install=False)),
    "queueing": queueing,
    "provisioning-watchdog": watchdog,
    "local-queues": local_queues,
    "stop-access": lambda name: StopAccess(
        name, StopAccessArgs(spec=StopAccessSpec(queues=["training"]), email=out("stop@p.iam.gserviceaccount.com"))
    ),
    "volume-disk": lambda name: volume(name, DiskVolume(size_gib=500, iops=6000)),
    "volume-disk-readers": lambda name: volume(
        name, DiskVolume(type="hyperdisk-ml", size_gib=500, access="many-readers", existing=DISK)
    ),
    "volume-filestore": lambda name: volume(name, FilestoreVolume(kind="filestore", size_gib=1024)),
    "volume-filestore-there": lambda name: volume(
        name, FilestoreVolume(kind="filestore", size_gib=1024, existing=SHARE)
    ),
    "volume-bucket": lambda name: volume(name, BucketVolume(kind="bucket", bucket="corpus", only_dir="2026")),
    "published-targets": lambda name: PublishedTargets(
        name, PublishedTargetsArgs(spec=PublishedTargetsSpec(namespace=NAMESPACE), targets={"train": out("{}")})
    ),
}
