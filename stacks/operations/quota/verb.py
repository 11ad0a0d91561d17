"""`stacks quota`: whether an account's quotas hold an environment at its largest, or machines that are only planned."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.output import show
from accel.diagnostics.errors import BadInput, OverLimit

from ...cli.main import StackVerb

if TYPE_CHECKING:
    from accel.quota import Pool, Verdict

    from ...environment.config import Aws
    from ..stack_files import ReadStack

COLUMNS = ("stack", "name", "region", "need", "use", "limit", "unit", "verdict", "by")
WIDE = ("stack", "quota", "name", "region", "need", "use", "own", "limit", "total", "unit", "verdict", "by", "reason")


MAXIMA = {"aws": "max_vcpus", "gcp": "max_nodes"}


class QuotaVerb(StackVerb):
    """With -o."""

    COMMON = ("output", *StackVerb.COMMON)


@dataclass(frozen=True)
class Judged:
    """What the quotas say of one environment; of planned machines where `stack` is None. `whose` names the account or
    project."""

    stack: str | None
    whose: str | None
    verdicts: tuple["Verdict", ...]


@click.command(cls=QuotaVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option("--machine", "machines", metavar="CLOUD:TYPE[:COUNT]", multiple=True, help="So many machines instead.")
@click.option("--region", metavar="REGION", help="With --machine: where.")
@click.option("--spot", is_flag=True, help="With --machine: as Spot machines.")
@click.option("--project", metavar="PROJECT", help="With gcp machines: whose quotas; else $GOOGLE_CLOUD_PROJECT.")
@click.option("--request", is_flag=True, help="Write the requests for what is too small as a Pulumi program.")
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
    """Compare what each STACK (a name or a file) can use at most with the account's or the project's quotas.

    NEED is the maximum of all compute environments or GPU and TPU pools under one quota, USE what runs now; what the
    stack itself runs is counted once. Exit code 5 where a limit is too small, with --strict also where one is not
    known.

    With --machine, such as gcp:a3-highgpu-8g:2 or aws:p5.48xlarge, NEED is that of new machines beside what runs. GPUs
    by kind and number, such as t4:1 or gcp:l4:8, are the cheapest machine with them; v5litepod-8 is one TPU slice.
    """
    if machines:
        from .planned_machines import judge_machines

        if names:
            raise BadInput("stacks quota: STACK and --machine exclude each other")
        found = [Judged(None, *judge_machines(machines, region, spot, project))]
    else:
        if region or spot or project:
            raise BadInput("stacks quota: --region, --spot and --project are for --machine; a STACK has its own")
        from ..stack_files import read_stacks, stack_files

        read = read_stacks(stack_files(list(names), Path()), settings.strict)
        found = [each for stack in read for each in judge(stack)]
    _tell(settings, found, request)


def _tell(settings: Settings, found: list[Judged], request: bool) -> None:
    over = [row for each in found for row in each.verdicts if row.word == "over"]
    if request:
        from .request import program

        if not over:
            say("no limit is too small: there is nothing to ask for")
            return
        click.echo(program([(each.stack, each.whose, each.verdicts) for each in found]), nl=False)
        return
    stacks = any(each.stack for each in found)
    columns, wide = (COLUMNS, WIDE) if stacks else (COLUMNS[1:], WIDE[1:])
    shown = [row_of(each.stack, row) for each in found for row in each.verdicts]
    if settings.output in ("table", "wide"):
        # Google's -1, which JSON keeps: a person would read a number into it.
        shown = [row | {"limit": "unlimited"} if row["limit"] == -1 else row for row in shown]
    show(shown, settings.output, columns, wide, "quota")
    unknown = [row for each in found for row in each.verdicts if row.word == "unknown"]
    if settings.output in ("table", "wide"):
        for line in _remarks(found):
            say(line)
    for row in unknown:
        by = f" (for {', '.join(row.need.by)})" if stacks else ""
        say(f"quota unknown: {row.need.label} in {row.need.region}: {row.reason}{by}")
    if over:
        texts = [f"{row.need.quota or row.need.label} in {row.need.region}: {row.reason}" for row in over]
        fewer = _fewer(over) if stacks else "take fewer machines"
        raise OverLimit("; ".join(texts), f"stacks quota --request writes the request; or {fewer}")
    if unknown and settings.strict:
        raise OverLimit(f"{len(unknown)} quotas are not known, and --strict takes none of them for enough")


def _fewer(over: list["Verdict"]) -> str:
    clouds = {row.need.quota.cloud for row in over if row.need.quota}
    return "lower " + " and ".join(name for cloud, name in MAXIMA.items() if cloud in clouds)


def judge(stack: "ReadStack") -> list[Judged]:
    """Reads what the needs of one environment are about, and compares: one entry a cloud.

    Raises NoCredentials, CloudSilent, and BadInput for credentials of another account than the environment's. Google's
    quotas are unknown where its project cannot be asked.
    """
    from .aws import judge_aws

    found: list[Judged] = []
    aws, gcp, project = stack.environment.aws, stack.environment.gcp, project_of(stack.path)
    if aws is not None:
        account = aws.account_id
        verdicts = judge_aws(aws.region, pools(aws), account_id=account, project=project, stack=stack.name)
        found.append(Judged(stack.name, f"account {account}" if account else None, verdicts))
    if gcp is not None:
        from .pools import judge_pools

        if verdicts := judge_pools(gcp, stack.name, project):
            found.append(Judged(stack.name, f"project {gcp.project}", verdicts))
    return found


def pools(section: "Aws") -> list["Pool"]:
    """The compute environments as plain values. A disabled one starts nothing, and keeps its min_vcpus."""
    from accel.quota import Pool

    return [
        Pool(
            name=name,
            region=section.region,
            spot=spec.capacity == "spot",
            instance_types=tuple(spec.instance_types),
            max_vcpus=spec.max_vcpus if spec.state == "ENABLED" else spec.min_vcpus,
            exceeds=spec.state == "ENABLED" and (spec.capacity, spec.allocation_strategy) != ("on-demand", "BEST_FIT"),
        )
        for name, spec in section.environments.items()
    ]


def project_of(path: Path) -> str | None:
    """The name in the Pulumi.yaml beside a config file, with which the stack's instances are tagged."""
    from accel.diagnostics import yaml_positions

    try:
        value: Any = yaml_positions.read(path.with_name("Pulumi.yaml").read_bytes()).value
    except (OSError, yaml_positions.Fault):
        return None
    return value.get("name") if isinstance(value, dict) else None  # pyright: ignore


def row_of(stack: str | None, judged: "Verdict") -> dict[str, Any]:
    """One line of the table and of -o json; numbers are in `unit`."""
    need, known = judged.need, judged.need.quota
    return {
        "stack": stack,
        "quota": known.code if known else None,
        "service": known.service if known else None,
        "name": known.name if known else need.label,
        "region": need.region,
        "unit": known.unit if known else None,
        "need": _whole(need.amount),
        "by": {name: _whole(value) for name, value in need.by.items()},
        "extra": dict(need.extra),
        "use": _whole(judged.use.total) if judged.use else None,
        "own": _whole(judged.use.own) if judged.use else None,
        "limit": _whole(judged.limit),
        "total": _whole(judged.total),
        "verdict": judged.word,
        "reason": judged.reason,
        "source": known.source if known else None,
    }


def _whole(value: float | None) -> float | int | None:
    return int(value) if value is not None and value == int(value) else value


def _remarks(found: list[Judged]) -> list[str]:
    """The one instance by which Batch may exceed a maximum, since it is part of the numbers shown."""
    texts = {
        f"{name}: {extra} more than max_vcpus is counted: Batch may exceed it by one instance"
        for each in found
        for row in each.verdicts
        for name, extra in row.need.extra.items()
    }
    return sorted(texts)
