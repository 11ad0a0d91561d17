"""`stacks quota`: whether an account's quotas hold an environment at its largest, or machines that are only planned."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.settings import Settings

from .cli import StackVerb

if TYPE_CHECKING:
    from accel.quota import Pool, Verdict

    from .commands import ReadStack
    from .config import Aws

COLUMNS = ("stack", "quota", "region", "need", "use", "limit", "verdict", "by")
WIDE = (*COLUMNS[:5], "own", "limit", "total", *COLUMNS[6:], "reason")


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
    """Compare what each STACK (a name or a file) can use at most with the account's quotas.

    NEED is the maximum of all compute environments under one quota, USE what runs in the account now; what the stack
    itself runs is counted once. Exit code 5 where a limit is too small, with --strict also where one is not known.

    With --machine, such as gcp:a3-highgpu-8g:2 or aws:p5.48xlarge, NEED is that of new machines beside what runs.
    """
    from jobs.errors import BadInput

    if machines:
        from .quota_machines import judge_machines

        if names:
            raise BadInput("stacks quota: STACK and --machine exclude each other")
        found = [Judged(None, *judge_machines(machines, region, spot, project))]
    else:
        if region or spot or project:
            raise BadInput("stacks quota: --region, --spot and --project are for --machine; a STACK has its own")
        from .commands import read_stacks, stack_files

        found = [judge(stack) for stack in read_stacks(stack_files(list(names), Path()), settings.strict)]
    _tell(settings, found, request)


def _tell(settings: Settings, found: list[Judged], request: bool) -> None:
    from jobs.cli.output import show
    from jobs.cli.report import say
    from jobs.errors import OverLimit

    over = [row for each in found for row in each.verdicts if row.word == "over"]
    if request:
        from .quota_request import program

        if not over:
            say("no limit is too small: there is nothing to ask for")
            return
        click.echo(program([(each.stack, each.whose, each.verdicts) for each in found]), nl=False)
        return
    stacks = any(each.stack for each in found)
    columns, wide = (COLUMNS, WIDE) if stacks else (COLUMNS[1:], WIDE[1:])
    show([row_of(each.stack, row) for each in found for row in each.verdicts], settings.output, columns, wide, "quota")
    unknown = [row for each in found for row in each.verdicts if row.word == "unknown"]
    if settings.output in ("table", "wide"):
        for line in _remarks(found):
            say(line)
    for row in unknown:
        say(f"quota unknown: {row.need.label} in {row.need.region}: {row.reason}")
    if over:
        texts = [f"{row.need.quota or row.need.label} in {row.need.region}: {row.reason}" for row in over]
        fewer = "lower max_vcpus" if stacks else "take fewer machines"
        raise OverLimit("; ".join(texts), f"stacks quota --request writes the request; or {fewer}")
    if unknown and settings.strict:
        raise OverLimit(f"{len(unknown)} quotas are not known, and --strict takes none of them for enough")


def judge(stack: "ReadStack") -> Judged:
    """Reads what the needs of one environment are about, and compares.

    Raises NoCredentials, CloudSilent, and BadInput for credentials of another account than the environment's.
    """
    from .quota_aws import judge_aws

    _google(stack)
    section = stack.environment.aws
    if section is None:
        return Judged(stack.name, None, ())
    account, project = section.account_id, project_of(stack.path)
    verdicts = judge_aws(section.region, pools(section), account_id=account, project=project, stack=stack.name)
    return Judged(stack.name, f"account {account}" if account else None, verdicts)


def _google(stack: "ReadStack") -> None:
    """Says how the quotas of GPU pools are asked for: of a project that may not be this shell's."""
    from jobs.cli.report import say

    section = stack.environment.gcp
    for key, spec in section.pools.items() if section else ():
        if section and spec.kind == "gpu":
            most = spec.most_nodes(len(section.node_zones(spec)) or 1)
            where = f"--region {section.region} --project {section.project}"
            spot = " --spot" if spec.capacity == "spot" else ""
            machine = f"gcp:{spec.machine_type}:{most}"
            say(f"note: {stack.name}: gcp.pools.{key}: ask `stacks quota --machine {machine} {where}{spot}`")


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
    from jobs import yaml_tree

    try:
        value: Any = yaml_tree.read(path.with_name("Pulumi.yaml").read_bytes()).value
    except (OSError, yaml_tree.Fault):
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
