"""`jobs submit`."""

import json
from typing import TYPE_CHECKING

import click

from accel.console.options import Duration, Settings
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput

if TYPE_CHECKING:
    from ..model.document import Document
    from ..model.job import Job


@click.command(cls=Verb)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--to", metavar="TARGET", help="Target to run on, or `cheapest`. Optional if there is only one.")
@click.option(
    "--set", "sets", metavar="FIELD=VALUE", multiple=True, help="Override a field: --set accelerator.count=2."
)
@click.option(
    "--env",
    "-e",
    "envs",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="Set an environment variable; without a value, the one of this shell.",
)
@click.option("--name", help="Override the job's name.")
@click.option("--key", metavar="TEXT", help="Key of the submit: the same name and key always give the same job.")
@click.option("--code", metavar="FOLDER", help="Send the files of a folder; the command runs in a copy of it.")
@click.option("--code-all", is_flag=True, help="Send every file of the folder, including those that Git ignores.")
@click.option("--requirements", metavar="FILE", help="Install the packages of a requirements.txt before the command.")
@click.option("--pin-image", is_flag=True, help="Resolve the image's tag to a digest in its registry, and submit that.")
@click.option(
    "--smoke", is_flag=True, help="Run a short test instead: one task on one node, one attempt, under its own name."
)
@click.option("--smoke-timeout", type=Duration(), help="Timeout of a smoke run. Default: 10m.")
@click.option("--dry-run", is_flag=True, help="Print the request, with secrets hidden, without submitting it.")
@click.option("--no-quota", is_flag=True, help="Skip the check of the account's quotas.")
@click.option(
    "--rate", type=click.IntRange(1, 1000), metavar="N", help="Maximum number of jobs per second. Default: 49."
)
@click.option("--wait", is_flag=True, help="Wait until the job ends; exit 125 if it failed.")
@click.option("--follow", "-f", is_flag=True, help="Show the job's output until it ends. Implies --wait.")
@click.option("--timeout", type=Duration(), help="Stop waiting (exit 124); the job goes on.")
@click.option(
    "--then-to",
    metavar="TARGET",
    help="Wait, and fall back to this target after repeated preemption or when there is no capacity.",
)
@click.pass_obj
def submit(
    settings: Settings,
    files: tuple[str, ...],
    to: str | None,
    sets: tuple[str, ...],
    envs: tuple[str, ...],
    name: str | None,
    key: str | None,
    code: str | None,
    code_all: bool,
    requirements: str | None,
    pin_image: bool,
    smoke: bool,
    smoke_timeout: int | None,
    dry_run: bool,
    no_quota: bool,
    rate: int | None,
    wait: bool,
    follow: bool,
    timeout: int | None,
    then_to: str | None,
) -> None:
    """Submit the job in FILE (- for standard input) and print its reference.

    Several FILEs, or several YAML documents in one, are several jobs; all are checked before the first is submitted.
    Without --key, each submit creates a new job. A network fault never creates a second one.
    """
    # Imported late: these need pydantic and yaml, which --help does not.
    from ..client.submission import SubmitOptions, plan_submission, read_jobs
    from ..model.document import read_all
    from ..model.job import Job

    options = SubmitOptions(to, key, code, code_all, requirements, pin_image, smoke, smoke_timeout, dry_run, then_to)
    documents = [document for file in files for document in read_all(file, Job)]
    for document in documents:
        _override(document, sets, envs, name)
    jobs = read_jobs(documents, options, settings)
    if len(jobs) > 1 and (follow or then_to):
        raise BadInput(f"{'--then-to' if then_to else '--follow'}: is for one job, and there are {len(jobs)}")
    prefers = any(job.spot == "prefer" for job in jobs)
    if prefers:
        from ..client.spot_fallback import check as check_prefers

        check_prefers(jobs, wait or timeout is not None, follow)
    plan = plan_submission(documents, jobs, options, settings)
    items, known, caller = plan.items, plan.targets, plan.caller
    if len(items) > len(jobs) and (follow or (wait or timeout is not None if prefers else then_to)):
        raise BadInput(
            f"each task of the sweep is a job of its own there, {len(items)} in all: submit them without waiting"
        )
    after = jobs[0]
    if then_to and not prefers:
        from ..client.failover import check

        if plan.shipping:
            after = plan.shipping.with_code(after, *known.choose(then_to), after.name)
        check(after, known, then_to, items[0][1].target)
    plan.warn()
    if dry_run:
        shown = plan.redacted_requests()
        click.echo(json.dumps(shown if len(shown) > 1 else shown[0], indent=2))
        return
    from .receipts import PrintedReceipts  # imports the code that submits, which --dry-run does not need

    receipts = PrintedReceipts(settings, caller)
    refs = plan.submit(not no_quota, rate, receipts=receipts)
    follow_log = None
    if follow:
        from ..views.log import follow_log
    if prefers:
        from ..client.spot_fallback import alone
        from ..client.spot_fallback import run as run_preferring

        if wait or timeout is not None:
            run_preferring(refs[0], items[0][0], known, timeout, settings, caller, receipts)
        else:
            alone(plan.pairs, refs)
    elif then_to:
        from ..client.failover import run

        run(after, refs[0], items[0][0], known, then_to, caller, follow_log, timeout, settings, receipts)
    elif wait or follow or timeout is not None:
        from ..client.waiting import wait_to_end

        wait_to_end([(ref, backend) for ref, (backend, _) in zip(refs, items, strict=True)], follow_log, timeout)


def _override(document: "Document[Job]", sets: tuple[str, ...], envs: tuple[str, ...], name: str | None) -> None:
    for text in sets:
        document.set(text)
    for text in envs:
        document.set_env(text)
    if name is not None:
        document.set_name(name)
