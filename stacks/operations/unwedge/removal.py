"""The removal of a compute environment whose deletion is stuck: its identification, and the steps."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.clouds.aws.errors import Throttled, asking
from accel.clouds.aws.responses import structure
from accel.clouds.backoff import now, pause
from accel.clouds.pauses import Pauses
from accel.diagnostics.errors import BadInput, CloudRefused, NotFound, WaitedTooLong
from components.aws.draining import MOVING, running_on

from ..inventory.aws import Region
from ..stack_files import read_stacks, stack_files
from . import roles
from .environment import Diagnosis

POLL_S = (0.5, 10.0)
"""Shortest and longest average pause between two polls."""
STUCK = ("INVALID", "DELETING")
BUSY = ("resource is being modified", "found existing JobQueue relationship")
"""Transient refusals: a change is under way, or a queue has just dropped the environment. Source:
https://github.com/pulumi/pulumi-aws/issues/6233"""


@dataclass(frozen=True)
class Step:
    """One change, in words and as a call. Each may be repeated."""

    text: str
    act: Callable[[], object]


def regions_of(name: str, stack: str | None, region: str | None) -> list[str]:
    """Raise NotFound where no stack here has an AWS section."""
    if name.startswith("arn:"):
        return name.split(":")[3:4]
    if region:
        return [region]
    stacks = read_stacks(stack_files([stack] if stack else [], Path()), strict=False)
    regions = [each.environment.aws.region for each in stacks if each.environment.aws]
    if not regions:
        raise NotFound("no stack here has an aws section", "say where to look with --region")
    return list(dict.fromkeys(regions))


def matches(name: str, stack: str | None, environment: dict[str, Any]) -> bool:
    """Compare `name` with ARN, name and author's key, to which auto-naming appends a hyphen and seven digits."""
    own = environment["computeEnvironmentName"]
    if name in (own, environment["computeEnvironmentArn"]):
        return True
    made_for: str | None = structure(environment, "tags").get("accel:stack")
    stack_name = Path(stack).name.removeprefix("Pulumi.").removesuffix(".yaml") if stack else made_for
    return made_for is not None and made_for == stack_name and own.rpartition("-")[0] == name


def only(matching: list[tuple[Region, dict[str, Any]]], name: str) -> tuple[Region, dict[str, Any]]:
    """Raise BadInput where there are several."""
    if len(matching) == 1:
        return matching[0]
    shown = ", ".join(f"{one['computeEnvironmentName']} ({one['status']}, {place.name})" for place, one in matching)
    raise BadInput(f"{name!r} is several environments: {shown}", "name one as AWS does")


def steps(region: Region, diagnosis: Diagnosis, wait_s: float, boundary: str | None) -> list[Step]:
    """Return the steps in their order. `boundary`: that of the stand-in roles."""
    name = diagnosis.name
    partition = diagnosis.environment["computeEnvironmentArn"].split(":")[1]
    missing = [role for role in diagnosis.roles if role.missing]
    plan = [
        Step(
            f"make the {role.kind} {role.name} again" + ("" if role.linked else ", until the environment is gone"),
            lambda role=role: roles.make(region.iam, role, name, partition, boundary),
        )
        for role in missing
    ]
    plan += [
        Step(
            f"take it out of queue {queue.name}, which keeps {queue.rest}",
            lambda queue=queue: _take_out(region, queue.name, diagnosis.environment, wait_s),
        )
        for queue in diagnosis.queues
    ]
    stuck = diagnosis.environment["status"] == "DELETING"
    if not stuck and diagnosis.environment["state"] != "DISABLED":
        plan.append(Step("disable it, so that no job starts on it", lambda: _disable(region, name, wait_s)))
    if diagnosis.running:
        wait = f"wait until its {len(diagnosis.running)} jobs have ended"
        plan.append(Step(wait, lambda: _emptied(region, diagnosis.environment, wait_s)))
    plan.append(Step("delete it, and wait until it is gone", lambda: _deleted(region, name, wait_s)))
    if any(not role.linked for role in missing) or roles.stand_ins(region.iam, name):
        plan.append(
            Step(
                "remove the roles that were made for it",
                lambda: [roles.remove(region.iam, role) for role in roles.stand_ins(region.iam, name)],
            )
        )
    return plan


def _take_out(region: Region, queue: str, environment: dict[str, Any], wait_s: float) -> None:
    """Read the queue again each time: another client may change it meanwhile."""
    arn = environment["computeEnvironmentArn"]

    def done(_: dict[str, Any] | None) -> bool:
        found = next((one for one in region.queues() if one["jobQueueName"] == queue), None)
        order: list[dict[str, Any]] = found["computeEnvironmentOrder"] if found else []
        rest = [one for one in order if one["computeEnvironment"] != arn]
        if len(rest) == len(order):
            return True
        if not rest:
            raise CloudRefused(f"queue {queue} has no other environment any more", "it was left as it is")
        _unless_busy(lambda: region.batch.update_job_queue(jobQueue=queue, computeEnvironmentOrder=rest))
        return False

    _until(region, environment["computeEnvironmentName"], done, wait_s)


def _disable(region: Region, name: str, wait_s: float) -> None:
    def done(environment: dict[str, Any] | None) -> bool:
        if environment is None or environment["state"] == "DISABLED":
            return True
        _unless_busy(lambda: region.batch.update_compute_environment(computeEnvironment=name, state="DISABLED"))
        return False

    _until(region, name, done, wait_s)


def _deleted(region: Region, name: str, wait_s: float) -> None:
    """Repeat the deletion of an INVALID environment: a new role takes a while to be visible everywhere."""

    def done(environment: dict[str, Any] | None) -> bool:
        if environment is not None and environment["status"] not in MOVING:
            _unless_busy(lambda: region.batch.delete_compute_environment(computeEnvironment=name))
        return environment is None

    _until(region, name, done, wait_s)


def _emptied(region: Region, environment: dict[str, Any], wait_s: float) -> None:
    def done(_: dict[str, Any] | None) -> bool:
        queues = [queue["jobQueueArn"] for queue in region.queues()]
        with asking("ListJobs"):
            return not running_on(region.batch, environment, queues)

    _until(region, environment["computeEnvironmentName"], done, wait_s)


def _until(region: Region, name: str, done: Callable[[dict[str, Any] | None], bool], wait_s: float) -> None:
    """Poll until it is done. Raise WaitedTooLong; completed changes stay."""
    pauses = Pauses(wait_s, now, POLL_S[0])
    while not done(environment := region.environment(name)):
        pause_s = pauses.next_s(POLL_S[1])
        if pause_s is None:
            one = environment or {}
            raise WaitedTooLong(
                f"{name} is still {one.get('status')}: {one.get('statusReason') or 'no reason given'}",
                "run it again to go on; `accel-jobs cancel` ends jobs that hold it",
            )
        pause(pause_s)


def _unless_busy(call: Callable[[], object]) -> None:
    try:
        with asking("Batch"):
            call()
    except Throttled:
        pause(POLL_S[1])
    except CloudRefused as refused:
        if not any(text in refused.message for text in BUSY):
            raise
