"""A job as the Job of Google Batch: golden files, and every field that is refused or warned of, with the reason."""

from pathlib import Path
from typing import Any

import pytest

from sandbox.google.discovery import check, document
from tests.jobs.backends.google_batch_target import IMAGE, make_request, make_target
from tests.jobs.backends.refusal import refusal
from tests.support.golden import check_request

GOLDEN = Path(__file__).parents[2] / "golden" / "google_batch"
Fields = dict[str, Any]
RESERVED = "projects/accel-sandbox/zones/us-central1-b/reservations/training"
TEMPLATE = "projects/accel-sandbox/global/instanceTemplates/small"
BUCKET = {"source": "gs://acme-data/imagenet", "path": "/data", "read_only": True}
OUT = {"source": "gs://acme-out", "path": "/out"}


def of(kind: str, count: int = 1, **more: Any) -> Fields:
    return {"accelerator": {"type": kind, "count": count}, **more}


def batch(**fields: Any) -> Fields:
    return {"google_batch": fields}


STEPS = [
    {"image": IMAGE, "command": ["--serve"], "background": True, "docker_options": "--gpus all --ipc=host"},
    {"barrier": "ready"},
    {"image": IMAGE, "entrypoint": "python3", "command": ["train.py"], "env": {"EPOCHS": "50"}, "timeout_s": "1h"},
    {"script": "#!/bin/bash\ngsutil cp /out/* gs://acme-out/", "always_run": True, "ignore_exit_status": True},
]

JOBS: dict[str, tuple[Fields, Fields]] = {
    "t4": ({}, of("nvidia-tesla-t4", cpus=4, memory_mib=16384, retries=2, timeout_s="4h")),
    "l4_spot": (
        {"notifications": "projects/accel-sandbox/topics/batch", "zones": ["us-central1-a", "us-central1-f"]},
        of(
            "l4",
            spot=True,
            shm_mib=4096,
            disk_gib=200,
            lost_retries=5,
            env={"EPOCHS": "50"},
            secrets={"HF_TOKEN": "projects/acme/secrets/hf", "WANDB": "wandb/versions/3"},
            mounts=[BUCKET, OUT, {"source": "nfs://10.0.0.2/share", "path": "/share", "read_only": True}],
            labels={"Team": "Vision"},
            google_batch={
                "priority": 50,
                "logs_path": "/out/logs",
                "docker_options": "--gpus all --ulimit memlock=-1",
                "disks": [{"name": "scratch", "gib": 100, "path": "/scratch", "type": "pd-ssd"}],
                "driver_version": "550.90.07",
            },
        ),
    ),
    "a100_reserved_compact_not": (
        {"reservation": RESERVED},
        of("a100", 4, google_batch={"boot_image": "batch-debian", "boot_disk_gib": 200}),
    ),
    "h100_flex_start": ({}, of("h100", 1, timeout_s="6d", google_batch={"provisioning": "flex-start"})),
    "sweep": (
        {"external_address": True},
        {
            "tasks": 100_000,
            "parallelism": 5_000,
            "cpus": 2,
            "command": ["python3", "sweep.py", "--out=gs://acme-out/run ${BATCH_TASK_INDEX}"],
            "google_batch": {"tasks_per_vm": 4},
        },
    ),
    "in_order": ({}, {"tasks": 3, "google_batch": {"in_order": True}}),
    "nodes": ({}, of("a100", 8, nodes=4, retries=1, google_batch={"compact": True, "permissive_ssh": True})),
    "nodes_script": (
        {},
        {"nodes": 2, "image": None, "command": ["mpirun", "--hostfile", "$X", "it's"], "mounts": [OUT]},
    ),
    "runnables": ({}, of("l4", image=None, command=[], mounts=[OUT], google_batch={"runnables": STEPS})),
    "arguments_of_the_image": ({}, {"command": [], "google_batch": {"args": ["--epochs=5"]}}),
    "template": ({"instance_template": TEMPLATE}, {"cpus": 4, "memory_mib": 8192}),
    "exit_codes": (
        {},
        {
            "retries": 3,
            "google_batch": {"exit_codes": [{"codes": [75, 1], "action": "retry"}, {"codes": [2], "action": "fail"}]},
        },
    ),
}


@pytest.mark.parametrize("case", JOBS)
def test_golden(case: str) -> None:
    target, fields = JOBS[case]
    request = make_request(make_target(**target), **fields)
    check(document("batch.v1"), "Job", request.body["job"])
    check_request(GOLDEN / f"{case}.json", request)


@pytest.mark.parametrize(
    "target, fields, message",
    [
        ({}, of("rtx-4090"), 'accelerator.type: is "rtx-4090", which is not offered on AWS or Google Cloud; use nvidi'),
        ({}, of("a1000"), 'accelerator.type: is "a1000"'),
        ({}, of("k80"), 'accelerator.type: is "k80", which is no longer offered'),
        ({}, of("v5e"), "is a TPU; submit to a target of kind tpu-vm or gke"),
        ({}, of("l4", 3), "accelerator.count: nvidia-l4: 3 is not a count"),
        ({}, {"accelerator": {"count": 2}}, "accelerator.type: is missing, and so is google_batch.machine_type"),
        ({}, of("h100"), "spot: is on-demand, and a3-highgpu-1g is available as Spot or flex-start only"),
        ({}, of("a100", **batch(machine_type="g2-standard-8")), "accelerator.type: is a100, and g2-standard-8 has 1"),
        ({}, of("l4", 2, **batch(machine_type="g2-standard-8")), "accelerator.count: is 2, and g2-standard-8 has 1"),
        ({}, of("t4", 3, **batch(machine_type="n1-standard-8")), "accelerator.count: is 3, and N1 takes 1, 2, 4"),
        ({}, of("l4", **batch(machine_type="n1-standard-8")), "takes no nvidia-l4"),
        ({}, batch(machine_type="g2-standard-9"), 'google_batch.machine_type: is "g2-standard-9", which is no known'),
        ({}, batch(machine_type="e2-standad-4"), 'unknown machine type "e2-standad-4"; did you mean e2-standard-4'),
        ({"machine_types": ["g2-standard-8"]}, of("a100"), "accelerator: 1 a100 are in a2-highgpu-1g; the target has"),
        ({"machine_types": ["g2-standard-8"]}, {"accelerator": {"count": 2}}, "no machine of the target has 2 GPUs"),
        ({"machine_types": ["g2-standard-8"]}, batch(machine_type="g2-standard-4"), "none of the target's machine typ"),
        (
            {},
            of("t4", cpus=8, memory_mib=32768, **batch(machine_type="n1-standard-8")),
            "memory_mib: is 32768 MiB, and n1-standard-8 has 30720 MiB; write at most 30720, or use n1-highmem-8 "
            "(8 vCPUs, 53248 MiB)",
        ),
        ({}, of("l4", cpus=64), "cpus: is 64, and g2-standard-32 has 32 vCPUs; write at most 32"),
        ({}, of("l4", **batch(machine_type="g2-standard-24", tasks_per_vm=3)), "google_batch.tasks_per_vm: is 3 tasks"),
        ({}, batch(zones=["us-central1-a", "us-east1-b"]), "google_batch.zones: are of us-central1 and us-east1, and"),
        ({}, batch(zones=["us-east1-b"]), "google_batch.zones[0]: is us-east1-b, and the job is in us-central1"),
        ({"region": "us-east1"}, batch(zones=["us-east1-a"]), "zones[0]: is us-east1-a, which does not exist; use us-"),
        ({"zones": ["us-central1-a"]}, batch(zones=["us-central1-b"]), "us-central1-b is none of the target's"),
        ({}, of("l4", **batch(install_drivers=False)), "google_batch.install_drivers: is false, and no boot image"),
        ({}, batch(install_drivers=True), "google_batch.install_drivers: is true, and the job has no GPUs"),
        ({}, {"tasks": 100_001}, "tasks: is 100001, and a job has at most 100000"),
        ({}, {"tasks": 6_000, "parallelism": 5_001}, "parallelism: is 5001, and Batch runs at most 5000"),
        ({}, {"tasks": 3, "parallelism": 2, **batch(in_order=True)}, "parallelism: is 2, and tasks that begin in orde"),
        ({}, {"nodes": 2, **batch(in_order=True)}, "nodes: are 2, and tasks that begin in order run one at a time"),
        ({}, {"nodes": 1_001}, "nodes: is 1001, and Batch lists at most 1000 hosts"),
        ({}, {"nodes": 2, "command": []}, "command: is missing; a job of several nodes runs it after"),
        ({}, {"nodes": 2, **batch(tasks_per_vm=2)}, "google_batch.tasks_per_vm: is 2, and each of 2 nodes is a VM"),
        ({}, {"timeout_s": "15d"}, "timeout_s: is 1296000 s, and Batch ends a job after 14 days"),
        ({}, of("a100", timeout_s="8d", **batch(provisioning="flex-start")), "ends a flex-start job after 7 days"),
        ({}, of("a100", spot=True, **batch(provisioning="flex-start")), "provisioning: is flex-start, beside spot: tr"),
        ({}, of("t4", **batch(provisioning="flex-start")), "provisioning: is flex-start, for n1-standard-4"),
        ({}, {"retries": 11}, "retries: is 11, and Batch tries a task again at most 10"),
        ({}, {"retries": 6, "lost_retries": 6}, "retries: is 6 beside lost_retries 6, and Batch has one count"),
        ({}, {"retries": 1, **batch(exit_codes=[{"codes": [50005], "action": "retry"}])}, "exit_codes: have 50005"),
        ({}, batch(exit_codes=[{"codes": [5], "action": "retry"}]), "google_batch.exit_codes: say which failures"),
        ({}, of("a100", **batch(reservation=RESERVED, compact=True)), "reservation: is projects/accel-sandbox/zones"),
        ({}, of("a100", spot=True, **batch(reservation=RESERVED)), "and the job is spot; leave one of the two out"),
        ({}, of("a100", **batch(reservation=RESERVED, zones=["us-central1-a"])), "is of us-central1-b, and the job ma"),
        ({}, of("a100", **batch(reservation="training")), 'reservation: is "training"; write projects/<project>'),
        ({"instance_template": TEMPLATE}, {"spot": True}, "spot: is for a VM of the job's own, and one without a mach"),
        ({"instance_template": TEMPLATE}, batch(boot_disk_gib=80), "google_batch.boot_disk_gib: is for a VM of th"),
        ({}, {"disk_gib": 50, **batch(boot_disk_gib=80)}, "disk_gib: is 50, and google_batch.boot_disk_gib, 80, is"),
        ({}, {"image": None, "command": []}, "command: is missing, and there is no image that would have one"),
        ({}, {"image": None, "shm_mib": 64}, "shm_mib: is of a container, and there is no image"),
        ({}, batch(args=["x"]), "google_batch.args: are for the image's own entry point"),
        ({}, batch(runnables=[{"script": "ls"}]), "google_batch.runnables: are beside image; use one of the two"),
        ({}, {"image": None, "command": [], **batch(runnables=[{"barrier": "b"}])}, "google_batch.runnables: have no"),
        ({}, {"image": "gcr.io/MY_PROJECT/ml-training:latest"}, '"MY_PROJECT" is a placeholder'),
        ({}, {"command": ["cp", "x", "gs://YOUR_BUCKET/x"]}, '"YOUR_BUCKET" is a placeholder'),
        ({}, {"mounts": [{"source": "host:///data", "path": "/d"}]}, 'mounts[0].source: is "host:///data", a folder o'),
        ({}, {"mounts": [{"source": "efs://fs-1", "path": "/d"}]}, 'mounts[0].source: is "efs://fs-1", which is neith'),
        ({}, {"mounts": [{"source": "gs://bkt/../x", "path": "/d"}]}, 'mounts[0].source: is "gs://bkt/../x", which ha'),
        ({}, {"mounts": [{"source": "gs://bkt", "path": "/d:x"}]}, 'mounts[0].path: is "/d:x"'),
        ({}, {"mounts": [BUCKET], **batch(disks=[{"name": "d", "gib": 1, "path": "/data"}])}, "disks[0].path: is /dat"),
        ({}, of("h200", 8, spot=True, **batch(disks=[{"name": "d", "gib": 1, "path": "/d"}])), "disks[0].type: is pd-"),
        ({}, {"mounts": [BUCKET], **batch(logs_path="/data/logs")}, "google_batch.logs_path: is /data/logs, which is"),
        ({}, batch(docker_options="-v /a:/b"), "google_batch.docker_options: have -v, which is for the fields of a jo"),
        ({}, batch(docker_options="--name 'x"), "docker_options: are \"--name 'x\", whose quotes do not match"),
        ({}, {"env": {"BATCH_TASK_INDEX": "1"}}, "env.BATCH_TASK_INDEX: is set by the platform"),
        ({}, {"secrets": {"A": "hf_abcdefghijklmnop"}}, "secrets.A: must be projects/<project>/secrets/<secret>, or"),
        ({}, {"labels": {"accel-key": "x"}}, 'labels: has "accel-key", and keys of accel- are'),
        ({}, {"command": ["x" * 1_100_000]}, "request: has 11"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(target: Fields, fields: Fields, message: str) -> None:
    with refusal(message):
        make_request(make_target(**target), **fields)


@pytest.mark.parametrize(
    "target, fields, words",
    [
        ({}, {"image": "gcr.io/acme/train:1"}, "image: is \"gcr.io/acme/train:1\", a Container Registry name"),
        ({}, {"image": "acme/train:latest"}, "image: is \"acme/train:latest\", which names another image"),
        ({}, of("v100"), 'accelerator.type: is "v100", an old generation'),
        ({}, of("h200", 8), "is on-demand, and a3-ultragpu-8g is rarely available that way"),
        ({}, of("l4", memory_mib=32768, cpus=8, **batch(machine_type="g2-standard-8")), "which leaves 0 MiB of g2-sta"),
        ({}, of("l4", **batch(machine_type="g2-standard-24")), "accelerator.count: is 1 for 1 task on g2-standard-24,"),
        ({}, of("l4", tasks=4, **batch(tasks_per_vm=2)), "google_batch.tasks_per_vm: is 2, and each of the tasks sees"),
        ({"region": "europe-west2"}, of("a100", 8), "google_batch.zones: are all of europe-west2, where a2-highgpu-8g"),
        ({}, of("a100", **batch(zones=["us-central1-a"])), ""),
        ({}, {"retries": 2, "lost_retries": 3}, "lost_retries: is 3 beside retries 2; Batch has one count, so that 5"),
        ({}, {"nodes": 2, "lost_retries": 3}, "nodes: is 2, and Batch tries a node that failed or was lost again alon"),
        ({}, of("l4", tasks=9_000, parallelism=4_500), "parallelism: needs 4500 VMs at once, of which a job has 4000"),
        ({}, {"command": ["python", "t.py", "--model-output=/tmp/m_${BATCH_TASK_INDEX}"]}, "command: has ${BATCH_TASK"),
        ({}, {"env": {"MODEL_OUTPUT": "/tmp/m"}}, "env.MODEL_OUTPUT: has MODEL_OUTPUT /tmp/m, on the VM's own disk"),
        ({}, of("l4", **batch(docker_options="--gpus all")), 'google_batch.docker_options: are "--gpus all", and Batc'),
        ({}, {"gke": {"keep_s": 5}}, "gke: is for targets of kind gke and does nothing here"),
        (
            {},
            {"nodes": 2, "image": None, "command": []}
            | batch(runnables=[{"image": IMAGE}, {"script": "#!/usr/bin/env python3\n"}]),
            "google_batch.runnables[1]: is not told of the other nodes, for want of a shell",
        ),
    ],
)  # fmt: skip
def test_what_is_warned_of(target: Fields, fields: Fields, words: str) -> None:
    warnings = make_request(make_target(**target), **fields).warnings
    assert any(words in warning for warning in warnings) if words else not warnings, warnings


def test_the_id_is_batchs_and_keeps_the_key() -> None:
    first, again = make_request(name="Big_Run" + "x" * 80), make_request(name="Big_Run" + "x" * 80)
    other = make_request(name="Big_Run" + "x" * 80, text="other")
    assert first == again
    assert first.name.startswith("big-runx") and len(first.name) <= 63
    assert first.name != other.name and first.name[-12:] == first.key[:12]
    labels, others = first.body["job"]["labels"], other.body["job"]["labels"]
    assert labels["accel-key"] != others["accel-key"] and labels["accel-spec"] == others["accel-spec"]
