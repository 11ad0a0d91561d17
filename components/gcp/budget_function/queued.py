"""The lever of TPUs that the stack itself has asked for, and which are not there yet."""

from __future__ import annotations

from typing import Any

from accel.budget.levers import FOREIGN, Change, LeverFailed

from .cloud import Cloud, NotThere, Refused

WAITING = ("CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES")
"""Source: https://docs.cloud.google.com/tpu/docs/queued-resources"""
DELETED, INVALID = "deleted", 400
_ASKED = ("tpu", "spot", "guaranteed", "queueingPolicy", "reservationName", "runDuration")
_NODE = (
    *("description", "acceleratorType", "acceleratorConfig", "runtimeVersion", "networkConfig", "networkConfigs"),
    *("cidrBlock", "serviceAccount", "schedulingConfig", "dataDisks", "labels", "metadata", "tags"),
    *("shieldedInstanceConfig", "bootDiskConfig"),
)
"""What a request may say; the rest of an answer is Google's. Source: the schemas QueuedResource and Node of
https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"""


class TpuRequests:
    """A request that waits is deleted. Taken back it is made again under its name, at the end of Google's queue."""

    stage, kind = "waiting", "tpu-requests"

    def __init__(self, cloud: Cloud, names: list[str]) -> None:
        self._cloud, self._names = cloud, names

    def plan(self) -> list[Change]:
        return [
            Change(
                self.stage, self.kind, name, _asked(found), DELETED, f"TPU request {_short(name)}: {state} to deleted"
            )
            for name in self._names
            if (found := self._found(name)) and (state := found.get("state", {}).get("state")) in WAITING
        ]

    def pull(self, change: Change) -> None:
        try:
            self._cloud.call("DELETE", "tpu", f"v2/{change.name}", force="true")
        except NotThere:
            return

    def restore(self, change: Change) -> str | None:
        at, _, short = change.name.rpartition("/")
        if change.name not in self._names:
            return f"TPU request {short} {FOREIGN}"
        if found := self._found(change.name):
            if found.get("state", {}).get("state") == "DELETING":
                raise LeverFailed(f"TPU request {short} is still being deleted")
            return None
        try:
            self._cloud.call("POST", "tpu", f"v2/{at}", change.before, queuedResourceId=short)
        except Refused as refused:
            if refused.status != INVALID:
                raise
            # As one that was valid until a time which is past.
            return f"{refused}; `pulumi up --refresh` asks for it as the stack has it now"
        return None

    def _found(self, name: str) -> dict[str, Any] | None:
        try:
            return self._cloud.call("GET", "tpu", f"v2/{name}")
        except NotThere:
            return None


def _asked(found: dict[str, Any]) -> dict[str, Any]:
    """The body with which it was asked for."""
    specs = [
        {
            **{name: spec[name] for name in ("parent", "nodeId", "multisliceParams") if name in spec},
            "node": {name: spec["node"][name] for name in _NODE if name in spec["node"]},
        }
        for spec in found["tpu"]["nodeSpec"]
    ]
    return {**{name: found[name] for name in _ASKED if name in found}, "tpu": {"nodeSpec": specs}}


def _short(name: str) -> str:
    return name.rpartition("/")[2]
