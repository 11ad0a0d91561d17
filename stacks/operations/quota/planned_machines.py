"""Planned machines, and whether the quotas suffice for them beside the running ones."""

import os
from collections.abc import Sequence

from accel.catalog import (
    AmbiguousName,
    Machine,
    UnavailableName,
    UnknownName,
    accelerator,
    check_place,
    machine,
    machines_for,
)
from accel.catalog.machines import check_cloud, kinds
from accel.catalog.places import check_region, regions
from accel.catalog.tpu import NoSuchSlice, Slice, tpu
from accel.console.errors import say
from accel.diagnostics.errors import BadInput
from accel.quota import GooglePool, Pool, Verdict
from jobs.client.market import list_machines

from .aws import judge_aws
from .google import judge_google

CLOUDS = ("aws", "gcp")
PROJECT = "GOOGLE_CLOUD_PROJECT"


def judge_machines(
    texts: Sequence[str], region: str | None, spot: bool, project: str | None
) -> tuple[str | None, tuple[Verdict, ...]]:
    """Return the owner of the quotas, if known, and the verdicts on machines (`CLOUD:TYPE[:COUNT]`) in one region.
    Raise BadInput for names and regions that the catalogue does not have, and as the clouds' readers do."""
    if region is None:
        raise BadInput("stacks quota: --region is missing: quotas are a region's own")
    planned = [_parsed(text, region, spot) for text in texts]
    clouds = {"gcp" if isinstance(found, Slice) else found.cloud for found, _ in planned}
    if len(clouds) > 1:
        raise BadInput("--machine: machines of one cloud at a time")
    for found, _ in planned:
        if isinstance(found, Machine):
            _check_place(found, region)
    if clouds == {"aws"}:
        if project:
            raise BadInput("stacks quota: --project is for gcp machines; AWS's account is that of the credentials")
        return None, judge_aws(
            region, [_aws(found, count, region, spot) for found, count in planned if isinstance(found, Machine)]
        )
    project = project or os.environ.get(PROJECT)
    if not project:
        raise BadInput(f"stacks quota: --project is missing, and {PROJECT} is not set")
    return f"project {project}", judge_google(project, [_google(*each, region, spot) for each in planned])


def _parsed(text: str, region: str, spot: bool) -> tuple[Machine | Slice, int]:
    """Parse a machine; convert GPUs by kind and number (`t4:1`, `gcp:l4:8`) or a slice (`v4-8`), and print it."""
    cloud, _, rest = text.partition(":")
    named = rest if cloud in CLOUDS else text
    if found := _slice(text, named, region) or _gpus(text, named, cloud if cloud in CLOUDS else None, region, spot):
        return found, 1
    name, colon, count = rest.partition(":")
    if not name or (colon and not (count.isascii() and count.isdigit() and len(count) < 7 and int(count))):
        raise BadInput(
            f"--machine: must be CLOUD:TYPE or CLOUD:TYPE:COUNT, such as gcp:a3-highgpu-8g:2, is {text[:60]!r}"
        )
    try:
        check_cloud(cloud)
        return _named(cloud, name), int(count or 1)
    except UnknownName as error:
        raise BadInput(f"--machine: {error}") from None


def _slice(text: str, name: str, region: str) -> Slice | None:
    try:
        found = tpu(name)
    except NoSuchSlice as error:
        raise BadInput(f"--machine: {error}") from None
    except UnknownName:
        return None
    if not found.places.get(region):
        raise BadInput(f"--machine: {name} is not known to be offered in {region}")
    say(f"note: {text}: one slice of {found.chips} chips in {found.places[region][0]} is meant")
    return found


def _gpus(text: str, name: str, cloud: str | None, region: str, spot: bool) -> Machine | None:
    """Return the cheapest machine with these GPUs, by the requested price; without a price, any offered one."""
    kind, _, count = name.partition(":")
    try:
        gpu = accelerator(kind)
    except (UnknownName, AmbiguousName, UnavailableName):
        return None
    if not count.isdigit():
        raise BadInput(f"--machine: must say how many {gpu.name}, such as {kind}:1, is {text[:60]!r}")
    cloud = cloud or next((each for each in CLOUDS if region in regions(each)), None)
    try:
        found = list_machines(gpu.name, int(count), cloud, region, capacity="spot" if spot else "on-demand")
    except BadInput as error:
        raise BadInput(error.message.replace("--gpu", "--machine")) from None
    if not found:
        raise BadInput(f"--machine: no machine with {count} {gpu.name} is known to be offered in {region}")
    host, plus, attached = found[0].machine.partition("+")
    meant = _named(found[0].cloud, f"n1+{attached}" if plus else host)
    say(f"note: {text}: {meant.name} is meant, the cheapest in {region} with {count} {gpu.name}")
    return meant


def _named(cloud: str, name: str) -> Machine:
    """Return a machine, or GPUs attached to one under the catalogue's own name."""
    if kinds(cloud).get(name) != "n1-attach":
        return machine(cloud, name)
    kind, _, count = name.partition("+")[2].rpartition("x")
    return next(each for each in machines_for(kind, int(count), cloud) if each.name == name)


def _check_place(found: Machine, region: str) -> None:
    try:
        check_region(found.cloud, region)
    except UnknownName as error:
        raise BadInput(f"--region: {error}") from None
    try:
        check_place(found.cloud, found.name, region)
    except UnavailableName as error:
        # The catalogue may be outdated, and the quota is the same in any case.
        say(f"note: {error}")


def _aws(found: Machine, count: int, region: str, spot: bool) -> Pool:
    return Pool(found.name, region, spot, (found.name,), found.vcpus * count, exceeds=False)


def _google(found: Machine | Slice, count: int, region: str, spot: bool) -> GooglePool:
    if isinstance(found, Slice):
        zone = found.places[region][0]  # the Cloud TPU API counts by the zone
        return GooglePool(found.name, zone, found.generation.accelerator, found.chips, count, spot, service="tpu")
    if not found.whole_accelerators:
        raise BadInput(f"--machine: {found.name} has no whole GPU or TPU, and of Google only their quotas are known")
    if found.is_attachment:
        say(f"note: {found.name}: the CPUs of its host have a quota of their own, which is not asked about")
    return GooglePool(found.name, region, found.accelerator, found.whole_accelerators, count, spot)
