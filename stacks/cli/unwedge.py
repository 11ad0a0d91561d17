"""`stacks unwedge`: removes a compute environment whose deletion is stuck."""

import click

from accel.console.errors import say
from accel.console.options import WholeNumber
from accel.diagnostics.errors import BadInput, CloudRefused, NotFound

from ..operations.inventory.aws import Region
from ..operations.unwedge.environment import diagnose
from ..operations.unwedge.removal import STUCK, matches, only, regions_of, steps
from ..operations.unwedge.roles import remove, stand_ins
from .verb import StackVerb


@click.command(cls=StackVerb)
@click.argument("name", metavar="ENVIRONMENT")
@click.option("--stack", metavar="STACK", help="Stack, a name or a file. Default: all in this folder.")
@click.option("--region", metavar="REGION", help="Region to search, in place of the stacks' regions.")
@click.option(
    "--timeout", default=30, show_default=True, type=WholeNumber(min=1), help="Timeout of each wait, in minutes."
)
@click.option(
    "--permissions-boundary",
    metavar="ARN",
    help="Permissions boundary for the recreated roles, if the account requires one.",
)
@click.option("--force", is_flag=True, help="Remove the environment even if AWS does not call it INVALID or DELETING.")
@click.option("--yes", "-y", is_flag=True, help="Make the changes. Without it, only show them.")
def unwedge(
    name: str,
    stack: str | None,
    region: str | None,
    timeout: int,
    permissions_boundary: str | None,
    force: bool,
    yes: bool,
) -> None:
    """Remove ENVIRONMENT, a compute environment that is stuck in INVALID or DELETING.

    ENVIRONMENT is its key in the stack, its name in AWS, or its ARN. Without --yes, the command only shows what is
    wrong and what it would do. It recreates missing roles until the environment is deleted, and takes the environment
    out of queues that have another one. If it is interrupted, run it again. It refuses a healthy environment unless
    --force is given.
    """
    regions = [Region(one) for one in regions_of(name, stack, region)]
    environments = [(place, one) for place in regions for one in place.environments() if matches(name, stack, one)]
    if not environments:
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
    place, environment = only(environments, name)
    diagnosis = diagnose(place, environment)
    for line in diagnosis.lines():
        click.echo(line)
    status = diagnosis.environment["status"]
    # With stand-in roles an environment may be valid until it is deleted.
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
    for at, step in enumerate(steps(place, diagnosis, timeout * 60, permissions_boundary), 1):
        click.echo(f"{at}. {step.text}")
        if yes:
            step.act()
    gone = f"{diagnosis.name} is gone; where a stack's state still has it: pulumi refresh"
    say(gone if yes else "nothing was changed; --yes does it")
