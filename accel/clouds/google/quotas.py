"""What Cloud Quotas says of a limit: its entries, and the value of one for a place.

Source: https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from accel.catalog.quotas import Quota

from .rest import entries, mapping, path_segment

SERVICES = {"compute": "compute.googleapis.com", "aiplatform": "aiplatform.googleapis.com", "tpu": "tpu.googleapis.com"}
"""The catalogue's names of services as the APIs have them."""


def infos_path(project: str, service: str) -> str:
    """Of a service's entries, below the API's root; one of them is below that, by its quota id."""
    return f"v1/projects/{path_segment(project)}/locations/global/services/{SERVICES[service]}/quotaInfos"


def info_of(quota: Quota, infos: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The entry of a quota: by its id; by metric and scope where the id is not known, and only one has both."""
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
    """The value of a QuotaInfo for a place: of the entry that names most of its dimensions, since one that names none
    is for all places and families without their own. None where no entry is for it. A value of 0 is left out of the
    JSON, and no limit is -1.
    """
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
    """Those of its own, besides the place."""
    return dict(each.split("=", 1) for each in quota.dimension.split(",") if each)


def mappings(value: Any) -> list[dict[str, Any]]:
    """The JSON objects of an array."""
    return [found for each in entries(value) if (found := mapping(each)) is not None]


def texts(value: Any) -> list[str]:
    """The strings of an array."""
    return [each for each in entries(value) if isinstance(each, str)]


def number(value: Any) -> float | None:
    """A number, which is text where it is 64 bits wide."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
