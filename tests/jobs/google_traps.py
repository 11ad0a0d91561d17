"""Job files that a cloud would take and never run, or not run as meant: what each is, where it is sent, the fields over
those of a small job, the exit code of a dry run, and words of what it prints."""

from typing import Any, NamedTuple

PREBUILT = "us-docker.pkg.dev/vertex-ai/training"


class Trap(NamedTuple):
    what: str
    to: str
    fields: dict[str, Any]
    says: tuple[str, ...]
    code: int = 2


def gpu(kind: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"accelerator": {"type": kind, "count": count}, **more}


def sized(memory_mib: int, **more: Any) -> dict[str, Any]:
    return {"cpus": 4, "memory_mib": memory_mib, **more}


def on(block: str, machine: str) -> dict[str, Any]:
    return {block: {"machine_type": machine}}


EVERYWHERE = ("queue", "gke", "gce", "batch", "vertex")
GOOGLE = ("batch", "vertex")
BLOCKS = {"batch": "google_batch", "vertex": "vertex"}

OF_ALL = [
    trap
    for to in EVERYWHERE
    for trap in (
        Trap("a consumer's GPU", to, gpu("rtx-4090", **sized(8192)), ('"rtx-4090"', "not offered", "nvidia-l4")),
        Trap("the same as an enumeration's value", to, gpu("NVIDIA_RTX_4090", **sized(8192)), ("not offered",)),
        Trap("a GPU that is gone", to, gpu("nvidia-tesla-k80", **sized(8192)), ("nvidia-tesla-t4",)),
        Trap("a placeholder in the image", to, {"image": "gcr.io/MY_PROJECT/ml-training:latest", **sized(8192)},
             ('"MY_PROJECT" is a placeholder', "write the value")),
    )
]  # fmt: skip

OF_GOOGLE = [
    trap
    for to in GOOGLE
    for block in [BLOCKS[to]]
    for trap in (
        Trap("three T4", to, gpu("t4", 3), ("accelerator.count", "nvidia-tesla-t4", "3", "1, 2")),
        Trap("eight T4", to, gpu("t4", 8), ("accelerator.count", "nvidia-tesla-t4", "8", "1, 2")),
        Trap("sixteen A100 of 80 GB", to, gpu("a100-80gb", 16), ("accelerator.count", "16", "1, 2, 4")),
        Trap("two H100 mega", to, gpu("h100-mega", 2), ("accelerator.count", "is", "8")),
        Trap("a misspelt GPU", to, gpu("nvidia-tesla-t5"), ('"nvidia-tesla-t5"', "use nvidia-tesla-t4")),
        Trap("a small A3 machine on demand", to, gpu("h100", 2),
             ("a3-highgpu-2g", "Spot or flex-start only", "a3-highgpu-8g or a2-ultragpu-2g")),
        Trap("the same machine by its name", to, gpu("h100", 2, **on(block, "a3-highgpu-2g")), ("flex-start only",)),
        Trap("as many GPUs as another size has", to, gpu("l4", 2, **on(block, "g2-standard-8")),
             ("accelerator.count: is 2", "write 1, or use g2-standard-24")),
        Trap("two A100 on the machine of one", to, gpu("a100", 2, **on(block, "a2-highgpu-1g")), ("a2-highgpu-2g",)),
        Trap("the A100 of another size", to, gpu("a100", 2, **on(block, "a2-ultragpu-2g")),
             ("accelerator.type", "nvidia-a100-80gb built in", "a2-highgpu-2g")),
        Trap("an L4 on N1", to, gpu("l4", **on(block, "n1-standard-8")),
             (f'{block}.machine_type: is "n1-standard-8"', "takes no nvidia-l4", "g2-standard-4")),
        Trap("an A100 on N1", to, gpu("a100", **on(block, "n1-standard-8")), ("takes no nvidia-tesla-a100",)),
        Trap("an unknown machine", to, on(block, "n1-standard-9"), ('"n1-standard-9"', "use n1-standard-96")),
        Trap("more memory than the machine has", to, gpu("t4", **sized(32768), **on(block, "n1-standard-8")),
             ("memory_mib: is 32768", "n1-standard-8 has 30720 MiB", "use n1-highmem-8 (8 vCPUs")),
        Trap("the same with a V100", to, gpu("v100", **sized(32768), **on(block, "n1-standard-8")),
             ("n1-standard-8 has 30720 MiB", "use n1-highmem-8")),
        Trap("memory without head-room", to, gpu("l4", **sized(32768), **on(block, "g2-standard-8")),
             ("memory_mib", "leaves 0 MiB of g2-standard-8", "at most 30720"), 0),
        Trap("TPU v4 through cloud-tpu", to, gpu("TPU_V4_POD", 8, **on(block, "cloud-tpu")), ("TPU_V4_POD", "tpu")),
        Trap("a command in one string", to, {"command": ["python train.py"]},
             ("command: is one string, 'python train.py'; write [python, train.py]",), 0),
        Trap("Container Registry", to, {"image": "gcr.io/acme/ml-training:latest"},
             ("a Container Registry name", "write us-docker.pkg.dev/acme/gcr.io/ml-training"), 0),
        Trap("a tag that moves", to, {"image": "us-docker.pkg.dev/acme/ml/train:latest"}, ("or a digest",), 0),
        Trap("CUDA that is too old", to, gpu("h100", 8, image="pytorch/pytorch:2.0.0-cuda11.7-cudnn8-runtime"),
             ("of CUDA 11.7", "wants 11.8"), 0),
        Trap("GPUs beyond the machine's", to, gpu("t4", 2, env={"CUDA_VISIBLE_DEVICES": "0,1,2"}),
             ("env.CUDA_VISIBLE_DEVICES", "has 2 GPUs, 0 to 1")),
        Trap("a model on the machine's disk", to, {"env": {"MODEL_OUTPUT": "/tmp/model"}},
             ("env.MODEL_OUTPUT", "/tmp/model", "deleted after"), 0),
        Trap("the same as an argument", to, {"command": ["python3", "t.py", "--model-output=/tmp/m.pt"]},
             ("command: has model-output /tmp/m.pt", "deleted after"), 0),
        Trap("a placeholder in a variable", to, {"env": {"DATA": "gs://YOUR_BUCKET/x"}},
             ("env.DATA", '"YOUR_BUCKET" is a placeholder')),
        Trap("a placeholder in an argument", to, {"command": ["python3", "t.py", "--out=gs://YOUR_BUCKET/x"]},
             ("command", '"YOUR_BUCKET" is a placeholder')),
        Trap("a placeholder in a mount", to, {"mounts": [{"source": "gs://YOUR_BUCKET", "path": "/gcs/YOUR_BUCKET"}]},
             ("mounts[0].source", '"YOUR_BUCKET" is a placeholder')),
        Trap("a folder of the machine", to, {"mounts": [{"source": "/mnt/disks/data", "path": "/data"}]},
             ('mounts[0].source: is "/mnt/disks/data"', "gs://<bucket>")),
        Trap("an old GPU", to, gpu("p100"), ("accelerator.type", "old generation", "nvidia-l4"), 0),
        Trap("a GPU rarely available on demand", to, gpu("b200", 8), ("a4-highgpu-8g is rarely", "reservation"), 0),
        Trap("no tasks", to, {"tasks": 0}, ("tasks: must be at least 1, is 0",)),
    )
]  # fmt: skip


def zones(*names: str) -> dict[str, Any]:
    return {"google_batch": {"zones": list(names)}}


OWN = [
    Trap("more tasks than a job may have", "batch", {"tasks": 100_001}, ("tasks: is 100001", "at most 100000")),
    Trap("too many at once", "batch", {"tasks": 100_000, "parallelism": 5001}, ("is 5001", "at most 5000")),
    Trap("a definition that is too large", "batch", {"env": {f"V{i}": "x" * 17_000 for i in range(60)}},
         ("request: has", "bytes, of which Batch takes 1000000 (1 MB)", "into the image, or into a mounted bucket")),
    Trap("a file that is too large", "batch", {"env": {f"V{i}": "x" * 17_000 for i in range(70)}}, ("1 MiB",)),
    Trap("two regions", "batch", zones("us-central1-a", "us-east1-b"),
         ("google_batch.zones: are of us-central1 and us-east1", "keep those of us-central1")),
    Trap("a zone that does not exist", "batch", zones("us-central1-z"), ("us-central1-z", "does not exist", "use us-")),
    Trap("a zone by its letter", "batch", zones("us-central1-d"), ("does not exist", "us-central1-a or us-central1-b")),
    Trap("another region's zone", "batch", zones("us-east1-b"), ("is us-east1-b, and the job is in us-central1",)),
    Trap("a zone as a location", "batch", zones("zones/us-central1-a"), ("without zones/; use us-central1-a",)),
    Trap("too many retries", "batch", {"retries": 11}, ("retries: is 11", "at most 10")),
    Trap("a time that is too long", "batch", {"timeout_s": "15d"}, ("timeout_s", "after 14 days", "at most 1209600")),
    Trap("a time in words", "batch", {"timeout_s": "8 hours"}, ("timeout_s", "90s, 30m, 4h, 2d", "'8 hours'")),
    Trap("a priority above the highest", "batch", {"google_batch": {"priority": 100}}, ("at most 99, is 100",)),
    Trap("all GPUs for Docker", "batch", gpu("t4", google_batch={"docker_options": "--gpus all"}),
         ("google_batch.docker_options", "--gpus is left out"), 0),
    Trap("a mount for Docker", "batch", {"google_batch": {"docker_options": "-v /mnt/disks/data:/data"}},
         ("have -v", "use mounts")),
    Trap("GPUs without a driver", "batch", gpu("t4", google_batch={"install_drivers": False}), ("install_drivers",)),
    Trap("a driver without GPUs", "batch", {"google_batch": {"install_drivers": True}}, ("the job has no GPUs",)),
    Trap("a retry of what ran out of time", "batch",
         {"retries": 2, "google_batch": {"exit_codes": [{"codes": [50005], "action": "retry"}]}}, ("have 50005",)),
    Trap("a variable that nothing expands", "batch", {"tasks": 2, "command": ["python3", "--o=${BATCH_TASK_INDEX}"]},
         ("command: has ${BATCH_TASK_INDEX}", "no shell", "/bin/sh -c"), 0),
    Trap("more hosts than a list has", "batch", {"nodes": 1001}, ("nodes: is 1001", "at most 1000")),
    Trap("tasks where there are none", "vertex", {"tasks": 16}, ("tasks: is 16", "google-batch or gke")),
    Trap("an image that is gone", "vertex", {"image": f"{PREBUILT}/pytorch-gpu.1-13:latest"},
         ("image: is pytorch-gpu.1-13", "available until", "image of your own")),
    Trap("a TPU image that is gone", "vertex", {"image": f"{PREBUILT}/tf-tpu.2-12:latest"}, ("is tf-tpu.2-12",)),
    Trap("TPU v4", "vertex", gpu("TPU_V4_POD", 8), ("does not train", "ct5lp-hightpu-4t with topology 2x2")),
    Trap("GB200 without a reservation", "vertex", gpu("gb200", 4), ("without a reservation", "a4-highgpu-8g")),
    Trap("one T4 on a machine for two", "vertex", gpu("t4", **on("vertex", "n1-standard-32")),
         ("accelerator.count: is 1", "takes 2, 4 of nvidia-tesla-t4 on n1-standard-32")),
]  # fmt: skip

TRAPS = [*OF_ALL, *OF_GOOGLE, *OWN]
