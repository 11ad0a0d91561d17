"""What the Cloud TPU API refuses of a node, whoever asks for it: a node of its own, or a queued resource."""

import re
from functools import cache
from typing import Any

from accel.catalog import UnknownName
from accel.catalog.quotas import quotas
from accel.catalog.tpu import NoSuchSlice, Slice, slice_names, tpu
from accel.catalog.tpu_generations import GENERATIONS, Generation
from accel.rules.gcp import tpu_runtimes

from . import PROJECT
from .errors import ApiError
from .world import Json, World

NAME = re.compile(r"[A-Za-z0-9_.~+%-]+")
"""Of nodes and queued resources, as the discovery document has it."""
_SLICES = r"projects/[^/]+/locations/([^/]+)/(?:nodes|queuedResources)/[^/]+"
_DEFAULT = "v2-8"  # https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes by way of the provider


@cache
def zones() -> dict[str, tuple[str, ...]]:
    """The names of the slices of each zone that has TPUs. A size that the catalogue has no place of is wherever its
    generation is."""
    found: dict[str, list[str]] = {}
    for generation in (each for each in GENERATIONS if each.api == "tpu"):
        names = slice_names(generation)
        anywhere = {zone for name in names for zone in _of(tpu(name))}
        for name in names:
            for zone in _of(tpu(name)) or anywhere:
                found.setdefault(zone, []).append(name)
    return {zone: tuple(names) for zone, names in sorted(found.items())}


def _of(found: Slice) -> set[str]:
    return {zone for inside in found.places.values() for zone in inside}


@cache
def runtimes() -> tuple[str, ...]:
    """The TPU software versions of the catalogue."""
    return tuple(dict.fromkeys(each.runtime.name for each in GENERATIONS if each.runtime))


def bad_argument(field: str, value: Any) -> ApiError:
    """Wording: https://github.com/tensorflow/tpu/issues/877, which has it of version 1 of the API."""
    return ApiError(400, f'Cloud TPU received an invalid argument. The field "{field}" cannot be "{value}".')


def bad_request(why: str) -> ApiError:
    """Form of the wording: https://github.com/skypilot-org/skypilot/issues/3840. What follows is the sandbox's."""
    return ApiError(400, f"Cloud TPU received a bad request. {why}")


def located(zone: str) -> None:
    """The usual wording of Google's newer APIs; that of this one was not found."""
    if zone not in zones():
        raise ApiError(403, f"Permission denied on 'locations/{zone}' (or it may not exist).")


def checked(world: World, zone: str, node: Json) -> Slice:
    """The slice that a node's body asks for. Raises ApiError."""
    found = _slice(node, zone)
    if found.name not in zones()[zone]:
        raise _elsewhere(found.name, zone)
    _runtime(node, found)
    scheduling = node.get("schedulingConfig", {})
    if scheduling.get("reserved") and (scheduling.get("spot") or scheduling.get("preemptible")):
        raise bad_request("a node is Spot or reserved, not both")
    if "networkConfig" in node and "networkConfigs" in node:
        raise bad_request("network_config and network_configs are mutually exclusive")
    for network in [*node.get("networkConfigs", []), node.get("networkConfig", {})]:
        _network(world, zone, network)
    for disk in node.get("dataDisks", []):
        _there(world, disk.get("sourceDisk", ""))
    _account(world, node.get("serviceAccount", {}).get("email", ""))
    return found


def _slice(node: Json, zone: str) -> Slice:
    name, config = node.get("acceleratorType"), node.get("acceleratorConfig")
    if name and config:
        raise bad_request("accelerator_type and accelerator_config are mutually exclusive")
    known = {each.version: each.prefix for each in GENERATIONS if each.version}
    asked, topology = name or _DEFAULT, None
    if config:
        asked, topology = known.get(config.get("type", ""), ""), config.get("topology", "")
    try:
        found = tpu(asked, topology)
    except (UnknownName, NoSuchSlice):
        raise _elsewhere(f"{config['type']} {topology}" if config else asked, zone) from None
    if name and found.name != name:  # v5e-16, which is v5litepod-16 there
        raise _elsewhere(name, zone)
    return found


def _elsewhere(name: str, zone: str) -> ApiError:
    """Wording as in https://github.com/skypilot-org/skypilot/issues/3840; the zones are the sandbox's addition."""
    said = f"the accelerator {name} was not found in zone {zone}"
    having = [each for each, names in zones().items() if name in names]
    return bad_request(f"{said} (sandbox: {', '.join(having)} have it)" if having else said)


def _runtime(node: Json, found: Slice) -> None:
    """A version that does not exist is refused, one of another generation is not: the node comes up, and has no
    devices. Source: https://github.com/jax-ml/jax/issues/13260 (a v5litepod-4 with tpu-vm-base)."""
    name = node.get("runtimeVersion")
    if not name:
        raise ApiError(400, "Required field 'runtime_version' not specified", "required")
    said = tpu_runtimes.runtime(name, found.name)
    if any(finding.rule == tpu_runtimes.UNKNOWN.id for finding in said):
        raise bad_argument("RuntimeVersion", name)


def _network(world: World, zone: str, config: Json) -> None:
    """Whole names in place of short ones. What is named has to exist; "default" is taken for granted."""
    region = zone.rpartition("-")[0]
    for name, within in (("network", "global/networks"), ("subnetwork", f"regions/{region}/subnetworks")):
        if given := config.get(name):
            path = str(given).partition("/compute/v1/")[2] or given
            config[name] = path if "/" in path else f"projects/{PROJECT}/{within}/{path}"
            if given != "default":
                _there(world, config[name])


def _there(world: World, key: str) -> None:
    if f"compute/{key}" not in world.items:
        raise ApiError(404, f"The resource '{key}' was not found")


def _account(world: World, email: str) -> None:
    own = email.endswith(f"@{PROJECT}.iam.gserviceaccount.com")
    if own and f"iam/projects/{PROJECT}/serviceAccounts/{email}" not in world.items:
        raise ApiError(400, f"Service account {email} does not exist.")


def spot(node: Json, queued: Json | None = None) -> bool:
    scheduling = node.get("schedulingConfig", {})
    return bool(scheduling.get("spot") or scheduling.get("preemptible") or "spot" in (queued or {}))


def within_quota(world: World, zone: str, found: Slice, chips: int, is_spot: bool) -> None:
    """Refuses what goes over `world.quota` of the zone and generation, in chips. Whatever is there counts until it is
    deleted, suspended and failed requests too: https://github.com/marin-community/marin/issues/87. Wording:
    https://github.com/marin-community/marin/pull/1612."""
    limit = world.quota.get(f"tpu/{zone}/{found.generation.prefix}")
    if limit is None or used(world, zone, found.generation) + chips <= limit:
        return
    raise ApiError(
        429, f"Quota limit '{_metric(found.generation, is_spot)}' has been exceeded. Limit: {limit} in zone {zone}."
    )


def _metric(generation: Generation, is_spot: bool) -> str:
    purchase = "spot" if is_spot else "on-demand"
    named = [each.code for each in quotas() if each.service == "tpu" and generation.accelerator in each.applies_to
             and each.purchase == purchase]  # fmt: skip
    return named[0] if named else f"TPU{generation.version}PerProjectPerZoneForTPUAPI"


def used(world: World, zone: str, generation: Generation) -> int:
    """The chips of a generation that nodes and queued resources of a zone hold."""
    total = 0
    for key, item in world.items.items():
        where = re.fullmatch(rf"tpu/{_SLICES}", key)
        if where and where[1] == zone:
            total += sum(each.chips for each in _held(item) if each.generation == generation)
    return total


def _held(item: Json) -> list[Slice]:
    """The slices of a queued resource, or of a node that is of none."""
    if "tpu" not in item:
        return [] if "queuedResource" in item else [tpu(item["acceleratorType"])]
    specs = item["tpu"]["nodeSpec"]
    return [tpu(spec["node"]["acceleratorType"]) for spec in specs for _ in range(count(spec))]


def count(spec: Json) -> int:
    """The nodes of a node spec."""
    return int(spec.get("multisliceParams", {}).get("nodeCount", 1))


def out_of_stock(world: World, zone: str, found: Slice) -> bool:
    return bool({found.name, f"{zone}/{found.name}"} & world.stockouts)
