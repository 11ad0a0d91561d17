"""A target of every kind with every field of the contract set, and each of its texts replaced by another."""

import base64
import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from accel.contract.schema import document
from accel.contract.targets import KINDS, AnyTarget, write
from tests.jobs.backends import aws_batch_target, gce_target, gke_target, google_batch_target, tpu_target, vertex_jobs

Json = dict[str, Any]
Path = tuple[str | int, ...]
CA = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n").decode()
MADE: dict[str, Callable[..., AnyTarget]] = {
    "aws-batch": aws_batch_target.make_target,
    "gke": gke_target.make_target,
    "tpu-vm": tpu_target.make_target,
    "gce": gce_target.make_target,
    "google-batch": google_batch_target.make_target,
    "vertex": vertex_jobs.make_target,
}
"""By kind; `local` has no cloud, and so no credentials."""
assert {*MADE, "local"} == {*KINDS}

P = "projects/accel-sandbox"
FIRESTORE = {"kind": "firestore", "database": f"{P}/databases/d"}
DYNAMODB = {"kind": "dynamodb", "region": "us-east-1", "table": "spend"}
RESERVED = {"reservation": f"{P}/zones/us-central1-a/reservations/r"}
REAL: dict[str, Json] = {
    "aws-batch": {"code_bucket": "acme-code"},
    "gke": {
        "pools": {"l4": gke_target.POOLS["l4"].model_dump(mode="json")},
        "ca_certificate": CA,
        "code_bucket": "acme-code",
    },
    "tpu-vm": {**RESERVED, "types": ["v5litepod-16"]},
    "gce": {
        **RESERVED,
        "machine_types": ["g2-standard-8"],
        "placement": f"{P}/regions/us-central1/resourcePolicies/close",
    },
    "google-batch": {
        **RESERVED,
        "zones": ["us-central1-a"],
        "machine_types": ["g2-standard-8"],
        "boot_image": "batch-debian",
        "instance_template": f"{P}/global/instanceTemplates/t",
        "notifications": f"{P}/topics/t",
    },
    "vertex": {
        **RESERVED,
        "machine_types": ["g2-standard-8"],
        "claims": f"{P}/databases/d",
        "network": "projects/1234/global/networks/ml",
        "network_attachment": f"{P}/regions/us-central1/networkAttachments/a",
        "tensorboard": f"{P}/locations/us-central1/tensorboards/1",
        "persistent_resource": "kept",
        "persistent_machines": ["g2-standard-8"],
    },
}
"""Values that a stack would write, of what a target may leave out."""
FIT: dict[str, Json] = {
    "aws-batch": {"cpus": 1, "memory_mib": 512},
    "tpu-vm": {"accelerator": {"type": "v5litepod-16"}},
    **{kind: {"accelerator": {"type": "l4"}} for kind in ("gke", "gce", "google-batch", "vertex")},
}
"""What a job asks for that each of them can run."""
IN_THE_WAY = (
    *("allowances", "stop", "shares", "claim_table", "claims"),
    *("network_attachment", "persistent_resource", "persistent_machines"),
)
"""Fields that ask more of a job, or are asked about before it is sent: only there where it is they that are tried."""

_schema = cache(document)


def full(kind: str) -> Json:
    """A target as JSON, with all that the contract has for its kind."""
    schema = _schema()
    mapping = schema["properties"]["targets"]["additionalProperties"]["discriminator"]["mapping"]
    made = _merged(_sample({"$ref": mapping[kind]}, schema), {**write({"x": MADE[kind]()})["x"], **REAL[kind]})
    if kind == "gke":
        made["pools"] = {**REAL["gke"]["pools"], "all": {**made["pools"]["l4"], "key": "all"}}
    made["allowances"]["ledger"] = DYNAMODB if kind == "aws-batch" else FIRESTORE
    return made | ({"stop": "gs://acme-state/stop.json"} if "stop" in made else {})


def usable(kind: str, place: Path = ()) -> Json:
    """One that takes the job of FIT, with the field that `place` is in."""
    return {name: value for name, value in full(kind).items() if name not in IN_THE_WAY or name in place[:1]}


def texts(value: Any, here: Path = ()) -> Iterator[Path]:
    """The places of all texts, but for those that tell kinds apart."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in ("kind", "period", "unpriced"):
                yield from texts(each, (*here, key))
    elif isinstance(value, list):
        for index, each in enumerate(value[:1]):
            yield from texts(each, (*here, index))
    elif isinstance(value, str):
        yield here


def put(kind: str, place: Path, value: Any) -> Json:
    """A usable target with another value at a place."""
    return replaced(usable(kind, place), place, value)


def replaced(target: Json, place: Path, value: Any) -> Json:
    """A copy with another value at a place."""
    made = copy.deepcopy(target)
    inside: Any = made
    for part in place[:-1]:
        inside = inside[part]
    inside[place[-1]] = value
    return made


def _sample(schema: Any, whole: Json) -> Any:
    if "$ref" in schema:
        return _sample(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    for one in ("anyOf", "oneOf"):
        if one in schema:
            return _sample(next(each for each in schema[one] if each.get("type") != "null"), whole)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {name: _sample(each, whole) for name, each in schema["properties"].items()}
        case "object":
            return {"a": _sample(schema.get("additionalProperties", {"type": "string"}), whole)}
        case "array":
            return [_sample(schema["items"], whole)]
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case _:
            return "a"


def _merged(sample: Any, given: Any) -> Any:
    """What is given, and of the sample what that leaves out."""
    if isinstance(sample, dict) and isinstance(given, dict):
        if set(sample) == {"a"}:  # names are the author's
            return {key: _merged(sample["a"], each) for key, each in given.items()} or sample
        return {**sample, **{key: _merged(sample.get(key), each) for key, each in given.items()}}
    if isinstance(sample, list) and isinstance(given, list):
        return [_merged(sample[0], each) for each in given] or sample
    return given
