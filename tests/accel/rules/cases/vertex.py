"""Custom jobs of Vertex AI: one breach and one near miss for each rule."""

from datetime import date

from accel.catalog import accelerator
from accel.rules.vertex import images, jobs, machines, pools, scheduling, tpus

from .case import Case

T4, A100, H100, P100, P4 = (
    "NVIDIA_TESLA_T4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_H100_80GB",
    "NVIDIA_TESLA_P100",
    "NVIDIA_TESLA_P4",
)
DAY = date(2026, 2, 1)
PLACE = "us-docker.pkg.dev/vertex-ai/training"
RESERVED = "projects/acme/zones/us-central1-a/reservations/r"
BOARD = "projects/acme/locations/us-central1/tensorboards/7"
SHARE = "nfs://10.1.0.2/data"

MACHINES = [
    Case(
        "vertex.machine.not-offered", "machine_type", ('"n1-standard-2"',), "n1-standard-4",
        lambda: machines.machine_type("n1-standard-2"),
        lambda: machines.machine_type("n1-standard-4") + machines.machine_type("cloud-tpu"),
    ),
    Case(
        "vertex.accelerator.not-offered", "accelerator", ('"nvidia-gb300"',), "nvidia-b200",
        lambda: machines.resolve_gpu("nvidia-gb300")[1], lambda: machines.resolve_gpu("nvidia-gb200")[1],
    ),
    Case(
        "vertex.machine.reserved-only", "provisioning", ("on-demand without a reservation", "a4x"), "a4-highgpu-8g",
        lambda: machines.had("a4x-highgpu-4g", None, None),
        lambda: machines.had("a4x-highgpu-4g", None, RESERVED),
    ),
    Case(
        "vertex.machine.arm", "image", ("a4x-highgpu-4g", "Arm"), "linux/arm64",
        lambda: machines.arm("a4x-highgpu-4g"), lambda: machines.arm("a4-highgpu-8g"),
    ),
    Case(
        "vertex.gpu.p100", "accelerator", (P100, "2026-09-15"), "nvidia-l4",
        lambda: machines.p100(accelerator(P100), P100), lambda: machines.p100(accelerator(P4), P4),
    ),
    Case(
        "vertex.machine.region", "machine_type", ("a3-highgpu-8g", "europe-west9", "us-east4"), "another region",
        lambda: machines.region("a3-highgpu-8g", "europe-west9", {"us-east4": ()}),
        lambda: machines.region("a3-highgpu-8g", "us-east4", {"us-east4": ()})
        + machines.region("m1-megamem-96", "us-east4", {}),
    ),
    Case(
        "vertex.tpu.topology", "topology", ('"4x4"', "ct5lp-hightpu-8t"), "2x4",
        lambda: tpus.spec("ct5lp-hightpu-8t", None, None, "4x4"),
        lambda: tpus.spec("ct5lp-hightpu-4t", None, None, "4x4"),
    ),
    Case(
        "vertex.tpu.cores", "accelerator_count", ("is 16",), "8, 32",
        lambda: tpus.spec("cloud-tpu", "TPU_V3", 16, None),
        lambda: tpus.spec("cloud-tpu", "TPU_V3", 64, None),
    ),
    Case(
        "vertex.fit", "memory_mib", ("is 32768", "n1-standard-8 has 30720 MiB"), "n1-highmem-8",
        lambda: machines.fit("n1-standard-8", 8, 30_720, 8, 32_768, ["n1-highmem-8"]),
        lambda: machines.fit("n1-standard-8", 8, 30_720, 8, 28_800, []),
    ),
    Case(
        "vertex.headroom", "memory_mib", ("is 32768 MiB", "leaves 0 MiB of g2-standard-8"), "at most 30720",
        lambda: machines.fit("g2-standard-8", 8, 32_768, None, 32_768, []),
        lambda: machines.fit("g2-standard-8", 8, 32_768, None, 30_720, []),
    ),
    Case(
        "vertex.disk.size", "disk_gib", ("64001",), "100 to 64000",
        lambda: machines.disk("n1-standard-4", 64_001, None),
        lambda: machines.disk("n1-standard-4", 64_000, None),
    ),
    Case(
        "vertex.disk.type", "disk_type", ('"pd-balanced"',), "pd-ssd",
        lambda: machines.disk("n1-standard-4", None, "pd-balanced"),
        lambda: machines.disk("n1-standard-4", None, "pd-standard"),
    ),
    Case(
        "vertex.disk.machine", "disk_type", ("pd-ssd", "a4-highgpu-8g"), "hyperdisk-balanced",
        lambda: machines.disk("a4-highgpu-8g", None, "pd-ssd"),
        lambda: machines.disk("a3-highgpu-8g", None, "pd-ssd"),
    ),
]  # fmt: skip

POOLS = [
    Case(
        "vertex.pools.chief", "workerPoolSpecs[0].replicaCount", ("is 4",), "3 in the second pool",
        lambda: pools.chief(4), lambda: pools.chief(1),
    ),
    Case(
        "vertex.pools.count", "workerPoolSpecs", ("5 pools",), "four",
        lambda: pools.most(5), lambda: pools.most(4),
    ),
    Case(
        "vertex.pools.tpu", "workers", ("runs on TPUs",), "leave it out",
        lambda: pools.tpu(["workers"], 1, 1), lambda: pools.tpu([], 4, 4),
    ),
    Case(
        "vertex.reduction.workers", "reduction_servers", ("1 machine with 8 GPUs",), "two or more nodes",
        lambda: pools.reduction(1, 8, own_gpus=False), lambda: pools.reduction(2, 1, own_gpus=False),
    ),
    Case(
        "vertex.reduction.gpus", "reduction_servers.accelerator", ("is there",), "n1-highcpu-16",
        lambda: pools.reduction(2, 8, own_gpus=True), lambda: pools.reduction(2, 8, own_gpus=False),
    ),
    Case(
        "vertex.reduction.ratio", "reduction_servers.replicas", ("is 15", "480 Gbps", "have 500"), "use 16",
        lambda: pools.reduction_ratio(5, "n1-highmem-96", "NVIDIA_TESLA_V100", 8, 15, "n1-highcpu-16"),
        lambda: pools.reduction_ratio(5, "n1-highmem-96", "NVIDIA_TESLA_V100", 8, 16, "n1-highcpu-16")
        + pools.reduction_ratio(8, "a2-megagpu-16g", None, 16, 25, "n1-highcpu-16"),
    ),
]  # fmt: skip

SCHEDULING = [
    Case(
        "vertex.strategy.name", "strategy", ('"LOW_COST"',), "SPOT",
        lambda: scheduling.strategy("LOW_COST"), lambda: scheduling.strategy("SPOT"),
        replacement="SPOT",
    ),
    Case(
        "vertex.strategy.unknown", "strategy", ('"CHEAP"',), "FLEX_START",
        lambda: scheduling.strategy("CHEAP"), lambda: scheduling.strategy("FLEX_START"),
    ),
    Case(
        "vertex.flex-start", "provisioning", ("with a timeout of 604801",), "604800",
        lambda: scheduling.flex_start([("a2-highgpu-1g", A100, 1)], 604_801),
        lambda: scheduling.flex_start([("a2-highgpu-1g", A100, 1)] * 2, 604_800),
    ),
    Case(
        "vertex.wait", "wait_s", ("is 60",), "flex-start",
        lambda: scheduling.wait(60, flex=False), lambda: scheduling.wait(60, flex=True),
    ),
    Case(
        "vertex.spot.tpu-pod", "spot", ("v5litepod-16 has 4 hosts",), "one host",
        lambda: scheduling.spot_tpu("v5litepod-16", 4, spot=True),
        lambda: scheduling.spot_tpu("v5litepod-8", 1, spot=True),
    ),
    Case(
        "vertex.reservation.name", "reservation", ("us-central1-a", "us-east4"), "that region",
        lambda: scheduling.reservation(RESERVED, "us-east4"),
        lambda: scheduling.reservation(RESERVED, "us-central1"),
    ),
    Case(
        "vertex.reservation.with", "reservation", ("spot: true",), "one of the two",
        lambda: scheduling.reservation_with(spot=True, flex=False, persistent=False),
        lambda: scheduling.reservation_with(spot=False, flex=False, persistent=False),
    ),
    Case(
        "vertex.persistent-resource", "persistent_resource", ("is pool, beside flex-start",), "one of the two",
        lambda: scheduling.persistent("pool", spot=False, flex=True),
        lambda: scheduling.persistent("pool", spot=False, flex=False),
    ),
    Case(
        "vertex.retries", "retries", ("is 2", "139"), "`retry`",
        lambda: scheduling.retries(2, None), lambda: scheduling.retries(0, None),
    ),
    Case(
        "vertex.lost-retries", "lost_retries", ("is 3", "six"), "0 for none",
        lambda: scheduling.retries(None, 3), lambda: scheduling.retries(None, 0),
    ),
    Case(
        "vertex.restart", "restart", ("is true",), "lost_retries",
        lambda: scheduling.restart(True, disabled=True),
        lambda: scheduling.restart(True, disabled=False) + scheduling.restart(False, disabled=True),
    ),
]  # fmt: skip

JOBS = [
    Case(
        "vertex.command.one-word", "command", ("'python train.py'",), "[python, train.py]",
        lambda: jobs.command(["python train.py"]), lambda: jobs.command(["python", "a b"]),
        replacement=["python", "train.py"],
    ),
    Case(
        "vertex.command.quotes", "command", ("no closing quotation",), "write a list",
        lambda: jobs.command(["python 'train.py"]), lambda: jobs.command(["python 'train.py'"]),
    ),
    Case(
        "vertex.command.and-args", "command", ("beside args",), "one of the two",
        lambda: jobs.program(["a"], ["b"], package=False),
        lambda: jobs.program(["a"], [], package=False) + jobs.program([], ["b"], package=True),
    ),
    Case(
        "vertex.package", "command", ("beside a package",), "args are the module's",
        lambda: jobs.program(["a"], [], package=True), lambda: jobs.program([], ["a"], package=True),
    ),
    Case(
        "vertex.env.count", "env", ("101",), "leave 1 out",
        lambda: jobs.environment({f"V{i}": "x" for i in range(101)}),
        lambda: jobs.environment({f"V{i}": "x" for i in range(100)}),
    ),
    Case(
        "vertex.env.empty", "env.EMPTY", ("is empty",), "leave it out",
        lambda: jobs.environment({"EMPTY": "", "FULL": "0"}), lambda: jobs.environment({"EMPTY": " "}),
    ),
    Case(
        "vertex.env.reserved", "env.AIP_MODEL_DIR", ("set by Vertex AI",), "another name",
        lambda: jobs.environment({"AIP_MODEL_DIR": "x"}), lambda: jobs.environment({"MODEL_DIR": "x"}),
    ),
    Case(
        "vertex.local-output", "command", ("has model-output /tmp/model",), "/gcs/<bucket>",
        lambda: jobs.local_output(["python", "t.py", "--model-output=/tmp/model"], {}, ["/mnt/nfs/a"]),
        lambda: jobs.local_output(["x", "--output", "/gcs/b/m", "--out=/mnt/nfs/a/x"], {}, ["/mnt/nfs/a"]),
    ),
    Case(
        "vertex.output", "output", ('is "/tmp/out"',), "gs://<bucket>",
        lambda: jobs.output("/tmp/out"), lambda: jobs.output("gs://acme/out"),
    ),
    Case(
        "container.env.visible-devices", "env.CUDA_VISIBLE_DEVICES", ('"0,2"', "has 2 GPUs"), "leave it out",
        lambda: jobs.visible_devices({"CUDA_VISIBLE_DEVICES": "0,2"}, 2),
        lambda: jobs.visible_devices({"CUDA_VISIBLE_DEVICES": "0,1"}, 2),
    ),
    Case(
        "vertex.secrets", "secrets.TOKEN", ("cannot be set",), "projects/acme/secrets",
        lambda: jobs.secret("TOKEN", "acme"), lambda: [],
    ),
    Case(
        "vertex.tasks", "tasks", ("is 9",), "google-batch",
        lambda: jobs.tasks(9), lambda: jobs.tasks(1),
    ),
    Case(
        "vertex.shm", "shm_mib", ("is 64",), "leave it out",
        lambda: jobs.shm(64), lambda: jobs.shm(None),
    ),
    Case(
        "vertex.mount.path", "mounts[0].path", ('"/data"', "/gcs/acme/set"), "write /gcs/acme/set",
        lambda: jobs.mount("gs://acme/set", "/data", read_only=False, networked=False),
        lambda: jobs.mount("gs://acme/set/", "/gcs/acme/set", read_only=False, networked=False),
    ),
    Case(
        "vertex.mount.read-only", "mounts[0].read_only", ("is true",), "objectViewer",
        lambda: jobs.mount("gs://acme", "/gcs/acme", read_only=True, networked=False),
        lambda: jobs.mount("gs://acme", "/gcs/acme", read_only=False, networked=False),
    ),
    Case(
        "vertex.mount.source", "mounts[0].source", ('"efs://fs-1"',), "gs://",
        lambda: jobs.mount("efs://fs-1", "/d", read_only=False, networked=True),
        lambda: jobs.mount(SHARE, "/mnt/nfs/data", read_only=False, networked=True),
    ),
    Case(
        "vertex.mount.nfs", "mounts[0].path", ('"/data"',), "/mnt/nfs/",
        lambda: jobs.mount(SHARE, "/data", read_only=False, networked=True),
        lambda: jobs.mount(SHARE, "/mnt/nfs/data", read_only=False, networked=True),
    ),
    Case(
        "vertex.tensorboard", "tensorboard", ("without a service account",), "service account",
        lambda: jobs.tensorboard(BOARD, None, "us-central1"),
        lambda: jobs.tensorboard(BOARD, "a@b", "us-central1") + jobs.tensorboard(None, None, "x"),
    ),
    Case(
        "vertex.network", "network", ('"projects/acme/global/networks/ml"',), "<number",
        lambda: jobs.network("projects/acme/global/networks/ml"),
        lambda: jobs.network("projects/12345/global/networks/ml"),
    ),
]  # fmt: skip

IMAGES = [
    Case(
        "vertex.image.gone", "image", ("pytorch-gpu.2-1.py310", "2025-10-04"), "image of your own",
        lambda: images.image(f"{PLACE}/pytorch-gpu.2-1.py310:latest", today=DAY),
        lambda: images.image(f"{PLACE}/pytorch-gpu.2-1.py310:latest", today=date(2025, 10, 4)),
    ),
    Case(
        "vertex.image.patched", "image", ("pytorch-gpu.2-4.py310", "2025-07-24"), "image of your own",
        lambda: images.image(f"{PLACE}/pytorch-gpu.2-4.py310:latest", today=DAY),
        lambda: images.image(f"{PLACE}/ray-gpu.2-47.py311:latest", today=DAY),
    ),
    Case(
        "vertex.image.tag", "image", ("has to be latest",), f"{PLACE}/ray-gpu.2-47.py311:latest",
        lambda: images.image(f"{PLACE}/ray-gpu.2-47.py311", today=DAY),
        lambda: images.image(f"{PLACE}/ray-gpu.2-47.py311:latest", today=DAY),
        replacement=f"{PLACE}/ray-gpu.2-47.py311:latest",
    ),
    Case(
        "vertex.image.name", "image", ("without its Python version",), f"{PLACE}/pytorch-gpu.2-4.py310:latest",
        lambda: images.image(f"{PLACE}/pytorch-gpu.2-4:latest", today=DAY),
        lambda: images.image(f"{PLACE}/pytorch-gpu.1-13:latest", today=DAY),
        replacement=f"{PLACE}/pytorch-gpu.2-4.py310:latest",
    ),
    Case(
        "vertex.image.unknown", "image", ("pytorch-gpu.2-6",), "make sure",
        lambda: images.image(f"{PLACE}/pytorch-gpu.2-6:latest", today=DAY),
        lambda: images.image("us-docker.pkg.dev/acme/ml/pytorch-gpu.2-6:1", today=DAY),
    ),
]  # fmt: skip

CASES = MACHINES + POOLS + SCHEDULING + JOBS + IMAGES
