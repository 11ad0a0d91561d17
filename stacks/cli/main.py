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
    "budget": ("budget", "Show budgets, rehearse a stop, or undo one."),
    "drift": ("drift", "Compare stacks with what the clouds have."),
    "report": ("report", "Show what a change would do: jobs that end, cost, quotas."),
    "leaks": ("leaks", "Find resources that cost money or quota and that nobody uses."),
    "unwedge": ("unwedge", "Remove a compute environment that is stuck."),
    "refresh": ("refresh", "Read live prices and offers into a catalogue of your own."),
    "export": ("export", "Write the targets of a deployed stack to a file."),
    "adopt": ("adopt", "Take over existing AWS Batch resources without recreating them."),
    "permissions": ("permissions", "Show the permissions needed to deploy, submit or preview."),
    "schema": ("schema", "Print the JSON Schema of Pulumi.<stack>.yaml for editors."),
    "recover": ("recover", "Repair the state after an up or a destroy that was killed."),
    "completion": ("completion", "Print a shell's completion script."),
}
"""Module and help line of each verb."""


def _stack_files(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
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
    stacks.main()
