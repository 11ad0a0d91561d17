"""`stacks report`: the effects of a change, as one comment for a pull request."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import OneOf, Settings
from accel.diagnostics.errors import BadInput, JobsError, OverLimit
from accel.diagnostics.redaction import redact
from accel.files import write_output

from ..operations.report import tool_findings
from ..operations.report.markdown import render
from . import options
from .verb import StackVerb

if TYPE_CHECKING:
    from ..operations.report.preview import Preview


@click.command(cls=StackVerb)
@click.argument("stack", metavar="STACK")
@click.option(
    "--preview",
    "kept",
    metavar="FILE",
    help="Read this output of `pulumi preview --json` instead of running a preview.",
)
@click.option("--config-file", metavar="FILE", help="Config file for the preview. Default: Pulumi.STACK.yaml.")
@click.option("--refresh", is_flag=True, help="Refresh the state first, and report what changed outside of the stack.")
@click.option("--policy", metavar="FILE", help="JSON file with findings of a policy pack.")
@click.option("--drift", metavar="FILE", help="JSON file with the output of `stacks drift -o json`.")
@click.option(
    "--fail-on", metavar="CONDITIONS", default="", help="Exit with 5 if one of these holds: kills-jobs,quota,cost>50."
)
@options.utilisation("Average share of the maximum in use, 0 to 1, for the cost.")
@click.option("--offline", is_flag=True, help="Do not read jobs and quotas from the clouds.")
@click.option("--save", metavar="FOLDER", help="Also write report.md and report.json to this folder.")
@click.option("-o", "--output", type=OneOf("markdown", "json"), default="markdown", help="Output format.")
@click.pass_obj
def report(
    settings: Settings,
    stack: str,
    kept: str | None,
    config_file: str | None,
    refresh: bool,
    policy: str | None,
    drift: str | None,
    fail_on: str,
    utilisation: float,
    offline: bool,
    save: str | None,
    output: str,
) -> None:
    """Show what a change of STACK would do: resources lost for good, jobs ended and their GPU-hours so far, cost before
    and after, and quotas.

    The command runs `pulumi preview`, or reads the output of one. The report has at most 60,000 characters, and shows
    no values except those of images, drivers and versions. --fail-on takes replace-stateful, kills-jobs,
    waits-for-jobs, quota, policy, drift, cost>USD and rise>USD (per hour, worst case), separated by commas; with
    --strict, partly known values fail too. The exit code is 1 if the preview itself failed, after a report of what it
    reached.
    """
    # These modules need the engine's SDK, which --help does not.
    from ..operations.report.document import ReportOptions, document
    from ..operations.report.thresholds import limits

    if kept and (refresh or config_file):
        raise BadInput("stacks report: --preview reads what was run; --refresh and --config-file are for a run")
    conditions = limits(fail_on)
    wanted = ReportOptions(
        limits=conditions,
        policy=tool_findings.policy(Path(policy)) if policy else (),
        drift=tool_findings.drift(Path(drift)) if drift else (),
        offline=offline,
        utilisation=utilisation,
        strict=settings.strict,
    )
    found = document(_preview(stack, kept, config_file, refresh), wanted)
    texts = {"markdown": render(found), "json": json.dumps(found, indent=2) + "\n"}
    if save:
        _write(Path(save), texts)
    click.echo(texts[output], nl=False)
    if found["failed"]:
        count = len(found["errors"])
        raise JobsError(f"the preview of {found['stack']} failed with {count} error{'' if count == 1 else 's'}")
    if found["fails"]:
        raise OverLimit("; ".join(f"{each['limit']}: {each['why']}" for each in found["fails"]))


def _preview(stack: str, kept: str | None, config_file: str | None, refresh: bool) -> "Preview":
    from ..operations.report import preview

    if kept:
        return preview.read(Path(kept), stack)
    return preview.run(stack, refresh=refresh, config_file=config_file)


def _write(folder: Path, texts: dict[str, Any]) -> None:
    write_output("--save", folder / "report.md", redact(texts["markdown"]), folders=True)
    write_output("--save", folder / "report.json", redact(texts["json"]), folders=True)
