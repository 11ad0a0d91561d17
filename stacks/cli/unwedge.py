"""`stacks unwedge`: removes a compute environment whose deletion is stuck."""

import click

from accel.console.errors import say
from accel.diagnostics.errors import BadInput, CloudRefused, NotFound

from ..operations.inventory.aws import Region
from ..operations.unwedge.environment import diagnose
from ..operations.unwedge.removal import STUCK, matches, only, regions_of, steps
from ..operations.unwedge.roles import remove, stand_ins
from .verb import StackVerb


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
