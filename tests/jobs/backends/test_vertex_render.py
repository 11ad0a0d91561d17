"""A job as a custom job of Vertex AI: golden files, the machines that are chosen, and laws."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.diagnostics.errors import BadInputs
from sandbox.google.discovery import check, document
from tests.jobs.backends.vertex_jobs import IMAGE, PREBUILT, RESERVED, Fields, make_request, make_target, of, on
from tests.support.golden import check_request

GOLDEN = Path(__file__).parents[2] / "golden" / "vertex"
FLEX = {"provisioning": "flex-start"}


JOBS: dict[str, tuple[Fields, Fields]] = {
    "cpu": ({}, {}),
    "l4_spot": (
        {"network_attachment": "projects/accel-sandbox/regions/us-central1/networkAttachments/jobs"},
        of(
            "l4",
            2,
            spot=True,
            timeout_s="12h",
            disk_gib=400,
            env={"EPOCHS": "50", "CUDA_VISIBLE_DEVICES": "0,1", "PRICE": "$(HOME)"},
            labels={"Team": "vision"},
            mounts=[
                {"source": "gs://acme-data/imagenet", "path": "/gcs/acme-data/imagenet"},
                {"source": "nfs://10.1.0.2/share/sets", "path": "/mnt/nfs/sets"},
            ],
            vertex={"web_access": True},
        ),
    ),
    "h100_flex_start": ({}, of("h100", 2, vertex={**FLEX, "wait_s": "6h"})),
    "nodes_reserved": ({"reservation": RESERVED}, of("a100", 8, nodes=4, retries=0, lost_retries=0)),
    "nodes_with_reduction_servers": (
        {"tensorboard": "projects/accel-sandbox/locations/us-central1/tensorboards/7"},
        of("v100", 8, nodes=5, vertex={"machine_type": "n1-highmem-96", "reduction_servers": {"replicas": 16}}),
    ),
    "chief_and_evaluator": (
        {},
        on(
            {
                "parameter_servers": {"replicas": 2, "machine_type": "n1-highmem-8", "disk_gib": 50},
                "evaluators": {"machine_type": "n1-standard-8", "accelerator": {"type": "t4"}, "args": ["--eval"]},
            },
        ),
    ),
    "package": (
        {},
        {
            "image": f"{PREBUILT}/ray-cpu.2-47.py311:latest",
            "command": [],
            **on(
                {
                    "package": {"uris": ["gs://acme/trainer-1.0.tar.gz"], "module": "trainer.task"},
                    "args": ["--epochs=10", "--batch-size=64"],
                    "output": "gs://acme/out",
                }
            ),
        },
    ),
    "tpu_v5e": ({}, of("v5e-16")),
    "tpu_v3": ({}, of("v3-8")),
    "persistent_resource": (
        {"persistent_resource": "kept", "persistent_machines": ["n1-standard-4+nvidia-tesla-t4x1"]},
        of("t4"),
    ),
}


@pytest.mark.parametrize("case", JOBS)
def test_golden(case: str) -> None:
    target, fields = JOBS[case]
    request = make_request(make_target(**target), **fields)
    check_request(GOLDEN / f"{case}.json", request)


def pools(**fields: Any) -> list[dict[str, Any]]:
    return make_request(**fields).body["customJob"]["jobSpec"]["workerPoolSpecs"]


@pytest.mark.parametrize(
    "kind, offered, impossible",
    [
        ("H100", {1: "a3-highgpu-1g", 2: "a3-highgpu-2g", 4: "a3-highgpu-4g", 8: "a3-highgpu-8g"}, (16,)),
        ("NVIDIA_H100_MEGA_80GB", {8: "a3-megagpu-8g"}, (2, 4)),
        (
            "NVIDIA_TESLA_A100",
            {1: "a2-highgpu-1g", 2: "a2-highgpu-2g", 4: "a2-highgpu-4g", 8: "a2-highgpu-8g", 16: "a2-megagpu-16g"},
            (3, 32),
        ),
        (
            "NVIDIA_A100_80GB",
            {1: "a2-ultragpu-1g", 2: "a2-ultragpu-2g", 4: "a2-ultragpu-4g", 8: "a2-ultragpu-8g"},
            (16,),
        ),
        ("NVIDIA_L4", {1: "g2-standard-4", 2: "g2-standard-24", 4: "g2-standard-48", 8: "g2-standard-96"}, (3, 16)),
        ("NVIDIA_TESLA_T4", {1: "n1-standard-4", 2: "n1-standard-8", 4: "n1-highcpu-16"}, (3, 8)),
        ("NVIDIA_TESLA_V100", {2: "n1-standard-8", 4: "n1-highcpu-16", 8: "n1-highcpu-32"}, (3, 16)),
        ("H200", {8: "a3-ultragpu-8g"}, (1, 4)),
        ("B200", {8: "a4-highgpu-8g"}, (4,)),
        ("NVIDIA_RTX_PRO_6000", {1: "g4-standard-48", 8: "g4-standard-384"}, (16,)),
    ],
)
def test_the_machines_of_a_gpu_by_number(kind: str, offered: dict[int, str], impossible: tuple[int, ...]) -> None:
    for count, machine in offered.items():
        (pool,) = pools(**of(kind, count, spot=True))
        assert (pool["machineSpec"]["machineType"], pool["machineSpec"]["acceleratorCount"]) == (machine, count)
    for count in impossible:
        with pytest.raises(BadInputs, match=f"accelerator.count: is {count}, and no machine has that many"):
            pools(**of(kind, count, spot=True))


@pytest.mark.parametrize(
    "fields, machine",
    [
        ({}, "n1-standard-4"),
        ({"cpus": 8}, "n1-standard-8"),
        ({"cpus": 16, "memory_mib": 8_000}, "n1-highcpu-16"),
        ({"memory_mib": 600_000}, "n2-highmem-80"),
        ({"cpus": 2}, "n1-highmem-2"),
        (of("t4", 2, cpus=16), "n1-highcpu-16"),
        (of("t4", 1, memory_mib=50_000), "n1-highmem-8"),
        (of("l4", cpus=9), "g2-standard-12"),
        (on({"machine_type": "a2-highgpu-4g"}), "a2-highgpu-4g"),
        (on({"machine_type": "n1-highmem-8"}, **of("t4", 4)), "n1-highmem-8"),
        (on({"machine_type": "m1-megamem-96"}), "m1-megamem-96"),
        (of("v6e-8"), "ct6e-standard-8t"),
        (on({"machine_type": "ct6e-standard-4t"}, **of("v6e-8")), "ct6e-standard-4t"),
        (on({"topology": "2x2x1"}, **of("tpu7x")), "tpu7x-standard-4t"),
        (on({"machine_type": "cloud-tpu"}, **of("TPU_V2", 32)), "cloud-tpu"),
    ],
)
def test_the_smallest_machine_that_holds_the_job(fields: Fields, machine: str) -> None:
    assert pools(**fields)[0]["machineSpec"]["machineType"] == machine


def test_prebuilt_images_are_not_told_off_for_their_tag() -> None:
    warnings = make_request(image=f"{PREBUILT}/ray-cpu.2-47.py311:latest").warnings
    assert warnings == ()


def test_a_command_of_one_string_is_split() -> None:
    (pool,) = pools(command=["python train.py"], image=f"{PREBUILT}/pytorch-gpu.2-4")
    assert pool["containerSpec"]["command"] == ["python", "train.py"]
    assert pool["containerSpec"]["imageUri"] == f"{PREBUILT}/pytorch-gpu.2-4.py310:latest"


@pytest.mark.parametrize(
    "fields, disabled",
    [
        ({}, None),
        ({"retries": 0}, True),
        ({"lost_retries": 0}, True),
        ({"retries": 2}, None),
        ({"retries": 0, "lost_retries": 1}, None),
    ],
)
def test_what_is_not_to_be_tried_again(fields: Fields, disabled: bool | None) -> None:
    scheduling = make_request(**fields).body["customJob"]["jobSpec"]["scheduling"]
    assert scheduling.get("disableRetries") == disabled


@pytest.mark.parametrize(
    "fields, kept",
    [({}, True), ({"spot": True}, False), (of("l4"), False), ({"disk_gib": 5}, False), ({"nodes": 2}, True)],
)
def test_machines_that_are_there_are_used_by_jobs_that_fit(fields: Fields, kept: bool) -> None:
    target = make_target(persistent_resource="kept", persistent_machines=["n1-standard-4"], reservation=None)
    spec = make_request(target, **fields).body["customJob"]["jobSpec"]
    assert ("persistentResourceId" in spec, "strategy" not in spec["scheduling"]) == (kept, kept)


COUNTS = st.integers(1, 16)
KINDS = st.sampled_from(
    [
        "l4",
        "t4",
        "v100",
        "p100",
        "a100",
        "a100-80gb",
        "h100",
        "h200",
        "b200",
        "gb200",
        "v5e-8",
        "v6e-16",
        "v3-8",
        "v4-8",
    ]
)
NAMES = st.from_regex(r"[A-Z]{1,8}", fullmatch=True)
TEXTS = st.text("abc é$()\"'", max_size=20)
POOLS = st.fixed_dictionaries(
    {"replicas": st.integers(1, 4)},
    optional={
        "machine_type": st.sampled_from(["n1-standard-8", "n1-highcpu-16", "a2-highgpu-1g", "g4-standard-48"]),
        "accelerator": st.sampled_from([{"type": "t4"}, {"type": "l4", "count": 2}]),
        "image": st.just(IMAGE),
        "args": st.lists(TEXTS, max_size=2),
        "disk_gib": st.integers(1, 500),
    },
)
BLOCKS = st.fixed_dictionaries(
    {},
    optional={
        "provisioning": st.just("flex-start"),
        "wait_s": st.integers(1, 10**6),
        "workers": POOLS,
        "evaluators": POOLS,
        "parameter_servers": POOLS,
        "disk_type": st.sampled_from(["pd-ssd", "pd-standard", "hyperdisk-balanced"]),
        "restart": st.booleans(),
        "reservation": st.just(RESERVED),
        "persistent_resource": st.just("kept"),
        "web_access": st.booleans(),
    },
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "accelerator": st.builds(lambda kind, count: {"type": kind, "count": count}, KINDS, COUNTS),
        "spot": st.booleans(),
        "nodes": st.integers(1, 5),
        "timeout_s": st.integers(1, 10**8),
        "disk_gib": st.integers(1, 5000),
        "retries": st.integers(0, 5),
        "lost_retries": st.integers(0, 5),
        "cpus": st.integers(1, 100),
        "env": st.dictionaries(NAMES, TEXTS, max_size=3),
        "labels": st.dictionaries(NAMES, TEXTS, max_size=3),
        "vertex": BLOCKS,
    },
)


@given(FIELDS)
def test_every_body_fits_googles_schema(fields: Fields) -> None:
    """Or the job is refused; and the same job gives the same body."""
    try:
        request = make_request(**fields)
    except BadInputs:
        return
    assert request == make_request(**fields)
    body = request.body["customJob"]
    assert json.loads(json.dumps(body)) == body
    check(document("aiplatform.v1"), "GoogleCloudAiplatformV1CustomJob", body)
    specs = body["jobSpec"]["workerPoolSpecs"]
    assert 1 <= len(specs) <= 4 and specs[0]["replicaCount"] == "1" and specs[-1]
    assert sum(int(each["replicaCount"]) for each in specs[:2] if each) >= fields.get("nodes", 1) or any(
        "tpuTopology" in each["machineSpec"] for each in specs[:1]
    )
    assert all(len(text) <= 63 for label in body["labels"].items() for text in label)


def test_a_job_without_accelerators_gets_no_host_of_tpus() -> None:
    """A slice is asked for by its topology, which such a job does not say."""
    request = make_request(make_target(machine_types=["ct6e-standard-1t", "g2-standard-96"]))
    (pool,) = request.body["customJob"]["jobSpec"]["workerPoolSpecs"]
    assert pool["machineSpec"]["machineType"] == "g2-standard-96"
