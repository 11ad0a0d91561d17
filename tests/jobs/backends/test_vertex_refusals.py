"""What Vertex AI cannot do for a job is refused or warned of, with the field and the way to go."""

import pytest

from tests.jobs.backends.refusal import refusal
from tests.jobs.backends.vertex_jobs import PREBUILT, RESERVED, Fields, make_request, make_target, of, on

FLEX = {"provisioning": "flex-start"}
TPU_HOSTS = ["ct5lp-hightpu-4t", "ct6e-standard-4t"]


@pytest.mark.parametrize(
    "target, fields, message",
    [
        ({}, {"image": None}, "image: is missing"),
        ({}, {"env": {"A": "1", "B": ""}}, "env.B: is empty, which Vertex AI does not take; leave it out"),
        ({}, of("rtx-4090"), "accelerator.type: is \"rtx-4090\", which is not offered on AWS or Google Cloud; use nvi"),
        ({}, of("NVIDIA_TESLA_K80"), "accelerator.type: is \"NVIDIA_TESLA_K80\", which is no longer offered"),
        ({}, of("gb300", 4), 'accelerator.type: is "gb300", which Vertex AI does not train on; use one of'),
        ({}, of("l40s"), 'accelerator.type: is "l40s", which Google Cloud does not have'),
        ({}, of("h100", 2), "spot: is on-demand, and a3-highgpu-2g is available as Spot or flex-start only; use spot"),
        ({"reservation": RESERVED}, of("h100", 4), "a3-highgpu-4g is available as Spot or flex-start only"),
        ({}, of("gb200", 4, spot=True), "spot: is SPOT without a reservation, and a4x-highgpu-4g is available by"),
        ({}, {"accelerator": {"count": 2}}, "accelerator.type: is missing, and so is vertex.machine_type"),
        ({"machine_types": TPU_HOSTS}, {}, "accelerator.type: is missing, and the target has machines of TPUs alone: "),
        ({}, on({"machine_type": "n1-standard-2"}), 'vertex.machine_type: is "n1-standard-2", on which Vertex AI does'),
        ({}, on({"machine_type": "n1-standard-32"}, **of("t4")), "accelerator.count: is 1, and Vertex AI takes 2, 4 o"),
        ({}, on({"machine_type": "n1-standard-96"}, **of("t4", 2)), "accelerator.count: is 2, and Vertex AI takes 4 o"),
        ({}, on({"machine_type": "a2-ultragpu-4g"}, **of("a100", 4)), "accelerator.type: is a100, and a2-ultragpu-4g"),
        ({}, on({"machine_type": "a2-highgpu-4g"}, **of("a100", 2)), "accelerator.count: is 2, and a2-highgpu-4g has "),
        ({}, on({"machine_type": "n2-standard-8"}, **of("t4")), 'vertex.machine_type: is "n2-standard-8", which takes'),
        ({}, on({"machine_type": "n1-standard-8"}, accelerator={"count": 1}), "accelerator.type: is missing, and n1-"),
        ({}, on({"topology": "2x2"}), "vertex.topology: is of TPUs, and the job asks for none"),
        ({}, {"cpus": 500}, "cpus: is 500, and the largest machine for it"),
        ({}, of("l4", memory_mib=500_000), "memory_mib: is 500000, and the largest machine for it, g2-standard-32"),
        ({"machine_types": ["g2-standard-8"]}, of("t4"), "accelerator.type: 1 t4 are in n1-standard-4, "),
        ({"machine_types": ["g2-standard-8"]}, on({"machine_type": "g2-standard-4"}), "is none of the target's machin"),
        ({}, on({"machine_type": "cloud-tpu"}, **of("TPU_V4_POD", 8)), "accelerator.type: is TPU_V4_POD, on which Ver"),
        ({}, of("v4-8"), "on which Vertex AI does not train; use ct5lp-hightpu-4t with topology 2x2, or a TPU VM such"),
        ({}, on({"machine_type": "cloud-tpu"}, **of("TPU_V5_LITEPOD", 8)), 'vertex.machine_type: is "cloud-tpu", whic'),
        ({}, on({"machine_type": "cloud-tpu"}), "accelerator.type: is missing; write v2-8 or v3-8"),
        ({}, of("TPU_V2", 4), "accelerator.count: is 4, and TPU v2 and v3 are asked for by cores"),
        ({}, of("v5e"), 'accelerator.type: is "v5litepod", which has no size'),
        ({}, on({"machine_type": "ct5lp-hightpu-8t", "topology": "4x4"}), 'vertex.topology: is "4x4", and ct5lp-hight'),
        ({}, on({"machine_type": "ct5lp-hightpu-4t"}), "vertex.topology: is missing; write 2x2"),
        ({}, on({"machine_type": "ct6e-standard-4t"}, **of("v5e-8")), "accelerator.type: is v5e-8, and ct6e-standard"),
        ({}, of("v5e-16", spot=True), "spot: is true, and v5litepod-16 has 4 hosts"),
        ({}, of("v5e-8", nodes=2), "nodes: is 2, and the slice is one replica of 1 host"),
        ({}, on({"evaluators": {}}, **of("v5e-8")), "vertex.evaluators: is there, and the job runs on TPUs"),
        ({}, of("v5e-8", cpus=500), "cpus: is 500, and a host of v5litepod-8 has 224 vCPUs"),
        ({}, of("t4", vertex=FLEX), "vertex.provisioning: is flex-start, with nvidia-tesla-t4; use L4, A100"),
        ({}, of("l4", vertex=FLEX, timeout_s="8d"), "vertex.provisioning: is flex-start, with a timeout of 691200 s"),
        ({}, of("l4", vertex=FLEX, spot=True), "vertex.provisioning: is flex-start, beside spot: true"),
        (
            {},
            on({**FLEX, "evaluators": {"machine_type": "n1-standard-4"}}, **of("l4")),
            "vertex.provisioning: is flex-start, with different machines in its pools",
        ),
        ({}, on({"wait_s": 60}), "vertex.wait_s: is 60, and the job is not flex-start"),
        ({}, on({"reservation": "r"}), 'vertex.reservation: is "r"; write projects/'),
        ({}, on({"reservation": RESERVED}, spot=True), "vertex.reservation: is named beside spot: true"),
        ({"region": "us-east4"}, on({"reservation": RESERVED}), "vertex.reservation: is of us-central1-a, and the job"),
        ({}, on({"persistent_resource": "kept"}, spot=True), "vertex.persistent_resource: is kept, beside spot: true"),
        ({}, on({"restart": True}, lost_retries=0), "vertex.restart: is true, and retries and lost_retries say not to"),
        ({}, on({"args": ["--a"]}), "command: is there beside args"),
        ({}, on({"package": {"uris": ["gs://b/x"], "module": "m"}}), "command: is there beside a package"),
        ({}, {"command": ["python 'train.py"]}, "command: is one string,"),
        ({}, on({"workers": {}}, nodes=2), "nodes: is 2, beside vertex.workers"),
        ({}, on({"reduction_servers": {}}, **of("l4")), "vertex.reduction_servers: is there, and the job has 1 machin"),
        (
            {},
            on({"reduction_servers": {"machine_type": "g2-standard-4"}}, nodes=2, **of("l4")),
            "vertex.reduction_servers.accelerator: is there",
        ),
        (
            {},
            on({"reduction_servers": {"command": ["a"]}}, nodes=2, **of("l4")),
            "vertex.reduction_servers: has a command, args or a package",
        ),
        ({}, on({"evaluators": {"image": "a b"}}), 'vertex.evaluators.image: is "a b"'),
        ({}, on({"evaluators": {"machine_type": "n1-standard-2"}}), 'vertex.evaluators.machine_type: is "n1-standard-'),
        ({}, {"tasks": 2}, "tasks: is 2, and Vertex AI runs one task; submit several jobs"),
        ({}, {"shm_mib": 64}, "shm_mib: is 64, which Vertex AI cannot be told"),
        ({}, {"secrets": {"TOKEN": "hf_abcdefghij"}}, "secrets.TOKEN: cannot be set: Vertex AI has no secret variable"),
        ({}, {"env": {"CUDA_VISIBLE_DEVICES": "0,1"}, **of("t4")}, 'env.CUDA_VISIBLE_DEVICES: is "0,1", and the machi'),
        ({}, {"env": {"TF_CONFIG": "{}"}}, "env.TF_CONFIG: is set by Vertex AI"),
        ({}, {"env": {"PET_NNODES": "1"}}, "env.PET_NNODES: is set by the platform"),
        ({}, {"mounts": [{"source": "gs://acme/d", "path": "/d"}]}, 'mounts[0].path: is "/d", and Vertex AI has gs://'),
        ({}, {"mounts": [{"source": "efs://fs-1", "path": "/d"}]}, 'mounts[0].source: is "efs://fs-1", which Vertex A'),
        ({}, {"mounts": [{"source": "nfs://10.0.0.2/s", "path": "/mnt/nfs/s"}]}, "mounts[0].source: is an NFS share, "),
        ({}, {"disk_gib": 64_000}, "disk_gib: makes a boot disk of 64100 GB"),
        ({}, on({"disk_type": "pd-balanced"}), 'vertex.disk_type: is "pd-balanced", which Vertex AI does not take'),
        ({}, on({"tensorboard": "board"}), 'vertex.tensorboard: is "board"; write projects/'),
        ({}, {"image": f"{PREBUILT}/tf-tpu.2-12:latest"}, "image: is tf-tpu.2-12, which was available until 2025-06-3"),
        ({}, {"image": f"{PREBUILT}/pytorch-gpu.1-13:latest"}, "image: is pytorch-gpu.1-13, which was available until"),
        ({}, {"image": "us-docker.pkg.dev/MY_PROJECT/r/i:1"}, '"MY_PROJECT" is a placeholder'),
        ({}, {"labels": {"accel-key": "x"}}, 'labels: has "accel-key", and keys of accel- are'),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(target: Fields, fields: Fields, message: str) -> None:
    with refusal(message):
        make_request(make_target(**target), **fields)


@pytest.mark.parametrize(
    "target, fields, words",
    [
        ({}, {"command": ["python train.py"]}, "command: is one string, 'python train.py'; write [python, train.py]"),
        ({}, {"image": "gcr.io/acme/train:1"}, "image: is \"gcr.io/acme/train:1\", a Container Registry name"),
        ({}, {"image": "us-docker.pkg.dev/acme/ml/train"}, "which names another image after the next push"),
        ({}, {"image": f"{PREBUILT}/pytorch-gpu.2-4:latest"}, "a name without its Python version; write us-docker"),
        ({}, {"image": f"{PREBUILT}/pytorch-gpu.2-4.py310:latest"}, "which was patched until 2025-07-24"),
        (
            {},
            of("h100", 8, image="pytorch/pytorch:2.0.0-cuda11.7-cudnn8-runtime"),
            "of CUDA 11.7, and nvidia-h100-80gb wants 11.8",
        ),
        ({}, of("p100"), "supported until 2026-09-15"),
        ({}, of("b200", 8), "spot: is on-demand, and a4-highgpu-8g is rarely available that way"),
        ({}, {"retries": 3}, "retries: is 3, and Vertex AI tries again only after exit codes 6, 11, 134 and 139"),
        ({}, {"lost_retries": 3}, "lost_retries: is 3, and Vertex AI has its own numbers"),
        ({"region": "europe-west9"}, of("a100"), "vertex.machine_type: is a2-highgpu-1g, which europe-west9 is not"),
        (
            {},
            on({"reduction_servers": {"replicas": 2}}, nodes=2, **of("a100", 8)),
            "vertex.reduction_servers.replicas: is 2, 64 Gbps of n1-highcpu-16, and 2 a2-highgpu-8g have 200; use 7",
        ),
        ({}, on({"disk_type": "pd-ssd"}, **of("b200", 8, spot=True)), "vertex.disk_type: is pd-ssd, from which a4-"),
        (
            {},
            {"mounts": [{"source": "gs://acme", "path": "/gcs/acme", "read_only": True}]},
            "mounts[0].read_only: is true, and Vertex AI mounts buckets as",
        ),
        ({}, {"labels": {"Team": "x"}}, 'labels: "Team: x" is "team: x" on Google Cloud'),
        ({}, {"gce": {}}, "gce: is for targets of kind gce and does nothing here"),
    ],
)  # fmt: skip
def test_what_is_warned_of(target: Fields, fields: Fields, words: str) -> None:
    warnings = make_request(make_target(**target), **fields).warnings
    assert any(words in warning for warning in warnings), warnings
