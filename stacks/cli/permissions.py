"""`stacks permissions`: the permissions that deploying, submitting or previewing needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from accel.console.options import OneOf, Settings

from ..operations.stack_files import project_of, read_stacks, stack_files
from .verb import StackVerb

PURPOSES = ("deploy", "submit", "preview")


@click.command(cls=StackVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--for",
    "purpose",
    type=OneOf(*PURPOSES),
    default="deploy",
    show_default=True,
    help="Role of the user: deploys and destroys, submits jobs, or only previews.",
)
@click.option("-o", "--output", type=OneOf("text", "json"), default="text", help="Output format.")
@click.pass_obj
def permissions(settings: Settings, names: tuple[str, ...], purpose: str, output: str) -> None:
    """Show the permissions that each STACK needs (by default all in this folder): the AWS policies, each within IAM's
    size limit, and the APIs, roles and permissions of Google Cloud.

    They are derived from the resources that the environment registers, without credentials. Names that Pulumi generates
    end with `*`. Roles may be passed only to the services that use them.
    """
    # These modules need the engine's SDK, which --help does not.
    from ..operations.permissions import google
    from ..operations.permissions.aws import policies

    found: list[dict[str, Any]] = [
        {
            "stack": each.name,
            "for": purpose,
            "aws": policies(each.environment, project_of(each.path) or "accel", each.name, purpose),
            "google": google.document(each.environment, project_of(each.path) or "accel", each.name, purpose),
        }
        for each in read_stacks(stack_files(list(names), Path()), settings.strict)
    ]
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    for one in found:
        for number, policy in enumerate(one["aws"], 1):
            click.echo(f"# {one['stack']}: AWS policy {number} of {len(one['aws'])}")
            click.echo(json.dumps(policy, indent=2))
        for service in one["google"].get("services", []):
            click.echo(f"# {one['stack']}: API {service}")
        for grant in one["google"].get("grants", []):
            click.echo(f"# {one['stack']}: on {grant['on']} these roles, or a role of your own with these permissions")
            click.echo("\n".join([*grant["roles"], *(f"  {each}" for each in grant["permissions"])]))
