"""`python -m policy`: the pack's policies over a preview or a state, without the engine."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from accel.console.group import Verbs, common
from accel.console.options import OneOf
from accel.console.output import table
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput, NotFound, OverLimit

from . import judge
from .guard import Policy, StackPolicy
from .resource import from_preview, from_state
from .table import POLICIES

VERBS = {
    "check": ("commands", "Check a preview or a state."),
    "page": ("commands", "Print docs/policy.md."),
}


class PolicyVerb(Verb):
    """A verb without the options about jobs."""

    COMMON = ("debug",)


@click.command(cls=PolicyVerb)
@click.argument("file", default="-")
@click.option("--config", metavar="FILE", help="Levels and settings, as --policy-pack-config of pulumi takes them.")
@click.option("-o", "--output", type=OneOf("table", "json"), default="table", help="Form of the output.")
def check(file: str, config: str | None, output: str) -> None:
    """Check FILE (- for standard input): what `pulumi preview --json --show-sames` or `pulumi stack export` wrote.

    Exit code 5 says that a mandatory policy does not hold, or that this cannot be told of a preview that failed.
    """
    try:
        using = judge.config(_read(config) if config else {})
    except judge.ConfigFault as fault:
        raise BadInput(f"{config}: {fault}") from None
    resources, complete = _planned(file)
    found = judge.findings(resources, using)
    wrong = [each for each in found if not each.unknown]
    unseen = [each for each in found if each.unknown]
    if output == "json":
        shown = {
            "findings": [each.document() for each in wrong],
            "unknown": [{"policy": each.policy.id, "name": each.name, "path": each.message} for each in unseen],
        }
        click.echo(json.dumps(shown, indent=2))
    else:
        table([each.document() for each in wrong], ("level", "severity", "policy", "name", "message"))
        for policy in {each.policy.id: each.policy for each in wrong}.values():
            click.echo(f"fix of {policy.id}: {policy.fix}")
        if unseen:
            click.echo(f"not known before the update: {len(unseen)} (-o json names them)", err=True)
    refused = [each for each in wrong if each.level == "mandatory"]
    if not complete:
        click.echo(f"warning: {file}: the preview failed: what it did not come to is not judged", err=True)
        if not refused and "mandatory" in using.levels.values():
            raise OverLimit("whether the mandatory policies hold cannot be told", "mend the preview first")
    if refused:
        raise OverLimit(f"{len(refused)} findings of mandatory policies", "each has its fix beside it")


def _read(name: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text()
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"{name}: no such file") from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise BadInput(f"{name}: is not JSON: {fault}") from None
    if not isinstance(found, dict):
        raise BadInput(f"{name}: must be a JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]


def _planned(name: str) -> tuple[list[Any], bool]:
    """Return the resources of a preview or state, and whether they are complete: a preview may end half-way."""
    document = _read(name)
    # A preview of nothing has no steps.
    readers = {"steps": from_preview, "changeSummary": from_preview, "deployment": from_state}
    reader = next((readers[key] for key in readers if key in document), None)
    if reader:
        try:
            told: list[Any] = document.get("diagnostics") or []
            failed = any(each["severity"] == "error" for each in told)
            return reader(document), not failed
        except (AttributeError, KeyError, TypeError):  # of another shape
            pass
    raise BadInput(
        f"{name}: is neither a preview nor a state",
        "write it with pulumi preview --json --show-sames, or pulumi stack export",
    )


@click.command(cls=PolicyVerb)
def page() -> None:
    """Print docs/policy.md."""
    click.echo(policies_page(), nl=False)


policy = Verbs(
    "policy", VERBS, __package__ or "", params=common(PolicyVerb.COMMON), help="Guards over what a stack is to be."
)


def main() -> None:
    policy.main()


HEAD = """\
# Policies

Policies are guards on what a stack may contain, whoever wrote it; this project's own components pass them. The clouds'
own restrictions are in [rules.md](rules.md), and are checked earlier.

```sh not-run
pulumi preview --policy-pack policy --policy-pack-config policy/dev.json
pulumi up --policy-pack policy --policy-pack-config policy/prod.json
```

Without a config file, every policy is advisory, and policies with a maximum count nothing. `policy/dev.json` keeps the
policies advisory and sets maxima; `policy/prod.json` makes them mandatory, so that the preview fails; copy one of them
and change it. A config gives each policy, or `all` of them at once, an `enforcementLevel` (`advisory`, `mandatory`,
`disabled`) and its settings.

A preview does not know every value. A policy that needs an unknown value does not apply at that point, and `pulumi up`
evaluates it again before it creates the resource. Policies over the whole stack run when a preview or an update ends,
so let a preview refuse. Policies never look at secrets.

You can run the same checks without the engine, over an existing preview or state, and also get JSON:

```sh not-run
pulumi preview --json --show-sames > preview.json
python -m policy check preview.json --config policy/prod.json
pulumi stack export | python -m policy check --config policy/prod.json -o json
```

Exit code 5 means that a mandatory policy is violated. `--show-sames` matters: without it, a preview names only what
changes, and then neither the maxima nor the labels of a provider can be determined.

These count as machines: compute environments, node pools, VMs, the stack's own VM groups, TPU VMs and queued TPUs, and
persistent resources. A reservation counts where it is used. Prices are those of the catalogue, and a Spot pool counts
at its on-demand price.

The policies take milliseconds over hundreds of resources. The engine asks a pack about each resource, whatever the
answer, and that takes some seconds for 500 resources (`python -m benchmarks policy` measures both). The command above
does not have this overhead.

`make audit` runs [Checkov](https://www.checkov.io/) over what the environments and components of this project create,
as if Terraform had planned it. `tests/audit/skipped.yaml` lists the findings that we accept, with the reason.

`python -m policy page > docs/policy.md` writes this page.

| policy | severity | what it says | fix | settings | also known as |
| --- | --- | --- | --- | --- | --- |
"""


def _settings(policy: Policy) -> str:
    said: list[str] = []
    for key, schema in policy.settings.items():
        default = schema.get("default")
        shown = ", ".join(default) if isinstance(default, list) else default  # pyright: ignore
        said.append(f"`{key}`: {schema['description']}" + ("" if default is None else f" (`{shown}`)"))
    return "; ".join(said)


def policies_page() -> str:
    """Return the page, as Markdown. "Also known as" are ids of Checkov."""
    rows = [
        f"| [`{policy.id}`]({policy.source})"
        f"{' (stack)' if isinstance(policy, StackPolicy) else ''} | {policy.severity} | {policy.summary} "
        f"| {policy.fix} | {_settings(policy)} | {', '.join(policy.also)} |"
        for policy in POLICIES.values()
    ]
    return HEAD + "\n".join(rows) + "\n"
