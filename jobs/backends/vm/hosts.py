"""The machines of an attempt as SSH finds them: their names, and the host keys that they have told.

A machine's guest agent writes its host keys to guest attributes when it boots, whence gcloud takes them too:
googlecloudsdk/command_lib/compute/ssh_utils.py (GetHostKeysFromGuestAttributes). The name of a TPU host is there too,
and in no other place: googlecloudsdk/command_lib/compute/tpus/tpu_vm/ssh.py.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import part
from accel.clouds.kubernetes.responses import part as inside
from accel.clouds.kubernetes.responses import parts
from accel.diagnostics.errors import BadInput, CloudRefused, NotFound

from .iap import GONE
from .record import MADE, Attempt, Record

TOLD = "hostkeys"
"""Namespace of the guest attributes."""
NO_NAME = (
    "the organisation policy compute.disableGuestAttributesAccess must not be enforced; a host that starts has none yet"
)


@dataclass(frozen=True)
class Host:
    """One machine. `mark` is no other's, not even a later one's of the same name; `keys` are base64 by type, none where
    it has told none."""

    project: str
    zone: str
    instance: str
    mark: str
    keys: Mapping[str, str]


def host(google: Google, record: Record, number: int) -> Host:
    """A machine of the job's last attempt. Raises BadInput unless it runs, NotFound where there is none (any more)."""
    attempt = record.last
    if record.ended or attempt.state != MADE:
        raise BadInput(f"{record.name}: has no machines now", "`accel-jobs get` shows the job's state")
    if not 0 <= number < record.hosts:
        has = f"nodes 0 to {record.hosts - 1}" if record.hosts > 1 else "one node"
        raise BadInput(f"node: {record.name} has {has}, not {number}")
    find = _worker if record.kind == "tpu-vm" else _instance
    try:
        return find(google, record, attempt, number)
    except NotFound as missing:
        raise NotFound(f"{attempt.name} in {attempt.zone}: there is no machine {number}", GONE) from missing


def _instance(google: Google, record: Record, attempt: Attempt, number: int) -> Host:
    project = str(record.body["project"])
    name = f"{attempt.name}-{number}" if record.hosts > 1 else attempt.name
    path = f"projects/{part(project)}/zones/{part(attempt.zone)}/instances/{part(name)}"
    found = google.get("compute", path)
    _runs(f"{name} in {attempt.zone}", found.get("status"), "RUNNING")
    told: list[dict[str, Any]] = []
    # None were told, or who asks may not read them.
    with suppress(NotFound, CloudRefused):
        answer = google.get("compute", f"{path}/getGuestAttributes", queryPath=f"{TOLD}/")
        told = parts(inside(answer, "queryValue"), "items")
    return Host(project, attempt.zone, name, f"compute.{found.get('id')}", _keys(told))


def _worker(google: Google, record: Record, attempt: Attempt, number: int) -> Host:
    project, slices = str(record.body["project"]), int(record.body["machine"]["slices"])
    slice_number, worker = divmod(number, record.hosts // slices)
    name = attempt.name if slices == 1 else f"{attempt.name}-{slice_number}"
    path = f"v2/projects/{part(project)}/locations/{part(attempt.zone)}/nodes/{part(name)}"
    node = google.get("tpu", path)
    _runs(f"TPU {name} in {attempt.zone}", node.get("state"), "READY")
    answer = google.post("tpu", f"{path}:getGuestAttributes", {"workerIds": [str(worker)]}, repeat=True)
    told = [item for each in parts(answer, "guestAttributes") for item in parts(inside(each, "queryValue"), "items")]
    # gcloud asks for no namespace, and so does not say in which one the name is.
    hostname = next((str(item.get("value")) for item in told if item.get("key") == "hostname"), "")
    if not hostname:
        raise CloudRefused(f"TPU {name} in {attempt.zone}: host {worker} has not told its name", NO_NAME)
    return Host(project, attempt.zone, hostname, f"tpu.{node.get('id')}-{worker}", _keys(told))


def _runs(what: str, state: object, wanted: str) -> None:
    if state != wanted:
        raise BadInput(f"{what}: is {state}, not {wanted}, so nothing can be run in it")


def _keys(told: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    kept = [item for item in told if item.get("namespace") == TOLD and item.get("key") != "hostname"]
    return {str(item.get("key")): str(item.get("value")) for item in kept}
