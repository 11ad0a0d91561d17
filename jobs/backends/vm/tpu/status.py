"""States of queued resources and of TPU nodes, and Google's words for why there is none, as those of an attempt.

Sources: https://docs.cloud.google.com/tpu/docs/queued-resources,
https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes#State
"""

from collections.abc import Mapping
from typing import Any

from accel.clouds.google.rest import line
from accel.clouds.kubernetes.responses import part as inside
from accel.clouds.kubernetes.responses import parts
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, Throttled

from ..state_machine import BROKEN, LEAVING, RUNNING, STARTING, TAKEN, WAITING, MachineState, NoCapacity

REQUEST = {
    "CREATING": WAITING,
    "ACCEPTED": WAITING,
    "WAITING_FOR_RESOURCES": WAITING,
    "PROVISIONING": STARTING,
    "FAILED": BROKEN,
    "DELETING": LEAVING,
    "SUSPENDING": TAKEN,
    "SUSPENDED": TAKEN,
}
"""But for ACTIVE, where the nodes tell. A suspended request is not filled again."""

NODE = {
    "CREATING": STARTING,
    "STARTING": STARTING,
    "RESTARTING": STARTING,
    "REIMAGING": STARTING,
    "REPAIRING": STARTING,
    "UNHIDING": STARTING,
    "READY": RUNNING,
    "STOPPING": TAKEN,
    "STOPPED": TAKEN,
    "DELETING": TAKEN,
    "PREEMPTED": TAKEN,
    "TERMINATED": TAKEN,
    "HIDING": TAKEN,
    "HIDDEN": TAKEN,
    "UNKNOWN": TAKEN,
}

_WHO = {"SERVICE": "Google", "USER": "a user"}

DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE = 4, 13, 14
"""Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto"""

STOCKOUT = (
    "no more capacity",
    "stockout",
    "resource_pool_exhausted",
    "not enough resources",
    "allocation interval",
    "valid until",
    "valid_until",
    "valid-until",
)
"""In the words of a zone that has none, or had none in time. The first is that of many logs, for one
https://github.com/hashicorp/terraform-provider-google/issues/21243; "allocation interval" is the page's own; the others
are those of Compute Engine's VMs, or recalled."""
NOT_THERE = ("invalid acceleratortype", "could not be found in the zonal accelerator", "was not found in zone")
"""A zone that does not have the type at all. Source: https://github.com/skypilot-org/skypilot/issues/3840"""
QUOTA = ("quota limit", "quota '")
"""A quota that is used up, which is answered as too many calls are. Source:
https://github.com/marin-community/marin/issues/87"""


def of_request(state: Mapping[str, Any]) -> MachineState | None:
    """A queued resource by its state; None: its nodes tell."""
    native = str(state.get("state") or "STATE_UNSPECIFIED")
    if native == "ACTIVE":
        return None
    found = REQUEST.get(native, WAITING)
    if found == BROKEN:
        return _failed(native, inside(state, "failedData", "error"))
    return MachineState(found, native, _suspended(native, state) if found == TAKEN else "")


def _suspended(native: str, state: Mapping[str, Any]) -> str:
    who = _WHO.get(str(state.get("stateInitiator")), "the platform")
    return f"{who} took its TPUs away ({native}); the request is no longer eligible for others"


def _failed(native: str, error: Mapping[str, Any]) -> MachineState:
    message, code = line(error.get("message") or ""), error.get("code")
    if lacks(message) or code == DEADLINE_EXCEEDED:
        return MachineState(BROKEN, native, message or "its time ran out", stockout=True)
    # A zone that has no room has been seen to say no more than INTERNAL.
    if code in (INTERNAL, UNAVAILABLE) or "preempted" in message.lower():
        return MachineState(TAKEN, native, message or f"the platform failed (code {code})")
    return MachineState(BROKEN, native, message or "Google says no reason")


def of_nodes(nodes: Mapping[str, Mapping[str, Any] | None]) -> MachineState:
    """The nodes of a request that is ACTIVE: one that is lost loses all, and all have to be ready."""
    seen = [_node(name, node) for name, node in nodes.items()]
    worst = min(seen, key=lambda each: (TAKEN, STARTING, RUNNING).index(each.state))
    return worst if worst.state != RUNNING else MachineState(RUNNING, "ACTIVE")


def _node(name: str, node: Mapping[str, Any] | None) -> MachineState:
    if node is None:
        return MachineState(TAKEN, "ACTIVE", f"node {name} is no longer there")
    native = str(node.get("state") or "STATE_UNSPECIFIED")
    state = NODE.get(native, STARTING)
    if state == RUNNING:
        return MachineState(state, native)
    more = f": {line(node['healthDescription'])}" if node.get("healthDescription") else ""
    return MachineState(state, native, f"node {name} is {native}{more}")


def ill(name: str, node: Mapping[str, Any]) -> list[str]:
    """What is wrong with a node, by its own words. Enums: the schemas Node.health and Symptom.symptomType of
    https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"""
    found: list[str] = []
    if str(node.get("health") or "HEALTHY") not in ("HEALTHY", "HEALTH_UNSPECIFIED"):
        more = f": {line(node['healthDescription'])}" if node.get("healthDescription") else ""
        found.append(f"node {name} is {node['health']}{more}")
    for symptom in parts(node, "symptoms"):
        worker = f" of worker {symptom['workerId']}" if symptom.get("workerId") else ""
        details = f": {line(symptom['details'])}" if symptom.get("details") else ""
        found.append(f"node {name}: {symptom.get('symptomType')}{worker} at {symptom.get('createTime')}{details}")
    return found


def lacks(message: str) -> bool:
    """Whether the words are those of a zone that has none."""
    said = message.lower()
    return any(words in said for words in STOCKOUT)


def refusal(refused: CloudRefused | Throttled) -> JobsError | None:
    """A request that was refused, where its words say more than its status: no room, or a quota that is used up."""
    said = refused.message.lower()
    if lacks(said) or any(words in said for words in NOT_THERE):
        return NoCapacity(refused.message)
    if isinstance(refused, Throttled) and any(words in said for words in QUOTA):
        return CloudRefused(refused.message, "raise the quota, or wait until other TPUs of the project are gone")
    return None


def refused(doing: str, error: Mapping[str, Any]) -> JobsError:
    """An operation that ended in an error."""
    message = f"{doing}: {line(error.get('message') or error)}"
    if error.get("code") in (INTERNAL, UNAVAILABLE) and not lacks(message):
        return CloudSilent(message)
    plain = CloudRefused(message)
    return refusal(plain) or plain
