"""Live data of Google Cloud: machine prices computed from the SKUs of its public price list, and GPU types that the
shipped catalogue lacks. A machine costs vCPUs x core + GiB x RAM + GPUs x GPU + bundled GiB x local SSD. SKUs are
recognized by the part before " running in " of their description, which names a group of regions in words;
`serviceRegions` has the regions. Only families whose SKUs have one name are computed; for A2, G2 and N1 a test compares
the sums with shipped prices. The others stay as shipped: A3 Mega and Ultra, A4 and G4, whose GPU is sold under several
names or whole, and TPUs. Sources: https://docs.cloud.google.com/billing/v1/how-tos/catalog-api, for the descriptions
https://github.com/Cyclenerd/google-cloud-pricing-cost-calculator/blob/master/build/mapping.csv, and for the fields of
types https://docs.cloud.google.com/compute/docs/reference/rest/v1/machineTypes"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from accel.catalog.accelerators import accelerators
from accel.catalog.tables import Row
from accel.clouds.google.rest import SIGN_IN, get, path_segment, session
from accel.diagnostics.errors import CloudSilent, JobsError, NoCredentials

from ..quota.planned_machines import PROJECT
from .reading import Key, Reading, Source, Spot, Types, machine_line, understood

TYPES = Source(
    "live-gcp-types", "Compute Engine machineTypes with the user's credentials", "Google Cloud types that do not ship"
)
LOCAL_SSD_GB = 375
"""Size of one partition. Source: https://docs.cloud.google.com/compute/docs/disks/local-ssd"""

SKUS = "services/6F81-5844-456A/skus"
"""The price list of Compute Engine."""

QUERY = {"currencyCode": "USD", "pageSize": "5000"}
"""5000 is the maximum of a page."""

API_KEY = "GOOGLE_API_KEY"
"""Environment variable: a key of a project with the Cloud Billing API, which replaces a sign-in for this list."""

FAMILIES = {
    "a2-": "A2 Instance",
    "a3-highgpu-": "A3 Instance",
    "e2-": "E2 Instance",
    "g2-": "G2 Instance",
    "n1-": "N1 Predefined Instance",
    "n2-": "N2 Instance",
    "n4-": "N4 Instance",
}
"""Prefixes of machine names, and the descriptions of their cores and RAM."""

GPUS = {
    "nvidia-a100-80gb": "Nvidia Tesla A100 80GB GPU",
    "nvidia-h100-80gb": "Nvidia H100 80GB GPU",
    "nvidia-l4": "Nvidia L4 GPU",
    "nvidia-tesla-a100": "Nvidia Tesla A100 GPU",
    "nvidia-tesla-p100": "Nvidia Tesla P100 GPU",
    "nvidia-tesla-p4": "Nvidia Tesla P4 GPU",
    "nvidia-tesla-t4": "Nvidia Tesla T4 GPU",
    "nvidia-tesla-v100": "Nvidia Tesla V100 GPU",
}
LOCAL_SSD = "SSD backed Local Storage"
ATTACHED_TO_SPOT = " attached to Spot Preemptible VMs"
SPOT_PREFIX = "Spot Preemptible "

HOURS = {"h": 1.0, "GiBy.h": 1.0, "GiBy.mo": 730.0}
"""Hours in a unit of use; Google counts 730 in a month."""

SOURCE = Source(
    "live-gcp-billing",
    "Cloud Billing Catalog, SKUs of Compute Engine with the user's credentials",
    "Google Cloud on demand and Spot: sums over the SKUs of a machine",
)

Meter = tuple[str, bool]
"""The description of a SKU without Spot and place, and whether it is Spot."""

Rates = dict[tuple[str, Meter], set[float]]
"""The distinct prices of each meter in each region: USD per hour of one vCPU, GPU or GiB."""


def read(regions: Sequence[str], machines: Iterable[Row]) -> Reading:
    """Price each machine (lines of machines.csv) in each region that has all its SKUs. Raise NoCredentials,
    CloudRefused, and CloudSilent on no answer, too many calls, or an answer that is not what Google documents."""
    basis = {"machine": "sum-of-skus", "n1-attach": "unit-x-count"}
    found = Reading("gcp", tuple(regions), basis, "medium", "region", SOURCE, SOURCE)
    http = _session()
    with understood(SKUS, "Google"):
        rates = _rates(skus(http), set(regions))
    if not rates:
        found.kept.append(f"{SKUS}: no SKU of the machines of the catalogue in these regions")
    doubted: dict[str, list[str]] = {}
    for machine in machines:
        for region in regions:
            _price(found, machine, region, rates, doubted)
    for description, places in doubted.items():
        found.kept.append(f"{description} in {', '.join(sorted(set(places)))}: several prices")
    return found


def _price(found: Reading, machine: Row, region: str, rates: Rates, doubted: dict[str, list[str]]) -> None:
    parts = list(amounts(machine))
    for spot in (False, True):
        prices = {name: rates.get((region, (name, spot)), set[float]()) for name, _ in parts}
        for name in (name for name, several in prices.items() if len(several) > 1):
            doubted.setdefault(f"{name}{' of Spot' if spot else ''}", []).append(region)
        if not parts or any(len(usd) != 1 for usd in prices.values()):
            continue
        usd = sum(amount * min(prices[name]) for name, amount in parts)
        key: Key = region, machine["machine"]
        if spot:
            found.spot[key] = Spot(usd, usd, 1)
        else:
            found.on_demand[key] = usd


def amounts(machine: Row) -> Iterator[tuple[str, float]]:
    """Yield how much of which SKU a machine is billed per hour; nothing where that is in doubt."""
    gpu = GPUS.get(machine["accelerator"])
    if machine["kind"] == "n1-attach":
        if gpu:
            yield gpu, machine.figure("accelerator_count")
        return
    family = next((words for start, words in FAMILIES.items() if machine["machine"].startswith(start)), None)
    if family is None or (machine["accelerator"] and not gpu):
        return
    yield f"{family} Core", machine.figure("vcpus")
    yield f"{family} Ram", machine.figure("memory_gib")
    if gpu:
        yield gpu, machine.figure("accelerator_count")
    if machine["local_ssd_mode"] == "bundled":
        yield LOCAL_SSD, machine.figure("local_ssd_gb")


def _rates(listed: Iterable[Mapping[str, Any]], regions: set[str]) -> Rates:
    meters = _meters()
    found: Rates = {}
    for sku in listed:
        meter = meters.get(_head(sku["description"]))
        # Google tags some SKUs of Spot as OnDemand; only their description is reliable.
        if meter is None or sku["category"]["usageType"] not in ("OnDemand", *(("Preemptible",) if meter[1] else ())):
            continue
        usd = rate(sku)
        for region in regions.intersection(sku["serviceRegions"]) if usd else ():
            found.setdefault((region, meter), set()).add(usd)
    return found


def _meters() -> dict[str, Meter]:
    found: dict[str, Meter] = {}
    for words in FAMILIES.values():
        for name in (f"{words} Core", f"{words} Ram"):
            found |= {name: (name, False), SPOT_PREFIX + name: (name, True)}
    for name in (*GPUS.values(), LOCAL_SSD):
        found |= {name: (name, False), name + ATTACHED_TO_SPOT: (name, True)}
    return found


def _head(description: str) -> str:
    """Drop the place. Reserved, committed, sole-tenant, custom and scheduled SKUs keep other words."""
    head = description.split(" running in ")[0]
    return head.split(" in ")[0] if head.startswith(LOCAL_SSD) else head


def rate(sku: Mapping[str, Any]) -> float:
    """Return USD per hour for one unit; 0 if it is free, depends on the amount of use, or has an unknown unit."""
    expression = sku["pricingInfo"][-1]["pricingExpression"]
    tiers, hours = expression["tieredRates"], HOURS.get(expression["usageUnit"])
    if len(tiers) != 1 or hours is None:
        return 0.0
    money = tiers[0]["unitPrice"]
    if money["currencyCode"] != "USD":
        raise ValueError(f"{sku['skuId']} is in {money['currencyCode']}")
    return (int(money.get("units", 0)) + int(money.get("nanos", 0)) / 1e9) / hours


def _session() -> Any:
    key = os.environ.get(API_KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise NoCredentials(f"{API_KEY} is no API key", SIGN_IN)
    return session(key)


def skus(http: Any) -> Iterator[Mapping[str, Any]]:
    token, seen = "", set[str]()
    while True:
        page = get(http, "cloudbilling", SKUS, QUERY | ({"pageToken": token} if token else {}))
        yield from page["skus"]
        token = page.get("nextPageToken", "")
        if not token:
            return
        if token in seen:
            raise CloudSilent(f"{SKUS}: the same page again")
        seen.add(token)


def types(regions: Sequence[str], known: Collection[str]) -> Types:
    """Return machine types with the catalogue's GPUs built in; no API returns how much memory another GPU has. Without
    a project in $GOOGLE_CLOUD_PROJECT nothing is read, and `kept` says so."""
    project = os.environ.get(PROJECT, "").strip()
    if not project:
        return Types(kept=[f"machine types of Google Cloud: {PROJECT} names no project to ask with"])
    found, doubted = Types(TYPES), dict[str, None]()
    try:
        http, path, token = session(), f"projects/{path_segment(project)}/aggregated/machineTypes", ""
        while True:
            page = get(http, "compute", path, {"maxResults": "500", **({"pageToken": token} if token else {})})
            with understood(path, "Google"):
                for place, inside in page["items"].items():
                    for each in inside.get("machineTypes", []):
                        zone = place.rpartition("/")[2]
                        if each["name"] not in known and zone.rpartition("-")[0] in regions:
                            _machine_type(each, zone, found, doubted)
            if page.get("nextPageToken", "") in ("", token):
                break
            token = page["nextPageToken"]
    except JobsError as refused:
        return Types(kept=[refused.message])
    found.kept.extend(f"{name}: the memory of its GPU is not known, so it stays unknown" for name in doubted)
    return found


def _machine_type(told: Mapping[str, Any], zone: str, found: Types, doubted: dict[str, None]) -> None:
    gpus = told.get("accelerators", [])
    if len(gpus) != 1 or told.get("deprecated"):
        return
    name, kind = told["name"], gpus[0]["guestAcceleratorType"]
    of = next((each for each in accelerators().values() if each.gcp_type == kind), None)
    if of is None:
        doubted[name] = None
        return
    count, disks = gpus[0]["guestAcceleratorCount"], told.get("bundledLocalSsds", {}).get("partitionCount", 0)
    found.machines[name] = {
        **machine_line("gcp", name, name.partition("-")[0], of.name, count, TYPES),
        "accelerator_memory_gib_total": f"{of.memory_gib * count:g}",
        "vcpus": f"{told['guestCpus']}",
        "memory_gib": f"{told['memoryMb'] / 1024:g}",
        "cpu_arch": "arm64" if told.get("architecture") == "ARM64" else "x86_64",
        "local_ssd_gb": f"{disks * LOCAL_SSD_GB}" if disks else "",
        "local_ssd_mode": "bundled" if disks else "none",
        "efa_max_interfaces": "0",
        "capacity_block": "no",
        "gke_accelerator_label": of.gke_label,
    }
    found.places.setdefault((zone.rpartition("-")[0], name), set()).add(zone)
