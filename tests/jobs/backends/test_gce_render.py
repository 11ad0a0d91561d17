"""A job as VMs of Compute Engine: golden files, laws, and every field that is refused with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.backends.vm.gpu.instances import group_body, instance_body, template_body
from sandbox.google.discovery import check, document
from tests.jobs.backends.gce_target import make_request, make_target
from tests.jobs.backends.refusal import refusal
from tests.jobs.backends.vm_records import make_record
from tests.jobs.backends.vm_target import COMMON_FIELDS, IMAGE, REFUSALS, Fields
from tests.support.golden import check_request

GOLDEN = Path(__file__).parents[2] / "golden" / "gce"


def of(kind: str, count: int = 1, **more: Any) -> Fields:
    return {"accelerator": {"type": kind, "count": count}, **more}


def sent(request: Any) -> dict[str, Any]:
    """What is sent for the first attempt, without the agent."""
    record = make_record(request)
    attempt = record.last
    if request.body["machine"]["group"]:
        template, group = template_body(record, attempt), group_body(record, attempt)
        found = {"template": template, "group": group}
        items = template["properties"]["metadata"]["items"]
    else:
        instance = instance_body(record, attempt)
        found, items = {"instance": instance}, instance["metadata"]["items"]
    values = {item["key"]: item["value"] for item in items}
    assert values["startup-script"].startswith("#!") and values["accel-agent"]
    items[:] = [item for item in items if item["key"] not in ("startup-script", "accel-agent", "accel-job")]
    return {**found, "job": json.loads(values["accel-job"])}


JOBS: dict[str, tuple[Fields, Fields]] = {
    "l4": ({}, of("l4", retries=2, timeout_s="4h")),
    "t4_attached_spot": (
        {},
        of(
            "nvidia-tesla-t4",
            2,
            **COMMON_FIELDS,
            disk_gib=200,
            gce={"notice_s": 120, "grace_s": 90},
        ),
    ),
    "a100_reserved": (
        {"reservation": "projects/accel-sandbox/zones/us-central1-b/reservations/training"},
        of("a100", 4, gce={"max_run": "7d"}),
    ),
    "h100_flex_start": ({"disk_type": "hyperdisk-balanced"}, of("h100", 1, gce={"provisioning": "flex-start"})),
    "nodes": (
        {"placement": "projects/accel-sandbox/regions/us-central1/resourcePolicies/close", "external_address": True},
        of("a100", 8, nodes=4, image=IMAGE),
    ),
    "cpu_machine_of_the_target": ({"machine_types": ["g2-standard-8", "n2-standard-8"]}, {"accelerator": None}),
}


@pytest.mark.parametrize("case", JOBS)
def test_golden(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", raising=False)
    target, fields = JOBS[case]
    request = make_request(make_target(**target), **fields)
    check_request(GOLDEN / f"{case}.json", request, sent=sent(request))


RESERVED = "projects/accel-sandbox/zones/us-west4-a/reservations/r"
POLICY = "projects/accel-sandbox/regions/us-west4/resourcePolicies/close"
FLEX = {"provisioning": "flex-start"}


@pytest.mark.parametrize(
    "target, fields, message",
    [
        ({}, {"accelerator": None}, "accelerator: is missing, and so is gce.machine_type"),
        ({}, {"accelerator": {"count": 2}}, "accelerator.type: is missing, and so is gce.machine_type"),
        ({}, of("a1000"), 'accelerator.type: is "a1000"'),
        ({}, of("v5e"), "is a TPU; submit to a target of kind tpu-vm"),
        ({}, of("l4", 3), "accelerator.count: nvidia-l4: 3 is not a count"),
        ({"machine_types": ["g2-standard-8"]}, of("a100"), "accelerator: 1 a100 are in a2-highgpu-1g; the target has"),
        ({"machine_types": ["g2-standard-8"]}, {"accelerator": {"count": 2}}, "no machine of the target has 2 GPUs"),
        ({"machine_types": ["g2-standard-8"]}, {"gce": {"machine_type": "g2-standard-9"}}, "did you mean g2-"),
        ({}, {"gce": {"machine_type": "g2-standard-9"}}, 'gce.machine_type: is "g2-standard-9", which is no known'),
        ({}, of("a100", gce={"machine_type": "g2-standard-8"}), "accelerator.type: is a100, and g2-standard-8 has 1"),
        ({}, of("l4", 2, gce={"machine_type": "g2-standard-8"}), "accelerator.count: is 2, and g2-standard-8 has 1"),
        ({}, of("l4", cpus=64), "cpus: is 64, and the largest machine for it, g2-standard-32, has 32 vCPUs"),
        ({}, of("l4", memory_mib=200_000), "memory_mib: is 200000, and the largest machine for it"),
        ({}, of("h100"), "spot: is on-demand, and a3-highgpu-1g is available as Spot or flex-start only"),
        ({}, of("h100", spot=True, gce=FLEX), "gce.provisioning: is flex-start, beside spot: true"),
        ({}, of("h100", nodes=2, gce=FLEX), "gce.provisioning: is flex-start, beside nodes: 2"),
        ({}, of("t4", gce=FLEX), "gce.provisioning: is flex-start, for n1-standard-4"),
        ({}, of("h100", timeout_s="8d", gce=FLEX), "gce.provisioning: is flex-start, for 694800 s"),
        ({}, {"timeout_s": "4h", "gce": {"max_run": "4h"}}, "gce.max_run: is 14400, and timeout_s is 14400"),
        ({}, {"gce": {"max_run": "1h"}}, "gce.max_run: is 3600, in which machines boot and end"),
        ({}, {"gce": {"notice_s": 120}}, "gce.notice_s: is 120, and the job is not Spot"),
        ({}, {"spot": True, "gce": {"notice_s": 60}}, "gce.notice_s: is 60, and capacity is spot; write 120"),
        ({}, {"gce": {"zones": ["us-central1-c"]}}, 'gce.zones[0]: unknown zone "us-central1-c"; did you mean'),
        ({"subnetworks": {}}, {}, "gce.zones: us-central1-a: the target has no subnetwork in us-central1"),
        ({"reservation": RESERVED}, {}, "and the target's reservation is of us-west4-a"),
        ({"placement": POLICY}, {"nodes": 2}, "and the target's placement policy is of us-west4"),
        ({}, {"env": {"PET_NNODES": "1"}}, "env.PET_NNODES: is set by the platform"),
        *REFUSALS,
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(target: Fields, fields: Fields, message: str) -> None:
    with refusal(message):
        make_request(make_target(**target), **fields)


@pytest.mark.parametrize(
    "target, fields, words",
    [
        ({}, of("a100", 8), "gce.zones: have us-east4-c, where a2-highgpu-8g is not known to be; it is asked for"),
        ({}, of("h200", 8), "disk_gib: a3-ultragpu-8g takes no pd-balanced of the target; it gets hyperdisk-balanced"),
        ({}, {"labels": {"Team": "x"}}, 'labels: "Team: x" is "team: x" on Google Cloud'),
        ({}, {"gke": {"keep_s": 5}}, "gke: is for targets of kind gke and does nothing here"),
        ({}, {"image": "acme/train"}, "image: "),
    ],
)
def test_what_is_warned_of(target: Fields, fields: Fields, words: str) -> None:
    warnings = make_request(make_target(**target), **fields).warnings
    assert any(words in warning for warning in warnings), warnings


@pytest.mark.parametrize(
    "fields, machine",
    [
        ({}, "g2-standard-4"),
        ({"cpus": 8}, "g2-standard-8"),
        ({"cpus": 4, "memory_mib": 40_000}, "g2-standard-12"),
        ({"cpus": 32}, "g2-standard-32"),
        (of("t4", 2), "n1-standard-8"),
        (of("t4", 2, cpus=2), "n1-standard-2"),
        (of("t4", 2, gce={"machine_type": "n1-highmem-8"}), "n1-highmem-8"),
        (of("h100", 8), "a3-highgpu-8g"),
    ],
)
def test_the_smallest_machine_that_holds_the_job(fields: Fields, machine: str) -> None:
    assert make_request(**fields).body["type"] == machine


def test_without_an_accelerator_it_is_the_targets_smallest_machine() -> None:
    target = make_target(machine_types=["g2-standard-8", "g2-standard-4"])
    body = make_request(target, accelerator=None).body
    assert (body["type"], body["gpus"]) == ("g2-standard-4", 1)


def test_a_machine_ends_after_its_job_whatever_happens() -> None:
    """Google deletes it a while after the job's own time, and the agent knows its time before."""
    for fields in ({"timeout_s": "4h"}, {"gce": {"max_run": "12h"}}, {"timeout_s": 60, "gce": {"max_run": "12h"}}):
        body = make_request(**fields).body
        scheduling = body["machine"]["properties"]["scheduling"]
        assert scheduling["instanceTerminationAction"] == "DELETE"
        assert int(scheduling["maxRunDuration"]["seconds"]) >= body["timeout_s"] + 3600
        assert body["job"]["timeout_s"] == body["timeout_s"]


ACCELERATORS = st.sampled_from([("l4", 1), ("l4", 2), ("t4", 1), ("t4", 4), ("v100", 8), ("a100", 16), ("h100", 8)])
NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
FIELDS = st.fixed_dictionaries(
    {"accelerator": ACCELERATORS.map(lambda pair: {"type": pair[0], "count": pair[1]})},
    optional={
        "spot": st.booleans(),
        "nodes": st.integers(1, 5),
        "timeout_s": st.integers(1, 10**8),
        "disk_gib": st.integers(1, 5000),
        "retries": st.integers(0, 5),
        "image": st.just(IMAGE),
        "env": st.dictionaries(
            st.from_regex(r"[A-Z]{1,8}", fullmatch=True), st.text("abc é$\"'", max_size=20), max_size=3
        ),
        "labels": st.dictionaries(
            st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text("abc-", max_size=20), max_size=3
        ),
    },
)


@given(FIELDS)
def test_every_body_fits_googles_schema(fields: Fields) -> None:
    """And the same job gives the same body."""
    request = make_request(**fields)
    assert request == make_request(**fields)
    assert json.loads(json.dumps(request.body)) == request.body
    schemas = {"instance": "Instance", "template": "InstanceTemplate", "group": "InstanceGroupManager"}
    found = sent(request)
    for name, schema in schemas.items():
        if name in found:
            check(document("compute.v1"), schema, found[name])
    assert found["job"]["hosts"] == fields.get("nodes", 1)
