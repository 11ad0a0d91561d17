"""GPUs, machines, node pools, zones and legacy machine types of Google Cloud."""

from accel.rules.gcp import gpus, machines, zones
from accel.rules.gke import pools
from accel.rules.vertex import legacy
from accel.rules.vertex import machines as vertex_machines

from .case import Case

_T4, _P100, _V100, _A100 = "nvidia-tesla-t4", "nvidia-tesla-p100", "nvidia-tesla-v100", "nvidia-tesla-a100"

GPUS = [
    Case(
        "gcp.gpu.unknown", "accelerator", ('"nvidia-l5"',), "nvidia-l4",
        lambda: gpus.accelerator_name("nvidia-l5"), lambda: gpus.accelerator_name("nvidia-l4"),
    ),
    Case(
        "gpu.consumer", "accelerator", ('"NVIDIA_RTX_4090"', "AWS or Google Cloud"), "nvidia-l4 or nvidia-rtx-pro-6000",
        lambda: gpus.accelerator_name("NVIDIA_RTX_4090"), lambda: gpus.accelerator_name("rtx-pro-6000"),
    ),
    Case(
        "gcp.gpu.not-on-google-cloud", "accelerator", ('"A10G"',), "nvidia-l4",
        lambda: gpus.accelerator_name("A10G"), lambda: gpus.accelerator_name("A10G", cloud="aws"),
    ),
    Case(
        "gcp.gpu.k80", "accelerator", ('"NVIDIA_TESLA_K80"', "no longer"), "nvidia-tesla-t4 or nvidia-l4",
        lambda: gpus.accelerator_name("NVIDIA_TESLA_K80"),
        lambda: gpus.accelerator_name("NVIDIA_TESLA_T4"),
    ),
    Case(
        "gcp.gpu.old", "accelerator", ("old generation", "Volta"), "nvidia-l4",
        lambda: gpus.accelerator_name("NVIDIA_TESLA_V100"), lambda: gpus.accelerator_name(_T4),
    ),
    Case(
        "gcp.gpu.count", "accelerator_count", ("is 16", "1, 2, 4 or 8"), "more than one machine",
        lambda: gpus.accelerator_count("nvidia-a100-80gb", 16), lambda: gpus.accelerator_count(_A100, 16),
    ),
    Case(
        "gcp.gpu.small-a3", "provisioning", ("on-demand", "a3-highgpu-2g"), "a3-highgpu-8g or a2-ultragpu-2g",
        lambda: gpus.small_a3("a3-highgpu-2g", None), lambda: gpus.small_a3("a3-highgpu-2g", "FLEX_START"),
    ),
    Case(
        "gcp.gpu.scarce", "provisioning", ("STANDARD", "a4-highgpu-8g"), "reservation",
        lambda: gpus.scarce("a4-highgpu-8g", "STANDARD"), lambda: gpus.scarce("a4-highgpu-8g", "reserved"),
    ),
]  # fmt: skip

MACHINES = [
    Case(
        "gcp.machine.unknown", "machine_type", ('"g2-standard-5"',), "g2-standard-4",
        lambda: machines.machine("g2-standard-5"), lambda: machines.machine("c3-standard-5"),
    ),
    Case(
        "gcp.machine.newer", "machine_type", ('"a5-highgpu-8g"', "the catalogue of 20"), "`stacks refresh --cloud gcp`",
        lambda: machines.target_machine("a5-highgpu-8g"), lambda: machines.target_machine("a4-highgpu-8g"),
    ),
    Case(
        "gcp.machine.not-attachable", "machine_type", ('"n1-standard-8"', "nvidia-l4"), "g2-standard-4",
        lambda: machines.machine("n1-standard-8", "nvidia-l4", 1),
        lambda: machines.machine("g2-standard-8", "nvidia-l4", 1),
    ),
    Case(
        "gcp.machine.accelerator-mismatch", "accelerator", ("NVIDIA_TESLA_A100", "2 nvidia-a100-80gb"), "a2-highgpu-2g",
        lambda: machines.machine("a2-ultragpu-2g", "NVIDIA_TESLA_A100", 2),
        lambda: machines.machine("a2-ultragpu-2g", "NVIDIA_A100_80GB", 2),
    ),
    Case(
        "gcp.machine.accelerator-count", "accelerator_count", ("is 2", "a2-highgpu-4g has 4"), "a2-highgpu-2g",
        lambda: machines.machine("a2-highgpu-4g", _A100, 2),
        lambda: machines.machine("a2-highgpu-4g", _A100, 4),
    ),
    Case(
        "gcp.machine.n1-count", "accelerator_count", ("is 3", "1, 2, 4"), "1, 2, 4",
        lambda: machines.machine("n1-standard-8", _T4, 3), lambda: machines.machine("n1-standard-8", _T4, 4),
    ),
    Case(
        "gcp.machine.n1-limit", "machine_type", ('"n1-standard-32"', "32 vCPUs", "at most 24 vCPUs"), "4 or 8",
        lambda: machines.machine("n1-standard-32", _V100, 2),
        lambda: machines.machine("n1-standard-32", _V100, 4),
    ),
    Case(
        "gcp.machine.p100-zone", "machine_type", ('"n1-standard-64"', "us-east1-c"), "another zone",
        lambda: machines.machine("n1-standard-64", _P100, 4, "us-east1-c"),
        lambda: machines.machine("n1-standard-64", _P100, 4, "us-west1-b"),
    ),
    Case(
        "gcp.pool.bounds", "initial_nodes", ("is 5", "0 to 4"), "0 to 4",
        lambda: pools.bounds(0, 4, 5), lambda: pools.bounds(0, 4, 2),
    ),
]  # fmt: skip

ZONES = [
    Case(
        "gcp.zones.none-common", "accelerators", ("no zone in common", "t4 in a, b; p100 in c"), "split the job",
        lambda: zones.common_zones({"t4": ["b", "a"], "p100": ["c"]}),
        lambda: zones.common_zones({"t4": ["b", "a"], "p100": ["c", "b"]}),
    ),
    Case(
        "gcp.zones.unknown", "accelerators", ("l4",), "look the zones up",
        lambda: zones.common_zones({"t4": ["a"], "l4": []}), lambda: zones.common_zones({"l4": []}),
    ),
    Case(
        "gcp.zones.not-listed", "zone", ("us-central1-z", "v4-8"), "us-central2-b",
        lambda: zones.zone("us-central1-z", "v4-8", ["us-central2-b"]),
        lambda: zones.zone("us-central2-b", "v4-8", ["us-central2-b"]),
    ),
    Case(
        "gcp.region.is-zone", "region", ("us-central1-a", "is a zone"), "us-central1",
        lambda: zones.region("us-central1-a"), lambda: zones.region("us-central1"),
    ),
]  # fmt: skip

LEGACY = [
    Case(
        "gcp.vertex.gpu-count", "accelerator_count", ("is 1", "2, 4", "n1-standard-32"), "2, 4",
        lambda: vertex_machines.n1_gpus("n1-standard-32", "NVIDIA_TESLA_T4", 1),
        lambda: vertex_machines.n1_gpus("n1-standard-32", "NVIDIA_TESLA_T4", 2),
    ),
    Case(
        "gcp.vertex.gpu-count-derived", "accelerator_count", ("is 4", "took 8"), "8",
        lambda: vertex_machines.n1_gpus("n1-highcpu-64", "NVIDIA_TESLA_K80", 4),
        lambda: vertex_machines.n1_gpus("n1-highcpu-64", "NVIDIA_TESLA_K80", 8),
    ),
    Case(
        "gcp.legacy.machine-type", "machine_type", ('"complex_model_m_gpu" (4 nvidia-tesla-k80)', "16 vCPUs"),
        "n1-standard-16 with 4 nvidia-tesla-t4",
        lambda: legacy.machine_type("complex_model_m_gpu"), lambda: legacy.machine_type("n1-standard-16"),
        "n1-standard-16",
    ),
    Case(
        "gcp.legacy.machine-type-unknown", "machine_type", ('"complex_model_xl"',), "complex_model_l",
        lambda: legacy.machine_type("complex_model_xl"), lambda: legacy.machine_type("complex_model_l"),
    ),
    Case(
        "gcp.legacy.decision", "machine_type", ('"complex_model_l_gpu" (8 nvidia-tesla-k80)',), "n1-standard-32",
        lambda: legacy.machine_type("complex_model_l_gpu"), lambda: legacy.machine_type("complex_model_l_v100"),
    ),
    Case(
        "gcp.legacy.region", "region", ('"us-west4"',), "us-west2",
        lambda: legacy.region("us-west4"), lambda: legacy.region("us-west2"),
    ),
]  # fmt: skip

CASES = GPUS + MACHINES + ZONES + LEGACY
