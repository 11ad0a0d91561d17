"""`stacks report`: the effects of a change, as one comment for a pull request."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import OneOf, Settings
from accel.diagnostics.errors import BadInput, JobsError, OverLimit
from accel.diagnostics.redaction import redact

from ..operations.report import tool_findings
from ..operations.report.markdown import render
from .options import Share
from .verb import StackVerb

if TYPE_CHECKING:
    from ..operations.report.preview import Preview


@click.command(cls=StackVerb)
@click.argument("stack", metavar="STACK")
@click.option("--preview", "kept", metavar="FILE", help="Read this output of `pulumi preview --json`; run none.")
@click.option("--config-file", metavar="FILE", help="For the preview, in place of Pulumi.STACK.yaml.")
@click.option("--refresh", is_flag=True, help="Refresh the state first, and tell what changed outside.")
@click.option("--policy", metavar="FILE", help="Findings of a policy pack, as JSON.")
@click.option("--drift", metavar="FILE", help="What `stacks drift -o json` found.")
@click.option("--fail-on", metavar="CONDITIONS", default="", help="End with 5 if one holds: kills-jobs,quota,cost>50.")
@click.option("--utilisation", type=Share(), default=0.3, show_default=True, metavar="SHARE", help="For the cost.")
@click.option("--offline", is_flag=True, help="Ask no cloud for jobs and quotas.")
@click.option("--save", metavar="FOLDER", help="Write report.md and report.json there too.")
@click.option("-o", "--output", type=OneOf("markdown", "json"), default="markdown", help="Form of the output.")
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
    """Show what a change of STACK would do: what is lost for good, which jobs it ends and how many GPU-hours they have
    had, what the environment costs before and after, and whether the quotas hold it.

    Runs `pulumi preview`, or reads one that was kept. The comment has at most 60,000 characters; no values but those of
    images, drivers and versions are in it. --fail-on takes replace-stateful, kills-jobs, waits-for-jobs, quota, policy,
    drift, cost>USD and rise>USD, an hour in the worst case, separated by commas; with --strict what is known in part
    only is not taken for enough. Exit code 1 where the preview itself
    failed, after the report of what it came to.
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
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(redact(texts["markdown"]), encoding="utf-8")
    (folder / "report.json").write_text(redact(texts["json"]), encoding="utf-8")
