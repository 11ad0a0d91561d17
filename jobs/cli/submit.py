"""`jobs submit`."""

import json
import re
from typing import TYPE_CHECKING, Any, cast

import click

from .quota import check, no_quota
from .report import say, warn
from .settings import Duration, Settings, program
from .verb import Verb

if TYPE_CHECKING:
    from ..backend import Backend, JobRef, Request

DRY_RUN_KEY = "dry-run"
_SECRET_NAME = re.compile(r"token|secret|passw|api_?key|access_?key|private|credential", re.IGNORECASE)


@click.command(cls=Verb)
@click.argument("file")
@click.option("--to", metavar="TARGET", help="The target, or cheapest; may be left out where there is only one.")
@click.option(
    "--set", "sets", metavar="FIELD=VALUE", multiple=True, help="Override a field: --set accelerator.count=2."
)
@click.option(
    "--env",
    "-e",
    "envs",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="Set a variable; without a value, as here.",
)
@click.option("--name", help="Override the job's name.")
@click.option("--key", metavar="TEXT", help="The same name and key give the same job, however often it is submitted.")
@click.option("--dry-run", is_flag=True, help="Print the request, its secrets hidden, and submit nothing.")
@no_quota
@click.option("--wait", is_flag=True, help="Wait for the end; exit 125 if the job failed.")
@click.option("--follow", "-f", is_flag=True, help="Show what the job prints until its end; implies --wait.")
@click.option("--timeout", type=Duration(), help="Stop waiting (exit 124); the job goes on.")
@click.pass_obj
def submit(
    settings: Settings,
    file: str,
    to: str | None,
    sets: tuple[str, ...],
    envs: tuple[str, ...],
    name: str | None,
    key: str | None,
    dry_run: bool,
    no_quota: bool,
    wait: bool,
    follow: bool,
    timeout: int | None,
) -> None:
    """Submit the job of FILE (- for standard input) and print its reference.

    Without --key each submit makes a new job. A network fault cannot make two of one.
    """
    from .. import keys
    from ..document import read
    from ..errors import BadInput
    from ..registry import of_target
    from .finding import targets
    from .offers import chosen

    document = read(file)
    for text in sets:
        document.set(text)
    for text in envs:
        document.set_env(text)
    if name is not None:
        document.set_name(name)
    job = document.job()
    backend = of_target(*chosen(job, targets(settings), to))
    caller = key if key is not None else DRY_RUN_KEY if dry_run else keys.drawn()
    submission = keys.submission_key(job.name, caller)
    try:
        request = backend.render(job, keys.platform_name(job.name, submission), submission)
    except BadInput as refused:
        raise document.placed(refused) from None
    for warning in request.warnings:
        warn(warning, settings)
    if dry_run:
        click.echo(json.dumps(_hidden(_request(request)), indent=2))
        return
    unknown = [] if no_quota else check(backend, job, settings)
    ref = submitted(backend, request, caller, settings)
    # Said afterwards: where nobody answers, the submit fails for the same reason and says so itself.
    for line in unknown:
        say(line)
    if wait or follow or timeout is not None:
        _to_the_end(ref, backend, follow, timeout)


def submitted(backend: "Backend", request: "Request", caller: str, settings: Settings) -> "JobRef":
    """Submits, notes it in the history, and prints the reference in the form that was asked for."""
    from ..errors import CloudSilent, Interrupted
    from . import history

    again = f"the same command with --key {caller} finds the job if it was made, and makes it if not"
    try:
        ref = backend.submit(request)
    except KeyboardInterrupt:
        raise Interrupted("interrupted while submitting; the job may have been made", again) from None
    except CloudSilent as silent:
        raise CloudSilent(silent.message, again) from silent
    try:
        history.append(str(ref), request.name, request.target, caller)
    except OSError as error:
        say(f"the job is not in the history of this machine: {error}")
    if settings.output in ("json", "jsonl"):
        row = {"ref": str(ref), "name": request.name, "target": request.target, "key": caller}
        click.echo(json.dumps(row, indent=2 if settings.output == "json" else None))
    else:
        click.echo(str(ref))
    if settings.output in ("table", "wide"):
        say(f"submitted {request.name} to {request.target}; `{program()} logs -f {ref}` follows it")
    return ref


def _to_the_end(ref: "JobRef", backend: "Backend", follow: bool, timeout: int | None) -> None:
    from .logs import stream
    from .waiting import end, wait_for

    if follow:
        stream(backend, ref, None, True, "table")
    end(wait_for([(ref, backend)], timeout))


def _request(request: "Request") -> dict[str, Any]:
    return {
        "kind": request.kind,
        "target": request.target,
        "name": request.name,
        "key": request.key,
        "warnings": list(request.warnings),
        "body": request.body,
    }


def _hidden(value: Any, name: str = "") -> Any:
    """The value without what variables with the name of a secret hold: others read terminals and CI logs."""
    if isinstance(value, list):
        return [_hidden(item, name) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        inside = cast(dict[str, Any], value)
        if inside.keys() == {"name", "value"} and _SECRET_NAME.search(str(inside["name"])):
            return inside | {"value": "***"}
        return {
            key: "***" if name == "env" and _SECRET_NAME.search(key) else _hidden(item, key)
            for key, item in inside.items()
        }
    return value
