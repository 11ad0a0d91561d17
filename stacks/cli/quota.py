"""`stacks quota`: whether an account's quotas suffice for an environment at its largest, or for planned machines."""

from pathlib import Path

import click

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.output import show
from accel.diagnostics.errors import BadInput, OverLimit
from accel.quota import Verdict

from ..operations.quota.judgement import Judgement, judge, row_of
from ..operations.quota.planned_machines import judge_machines
from ..operations.quota.request import program
from ..operations.stack_files import read_stacks, stack_files
from .verb import OutputVerb

COLUMNS = ("stack", "name", "region", "need", "use", "limit", "unit", "verdict", "by")


WIDE = ("stack", "quota", "name", "region", "need", "use", "own", "limit", "total", "unit", "verdict", "by", "reason")


MAXIMA = {"aws": "max_vcpus", "gcp": "max_nodes"}


@click.command(cls=OutputVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--machine",
    "machines",
    metavar="CLOUD:TYPE[:COUNT]",
    multiple=True,
    help="Check this number of machines instead of stacks.",
)
@click.option("--region", metavar="REGION", help="With --machine: region of the machines.")
@click.option("--spot", is_flag=True, help="With --machine: check Spot quotas.")
@click.option(
    "--project", metavar="PROJECT", help="With gcp machines: project of the quotas. Default: $GOOGLE_CLOUD_PROJECT."
)
@click.option(
    "--request", is_flag=True, help="Write quota requests for limits that are too small, as a Pulumi program."
)
@click.pass_obj
def quota(
    settings: Settings,
    names: tuple[str, ...],
    machines: tuple[str, ...],
    region: str | None,
    spot: bool,
    project: str | None,
    request: bool,
) -> None:
    """Compare the maximum use of each STACK (a name or a file) with the quotas of its account or project.

    NEED is the maximum of all compute environments, or GPU and TPU pools, under one quota. USE is what runs now; what
    the stack itself runs is counted once. The exit code is 5 if a limit is too small; with --strict, also if one is not
    known.

    With --machine (gcp:a3-highgpu-8g:2 or aws:p5.48xlarge), NEED is that of new machines beside what runs. GPUs by kind
    and number (t4:1 or gcp:l4:8) mean the cheapest machine that has them; v5litepod-8 means one TPU slice.
    """
    if machines:
        if names:
            raise BadInput("stacks quota: STACK and --machine exclude each other")
        judgements = [Judgement(None, *judge_machines(machines, region, spot, project))]
    else:
        if region or spot or project:
            raise BadInput("stacks quota: --region, --spot and --project are for --machine; a STACK has its own")
        read = read_stacks(stack_files(list(names), Path()), settings.strict)
        judgements = [each for stack in read for each in judge(stack)]
    _show(settings, judgements, request)


def _show(settings: Settings, judgements: list[Judgement], request: bool) -> None:
    over = [row for each in judgements for row in each.verdicts if row.word == "over"]
    if request:
        if not over:
            say("no limit is too small: there is nothing to ask for")
            return
        click.echo(program([(each.stack, each.whose, each.verdicts) for each in judgements]), nl=False)
        return
    stacks = any(each.stack for each in judgements)
    columns, wide = (COLUMNS, WIDE) if stacks else (COLUMNS[1:], WIDE[1:])
    shown = [row_of(each.stack, row) for each in judgements for row in each.verdicts]
    if settings.output in ("table", "wide"):
        # Google's -1, which JSON keeps: a person would mistake it for a number.
        shown = [row | {"limit": "unlimited"} if row["limit"] == -1 else row for row in shown]
    show(shown, settings.output, columns, wide, "quota")
    unknown = [row for each in judgements for row in each.verdicts if row.word == "unknown"]
    if settings.output in ("table", "wide"):
        for line in _remarks(judgements):
            say(line)
    for row in unknown:
        by = f" (for {', '.join(row.need.by)})" if stacks else ""
        say(f"quota unknown: {row.need.label} in {row.need.region}: {row.reason}{by}")
    if over:
        texts = [f"{row.need.quota or row.need.label} in {row.need.region}: {row.reason}" for row in over]
        fewer = _fewer(over) if stacks else "take fewer machines"
        raise OverLimit("; ".join(texts), f"stacks quota --request writes the request; or {fewer}")
    if unknown and settings.strict:
        raise OverLimit(f"{len(unknown)} quotas are unknown, and --strict counts none of them as sufficient")


def _fewer(over: list[Verdict]) -> str:
    clouds = {row.need.quota.cloud for row in over if row.need.quota}
    return "lower " + " and ".join(name for cloud, name in MAXIMA.items() if cloud in clouds)


def _remarks(judgements: list[Judgement]) -> list[str]:
    """Return a line for the one instance by which Batch may exceed a maximum, since it is part of the numbers shown."""
    texts = {
        f"{name}: {extra} more than max_vcpus is counted: Batch may exceed it by one instance"
        for each in judgements
        for row in each.verdicts
        for name, extra in row.need.extra.items()
    }
    return sorted(texts)
