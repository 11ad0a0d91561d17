"""GPU machine types that a cloud has and the shipped catalogue lacks, read with the user's credentials.

Fields: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html and
https://docs.cloud.google.com/compute/docs/reference/rest/v1/machineTypes
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from accel.catalog.accelerators import Accelerator, accelerators
from accel.clouds.aws.client import client
from accel.clouds.aws.errors import asking
from accel.clouds.google.rest import get, part, session
from accel.diagnostics.errors import JobsError

from ..quota.planned_machines import PROJECT
from .reading import Source, Types, understood

AWS = Source("live-aws-types", "EC2 DescribeInstanceTypes with the user's credentials", "AWS types that do not ship")
GOOGLE = Source(
    "live-gcp-types", "Compute Engine machineTypes with the user's credentials", "Google Cloud types that do not ship"
)
LOCAL_SSD_GB = 375
"""Of one partition. Source: https://docs.cloud.google.com/compute/docs/disks/local-ssd"""

_SAME_MEMORY = 0.05
"""AWS calls V100 and A100 of two memory sizes by one name; within this share of each other they are one kind."""


def aws(regions: Sequence[str], known: Collection[str]) -> Types:
    """Instance types with NVIDIA GPUs. What cannot be read of a region is in `kept`."""
    found = Types(AWS)
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
            **{"memory_gib": gib, "nominal_memory_gb": gib, "source": AWS.id},
        }
    network, disk = told["NetworkInfo"], told.get("InstanceStorageInfo")
    cards = [card.get("BaselineBandwidthInGbps") or 0 for card in network.get("NetworkCards", [])]
    found.machines[name] = {
        **_line("aws", name, name.partition(".")[0], key, count, AWS),
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
    """The accelerator that AWS calls so; a share of one has less memory."""
    return next(
        (
            each
            for each in accelerators().values()
            if each.aws_name == aws_name
            and (not whole or abs(each.memory_gib - memory_gib) <= _SAME_MEMORY * each.memory_gib)
        ),
        None,
    )


def google(regions: Sequence[str], known: Collection[str]) -> Types:
    """Machine types with GPUs of the catalogue built in; nothing says how much memory another GPU has. Without a
    project that $GOOGLE_CLOUD_PROJECT names, nothing is read, and `kept` says so."""
    project = os.environ.get(PROJECT, "").strip()
    if not project:
        return Types(kept=[f"machine types of Google Cloud: {PROJECT} names no project to ask with"])
    found, doubted = Types(GOOGLE), dict[str, None]()
    try:
        http, path, token = session(), f"projects/{part(project)}/aggregated/machineTypes", ""
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
        **_line("gcp", name, name.partition("-")[0], of.name, count, GOOGLE),
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


def _line(cloud: str, name: str, series: str, kind: str, count: float, source: Source) -> dict[str, str]:
    line = {"cloud": cloud, "machine": name, "kind": "accelerator", "series": series, "status": "listed"}
    return line | {
        "accelerator": kind,
        "accelerator_count": f"{count:g}",
        "source": source.id,
        "attach_mode": "bundled",
    }
