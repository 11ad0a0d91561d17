"""Limits in Cloud Quotas: its entries, and their value for a location. Source:
https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos"""

from collections.abc import Iterable, Mapping
from typing import Any

from accel.catalog.quotas import Quota
from accel.json_values import mapping, mappings, number, texts

from .rest import path_segment

SERVICES = {"compute": "compute.googleapis.com", "aiplatform": "aiplatform.googleapis.com", "tpu": "tpu.googleapis.com"}


def infos_path(project: str, service: str) -> str:
    """Return a path below the API's root. A single entry is below that, by quota id."""
    return f"v1/projects/{path_segment(project)}/locations/global/services/{SERVICES[service]}/quotaInfos"


def info_of(quota: Quota, infos: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Find an entry by id; if that is unknown, by metric and scope, provided that only one matches."""
    infos = list(infos)
    by_id = [each for each in infos if quota.quota_id and each.get("quotaId") == quota.quota_id]
    if by_id:
        return by_id[0]
    metric = f"{SERVICES[quota.service]}/{quota.code.lower()}"
    scopes = {quota.scope} & {"region", "zone"}
    fitting = [
        each
        for each in infos
        if each.get("metric") == metric and scopes == {"region", "zone"} & set(texts(each.get("dimensions")))
    ]
    return fitting[0] if len(fitting) == 1 else None


def limit_of(info: Mapping[str, Any], quota: Quota, location: str) -> float | None:
    """Return None if no entry applies. Prefers the entry that names the most dimensions, since one without dimensions
    applies to all locations and families without their own. The JSON leaves out a value of 0 and uses -1 for no
    limit."""
    wanted = dimensions(quota) | ({} if quota.scope == "global" else {quota.scope: location})
    best: tuple[int, float | None] = (-1, None)
    for entry in mappings(info.get("dimensionsInfos")):
        named = mapping(entry.get("dimensions", {}))
        details = mapping(entry.get("details"))
        if named is None or details is None or any(wanted.get(key) != value for key, value in named.items()):
            continue
        if quota.scope != "global" and location not in texts(entry.get("applicableLocations")):
            continue
        best = max(best, (len(named), number(details.get("value", "0"))), key=lambda each: each[0])
    return best[1]


def dimensions(quota: Quota) -> dict[str, str]:
    return dict(each.split("=", 1) for each in quota.dimension.split(",") if each)
