"""What is sent for an attempt: marks, reservations, and laws over every slice of the catalogue."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.catalog.tpu import slice_names, tpu
from accel.catalog.tpu_generations import GENERATIONS
from accel.contract.google_vms import TpuVmTarget
from accel.diagnostics.errors import BadInputs
from jobs.backends.vm.tpu.queued_resources import queued_resource
from jobs.model.keys import platform_name, submission_key
from sandbox.google.discovery import check, document
from sandbox.google.errors import ApiError
from tests.jobs.backends.test_tpu_vm_render import WHOLE, Fields, machine, of
from tests.jobs.backends.tpu_target import ZONES, make_request, make_target
from tests.jobs.backends.vm_records import make_record
from tests.support.soak import SOAK


@pytest.mark.parametrize(
    "reservation, fields, expected",
    [
        (None, {}, None),
        (None, {"tpu_vm": {"reserved": True}}, "-"),
        ("r", {}, "r"),
        ("r", {"spot": True}, None),
        ("r", {"tpu_vm": {"reserved": False}}, None),
        ("r", {"tpu_vm": {"reserved": True}}, "r"),
    ],
)
def test_reservations(reservation: str | None, fields: Fields, expected: str | None) -> None:
    found = machine({"reservation": reservation}, **fields)
    assert found["reservation"] == expected
    record = make_record(make_request(make_target(reservation=reservation), **fields))
    sent = queued_resource(record, record.last)
    place = f"projects/accel-sandbox/locations/us-central1-a/reservations/{expected}"
    assert sent.get("reservationName") == (place if expected else None)
    assert "guaranteed" not in sent and ("spot" in sent) == bool(fields.get("spot"))


def test_a_reservation_by_its_whole_name_leaves_its_zone_alone() -> None:
    whole = "projects/other/zones/us-east5-b/reservations/r"
    request = make_request(make_target(reservation=whole))
    assert request.body["zones"] == ["us-east5-b"]
    sent = queued_resource(record := make_record(request), record.last)
    assert sent["reservationName"] == "projects/other/locations/us-east5-b/reservations/r"


def test_lost_attempts_are_made_anew_and_failures_are_not() -> None:
    body = make_request().body
    assert (body["retries"], body["lost_retries"]) == (0, 3)
    body = make_request(retries=2, lost_retries=0).body
    assert (body["retries"], body["lost_retries"]) == (2, 0)


def test_each_attempt_has_marks_of_its_own_in_its_own_zone() -> None:
    request = make_request(spot=True, tpu_vm={"slices": 2})
    record = make_record(request, number=2, zone="us-east5-b", name=f"{request.name}-r2")
    sent = queued_resource(record, record.last)
    (spec,) = sent["tpu"]["nodeSpec"]
    node = spec["node"]
    assert spec["parent"] == "projects/accel-sandbox/locations/us-east5-b"
    assert spec["multisliceParams"] == {"nodeCount": 2, "nodeIdPrefix": f"{request.name}-r2"} and "nodeId" not in spec
    assert node["networkConfig"]["subnetwork"].endswith("/regions/us-east5/subnetworks/ml")
    assert node["labels"]["accel-job"] == request.name and node["labels"]["accel-attempt"] == "2"
    told = json.loads(node["metadata"]["accel-job"])
    assert (told["name"], told["attempt"], told["hosts"], told["hosts_per_slice"]) == (request.name, 2, 8, 4)
    assert told["folder"] == f"accel-jobs/{request.name}/attempts/2" and told["env"]["ACCEL_ATTEMPT"] == "2"
    assert told["release"][0]["url"].endswith(f"/us-east5-b/queuedResources/{request.name}-r2?force=true")
    assert sent == queued_resource(record, record.last), "asked for again, it is the same"


def test_a_shape_of_v2_that_is_not_known_is_warned_of_and_asked_for() -> None:
    request = make_request(**of("v2-32", tpu_vm={"topology": "2x8"}))
    assert request.body["machine"]["node"]["acceleratorConfig"] == {"type": "V2", "topology": "2x8"}
    assert (request.body["hosts"], request.body["chips"]) == (4, 16)
    assert any(each.startswith('tpu_vm.topology: is "2x8"') for each in request.warnings)
    with pytest.raises(BadInputs, match=r"accelerator\.type: v2 has no size"):
        make_request(**of("v2", tpu_vm={"topology": "2x8"}))


def slices() -> list[str]:
    return [name for generation in GENERATIONS if generation.api == "tpu" for name in slice_names(generation)]


def test_every_slice_of_the_catalogue_can_be_asked_for() -> None:
    for name in slices():
        body = make_request(**of(name)).body
        assert (body["type"], body["hosts"], body["chips"]) == (name, tpu(name).hosts, tpu(name).chips)


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)
LABELS = st.dictionaries(st.text("abC_-é", min_size=1, max_size=70), st.text("abC_-. é", max_size=70), max_size=4)


@given(
    name=NAMES,
    kind=st.sampled_from(slices()),
    count=st.integers(1, 5),
    number=st.integers(1, 12),
    labels=LABELS,
    spot=st.booleans(),
    waits=st.tuples(st.none() | st.integers(1, 10**6), st.none() | st.integers(1, 10**6)),
    reservation=st.none() | st.sampled_from(["r", WHOLE]),
)
@settings(max_examples=120 if SOAK else 20, deadline=None)
def test_every_request_is_valid_for_googles_own_schema(
    name: str,
    kind: str,
    count: int,
    number: int,
    labels: dict[str, str],
    spot: bool,
    waits: tuple[int | None, int | None],
    reservation: str | None,
) -> None:
    block: Fields = {"slices": count, "zone_wait_s": waits[0], "valid_for_s": waits[1]}
    if number % 2:
        block["topology"] = tpu(kind).topology
    fields: Fields = {"name": name, "accelerator": {"type": kind}, "labels": labels, "spot": spot, "tpu_vm": block}
    target = make_target(reservation=reservation, zones=[*ZONES, "us-west4-a"])
    target = target.model_copy(update={"subnetworks": {**target.subnetworks, "us-west4": "s"}})
    try:
        request = make_request(target, **fields)
    except BadInputs as refused:
        own = ("are both", "reservation is of")
        if other := [each for each in refused.messages if not any(word in each for word in own)]:
            pytest.fail(f"refused without need: {other}")
        return
    attempt = f"{request.name}-r{number}" if number > 1 else request.name
    record = make_record(request, number=number, name=attempt)
    sent = queued_resource(record, record.last)
    check(document("tpu.v2"), "QueuedResource", sent)
    assert request.name.endswith(f"-{submission_key(name, 'golden')[:12]}")
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", f"{attempt}-{count}")
    (spec,) = sent["tpu"]["nodeSpec"]
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) for key in spec["node"]["labels"])
    assert all(re.fullmatch(r"[a-z0-9_-]{0,63}", value) for value in spec["node"]["labels"].values())
    assert all(len(value.encode()) <= 256 * 1024 for value in spec["node"]["metadata"].values())
    assert request.body["chips"] == count * tpu(kind).chips
    assert ("acceleratorType" in spec["node"]) != ("acceleratorConfig" in spec["node"])
    json.dumps(request.body)


def test_a_body_with_a_field_of_no_schema_would_be_seen() -> None:
    record = make_record(make_request())
    sent = queued_resource(record, record.last)
    sent["tpu"]["nodeSpec"][0]["node"]["acceleratorTyp"] = "v2-8"
    with pytest.raises(ApiError, match="acceleratorTyp"):
        check(document("tpu.v2"), "QueuedResource", sent)


def test_a_name_is_found_again_by_its_key() -> None:
    one, two = make_request(text="a"), make_request(text="b")
    assert one.name != two.name == make_request(text="b").name
    key = submission_key("digits", "a")
    assert one.key == key and one.name == platform_name("digits", key)


def test_types_of_a_target_are_googles_names() -> None:
    target: TpuVmTarget = make_target(types=["v5litepod-16"])
    assert make_request(target, **of("v5e-16")).body["type"] == "v5litepod-16"
