"""Live data of AWS: prices on demand and of Spot, the zones that offer an instance type, and GPU types that the shipped
catalogue lacks. Their fields: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from accel.catalog.accelerators import Accelerator, accelerators
from accel.catalog.check import ZONE
from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.diagnostics.errors import CloudRefused, JobsError, NoCredentials

from .reading import Reading, Source, Spot, Types, machine_line, understood

PRICE_LIST_REGION = "us-east-1"
"""One of the three regions that serve the Price List (botocore's endpoints: ap-south-1, eu-central-1, us-east-1); each
has the prices of all regions."""

LINUX = "Linux/UNIX"

FILTERS = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
"""Attributes of a product that is an instance as most people rent it."""

ON_DEMAND = Source(
    "live-aws-price-list", "AWS Price List, GetProducts of AmazonEC2 with the user's credentials", "AWS on demand"
)
SPOT = Source(
    "live-aws-spot", "EC2 DescribeSpotPriceHistory with the user's credentials", "AWS Spot: least and median over zones"
)
OFFERS = Source(
    "live-aws-offerings", "EC2 DescribeInstanceTypeOfferings with the user's credentials", "zones of AWS instance types"
)

TYPES = Source("live-aws-types", "EC2 DescribeInstanceTypes with the user's credentials", "AWS types that do not ship")

_SAME_MEMORY = 0.05
"""AWS has one name for V100 and A100 of two memory sizes; within this share of each other they are one kind."""

NOT_ENABLED = "the account may not have the region enabled"


def read(regions: Sequence[str], machines: Collection[str]) -> Reading:
    """Note refusals in `kept`. Raise NoCredentials where AWS does not know the caller at all; CloudSilent on no answer,
    too many calls, or an answer that is not what AWS documents."""
    found = Reading("aws", tuple(regions), {"machine": "listed"}, "high", "az-min-median", ON_DEMAND, SPOT, OFFERS)
    # The Price List comes first, since a disabled region refuses valid credentials too.
    steps: list[Callable[[str, Collection[str], Reading], None]] = [_prices, _spot, _offers]
    for step in steps:
        for region in regions:
            try:
                step(region, machines, found)
            except CloudRefused as refused:
                found.kept.append(refused.message)
            except NoCredentials as refused:
                if step is _prices:
                    raise
                found.kept.append(f"{refused.message}; {NOT_ENABLED}")
    return found


def _prices(region: str, machines: Collection[str], found: Reading) -> None:
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in FILTERS.items()]
    filters.append({"Type": "TERM_MATCH", "Field": "regionCode", "Value": region})
    asked = _items(
        *("pricing", PRICE_LIST_REGION, "get_products", "PriceList", region),
        ServiceCode="AmazonEC2",
        Filters=filters,
    )
    with understood(f"GetProducts of {region}", "AWS"):
        prices = on_demand(asked, machines)
    for machine, usd in prices.items():
        if len(usd) > 1:
            found.kept.append(f"{machine} in {region}: the Price List has {len(usd)} on-demand prices of it")
        elif usd:
            found.on_demand[region, machine] = usd.pop()
    if not prices:
        found.kept.append(f"GetProducts of {region}: none of the catalogue's instance types")


def on_demand(products: Iterable[str], machines: Collection[str]) -> dict[str, set[float]]:
    """Return distinct prices by instance type, without zero: it is not sold on demand then (Capacity Blocks)."""
    found: dict[str, set[float]] = {}
    for text in products:
        product = json.loads(text)
        attributes = product["product"]["attributes"]
        machine = attributes.get("instanceType")
        if machine not in machines or attributes.get("marketoption", "OnDemand") != "OnDemand":
            continue
        for term in product["terms"].get("OnDemand", {}).values():
            hourly = [each for each in term["priceDimensions"].values() if each["unit"] == "Hrs"]
            usd = {float(each["pricePerUnit"]["USD"]) for each in hourly}
            found.setdefault(machine, set()).update(usd - {0.0})
    return found


def _spot(region: str, machines: Collection[str], found: Reading) -> None:
    asked = _items(
        *("ec2", region, "describe_spot_price_history", "SpotPriceHistory", region),
        Filters=_only(machines),
        ProductDescriptions=[LINUX],
        StartTime=datetime.now(UTC),  # each zone's last change before it is what holds now
    )
    with understood(f"DescribeSpotPriceHistory of {region}", "AWS"):
        found.spot.update(((region, machine), each) for machine, each in spot(asked, region).items())


def spot(history: Iterable[dict[str, Any]], region: str) -> dict[str, Spot]:
    """Combine the last price of each zone; Local Zones (us-west-2-lax-1a) are no part of their region."""
    last: dict[str, dict[str, tuple[Any, float]]] = {}
    for entry in history:
        zone = entry["AvailabilityZone"]
        if not re.fullmatch(rf"{region}[a-z]", zone) or entry["ProductDescription"] != LINUX:
            continue
        zones = last.setdefault(entry["InstanceType"], {})
        told = (entry["Timestamp"], float(entry["SpotPrice"]))
        zones[zone] = max(zones.get(zone, told), told)
    usd = {machine: [price for _, price in zones.values()] for machine, zones in last.items()}
    return {machine: Spot(min(each), median(each), len(each)) for machine, each in usd.items()}


def _offers(region: str, machines: Collection[str], found: Reading) -> None:
    asked = _items(
        *("ec2", region, "describe_instance_type_offerings", "InstanceTypeOfferings", region),
        LocationType="availability-zone-id",
        Filters=_only(machines),
    )
    with understood(f"DescribeInstanceTypeOfferings of {region}", "AWS"):
        zones = offers(asked, machines)
    if not zones:
        raise CloudRefused(f"DescribeInstanceTypeOfferings of {region}: none of the catalogue's instance types")
    found.offers[region] = zones


def offers(offerings: Iterable[dict[str, Any]], machines: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the zones that offer each instance type, without those of Local Zones (usw2-lax1-az1)."""
    found: dict[str, set[str]] = {}
    for entry in offerings:
        if entry["InstanceType"] in machines and re.fullmatch(ZONE["aws"], entry["Location"]):
            found.setdefault(entry["InstanceType"], set()).add(entry["Location"])
    return {machine: tuple(sorted(zones)) for machine, zones in found.items()}


def _only(machines: Collection[str]) -> list[dict[str, Any]]:
    """Return a filter, since a region may refuse a parameter with a type that it does not know."""
    return [{"Name": "instance-type", "Values": sorted(machines)}]


def _items(service: str, endpoint: str, operation: str, items: str, region: str, **parameters: Any) -> list[Any]:
    """Return the `items` of every page. Raise as asking() does."""
    doing = "".join(word.capitalize() for word in operation.split("_"))
    with asking(f"{doing} of {region}"):
        asked = client(service, endpoint, connect_s=5, read_s=60, attempts=6)
        pages = list(asked.get_paginator(operation).paginate(**parameters))
    with understood(f"{doing} of {region}", "AWS"):
        return [item for page in pages for item in page[items]]


def types(regions: Sequence[str], known: Collection[str]) -> Types:
    """Return instance types with NVIDIA GPUs. Unreadable regions are in `kept`."""
    found = Types(TYPES)
    for region in regions:
        try:
            with asking(f"DescribeInstanceTypes of {region}"):
                asked = client("ec2", region, connect_s=5, read_s=60, attempts=6)
                pages = list(asked.get_paginator("describe_instance_types").paginate())
            with understood(f"DescribeInstanceTypes of {region}", "AWS"):
                for each in (each for page in pages for each in page["InstanceTypes"]):
                    if each["InstanceType"] not in known:
                        _instance_type(each, found)
        except JobsError as refused:
            found.kept.append(refused.message)
    return found


def _instance_type(told: Mapping[str, Any], found: Types) -> None:
    gpus = told.get("GpuInfo", {}).get("Gpus", [])
    if len(gpus) != 1 or gpus[0].get("Manufacturer") != "NVIDIA":
        return
    gpu, name = gpus[0], told["InstanceType"]
    count, memory_mib = gpu.get("LogicalGpuCount") or gpu["Count"], gpu["MemoryInfo"]["SizeInMiB"]
    kind = _kind(gpu["Name"], memory_mib / 1024, whole=count >= 1)
    key = kind.name if kind else f"nvidia-{re.sub('[^a-z0-9]+', '-', gpu['Name'].lower())}"
    if kind is None:
        gib = f"{memory_mib / 1024:g}"
        found.accelerators[key] = {
            **{"accelerator": key, "vendor": "NVIDIA", "family": "gpu", "aws_api_name": gpu["Name"]},
            **{"memory_gib": gib, "nominal_memory_gb": gib, "source": TYPES.id},
        }
    network, disk = told["NetworkInfo"], told.get("InstanceStorageInfo")
    cards = [card.get("BaselineBandwidthInGbps") or 0 for card in network.get("NetworkCards", [])]
    found.machines[name] = {
        **machine_line("aws", name, name.partition(".")[0], key, count, TYPES),
        "accelerator_memory_gib_total": f"{told['GpuInfo']['TotalGpuMemoryInMiB'] / 1024:g}",
        "vcpus": f"{told['VCpuInfo']['DefaultVCpus']}",
        "memory_gib": f"{told['MemoryInfo']['SizeInMiB'] / 1024:g}",
        "cpu_arch": "arm64" if "arm64" in told["ProcessorInfo"]["SupportedArchitectures"] else "x86_64",
        "local_ssd_gb": f"{disk['TotalSizeInGB']}" if disk else "",
        "local_ssd_mode": "bundled" if disk else "none",
        "network_gbps": f"{sum(cards):g}" if any(cards) else "",
        "network_desc": network.get("NetworkPerformance", "").replace(",", ";"),
        "efa": "yes" if network.get("EfaSupported") else "no",
        "efa_max_interfaces": f"{network.get('EfaInfo', {}).get('MaximumEfaInterfaces', 0)}",
        "capacity_block": "yes" if "capacity-block" in told.get("SupportedUsageClasses", []) else "no",
    }


def _kind(aws_name: str, memory_gib: float, *, whole: bool) -> Accelerator | None:
    """Return the accelerator with AWS's name; a share of one has less memory."""
    return next(
        (
            each
            for each in accelerators().values()
            if each.aws_name == aws_name
            and (not whole or abs(each.memory_gib - memory_gib) <= _SAME_MEMORY * each.memory_gib)
        ),
        None,
    )
