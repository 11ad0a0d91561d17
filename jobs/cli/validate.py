"""`jobs validate`."""

import json
from typing import TYPE_CHECKING

import click

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.verb import Verb
from accel.contract.targets import LocalTarget
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from accel.diagnostics.findings import Finding
from accel.rules.gcp import gpus
from accel.rules.jobs import containers

from ..backends.registry import of_target
from ..client.quota import check
from ..client.targets import known_targets
from ..model.document import jobs_of, read_all
from ..model.job import Job
from ..model.keys import platform_name
from ..model.sweep_tasks import apart

if TYPE_CHECKING:
    from ..model.job import Job


@click.command(cls=Verb)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--to", metavar="TARGET", help="Also check that this target can run the job.")
@click.option("--no-quota", is_flag=True, help="Skip the check of the account's quotas.")
@click.pass_obj
def validate(settings: Settings, files: tuple[str, ...], to: str | None, no_quota: bool) -> None:
    """Check job files, and show every fault of each FILE with its line.

    Without --to, GPUs that no cloud has and an invalid image name are faults too; with it, the target decides.
    """
    name, target = known_targets(settings).choose(to) if to else ("", LocalTarget())
    backend = of_target(name, target) if to else None
    faults: list[str] = []
    missing: list[str] = []
    right: list[str] = []
    fitting: list[tuple[str, Job]] = []
    for file in files:
        try:
            documents = read_all(file, Job)
            for note in (note for document in documents for note in document.notes):
                say(note)
            found = jobs_of(documents)
            for document, job in zip(documents, found, strict=True):
                try:
                    if backend:
                        for each in apart(job, target.kind):
                            backend.render(each, platform_name(each.name, "0" * 64), "0" * 64)
                    else:
                        _possible_somewhere(job)
                except BadInput as refused:
                    raise document.placed(refused) from None
        except NotFound as error:
            missing.append(error.message)
        except BadInputs as error:
            faults += error.messages
        except BadInput as error:
            faults.append(error.message)
        else:
            right.append(file)
            fitting += [(file, job) for job in found]
    if settings.output in ("json", "jsonl"):
        click.echo(json.dumps({"valid": right, "faults": [*faults, *missing]}))
    else:
        for file in right:
            click.echo(file if settings.output == "id" else f"{file}: ok")
    if faults:
        raise BadInputs([*faults, *missing])
    if missing:
        raise NotFound("; ".join(missing))
    if backend and not no_quota:
        for file, job in fitting:
            for line in check(backend, job, settings, f"{file}: quota"):
                say(line)


def _possible_somewhere(job: "Job") -> None:
    """Raise BadInputs for an image that nothing can pull, and for GPUs that no machine of any cloud has."""
    found: list[Finding] = containers.image(job.image) if job.image else []
    if job.accelerator and job.accelerator.type is not None:
        kind, count = job.accelerator.type, job.accelerator.count
        found += gpus.accelerator_name(kind, "accelerator.type", cloud="aws")
        found += gpus.accelerator_count(kind, count, "accelerator.count", cloud=None)
    refused = [f"{each.field}: {each.text}" for each in found if each.severity == "reject"]
    if refused:
        raise BadInputs(refused)
