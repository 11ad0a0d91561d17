"""`jobs submit`."""

import json
import re
from typing import TYPE_CHECKING, Any, cast

import click

from .quota import no_quota
from .report import warn
from .settings import Duration, Settings
from .verb import Verb

if TYPE_CHECKING:
    from ..backend import Backend, Request
    from ..document import Document
    from ..job import Job
    from ..targets import Targets

DRY_RUN_KEY = "dry-run"
_SECRET_NAME = re.compile(r"token|secret|passw|api_?key|access_?key|private|credential", re.IGNORECASE)


@click.command(cls=Verb)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
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
@click.option("--rate", type=click.IntRange(1, 1000), metavar="N", help="At most so many jobs a second; 49 without it.")
@click.option("--wait", is_flag=True, help="Wait for the end; exit 125 if the job failed.")
@click.option("--follow", "-f", is_flag=True, help="Show what the job prints until its end; implies --wait.")
@click.option("--timeout", type=Duration(), help="Stop waiting (exit 124); the job goes on.")
@click.option(
    "--then-to",
    metavar="TARGET",
    help="Wait, and run the job there once its machine was taken away too often, or there was none.",
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
    dry_run: bool,
    no_quota: bool,
    rate: int | None,
    wait: bool,
    follow: bool,
    timeout: int | None,
    then_to: str | None,
) -> None:
    """Submit the job of FILE (- for standard input) and print its reference.

    Several FILEs, or a file of several YAML documents, are several jobs; all are checked before the first is sent.
    Without --key each submit makes a new job. A network fault cannot make two of one.
    """
    from .. import keys
    from ..document import jobs_of, read_all
    from ..errors import BadInput
    from .finding import targets
    from .sending import check_quotas, send_all, submitted, to_the_end
    from .spending import held

    documents = [document for file in files for document in read_all(file)]
    for document in documents:
        _override(document, sets, envs, name)
    jobs = jobs_of(documents)
    if len(jobs) > 1 and (follow or then_to):
        raise BadInput(f"{'--then-to' if then_to else '--follow'}: is for one job, and there are {len(jobs)}")
    caller = key if key is not None else DRY_RUN_KEY if dry_run else keys.drawn()
    known = targets(settings)
    items = _rendered(list(zip(documents, jobs, strict=True)), known, to, caller)
    if then_to:
        from .then import check

        check(jobs[0], known, then_to, items[0][1].target)
    for warning in dict.fromkeys(warning for _, request in items for warning in request.warnings):
        warn(warning, settings)
    if dry_run:
        shown = [_hidden(_request(request)) for _, request in items]
        click.echo(json.dumps(shown if len(shown) > 1 else shown[0], indent=2))
        return
    pairs = list(zip(jobs, items, strict=True))
    unknown = [] if no_quota else check_quotas(pairs, settings)
    with held(pairs, known, settings) as sender:
        if len(items) > 1:
            refs = send_all(items, caller, rate, settings, unknown, sender)
        else:
            refs = [submitted(*items[0], caller, settings, unknown, sender)]
    if then_to:
        from .then import run

        run(jobs[0], refs[0], items[0][0], known, then_to, caller, follow, timeout, settings)
    elif wait or follow or timeout is not None:
        to_the_end([(ref, backend) for ref, (backend, _) in zip(refs, items, strict=True)], follow, timeout)


def _override(document: "Document", sets: tuple[str, ...], envs: tuple[str, ...], name: str | None) -> None:
    for text in sets:
        document.set(text)
    for text in envs:
        document.set_env(text)
    if name is not None:
        document.set_name(name)


def _rendered(
    jobs: "list[tuple[Document, Job]]", known: "Targets", to: str | None, caller: str
) -> "list[tuple[Backend, Request]]":
    """Each job's backend and request. A second job of one name has a key of its own, the same one every time."""
    from .. import keys
    from ..errors import BadInput, BadInputs
    from ..registry import of_target
    from .offers import chosen

    backends: dict[str, Backend] = {}
    times: dict[str, int] = {}
    items: list[tuple[Backend, Request]] = []
    faults: list[str] = []
    for document, job in jobs:
        name, target = chosen(job, known, to)
        backend = backends.setdefault(name, of_target(name, target))
        times[job.name] = times.get(job.name, 0) + 1
        submission = keys.submission_key(job.name, keys.numbered(caller, times[job.name]))
        try:
            items.append((backend, backend.render(job, keys.platform_name(job.name, submission), submission)))
        except BadInput as error:
            placed = document.placed(error)
            if len(jobs) == 1:
                raise placed from None
            # What has a line in a file needs no name.
            bare = error.messages if isinstance(error, BadInputs) else [error.message]
            faults += [
                f"{job.name}: {own}" if message == f"{document.name}: {own}" else message
                for message, own in zip(placed.messages, bare, strict=True)
            ]
    if faults:
        raise BadInputs(list(dict.fromkeys(faults)))
    return items


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
