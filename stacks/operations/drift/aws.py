"""AWS drift that no property shows: environments that are INVALID or start instances from an old template, outdated
images, reservations that end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from accel.clouds.aws.responses import structure, structures

from ...environment.images_lock import ImageLock, LockedImage
from ..images import recommendation
from ..inventory.aws import Region
from .differences import Drift, attempt_check, ending
from .state import Resource, State

ENVIRONMENT = "aws:batch/computeEnvironment:ComputeEnvironment"
QUEUE = "aws:batch/jobQueue:JobQueue"
COMPONENT = "accel:aws:ComputeEnvironment"
LIVE = ("active", "scheduled", "pending", "payment-pending", "assessing", "delayed")
"""States in which a capacity reservation has its instances, or will have them. Source:
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html"""
REFRESH = "pulumi up --refresh"
UPGRADE = "stacks images upgrade --yes, then pulumi up"
OTHER_RESERVATION = "name another capacity_reservation for the environment, then pulumi up"


@dataclass(frozen=True)
class Environment:
    """A compute environment by the author's key, in its current state."""

    key: str
    now: Mapping[str, Any]

    @property
    def resources(self) -> dict[str, Any]:
        return structure(self.now, "computeResources")

    @property
    def image(self) -> Mapping[str, Any]:
        """Return the first entry of its `ec2Configuration`: ours have one."""
        found = structures(self.resources, "ec2Configuration")
        return found[0] if found else {}

    @property
    def image_type(self) -> str:
        return str(self.image.get("imageType"))

    @property
    def image_id(self) -> str | None:
        return self.image.get("imageIdOverride")


def drift_of_aws(state: State, lock: ImageLock | None, now: datetime, within: timedelta) -> list[Drift]:
    """Report unreadable parts as `unknown`. Raise NoCredentials and CloudSilent."""
    found: list[Drift] = []
    by_region: dict[str, list[Resource]] = {}
    for each in state.of(ENVIRONMENT):
        by_region.setdefault(str(each.inputs.get("region")), []).append(each)
    for name, own in sorted(by_region.items()):
        region = Region(name)
        found += attempt_check(
            f"environments in {name}", lambda one=region, own=own: _environments(one, own, state, lock, now)
        )
        queues = [each for each in state.of(QUEUE) if each.inputs.get("region") == name]
        found += attempt_check(f"queues in {name}", lambda one=region, queues=queues: _queues(one, queues))
        found += attempt_check(f"reservations in {name}", lambda one=region: _reservations(one, state, now, within))
    return found


def _environments(
    region: Region, own: Sequence[Resource], state: State, lock: ImageLock | None, now: datetime
) -> Iterator[Drift]:
    keys = {each.id.rpartition("/")[2]: each.name for each in own}
    described = region.described("computeEnvironments", list(keys))
    live = [Environment(keys[each["computeEnvironmentName"]], each) for each in described]
    for each in live:
        yield from status("environment", each.key, each.now, f"stacks unwedge {each.key} shows what holds it")
    yield from attempt_check(f"launch templates in {region.name}", lambda: _templates(region, live))
    yield from attempt_check(f"images in {region.name}", lambda: _images(region, live, state, lock, now))


def status(what: str, key: str, now: Mapping[str, Any], fix: str) -> Iterator[Drift]:
    """Report an INVALID environment, which takes no job. Source:
    https://docs.aws.amazon.com/batch/latest/userguide/invalid_compute_environment.html"""
    if now["status"] == "INVALID":
        yield Drift(f"invalid {what}", key, "broken", f"INVALID: {now.get('statusReason') or 'no reason given'}", fix)
    elif now["status"] == "DELETING":
        yield Drift(f"{what} goes", key, "broken", "is being deleted, by somebody else than this stack", fix)


def _queues(region: Region, own: Sequence[Resource]) -> Iterator[Drift]:
    keys = {each.id: each.name for each in own}
    for each in region.described("jobQueues", list(keys)):
        yield from status("queue", keys[each["jobQueueArn"]], each, "aws batch describe-job-queues tells more")


def _templates(region: Region, live: Sequence[Environment]) -> Iterator[Drift]:
    """Compare launch template versions: Batch keeps the one of the environment's creation or last update. Source:
    https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html"""
    used = {each.key: one for each in live if (one := structure(each.resources, "launchTemplate"))}
    templates = region.templates() if used else {}
    for key, one in used.items():
        named, version = one.get("launchTemplateId") or one.get("launchTemplateName"), str(one.get("version"))
        template = templates.get(str(named))
        if template is None:
            text = f"its launch template {named} is gone: no instance starts"
            yield Drift("launch template", key, "broken", text, REFRESH)
        elif not version.isdigit():
            text = f"names no number of a version of {named}: AWS Batch read one once, and does not say which"
            yield Drift("launch template", key, "unknown", text, "give the environment a version by its number")
        elif int(version) != (latest := template["LatestVersionNumber"]):
            text = f"starts instances from version {version} of its launch template, the latest is {latest}"
            yield Drift("launch template", key, "changed", text, REFRESH)


def _images(
    region: Region, live: Sequence[Environment], state: State, lock: ImageLock | None, now: datetime
) -> Iterator[Drift]:
    specs = {each.name: structure(each.inputs, "spec") for each in state.of(COMPONENT)}
    own = {key for key, spec in specs.items() if spec.get("image_id_override")}
    pinned = [image for each in live if (image := each.image_id)]
    there = region.images(pinned) if pinned else {}
    newest: dict[str, LockedImage] = {}
    for image_type in sorted({each.image_type for each in live if each.image_id and each.key not in own}):
        yield from attempt_check(
            f"newest image {image_type} in {region.name}", partial(_newest, image_type, region, newest)
        )
    for each in live:
        image = each.image_id
        fix = "name another image_id_override" if each.key in own else UPGRADE
        if image and image not in there:
            text = f"image {image} is not there any more, or not for this account: no instance starts"
            yield Drift("image", each.key, "broken", text, fix)
        elif image and (end := there[image].get("DeprecationTime")) and datetime.fromisoformat(end) < now:
            yield Drift("image", each.key, "soon", f"image {image} is deprecated since {end[:10]}", fix)
        if each.key in own:
            continue
        pin, newer = lock.find(each.image_type, region.name) if lock else None, newest.get(each.image_type)
        if pin and pin.image_id != image:
            text = f"starts instances from {image or 'what AWS Batch chose'}, and images.lock.yaml pins {pin.image_id}"
            yield Drift("image", each.key, "changed", text, "pulumi up")
        if image and newer and newer.image_id != image:
            text = f"AWS recommends {newer.image_id} ({newer.name}) now, and instances start from {image}"
            yield Drift("newer image", each.key, "soon", text, UPGRADE)
        elif each.image.get("batchImageStatus") == "UPDATE_AVAILABLE":
            text = f"AWS Batch has a newer image {each.image_type} than the one from which instances start"
            yield Drift("newer image", each.key, "soon", text, UPGRADE)


def _newest(image_type: str, region: Region, into: dict[str, LockedImage]) -> tuple[Drift, ...]:
    """Add AWS's current recommendation to `into`, if there is one for the type."""
    if image_type in recommendation.PARAMETERS:
        into[image_type] = recommendation.recommended_image(image_type, region.name)
    return ()


def _reservations(region: Region, state: State, now: datetime, within: timedelta) -> Iterator[Drift]:
    """Report reservations that end: instances in a Capacity Block are terminated before its end. Source:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html"""
    here = {each.name for each in state.of(ENVIRONMENT) if each.inputs.get("region") == region.name}
    named = {
        each.name: str(reserved["id"])
        for each in state.of(COMPONENT)
        if (reserved := structure(structure(each.inputs, "spec"), "capacity_reservation")).get("id")
        and each.name in here
    }
    found = region.reservations() if named else {}
    for key, id_ in named.items():
        reservation = found.get(id_, {})
        if (how := reservation.get("State")) not in LIVE:
            yield Drift("reservation", key, "broken", f"{id_} is {how or 'not there'}", OTHER_RESERVATION)
        else:
            yield from ending("reservation", key, reservation.get("EndDate"), now, within, OTHER_RESERVATION)
