"""Store of records: objects of the target's bucket, each replaced only if it is unchanged since it was read.

gs://<bucket>/accel-jobs/<job>/record.json                       the job (record.py)
gs://<bucket>/accel-jobs/<job>/attempts/<n>/result-<host>.json   what each machine reports at its end; written once

Records of declared queues are in a folder of their own: see queues.py.

Before machines are created, a record is compared with its target: the account, the project, zones and network, the kind
of machines, the project of their image, and that they run nothing except the agent. The image itself may be another one
of the same project, so that a job continues after its target's image was renewed. A target is a JSON value here, since
the stack's function has no models.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from accel.clouds.conditional_store import Record as Stored
from accel.clouds.conditional_store import WriteConflict
from accel.clouds.conditional_store.objects import Objects
from accel.clouds.google.api import Google, object_path
from accel.clouds.google.bucket_targets import published_targets
from accel.contract import buckets
from accel.diagnostics.errors import CloudSilent, NotFound, NotPromised
from accel.threads import in_threads

from ..same_key import other_request
from . import labels
from .labels import PREFIX, attempt_name
from .record import Attempt, Record, Result, as_json, of_json, result_of, was_never_made

_AT_ONCE = 8
NONE: Mapping[str, Mapping[str, Any]] = {}
CHANGED = "the target was changed after the job was sent, or the record was: cancel the job, and submit it again"


class Records:
    """Records in one folder of a bucket. `known`: the client's own targets by name, as JSON values."""

    def __init__(
        self, google: Google, bucket: str, of: str = buckets.JOBS, known: Mapping[str, Mapping[str, Any]] = NONE
    ) -> None:
        self._google, self.bucket, self._of, self._known = google, bucket, of, known
        self._objects = Objects(google, bucket)
        self._seen: dict[str, Result] = {}

    def claim(self, record: Record) -> tuple[Record, str | None]:
        """Return this record with its generation if the job is new, otherwise the record of an earlier submit and None.
        A job that was refused when it was requested is new again, and its next attempt has another number. Raise
        BadInput if the key belongs to another job."""
        try:
            return record, self._objects.create(self._path(record.name), _bytes(record))
        except WriteConflict:
            found, generation = self.read(record.name)
        if found.ended and found.key == record.key and was_never_made(found):
            number, prefix = found.last.number + 1, record.body.get(PREFIX, "")
            new = replace(record.last, number=number, name=attempt_name(record.name, number, prefix))
            anew = replace(record, attempts=(*found.attempts, new))
            if made := self.replace(anew, generation):
                return anew, made
            found, _ = self.read(record.name)
        if (found.key, found.spec_hash) != (record.key, record.spec_hash):
            raise other_request(record.name)
        return found, None

    def read(self, name: str) -> tuple[Record, str]:
        """Return the record and its generation. Raise NotFound."""
        where = f"gs://{self.bucket}/{self._path(name)}"
        try:
            data, generation = self._google.read("storage", object_path(self.bucket, self._path(name)))
        except NotFound:
            raise NotFound(f"there is no job {name} in gs://{self.bucket}/{self._of}") from None
        try:
            value = json.loads(data)
        except ValueError as error:
            raise CloudSilent(f"{where}: is not JSON: {error}") from error
        record = of_json(value, where)
        if record.name != name:
            raise CloudSilent(f"{where}: is the record of another job: {record.name}")
        return record, generation

    def check(self, record: Record) -> None:
        """Raise NotPromised if no target of the bucket has what the record requests."""
        differences: dict[str, str] = {}
        for name, target in chain(self._known.items(), published_targets(self._google, self.bucket)):
            if (found := difference(record, target)) is None:
                return
            differences.setdefault(name, found)
        where = f"gs://{self.bucket}/{self._path(record.name)}"
        if not differences:
            said = f"there is no target in gs://{self.bucket}/{buckets.TARGETS} to compare it with"
            raise NotPromised(f"{where}: {said}; nothing is made", "`accel-jobs tend --to TARGET` knows its target")
        name = record.target if record.target in differences else next(iter(differences))
        raise NotPromised(f"{where}: target {name}: {differences[name]}; nothing is made", CHANGED)

    def replace(self, record: Record, generation: str) -> str | None:
        """Return the new generation; None if another client has replaced the record since."""
        try:
            return self._objects.replace(self._path(record.name), Stored(b"", generation), _bytes(record))
        except WriteConflict:
            return None

    def forget(self, name: str) -> None:
        """Delete a record. A missing record is no error."""
        self._google.delete("storage", object_path(self.bucket, self._path(name)))

    def _path(self, name: str) -> str:
        return f"{self._of}/{name}/{buckets.RECORD}"

    def results(self, record: Record, attempt: Attempt) -> Mapping[int, Result]:
        """Return results by host. Objects that belong to no host of the attempt are not read."""
        prefix = f"{folder(record.name, attempt.number)}/result-"
        items = self._google.pages("storage", f"b/{self.bucket}/o", "items", prefix=prefix)
        wanted = {f"{prefix}{host}.json": host for host in range(record.hosts)}
        there = sorted(wanted.keys() & {str(item.get("name")) for item in items})
        told = in_threads(lambda name: self._result(name, wanted[name]), there, _AT_ONCE)
        return {each.host: each for each in told}

    def _result(self, name: str, host: int) -> Result:
        if name not in self._seen:
            data, _ = self._google.read("storage", object_path(self.bucket, name))
            try:
                self._seen[name] = result_of(json.loads(data), host)
            except (ValueError, AttributeError, RecursionError) as error:
                raise CloudSilent(f"gs://{self.bucket}/{name}: is no result of a job: {error}") from error
        return self._seen[name]

    def newest(self) -> Iterator[Record]:
        born = {item.name: item.created for item in self.listed()}
        for name in sorted(born, key=lambda each: born[each], reverse=True):
            with suppress(NotFound):
                yield self.read(name)[0]

    def listed(self) -> Iterator["ListedRecord"]:
        glob, fields = f"{self._of}/*/{buckets.RECORD}", "items(name,timeCreated,generation),nextPageToken"
        for item in self._google.pages("storage", f"b/{self.bucket}/o", "items", matchGlob=glob, fields=fields):
            name = str(item.get("name")).split("/")[1]
            yield ListedRecord(name, str(item.get("timeCreated")), str(item.get("generation")))


class ListedRecord(NamedTuple):
    """Record in a list of objects."""

    name: str
    created: str
    generation: str


def folder(name: str, attempt: int) -> str:
    """Return the folder in which the machines of an attempt write their results."""
    return f"{buckets.JOBS}/{name}/attempts/{attempt}"


def _bytes(record: Record) -> bytes:
    return json.dumps(as_json(record), sort_keys=True, indent=1).encode()


Json = Mapping[str, Any]
Row = tuple[str, object, object]
"""Field, the record's value, and the target's value."""

_PROPERTIES = (
    *("machineType", "disks", "networkInterfaces", "serviceAccounts", "scheduling", "shieldedInstanceConfig"),
    *("labels", "metadata", "tags", "guestAccelerators", "reservationAffinity", "resourcePolicies"),
)
_DISK, _BOOT = ("boot", "autoDelete", "initializeParams"), ("sourceImage", "diskSizeGb", "diskType")
_NODE = (
    *("acceleratorType", "acceleratorConfig", "runtimeVersion", "networkConfig", "serviceAccount"),
    *("labels", "metadata", "tags"),
)
UNSAID: Json = {
    "external_address": False,
    **{"tags": [], "types": [], "machine_types": []},
    **{"reservation": None, "placement": None},
}
"""Values of fields that a target does not have: published targets omit them."""
_TPU = ("node", "subnetworks", "slices", "valid_s", "reservation")


def difference(record: Record, target: Json) -> str | None:
    """Describe the first field in which they differ; None: the record may be carried out."""
    try:
        for field, given, wanted in _rows(record, {**UNSAID, **target}):
            if given != wanted:
                return f"{field}: is {_shown(given)}, and the target has {_shown(wanted)}"
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        return f"is no request for machines: {type(error).__name__}: {error}"
    return None


def _rows(record: Record, target: Json) -> Iterator[Row]:
    yield from _common(record, target)
    yield from _OF_KIND[record.kind](record.body, target)


def _shown(value: object) -> str:
    return "nothing" if value in (None, [], "") else str(value)


def _outside(given: Collection[str], allowed: Collection[str]) -> list[str]:
    return sorted(set(given) - set(allowed))


def _common(record: Record, target: Json) -> Iterator[Row]:
    body, project = record.body, target["project"]
    yield "kind", record.kind, target["kind"]
    yield "standing", body.get("standing"), None
    yield "project", body["project"], project
    yield "bucket", body["bucket"], target["bucket"]
    yield "job.project", body["job"]["project"], project
    yield "job.log", body["job"]["log"], f"projects/{project}/logs/{labels.LOG}"
    if outside := _outside([*body["zones"], record.last.zone], target["zones"]):
        yield "zones", outside, target["zones"]
    for region, subnetwork in body["machine"]["subnetworks"].items():
        yield f"subnetworks.{region}", subnetwork, target["subnetworks"].get(region)


def _told(metadata: Json) -> Row:
    """Compare with the known entries, none of which starts anything: each attempt adds its startup script."""
    known = {**labels.METADATA, **labels.DRIVER}
    return "metadata", metadata, {key: known[key] for key in metadata if key in known}


def _gce(body: Json, target: Json) -> Iterator[Row]:
    made: Json = body["machine"]["properties"]
    (disk,), (nic,) = made["disks"], made["networkInterfaces"]
    yield "serviceAccounts", made["serviceAccounts"], [{"email": target["service_account"], "scopes": [labels.SCOPE]}]
    yield "network", nic["network"], target["network"]
    yield "external_address", "accessConfigs" in nic, target["external_address"]
    boot = disk["initializeParams"]
    yield "image", _project(boot["sourceImage"]), _project(target["image"])
    for where, given, allowed in (
        ("machine", body["machine"], ("properties", "subnetworks", "group", "wait_s")),
        ("properties", made, _PROPERTIES),
        ("networkInterfaces", nic, ("network", "accessConfigs")),
        ("disks", disk, _DISK),
        ("disks.initializeParams", boot, _BOOT),
    ):
        yield where, _outside(given, allowed), []
    yield "type", body["type"], made["machineType"]
    if target["machine_types"] and made["machineType"] not in target["machine_types"]:
        yield "machineType", made["machineType"], target["machine_types"]
    # An earlier client made machines without it.
    if prefix := body.get(labels.PREFIX):
        yield labels.PREFIX, prefix, target.get(labels.PREFIX)
    yield "tags", made.get("tags"), {"items": target["tags"]} if target["tags"] else None
    yield "resourcePolicies", _outside(made.get("resourcePolicies", []), [_last(target["placement"])]), []
    reserved = made.get("reservationAffinity", {}).get("values", [])
    yield "reservation", [_last(each) for each in reserved], [_last(target["reservation"])] if reserved else []
    yield _told({each["key"]: each["value"] for each in made["metadata"]["items"]})


def _tpu_vm(body: Json, target: Json) -> Iterator[Row]:
    node: Json = body["machine"]["node"]
    network: Json = node["networkConfig"]
    yield "serviceAccount", node["serviceAccount"], {"email": target["service_account"], "scope": [labels.SCOPE]}
    yield "network", network["network"], target["network"]
    yield "external_address", network["enableExternalIps"], target["external_address"]
    for where, given, allowed in (
        ("machine", body["machine"], _TPU),
        ("node", node, _NODE),
        ("networkConfig", network, ("network", "enableExternalIps")),
    ):
        yield where, _outside(given, allowed), []
    if target["types"] and not set(_names(node)) & set(target["types"]):
        yield "type", _names(node)[0], target["types"]
    yield "tags", node.get("tags", []), target["tags"]
    reserved = body["machine"]["reservation"]
    if reserved not in (None, "-"):
        yield "reservation", _last(reserved), _last(target["reservation"])
    yield _told(node["metadata"])


_OF_KIND = {"gce": _gce, "tpu-vm": _tpu_vm}


def _names(node: Json) -> list[str]:
    """Return a slice's possible names: a number after a generation counts chips, or cores, of which a chip has two."""
    if "acceleratorConfig" not in node:
        return [node["acceleratorType"]]
    shape: Json = node["acceleratorConfig"]
    chips = math.prod(int(side) for side in shape["topology"].split("x"))
    return [f"{shape['type'].lower().replace('_', '')}-{count}" for count in (chips, 2 * chips)]


def _project(image: str) -> str:
    """Return the p of projects/<p>/global/images/..."""
    return image.partition("projects/")[2].partition("/")[0]


def _last(path: str | None) -> str:
    return (path or "").rpartition("/")[2]
