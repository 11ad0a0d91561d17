"""Quotas of the project: those of Compute Engine by its own API, all of them by Cloud Quotas. Limits are those of
World.quota; a quota without an entry there is unlimited, which Google writes as -1. googleapiclient ships no discovery
document of Cloud Quotas, so its two methods that read are served by their paths."""

import re
from typing import Any
from urllib.parse import unquote

from accel.catalog.places import regions
from accel.catalog.quotas import Quota, quotas
from accel.catalog.tpu_generations import GENERATIONS

from . import PROJECT, PROJECT_NUMBER, verbs
from .capacity import metrics
from .compute.api import compute_collection, zones
from .errors import ApiError
from .tpu.nodes import zones as tpu_zones
from .world import Call, Collection, Json, World

PATH = "/cloudquotas.googleapis.com/"
_INFOS = re.compile(r"v1/projects/([^/]+)/locations/global/services/([a-z]+)\.googleapis\.com/quotaInfos(?:/([^/]+))?")
UNLIMITED = -1


def region(call: Call, collection: Collection) -> Json:
    """Return a region with its quotas, except those with a dimension. Source:
    https://cloud.google.com/compute/docs/reference/rest/v1/regions/get"""
    return {**verbs.get(call, collection), "quotas": _of_compute(call, call.path["region"])}


def of_project(call: Call, collection: Collection) -> Json:
    return {"kind": "compute#project", "name": PROJECT, "id": PROJECT_NUMBER, "quotas": _of_compute(call, "global")}


def _of_compute(call: Call, place: str) -> list[Json]:
    scope = "global" if place == "global" else "region"
    found = [each for each in _of("compute") if each.scope == scope and not each.dimension]
    used = _used(call.world)
    return [
        {
            "metric": each.code,
            "limit": float(_limit(call.world, each, place)),
            "usage": used.get((place, each.code), 0.0),
        }
        for each in found
    ]


def _used(world: World) -> dict[tuple[str, str], float]:
    """Return the GPUs that instances have, by place and metric."""
    found: dict[tuple[str, str], float] = {}
    for item in world.below("compute", f"projects/{PROJECT}/zones/-/instances"):
        if item["status"] == "TERMINATED":
            continue
        for at, (count, _) in metrics(item, zones().get(item["zone"].rpartition("/")[2], "")).items():
            found[at] = found.get(at, 0.0) + count
    return found


def _of(service: str) -> list[Quota]:
    return [each for each in quotas() if each.cloud == "gcp" and each.service == service]


def _limit(world: World, quota: Quota, place: str) -> int:
    """Return a limit. TPUs are in cores, which World.quota has in chips."""
    if quota.service != "tpu":
        return world.quota.get(f"{quota.service}/{place}/{quota.key}", UNLIMITED)
    generation = next(each for each in GENERATIONS if each.accelerator in quota.applies_to)
    chips = world.quota.get(f"tpu/{place}/{generation.prefix}")
    return UNLIMITED if chips is None else chips * generation.cores_per_chip


def answer(world: World, path: str) -> Any:
    """Answer Cloud Quotas: one QuotaInfo, or all of a service. Raises ApiError. Source:
    https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos"""
    named = _INFOS.fullmatch(unquote(path.removeprefix(PATH)))
    if named is None:
        raise ApiError(404, f"The requested URL {path} was not found on this server.")
    if named[1] not in (PROJECT, PROJECT_NUMBER):
        raise ApiError(403, f"Permission denied on resource project {named[1]}.")
    infos: dict[str, Json] = {}
    with world.lock:
        world.tick()
        for quota in _of(named[2]):
            if quota.quota_id:
                _add(world, infos.setdefault(quota.quota_id, _info(quota)), quota)
    if named[3] is None:
        return {"quotaInfos": list(infos.values())}
    if named[3] not in infos:
        raise ApiError(404, f"Quota {named[3]} was not found")
    return infos[named[3]]


def _info(quota: Quota) -> Json:
    service = f"{quota.service}.googleapis.com"
    place = f"projects/{PROJECT}/locations/global/services/{service}/quotaInfos/{quota.quota_id}"
    own = [each.partition("=")[0] for each in quota.dimension.split(",") if each]
    metric = f"{service}/{quota.code.lower()}"
    at = [] if quota.scope == "global" else [str(quota.scope)]
    return {"name": place, "quotaId": quota.quota_id, "metric": metric, "service": service, "dimensions": at + own}


def _add(world: World, info: Json, quota: Quota) -> None:
    """Add the quota's value for each place that has one of its own, and for all others."""
    own = dict(each.split("=", 1) for each in quota.dimension.split(",") if each)
    places = {"region": regions("gcp"), "zone": tuple({**zones(), **tpu_zones()}), "global": ("global",)}[quota.scope]
    limits = {place: _limit(world, quota, place) for place in places}
    rows: list[Json] = info.setdefault("dimensionsInfos", [])
    for place, limit in limits.items():
        if limit != UNLIMITED:
            where = {} if quota.scope == "global" else {quota.scope: place}
            rows.append({"dimensions": {**own, **where}, "details": _value(limit), "applicableLocations": [place]})
    rest = [place for place, limit in limits.items() if limit == UNLIMITED]
    if rest:
        rows.append({"dimensions": own, "details": _value(UNLIMITED), "applicableLocations": rest})


def _value(limit: int) -> Json:
    return {"value": str(limit)} if limit else {}


COLLECTIONS = (compute_collection("projects", "Project"),)
OWN = {"compute.regions.get": region, "compute.projects.get": of_project}
