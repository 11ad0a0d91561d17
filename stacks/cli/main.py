"""`stacks`: maintains environments, beside Pulumi's own verbs."""

from collections.abc import Iterator
from pathlib import Path

import click

from accel.console.completion import complete
from accel.console.group import Verbs, common

from .verb import StackVerb

VERBS = {
    "validate": ("validate", "Check environments without deploying them."),
    "cost": ("cost", "Show what environments cost: idle, expected, at worst."),
    "quota": ("quota", "Compare what environments can use at most with the account's quotas."),
    "images": ("images", "Pin the images of instances; deregister old job definitions."),
    "budget": ("budget", "Show budgets, rehearse a stop, take one back."),
    "drift": ("drift", "Show what is not as a stack has it."),
    "report": ("report", "Show what a change would do: jobs that end, cost, quotas."),
    "leaks": ("leaks", "Show what costs money or quota and serves nobody."),
    "unwedge": ("unwedge", "Remove a compute environment that AWS does not let go."),
    "refresh": ("refresh", "Read live prices and offers into a catalogue of your own."),
    "export": ("export", "Write the targets of a deployed stack where jobs looks for them."),
    "adopt": ("adopt", "Take over what exists on AWS Batch, without making it again."),
    "permissions": ("permissions", "Show what clouds have to allow whoever deploys, submits or previews."),
    "schema": ("schema", "Print the JSON Schema of Pulumi.<stack>.yaml for editors."),
    "recover": ("recover", "Put the state right after an up or a destroy that was killed."),
    "completion": ("completion", "Print a shell's completion script."),
}
"""Module and help line of each verb."""


def _stack_files(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Yield the stacks with a file in this folder."""
    for path in sorted(Path().glob("Pulumi.*.yaml")):
        yield path.name.removeprefix("Pulumi.").removesuffix(".yaml"), ""


complete("STACK", _stack_files)


stacks = Verbs(
    "stacks",
    VERBS,
    __package__ or "",
    params=common(StackVerb.COMMON),
    help="Check environments, and operate the stacks deployed from them.",
)


def main() -> None:
    """Run the command and exit with its code."""
    stacks.main()
