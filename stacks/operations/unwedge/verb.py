"""`stacks unwedge`: removes a compute environment that AWS does not let go."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.clouds.aws.errors import Throttled, asking
from accel.clouds.backoff import now, pause
from accel.console.errors import say
from accel.diagnostics.errors import BadInput, CloudRefused, NotFound, WaitedTooLong

from ...cli.main import StackVerb

if TYPE_CHECKING:
    from .environment import Diagnosis, Region

POLL_S = (0.5, 10.0)
"""Shortest and longest pause between two looks, on average."""
STUCK = ("INVALID", "DELETING")
"""Status of what AWS does not let go."""
BUSY = ("resource is being modified", "found existing JobQueue relationship")
"""Refusals that pass: of a change under way, and of a queue that has just let go.
Source: https://github.com/pulumi/pulumi-aws/issues/6233"""


@dataclass(frozen=True)
class Step:
    """One change, in words and as a call. Each may be made twice."""

    text: str
    act: Callable[[], object]


@click.command(cls=StackVerb)
@click.argument("name", metavar="ENVIRONMENT")
@click.option("--stack", metavar="STACK", help="The stack, a name or a file; without it, all in this folder.")
@click.option("--region", metavar="REGION", help="Where to look, instead of in the stacks' regions.")
@click.option("--timeout", default=30, show_default=True, type=click.IntRange(min=1), help="Minutes for each wait.")
@click.option(
    "--permissions-boundary", metavar="ARN", help="On the roles that are made, where the account asks for it."
)
@click.option("--force", is_flag=True, help="Also an environment that AWS does not call INVALID or DELETING.")
@click.option("--yes", "-y", is_flag=True, help="Do it; without it, only show.")
def unwedge(
    name: str,
    stack: str | None,
    region: str | None,
    timeout: int,
    permissions_boundary: str | None,
    force: bool,
    yes: bool,
) -> None:
    """Remove ENVIRONMENT, a compute environment that is stuck INVALID or DELETING.

    It is named by its key in the stack, its name in AWS, or its ARN. Without --yes only what is wrong and what would be
    done is shown. Roles that it names and that are gone are made again until it is gone; it is taken out of queues that
    have another environment. Interrupted, run it again. An environment that is well is refused without --force.
    """
    from .environment import Region, diagnose
    from .roles import remove, stand_ins

    regions = [Region(one) for one in _regions(name, stack, region)]
    found = [(place, one) for place in regions for one in place.environments() if _meant(name, stack, one)]
    if not found:
        short = name.rpartition("/")[2]
        left = stand_ins(regions[0].iam, short)
        if not left:
            where = ", ".join(each.name for each in regions)
            raise NotFound(f"no compute environment {name!r} in {where}", "its name in AWS also finds it")
        for role in left:
            click.echo(f"{'removed' if yes else 'would remove'} role {role}, made for {short}, which is gone")
            if yes:
                remove(regions[0].iam, role)
        return
    place, environment = _only(found, name)
    diagnosis = diagnose(place, environment)
    for line in diagnosis.lines():
        click.echo(line)
    status = diagnosis.environment["status"]
    # One whose roles were made again for this may be well until it is deleted.
    if not (force or status in STUCK or stand_ins(place.iam, diagnosis.name)):
        raise BadInput(
            f"{diagnosis.name} is {status}, and only what is {' or '.join(STUCK)} is removed",
            "take it out of the stack and `pulumi up`, which waits for its jobs; no stack has it: --force",
        )
    held = [f"queue {queue.name} has no other environment" for queue in diagnosis.queues if not queue.others]
    if held:
        raise CloudRefused(
            f"{diagnosis.name}: {'; '.join(held)}",
            "give the queue another environment, or take the queue out of the stack, and `pulumi up`; then run this",
        )
    for at, step in enumerate(_plan(place, diagnosis, timeout * 60, permissions_boundary), 1):
        click.echo(f"{at}. {step.text}")
        if yes:
            step.act()
    gone = f"{diagnosis.name} is gone; where a stack's state still has it: pulumi refresh"
    say(gone if yes else "nothing was changed; --yes does it")


def _regions(name: str, stack: str | None, region: str | None) -> list[str]:
    from ..stack_files import read_stacks, stack_files

    if name.startswith("arn:"):
        return name.split(":")[3:4]
    if region:
        return [region]
    stacks = read_stacks(stack_files([stack] if stack else [], Path()), strict=False)
    found = [each.environment.aws.region for each in stacks if each.environment.aws]
    if not found:
        raise NotFound("no stack here has an aws section", "say where to look with --region")
    return list(dict.fromkeys(found))


def _meant(name: str, stack: str | None, environment: dict[str, Any]) -> bool:
    """By ARN, by name, or by the author's key, to which auto-naming added a hyphen and seven digits."""
    from jobs.backends.aws_batch.lookup import part

    own = environment["computeEnvironmentName"]
    if name in (own, environment["computeEnvironmentArn"]):
        return True
    made_for: str | None = part(environment, "tags").get("accel:stack")
    stack_name = Path(stack).name.removeprefix("Pulumi.").removesuffix(".yaml") if stack else made_for
    return made_for is not None and made_for == stack_name and own.rpartition("-")[0] == name


def _only(found: list[tuple["Region", dict[str, Any]]], name: str) -> tuple["Region", dict[str, Any]]:
    if len(found) == 1:
        return found[0]
    shown = ", ".join(f"{one['computeEnvironmentName']} ({one['status']}, {place.name})" for place, one in found)
    raise BadInput(f"{name!r} is several environments: {shown}", "name one as AWS does")


def _plan(region: "Region", diagnosis: "Diagnosis", wait_s: float, boundary: str | None) -> list[Step]:
    from . import roles

    name = diagnosis.name
    partition = diagnosis.environment["computeEnvironmentArn"].split(":")[1]
    missing = [role for role in diagnosis.roles if role.missing]
    steps = [
        Step(
            f"make the {role.kind} {role.name} again" + ("" if role.linked else ", until the environment is gone"),
            lambda role=role: roles.make(region.iam, role, name, partition, boundary),
        )
        for role in missing
    ]
    steps += [
        Step(
            f"take it out of queue {queue.name}, which keeps {queue.rest}",
            lambda queue=queue: _take_out(region, queue.name, diagnosis.environment, wait_s),
        )
        for queue in diagnosis.queues
    ]
    stuck = diagnosis.environment["status"] == "DELETING"
    if not stuck and diagnosis.environment["state"] != "DISABLED":
        steps.append(Step("disable it, so that no job starts on it", lambda: _disable(region, name, wait_s)))
    if diagnosis.running:
        wait = f"wait until its {len(diagnosis.running)} jobs have ended"
        steps.append(Step(wait, lambda: _emptied(region, diagnosis.environment, wait_s)))
    steps.append(Step("delete it, and wait until it is gone", lambda: _deleted(region, name, wait_s)))
    if any(not role.linked for role in missing) or roles.stand_ins(region.iam, name):
        steps.append(
            Step(
                "remove the roles that were made for it",
                lambda: [roles.remove(region.iam, role) for role in roles.stand_ins(region.iam, name)],
            )
        )
    return steps


def _take_out(region: "Region", queue: str, environment: dict[str, Any], wait_s: float) -> None:
    """The queue is read again each time: somebody may change it meanwhile."""
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


def _disable(region: "Region", name: str, wait_s: float) -> None:
    def done(environment: dict[str, Any] | None) -> bool:
        if environment is None or environment["state"] == "DISABLED":
            return True
        _unless_busy(lambda: region.batch.update_compute_environment(computeEnvironment=name, state="DISABLED"))
        return False

    _until(region, name, done, wait_s)


def _deleted(region: "Region", name: str, wait_s: float) -> None:
    """A role that was just made takes a while to be seen everywhere, so an INVALID environment is asked for again."""
    from components.aws.draining import MOVING

    def done(environment: dict[str, Any] | None) -> bool:
        if environment is not None and environment["status"] not in MOVING:
            _unless_busy(lambda: region.batch.delete_compute_environment(computeEnvironment=name))
        return environment is None

    _until(region, name, done, wait_s)


def _emptied(region: "Region", environment: dict[str, Any], wait_s: float) -> None:
    from components.aws.draining import running_on

    def done(_: dict[str, Any] | None) -> bool:
        queues = [queue["jobQueueArn"] for queue in region.queues()]
        with asking("ListJobs"):
            return not running_on(region.batch, environment, queues)

    _until(region, environment["computeEnvironmentName"], done, wait_s)


def _until(region: "Region", name: str, done: Callable[[dict[str, Any] | None], bool], wait_s: float) -> None:
    """Looks until it is done. Raises WaitedTooLong; what was done stays done."""
    ends, wait = now() + wait_s, POLL_S[0]
    while not done(environment := region.environment(name)):
        if now() > ends:
            one = environment or {}
            raise WaitedTooLong(
                f"{name} is still {one.get('status')}: {one.get('statusReason') or 'no reason given'}",
                "run it again to go on; `accel-jobs cancel` ends jobs that hold it",
            )
        pause(wait)
        wait = min(1.5 * wait, POLL_S[1])


def _unless_busy(call: Callable[[], object]) -> None:
    try:
        with asking("Batch"):
            call()
    except Throttled:
        pause(POLL_S[1])
    except CloudRefused as refused:
        if not any(text in refused.message for text in BUSY):
            raise
