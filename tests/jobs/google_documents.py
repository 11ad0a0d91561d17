"""Documents and commands of other tools with what is wrong in them, as they are found in the wild: what it is, the
text, words of one line that `import` prints, the rule that this line names, and the exit code."""

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml

GOLDEN = Path(__file__).parents[1] / "golden" / "imports"
IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"
Json = dict[str, Any]


class Document(NamedTuple):
    what: str
    kind: str
    text: str
    says: tuple[str, ...]
    rule: str = ""
    code: int = 2
    config: str = ""
    """The file that the text names as config.yaml."""


SWEEP = json.loads((GOLDEN / "sweep.json").read_text())
SPEC = ("taskGroups", 0, "taskSpec")
CONTAINER = (*SPEC, "runnables", 0, "container")
POLICY = ("allocationPolicy", "instances", 0, "policy")
GPU = (*POLICY, "accelerators", 0)
ZONES = ("allocationPolicy", "location", "allowedLocations")


def batch(what: str, path: tuple[Any, ...], value: Any, *says: str, rule: str = "", code: int = 2) -> Document:
    """The sweep's document with another value at a path."""
    made = copy.deepcopy(SWEEP)
    inside: Any = made
    for part in path[:-1]:
        inside = inside[part] if isinstance(inside, list) else inside.setdefault(part, {})
    inside[path[-1]] = value
    return Document(what, "google-batch", json.dumps(made), says, rule, code)


def machine(kind: str, gpu: str, count: int) -> Json:
    return {"machineType": kind, "accelerators": [{"type": gpu, "count": count}]}


ONE = (GOLDEN / "one_gpu.json").read_text()
FILLED = ONE.replace("MY_PROJECT", "acme").replace('"volumes": ["/mnt/disks/data:/data"]', '"volumes": []')
OF_BATCH = [
    Document("a placeholder", "google-batch", ONE, ("imageUri", '"MY_PROJECT" is a placeholder'), "placeholder.value"),
    Document("a folder that nothing is mounted at", "google-batch", ONE,
             ("/mnt/disks/data", "empty on a new VM", "--mount /mnt/disks/data=gs://<bucket>"),
             "google-batch.bind-mount"),
    Document("a variable that nothing expands", "google-batch", FILLED, ("${BATCH_TASK_INDEX}", "/bin/sh -c"),
             "google-batch.unexpanded", 0),
    Document("memory that the machine has not", "google-batch", json.dumps(SWEEP),
             ("'n1-standard-8' -> 'n1-highmem-8'", "32768 MiB", "30720 MiB"), "google-batch.fit", 0),
    Document("GPUs for Docker", "google-batch", json.dumps(SWEEP), ("'--gpus all' -> left out",),
             "google-batch.gpus-option", 0),
    Document("python before an entry point", "google-batch", json.dumps(SWEEP), ('begin with "python"', "ENTRYPOINT"),
             "google-batch.entry-point", 0),
    Document("Container Registry", "google-batch", json.dumps(SWEEP), ("us-docker.pkg.dev/acme/gcr.io/ml-training",),
             "container.image.gcr", 0),
    Document("the driver at its old place", "google-batch", json.dumps(SWEEP), ("a deprecated place",),
             "google-batch.accelerator-drivers", 0),
    batch("a GPU that is gone", (*GPU, "type"), "nvidia-tesla-k80", "no longer offered", rule="gcp.gpu.k80"),
    batch("an unknown GPU", (*GPU, "type"), "nvidia-h1000", '"nvidia-h1000"', "use ", rule="gcp.gpu.unknown"),
    batch("a consumer's GPU", (*GPU, "type"), "nvidia-rtx-4090", "not offered", rule="gpu.consumer"),
    batch("three T4", (*GPU, "count"), 3, "is 3", "machines have 1, 2 or 4", rule="gcp.gpu.count"),
    batch("two A100 on the machine of one", POLICY, machine("a2-highgpu-1g", "nvidia-tesla-a100", 2),
          "use a2-highgpu-2g", rule="gcp.machine.accelerator-count", code=0),
    batch("two L4 on the machine of one", POLICY, machine("g2-standard-8", "nvidia-l4", 2), "use g2-standard-24",
          rule="gcp.machine.accelerator-count", code=0),
    batch("two H100 mega", POLICY, machine("a3-megagpu-8g", "nvidia-h100-mega-80gb", 2), "'2'", "8",
          rule="gcp.gpu.count"),
    batch("sixteen A100 of 80 GB", POLICY, machine("a2-ultragpu-8g", "nvidia-a100-80gb", 16), "'16'", "1, 2, 4",
          rule="gcp.gpu.count"),
    batch("zones by letters", ZONES, ["zones/us-east1-a", "zones/us-east1-b", "zones/us-east1-c"],
          "us-east1-a", "does not exist", rule="google-batch.zone", code=0),
    batch("zones of two regions", ZONES, ["zones/us-central1-a", "zones/us-east1-b"], "us-central1 and us-east1",
          rule="google-batch.region"),
    batch("too many tasks", ("taskGroups", 0, "taskCount"), 100_001, "at most 100000", rule="google-batch.tasks"),
    batch("too many at once", ("taskGroups", 0, "parallelism"), 5001, "at most 5000", rule="google-batch.parallelism"),
    batch("too many retries", (*SPEC, "maxRetryCount"), 11, "is 11", "at most 10", rule="google-batch.retries"),
    batch("hours", (*SPEC, "maxRunDuration"), "8h", "maxRunDuration '8h'", "seconds such as 7200s"),
    batch("two groups", ("taskGroups",), SWEEP["taskGroups"] * 2, "taskGroups[1]", "of a second entry",
          rule="google-batch.one-group"),
    batch("a misspelt field", (*SPEC, "maxRetryCout"), 2, "did you mean maxRetryCount"),
]  # fmt: skip


def pool(kind: str, gpu: str | None = None, count: int | None = None, image: str = IMAGE, **more: Any) -> Json:
    spec = {"machineType": kind, "acceleratorType": gpu, "acceleratorCount": count}
    spec = {name: value for name, value in spec.items() if value is not None}
    return {"machineSpec": spec, "replicaCount": 1, "containerSpec": {"imageUri": image, **more}}


def vertex(what: str, pools: Any, *says: str, rule: str = "", code: int = 2, **more: Any) -> Document:
    text = yaml.safe_dump({"workerPoolSpecs": pools, **more})
    return Document(what, "vertex", text, says, rule, code)


PREBUILT = "us-docker.pkg.dev/vertex-ai/training"
CREATE = f"""gcloud ai custom-jobs create --region=us-central1 --display-name=my-training-job \\
  --worker-pool-spec=machine-type=a2-highgpu-4g,replica-count=1,accelerator-type=NVIDIA_TESLA_A100,\
accelerator-count=4,container-image-uri={IMAGE} \\
  --command='python train.py' --args=--epochs=10,--batch-size=64
"""
COMMENTED = "gcloud ai custom-jobs create \\\n  --region=us-central1 \\  # or another\n  --config=config.yaml\n"
OF_VERTEX = [
    vertex("a mapping of pools", pool("n1-standard-8"), "is a mapping", rule="import.vertex.pools-mapping", code=0),
    vertex("a small A3 machine on demand", [pool("a3-highgpu-2g", "NVIDIA_H100_80GB", 2)],
           "'a3-highgpu-2g'", "a3-highgpu-8g or a2-ultragpu-2g; --capacity says which", rule="gcp.gpu.small-a3"),
    vertex("two H100 mega", [pool("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 2)], "write 8",
           rule="gcp.machine.accelerator-count"),
    vertex("sixteen A100 of 80 GB", [pool("a2-ultragpu-8g", "NVIDIA_A100_80GB", 16)], "write 8",
           rule="gcp.machine.accelerator-count"),
    vertex("eight T4", [pool("n1-standard-8", "NVIDIA_TESLA_T4", 8)], "1, 2 or 4", rule="gcp.gpu.count"),
    vertex("the other A100", [pool("a2-ultragpu-2g", "NVIDIA_TESLA_A100", 2)], "nvidia-a100-80gb built in",
           rule="gcp.machine.accelerator-mismatch"),
    vertex("an L4 on N1", [pool("n1-standard-8", "NVIDIA_L4", 1)], "takes no nvidia-l4", "use g2-standard-4",
           rule="gcp.machine.not-attachable"),
    vertex("a consumer's GPU", [pool("n1-standard-8", "NVIDIA_RTX_4090", 1)], "not offered", rule="gpu.consumer"),
    vertex("a GPU that is gone", [pool("n1-standard-8", "NVIDIA_TESLA_K80", 1)], "no longer offered",
           rule="gcp.gpu.k80"),
    vertex("TPU v4 through cloud-tpu", [pool("cloud-tpu", "TPU_V4_POD", 8)], "does not train",
           "ct5lp-hightpu-4t with topology 2x2", rule="gcp.tpu.vertex"),
    vertex("a TPU image that is gone", [pool("cloud-tpu", "TPU_V3", 8, f"{PREBUILT}/tf-tpu.2-12:latest")],
           "available until", rule="vertex.image.gone"),
    vertex("an image that is gone", [pool("a2-highgpu-4g", image=f"{PREBUILT}/pytorch-gpu.1-13:latest")],
           "available until", "image of your own", rule="vertex.image.gone"),
    vertex("an output on the machine", [pool("n1-standard-8")], "outputUriPrefix '/tmp/out'", "gs://<bucket>",
           rule="vertex.output", baseOutputDirectory={"outputUriPrefix": "/tmp/out"}),
    vertex("a name of before", [pool("n1-standard-8")], "'ON_DEMAND' -> 'STANDARD'", rule="vertex.strategy.name",
           code=0, scheduling={"strategy": "ON_DEMAND"}),
    Document("a command in one string", "vertex", CREATE, ("--command 'python train.py' -> ['python', 'train.py']",),
             "vertex.command.one-word", 0),
    Document("a flag that there is not", "vertex", CREATE.replace("--command", "--timeout=86400s --command"),
             ("--timeout '86400s'", "timeout_s: 86400s", "scheduling.timeout"), "import.vertex.timeout-flag"),
    Document("a role of before", "vertex",
             f"gcloud projects add-iam-policy-binding acme --member=user:a --role=roles/ml.developer\n{CREATE}",
             ("'roles/ml.developer' -> 'roles/aiplatform.user'",), "import.role", 0),
    Document("a comment after the backslash", "vertex", COMMENTED, ("line 2: a comment after the backslash",), "", 0,
             yaml.safe_dump({"workerPoolSpecs": [pool("n1-standard-8")]})),
]  # fmt: skip


def legacy(what: str, training: Json, *says: str, rule: str = "", code: int = 2) -> Document:
    whole = {"region": "us-central1", "masterConfig": {"imageUri": IMAGE}, **training}
    return Document(what, "ai-platform", yaml.safe_dump({"trainingInput": whole}), says, rule, code)


def master(kind: str, gpu: str | None = None, count: int = 1, **more: Any) -> Json:
    config: Json = {"imageUri": IMAGE} | ({"acceleratorConfig": {"type": gpu, "count": count}} if gpu else {})
    return {"scaleTier": "CUSTOM", "masterType": kind, "masterConfig": config, **more}


LOST = """\
trainingInput:
  scaleTier: CUSTOM
  # four T4 on the master
  masterType: n1-highcpu-16
      count: 4
      type: NVIDIA_TESLA_T4
"""
SUBMIT = (
    f"gcloud ai-platform jobs submit training flowers --master-image-uri {IMAGE} --scale-tier custom "
    "--master-machine-type n1-standard-8"
)
PACKAGE = {
    "packageUris": ["gs://acme/tensorflow-gpu-2.1.tar.gz"], "pythonModule": "trainer.task", "runtimeVersion": "2.11",
    "pythonVersion": "3.7",
}  # fmt: skip
T4, V100, K80 = "NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100", "NVIDIA_TESLA_K80"
OF_LEGACY = [
    legacy("the tier of a K80", {"scaleTier": "BASIC_GPU"}, "nvidia-tesla-k80", "1 nvidia-tesla-t4", "n1-standard-4",
           rule="ai-platform.tier.machine", code=0),
    legacy("a cluster's tier", {"scaleTier": "STANDARD_1"}, "decision", "write scaleTier CUSTOM",
           rule="ai-platform.tier.size"),
    legacy("the larger cluster's tier", {"scaleTier": "PREMIUM_1"}, "CUSTOM", rule="ai-platform.tier.size"),
    legacy("the tier of a TPU", {"scaleTier": "BASIC_TPU"}, "use a TPU VM", rule="ai-platform.tpu"),
    legacy("no machine", {"scaleTier": "CUSTOM"}, "masterType", "such as n1-standard-8",
           rule="ai-platform.role.master"),
    legacy("four K80", master("complex_model_m_gpu"), "-> 'n1-standard-16'", "4 nvidia-tesla-t4",
           rule="ai-platform.k80", code=0),
    legacy("eight K80", master("complex_model_l_gpu"), "8 nvidia-tesla-t4 fit no machine", "--k80-replacement",
           rule="ai-platform.k80.none"),
    legacy("a machine without a name", master("standart_gpu"), "use standard_gpu",
           rule="gcp.legacy.machine-type-unknown"),
    legacy("three T4", master("n1-standard-8", T4, 3), "count '3'", "1, 2 or 4", rule="gcp.gpu.count"),
    legacy("one T4 for 32 vCPUs", master("n1-standard-32", T4), "takes 2, 4", rule="gcp.vertex.gpu-count"),
    legacy("two V100 for 32 vCPUs", master("n1-standard-32", V100, 2), "takes 4, 8", rule="gcp.vertex.gpu-count"),
    legacy("one V100 for 16 vCPUs", master("n1-standard-16", V100), "takes 2, 4, 8", rule="gcp.vertex.gpu-count"),
    legacy("one K80 for 16 vCPUs", master("n1-standard-16", K80), "AI Platform Training took 2, 4, 8",
           rule="gcp.vertex.gpu-count"),
    legacy("one P100 for 32 vCPUs", master("n1-highmem-32", "NVIDIA_TESLA_P100"), "takes 2, 4",
           rule="gcp.vertex.gpu-count"),
    legacy("one A100 of two", master("a2-highgpu-2g", "NVIDIA_TESLA_A100"), "write 2, or use a2-highgpu-1g",
           rule="gcp.machine.accelerator-count"),
    legacy("an A100 on N1", master("n1-standard-8", "NVIDIA_TESLA_A100"), "use a2-highgpu-1g",
           rule="gcp.machine.not-attachable"),
    legacy("two vCPUs", master("n1-standard-2", T4), "n1-standard-4", rule="vertex.machine.not-offered"),
    legacy("a region without GPUs then", master("n1-standard-8", T4, region="us-west3"), "us-west3", "had no GPUs",
           rule="gcp.legacy.region", code=0),
    legacy("a zone as the region", master("n1-standard-8", region="us-central1-a"), "is a zone; use us-central1"),
    Document("lines that were lost", "ai-platform", LOST,
             ("stdin:5: is not YAML", "`masterConfig:` and `acceleratorConfig:`", "between masterType and count")),
    Document("a flag after the dashes", "ai-platform", f"{SUBMIT} -- --epochs=3 --runtime-version 2.11\n",
             ("has --runtime-version", "put --runtime-version before `--`"), "import.flag-after-dashes"),
    Document("the job's directory after the dashes", "ai-platform", f"{SUBMIT} -- --job-dir gs://acme/out\n",
             ("put --job-dir before `--`",), "import.flag-after-dashes"),
    Document("a backslash that is missing", "ai-platform", f"{SUBMIT} \\\n -- \\\n --a 1\n --b 2\n",
             ("line 4: begins with a flag", "does not end with a backslash")),
    Document("a role of before", "ai-platform",
             f"gcloud projects add-iam-policy-binding a --role roles/ml.admin\n{SUBMIT}\n",
             ("'roles/ml.admin' -> 'roles/aiplatform.admin'",), "import.role", 0),
    Document("a withdrawn package", "ai-platform", yaml.safe_dump({"scaleTier": "BASIC", **PACKAGE}),
             ("packageUris", "tensorflow[and-cuda]"), "python.tensorflow-gpu"),
    Document("a runtime whose image is gone", "ai-platform", yaml.safe_dump({"scaleTier": "BASIC", **PACKAGE}),
             ("runtimeVersion '2.11'", "--image"), "ai-platform.runtime.ended"),
]  # fmt: skip

DOCUMENTS = [*OF_BATCH, *OF_VERTEX, *OF_LEGACY]
