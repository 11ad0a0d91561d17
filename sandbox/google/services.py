"""APIs of the project: which are enabled, and the refusal of a call to one that is not."""

import re
from collections.abc import Callable
from typing import Any

from . import PROJECT, PROJECT_NUMBER
from .errors import ApiError
from .operations import begin
from .world import Call, Collection, Json, World


def service(call: Call, key: str) -> Json:
    name = key.rpartition("/")[2]
    if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.(googleapis\.com|goog)", name):
        raise ApiError(403, f"Not found or permission denied for service(s): {name}.", "forbidden")
    blank: Json = {
        "name": f"projects/{PROJECT_NUMBER}/services/{name}",
        "parent": f"projects/{PROJECT_NUMBER}",
        "config": {"name": name, "title": name},
        "state": "ENABLED" if call.world.services is None or name in call.world.services else "DISABLED",
    }
    return call.world.items.setdefault(f"serviceusage/{key}", blank)


def require(world: World, service: str, title: str) -> None:
    """Refuse a call to an API that is not enabled. Wording: https://github.com/ThomasHabets/cmdg/issues/93; details:
    https://github.com/googleapis/googleapis/blob/master/google/api/error_reason.proto (SERVICE_DISABLED). The caller
    counts as a service account of the project; calls of a person with gcloud's own credentials are another project's
    where an API is not one of resources: https://docs.cloud.google.com/docs/quotas/quota-project"""
    item = world.items.get(f"serviceusage/projects/{PROJECT}/services/{service}", {})
    if world.services is None or service in world.services or item.get("state") == "ENABLED":
        return
    at = f"https://console.developers.google.com/apis/api/{service}/overview?project={PROJECT_NUMBER}"
    text = (
        f"{title} has not been used in project {PROJECT_NUMBER} before or it is disabled. Enable it by visiting {at} "
        "then retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems "
        "and retry."
    )
    metadata = {
        "service": service,
        "consumer": f"projects/{PROJECT_NUMBER}",
        "serviceTitle": title,
        "activationUrl": at,
    }
    kind, domain = "type.googleapis.com/google.rpc.ErrorInfo", "googleapis.com"
    info: Json = {"@type": kind, "reason": "SERVICE_DISABLED", "domain": domain, "metadata": metadata}
    raise ApiError(403, text, "accessNotConfigured", details=[info])


def _switch(call: Call, collection: Collection) -> Json:
    state = "ENABLED" if call.method.verb == "enable" else "DISABLED"
    item = service(call, call.key)

    def end() -> str:
        item["state"] = state
        return ""

    return begin(call, "longrunning", call.method.verb, call.key, end)


def _service(call: Call, collection: Collection) -> Json:
    return service(call, call.key)


COLLECTIONS = (
    Collection(id="serviceusage.services", schema="GoogleApiServiceusageV1Service"),
    Collection(id="serviceusage.operations", schema="Operation"),
)
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    "serviceusage.services.get": _service,
    "serviceusage.services.enable": _switch,
    "serviceusage.services.disable": _switch,
}
