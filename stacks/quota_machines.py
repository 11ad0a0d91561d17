"""Machines that are only planned, and whether the quotas hold them beside what runs."""

import os
from collections.abc import Sequence

from accel.catalog import Machine, NotOffered, UnknownName, check_place, machine, machines_for
from accel.catalog.machines import check_cloud, kinds
from accel.catalog.places import check_region
from accel.quota import GooglePool, Pool, Verdict
from jobs.cli.report import say
from jobs.errors import BadInput

PROJECT = "GOOGLE_CLOUD_PROJECT"


def judge_machines(
    texts: Sequence[str], region: str | None, spot: bool, project: str | None
) -> tuple[str | None, tuple[Verdict, ...]]:
    """Whose quotas they are, where that is said, and the verdicts on machines written `CLOUD:TYPE[:COUNT]`, all in one
    region. Raises BadInput for names and regions that the catalogue does not have, and as the clouds' readers do."""
    if region is None:
        raise BadInput("stacks quota: --region is missing: quotas are a region's own")
    planned = [_parsed(text) for text in texts]
    clouds = {found.cloud for found, _ in planned}
    if len(clouds) > 1:
        raise BadInput("--machine: machines of one cloud at a time")
    for found, _ in planned:
        _check_place(found, region)
    if clouds == {"aws"}:
        from .quota_aws import judge_aws

        if project:
            raise BadInput("stacks quota: --project is for gcp machines; AWS's account is that of the credentials")
        return None, judge_aws(region, [_aws(*each, region, spot) for each in planned])
    from .quota_google import judge_google

    project = project or os.environ.get(PROJECT)
    if not project:
        raise BadInput(f"stacks quota: --project is missing, and {PROJECT} is not set")
    return f"project {project}", judge_google(project, [_google(*each, region, spot) for each in planned])


def _parsed(text: str) -> tuple[Machine, int]:
    cloud, _, rest = text.partition(":")
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


def _named(cloud: str, name: str) -> Machine:
    """A machine, or GPUs attached to one under the catalogue's own name."""
    if kinds(cloud).get(name) != "n1-attach":
        return machine(cloud, name)
    accelerator, _, count = name.partition("+")[2].rpartition("x")
    return next(each for each in machines_for(accelerator, int(count), cloud) if each.name == name)


def _check_place(found: Machine, region: str) -> None:
    try:
        check_region(found.cloud, region)
    except UnknownName as error:
        raise BadInput(f"--region: {error}") from None
    try:
        check_place(found.cloud, found.name, region)
    except NotOffered as error:
        # The catalogue may be behind, and the quota is the same in any case.
        say(f"note: {error}")


def _aws(found: Machine, count: int, region: str, spot: bool) -> Pool:
    return Pool(found.name, region, spot, (found.name,), found.vcpus * count, exceeds=False)


def _google(found: Machine, count: int, region: str, spot: bool) -> GooglePool:
    if not found.whole_accelerators:
        raise BadInput(f"--machine: {found.name} has no whole GPU or TPU, and of Google only their quotas are known")
    if found.is_attachment:
        say(f"note: {found.name}: the CPUs of its host have a quota of their own, which is not asked about")
    return GooglePool(found.name, region, found.accelerator, found.whole_accelerators, count, spot)
