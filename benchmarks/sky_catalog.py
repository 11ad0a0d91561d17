"""Our prices as SkyPilot's catalogue, in its format. They are by region, so each region is one zone: less to search
than in SkyPilot's own files. SkyPilot prices a machine of Google Cloud as its host and its GPUs apart; where they are
one machine, the host has the whole price and the GPUs cost nothing. What has no price is left out, as are TPUs and
shares of one GPU, which no request asks for."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from accel.catalog import Machine, accelerators, machines, machines_for, prices_for
from accel.catalog.machines import CLOUDS

from .questions import askable

FOLDER = Path(".sky", "catalogs", "v8")
"""In the user's home. https://docs.skypilot.co/en/latest/reference/faq.html"""

COLUMNS = (
    *("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo"),
    *("Price", "SpotPrice", "Region", "AvailabilityZone", "Arch"),
)
Cells = dict[str, object]


def write(home: Path) -> None:
    kinds: dict[str, set[str]] = {}
    for cloud in CLOUDS:
        cells = list(rows(cloud))
        _write(home / FOLDER / cloud / "vms.csv", COLUMNS, cells)
        for name in {str(each["AcceleratorName"]) for each in cells if each.get("AcceleratorName")}:
            kinds.setdefault(name, set()).add(cloud.upper())
    names = [{"AcceleratorName": name, "Clouds": sorted(clouds)} for name, clouds in sorted(kinds.items())]
    _write(home / FOLDER / "common" / "accelerators.csv", ("AcceleratorName", "Clouds"), names)


def rows(cloud: str) -> Iterator[Cells]:
    free: dict[tuple[object, ...], Cells] = {}
    for machine in _machines(cloud):
        device = _device(machine)
        for region, price in prices_for(cloud, machine.name).items():
            if price.on_demand is None and price.spot is None:
                continue
            place = {"Region": region, "AvailabilityZone": f"{region}-a"}
            paid = {"Price": price.on_demand, "SpotPrice": price.spot}
            size = {"vCPUs": machine.vcpus, "MemoryGiB": machine.memory_mib / 1024, "Arch": machine.cpu_arch}
            if machine.is_attachment:
                yield {**device, **paid, **place}
            elif cloud == "gcp":
                yield {"InstanceType": machine.name, **size, **paid, **place}
                if device:
                    free[*device.values(), region] = {**device, "Price": 0, "SpotPrice": 0, **place}
            else:
                yield {"InstanceType": machine.name, **device, **size, **paid, **place}
    yield from free.values()


def _machines(cloud: str) -> Iterator[Machine]:
    yield from (machine for machine in machines(cloud) if machine.kind == "cpu")
    for kind, count in askable()[0]:
        yield from (machine for machine in machines_for(kind, count) if machine.cloud == cloud)


def _device(machine: Machine) -> Cells:
    if not machine.accelerator:
        return {}
    name = accelerators()[machine.accelerator].skypilot_name
    return {"AcceleratorName": name, "AcceleratorCount": machine.accelerator_count, "GpuInfo": name}


def _write(path: Path, columns: tuple[str, ...], cells: Iterable[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(cells)
