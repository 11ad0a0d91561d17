"""TPU slices and their software versions."""

from accel.rules.gcp import tpu, tpu_runtimes
from accel.rules.vertex import tpus

from .case import Case

SLICES = [
    Case(
        "gcp.tpu.type-missing", "accelerator_type", ("missing",), "v6e-8",
        lambda: tpu.accelerator_type(None), lambda: tpu.accelerator_type("v2-8"),
    ),
    Case(
        "gcp.tpu.type-unknown", "accelerator_type", ('"v9-8"',), "v2-8",
        lambda: tpu.accelerator_type("v9-8"), lambda: tpu.accelerator_type("v4-9"),
    ),
    Case(
        "gcp.tpu.name", "accelerator_type", ('"v5e-16"', "v5litepod-16"), "v5litepod-16",
        lambda: tpu.accelerator_type("v5e-16"), lambda: tpu.accelerator_type("v5litepod-16"), "v5litepod-16",
    ),
    Case(
        "gcp.tpu.size", "accelerator_type", ('"v5e-5"', "no size"), "v5litepod-4 or v5litepod-8",
        lambda: tpu.accelerator_type("v5e-5"), lambda: tpu.accelerator_type("v5e-4"),
    ),
    Case(
        "gcp.tpu.shape-unsure", "topology", ('"3x3"', "no topology of TPU v2"), "2x2 or 4x4",
        lambda: tpu.accelerator_type("v2", "3x3"), lambda: tpu.accelerator_type("v3", "3x3"),
    ),
    Case(
        "gcp.tpu.not-published", "accelerator_type", ('"v4-8192"', "v4-4096"), "several slices",
        lambda: tpu.accelerator_type("v4-8192"), lambda: tpu.accelerator_type("v4-4096"),
    ),
    Case(
        "gcp.tpu.gke-only", "accelerator_type", ('"tpu7x-8"', "does not have"), "tpu7x-standard-4t with topology 2x2x1",
        lambda: tpu.accelerator_type("tpu7x-8"), lambda: tpu.resolve_slice("tpu7x-8", api="gke")[1],
    ),
    Case(
        "gcp.tpu.node-architecture", "architecture", ('"node"',), "TPU VM",
        lambda: tpu.architecture("node"), lambda: tpu.architecture("vm"),
    ),
    Case(
        "gcp.tpu.spot-and-reserved", "reserved", ("spot",), "one of the two",
        lambda: tpu.provisioning(spot=True, reserved=True), lambda: tpu.provisioning(spot=True),
    ),
    Case(
        "gcp.tpu.pool-type", "topology", ('"4x4"', "ct5lp-hightpu-8t"), "ct5lp-hightpu-4t",
        lambda: tpu.pool("ct5lp-hightpu-8t", "4x4"), lambda: tpu.pool("ct5lp-hightpu-4t", "4x4"),
    ),
    Case(
        "gcp.tpu.pool-nodes", "max_nodes", ("is 2", "4 nodes"), "write 4",
        lambda: tpu.pool("ct5lp-hightpu-4t", "4x4", 2), lambda: tpu.pool("ct5lp-hightpu-4t", "2x2", 2),
    ),
    Case(
        "gcp.tpu.vertex", "accelerator", ("TPU_V4_POD",), "ct5lp-hightpu-4t with topology 2x2",
        lambda: tpus.spec("cloud-tpu", "TPU_V4_POD", 8, None), lambda: tpus.spec("cloud-tpu", "TPU_V3", 8, None),
    ),
    Case(
        "gcp.tpu.vertex-machine", "machine_type", ("cloud-tpu", "TPU_V5_LITEPOD"), "ct5lp-hightpu-4t",
        lambda: tpus.spec("cloud-tpu", "TPU_V5_LITEPOD", 8, None),
        lambda: tpus.spec("ct5lp-hightpu-4t", "TPU_V5_LITEPOD", None, "2x2"),
    ),
]  # fmt: skip

RUNTIMES = [
    Case(
        "gcp.tpu.runtime-old", "runtime_version", ('"tpu-vm-pt-2.1"',), "tpu-ubuntu2204-base",
        lambda: tpu_runtimes.runtime("tpu-vm-pt-2.1", "v4-8"),
        lambda: tpu_runtimes.runtime("tpu-ubuntu2204-base", "v4-8"), "tpu-ubuntu2204-base",
    ),
    Case(
        "gcp.tpu.runtime-generation", "runtime_version", ("v2-alpha-tpuv6e", "v5p-8"), "v2-alpha-tpuv5",
        lambda: tpu_runtimes.runtime("v2-alpha-tpuv6e", "v5p-8"),
        lambda: tpu_runtimes.runtime("v2-alpha-tpuv6e", "v6e-8"),
    ),
    Case(
        "gcp.tpu.runtime-base", "runtime_version", ("tpu-ubuntu2204-base", "v6e-8"), "v2-alpha-tpuv6e",
        lambda: tpu_runtimes.runtime("tpu-ubuntu2204-base", "v6e-8"),
        lambda: tpu_runtimes.runtime("tpu-ubuntu2204-base", "v3-8"),
    ),
    Case(
        "gcp.tpu.runtime-pod", "runtime_version", ('"tpu-vm-tf-2.14.0"', "4 hosts"), "tpu-vm-tf-2.14.0-pod",
        lambda: tpu_runtimes.runtime("tpu-vm-tf-2.14.0", "v4-32"),
        lambda: tpu_runtimes.runtime("tpu-vm-tf-2.14.0", "v4-8"),
    ),
    Case(
        "gcp.tpu.runtime-tensorflow", "runtime_version", ('"tpu-vm-tf-2.14.0"', "2.15.0"), "tpu-vm-tf-2.16.1-pjrt",
        lambda: tpu_runtimes.runtime("tpu-vm-tf-2.14.0", "v5e-4"),
        lambda: tpu_runtimes.runtime("tpu-vm-tf-2.16.1-pjrt", "v5e-4"),
    ),
    Case(
        "gcp.tpu.runtime-unknown", "runtime_version", ('"v3-beta"',), "v2-alpha-tpuv5-lite",
        lambda: tpu_runtimes.runtime("v3-beta", "v5e-4"),
        lambda: tpu_runtimes.runtime("v2-alpha-tpuv5-lite", "v5e-4"),
    ),
]  # fmt: skip

CASES = SLICES + RUNTIMES
