"""A job as a queued resource: golden files, laws, and every field that is refused with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from accel.diagnostics.errors import BadInputs
from jobs.backends.vm.tpu.queued_resources import queued_resource
from tests.jobs.backends.refusal import refusal
from tests.jobs.backends.tpu_target import make_request, make_target
from tests.jobs.backends.vm_records import make_record
from tests.jobs.backends.vm_target import COMMON_FIELDS, IMAGE, REFUSALS, Fields
from tests.support.golden import check_request

GOLDEN = Path(__file__).parents[2] / "golden" / "tpu_vm"


def of(kind: str, **more: Any) -> Fields:
    return {"accelerator": {"type": kind}, **more}


JOBS: dict[str, tuple[Fields, Fields]] = {
    "v2": ({}, of("v2-8", retries=2, timeout_s="4h")),
    "v3_pod": ({}, of("v3-32", nodes=4, tpu_vm={"zones": ["europe-west4-a"]})),
    "v4_pod_with_a_topology": ({}, of("v4-512", tpu_vm={"topology": "4x4x16"})),
    "v5e_spot": (
        {},
        of("v5e-16", **COMMON_FIELDS, tpu_vm={"zone_wait_s": "30m", "valid_for_s": "2h", "grace_s": 60}),
    ),
    "v5p_reserved": ({"reservation": "training"}, of("v5p-128")),
    "v6e_of_two_slices": ({"external_address": True, "tags": []}, of("v6e-8", image=IMAGE, tpu_vm={"slices": 2})),
}


@pytest.mark.parametrize("case", JOBS)
def test_golden(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of the request, and what is sent for its first attempt, without the agent."""
    monkeypatch.delenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU", raising=False)
    target, fields = JOBS[case]
    request = make_request(make_target(**target), **fields)
    sent = queued_resource(record := make_record(request), record.last)
    metadata = sent["tpu"]["nodeSpec"][0]["node"]["metadata"]
    assert metadata.pop("startup-script").startswith("#!") and metadata.pop("accel-agent")
    metadata["accel-job"] = json.loads(metadata["accel-job"])
    check_request(GOLDEN / f"{case}.json", request, sent=sent)


WHOLE = "projects/accel-sandbox/zones/us-west4-a/reservations/r"


@pytest.mark.parametrize(
    "target, fields, message",
    [
        ({}, {"accelerator": None}, "accelerator.type: is missing; name one, such as v5litepod-8"),
        ({}, {"accelerator": {"count": 4}}, "accelerator.type: is missing"),
        ({}, of("a100"), 'accelerator.type: is "a100", which is no TPU type'),
        ({}, of("v5e-17"), "accelerator.type: is \"v5e-17\", which is no size of TPU v5e; use v5litepod-16 or v5lit"),
        ({}, of("v7x-8"), "which the Cloud TPU API does not have; make a GKE node pool of tpu7x-standard-4t"),
        ({}, of("v4-8192", tpu_vm={"topology": "2x2"}), 'tpu_vm.topology: is "2x2", which is no topology of TPU v4'),
        ({}, of("v5e-16", tpu_vm={"topology": "2x4"}), 'tpu_vm.topology: is "2x4", which has 8 chips'),
        ({"types": ["v5litepod-8"]}, {}, "accelerator.type: v5litepod-16 is none of the target's types: v5litepod-8"),
        ({}, {"nodes": 2}, "nodes: is 2, and v5litepod-16 is 4 hosts of 4 chips; leave it out, or write nodes: 4 and"),
        ({}, {"nodes": 4, "tpu_vm": {"slices": 2}}, "nodes: is 4, and 2 slices of v5litepod-16 are 8 hosts of 4 chip"),
        ({}, {"accelerator": {"type": "v5e-16", "count": 2}}, "accelerator.count: is 2, and v5e-16 is 4 hosts of 4"),
        ({}, {"accelerator": {"type": "v5e-8", "count": 4}, "nodes": 2}, "nodes: is 2, and v5e-8 is 1 host of 8 chip"),
        ({}, {"cpus": 113}, "cpus: is 113, and a host of v5litepod-16 has 112 vCPUs; ask for less"),
        ({}, {"memory_mib": 196_609}, "memory_mib: is 196609, and a host of v5litepod-16 has 196608 MiB"),
        ({}, of("v2-8", cpus=8), "cpus: is 8, and what a host of v2-8 has is not known; leave it out"),
        ({}, {"disk_gib": 50}, "disk_gib: is 50, and a TPU VM's boot disk is 100 GiB and cannot be resized"),
        ({}, {"env": {"TPU_WORKER_ID": "1"}}, "env.TPU_WORKER_ID: is set by the platform; give the variable another"),
        ({}, {"tpu_vm": {"runtime_version": "v2-alpha-tpuv5"}}, 'tpu_vm.runtime_version: is "v2-alpha-tpuv5", which'),
        ({}, of("v3-32", tpu_vm={"runtime_version": "tpu-vm-tf-2.14.0"}), "and v3-32 has 4 hosts; use tpu-vm-tf-"),
        ({}, {"tpu_vm": {"zones": ["us-central1-b"]}}, 'tpu_vm.zones[0]: unknown zone "us-central1-b"; did you mean'),
        ({"subnetworks": {}}, {}, "tpu_vm.zones: us-central1-a: the target has no subnetwork in us-central1"),
        ({}, {"spot": True, "tpu_vm": {"reserved": True}}, "tpu_vm.reserved: is true beside spot; keep one of the two"),
        ({"reservation": WHOLE}, {}, "tpu_vm.zones: are us-central1-a, us-east5-b, europe-west4-a, and the target's"),
        *REFUSALS,
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(target: Fields, fields: Fields, message: str) -> None:
    with refusal(message):
        make_request(make_target(**target), **fields)


def test_all_faults_are_told_together() -> None:
    wrong: Fields = {
        "secrets": {"A": "b"},
        "tasks": 2,
        "disk_gib": 1,
        "tpu_vm": {"zones": ["x"], "runtime_version": "a"},
    }
    with pytest.raises(BadInputs) as caught:
        make_request(**wrong, accelerator={"type": "v9-8"}, mounts=[{"source": "host:///a", "path": "/a"}])
    assert len(caught.value.messages) == 6, caught.value.messages


@pytest.mark.parametrize(
    "fields, words",
    [
        (of("v5e-16"), 'accelerator.type: is "v5e-16", which the Cloud TPU API calls v5litepod-16; write v5litepod-16'),
        (of("v4-8192"), 'accelerator.type: is "v4-8192", above v4-4096, the largest in the published table'),
        ({"tpu_vm": {"runtime_version": "tpu-vm-pt-2.1"}}, "is superseded; use v2-alpha-tpuv5-lite"),
        ({"tpu_vm": {"runtime_version": "tpu-ubuntu2204-base"}}, "which is for v4 and older"),
        ({"tpu_vm": {"zones": ["us-central2-b"]}}, "tpu_vm.zones[0]: is us-central2-b, where v5litepod-16 is not"),
        ({"labels": {"Team": "x"}}, 'labels: "Team: x" is "team: x" on Google Cloud'),
        ({"gke": {"keep_s": 5}}, "gke: is for targets of kind gke and does nothing here"),
        ({"image": "acme/train"}, "image: "),
    ],
)  # fmt: skip
def test_what_is_warned_of(fields: Fields, words: str) -> None:
    assert any(words in warning for warning in make_request(**fields).warnings), make_request(**fields).warnings


def test_a_target_without_a_zone_that_is_known_to_have_it_is_asked_all_the_same() -> None:
    request = make_request(make_target(zones=["us-central2-b"]))
    assert request.body["zones"] == ["us-central2-b"]
    assert any("zones: are us-central2-b, where v5litepod-16 is not known" in each for each in request.warnings)
    assert make_request(**of("v4-8")).warnings == make_request(**of("v5litepod-8")).warnings == ()


def machine(target: Fields | None = None, **fields: Any) -> Fields:
    return make_request(make_target(**(target or {})), **fields).body["machine"]


def test_a_superseded_software_version_is_replaced() -> None:
    fields = {"runtime_version": "tpu-vm-pt-2.1"}
    assert machine(tpu_vm=fields)["node"]["runtimeVersion"] == "v2-alpha-tpuv5-lite"
    assert machine(**of("v6e-8"))["node"]["runtimeVersion"] == "v2-alpha-tpuv6e"
    assert machine(**of("v4-8"))["node"]["runtimeVersion"] == "tpu-ubuntu2204-base"


def test_zones_are_those_that_have_the_type_unless_the_job_names_them() -> None:
    assert make_request().body["zones"] == ["us-central1-a", "us-east5-b", "europe-west4-a"]
    assert make_request(**of("v4-8")).body["zones"] == ["us-central2-b"]
    named = {"zones": ["us-central2-b", "us-east5-b"]}
    assert make_request(tpu_vm=named).body["zones"] == ["us-central2-b", "us-east5-b"]
