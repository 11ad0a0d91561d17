"""`jobs explain`."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import Settings
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput, JobsError

from ..backends.base import Explain

if TYPE_CHECKING:
    from accel.console.reporter import Voice

    from ..backends.base import Backend, Explanation, JobRef


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.pass_obj
def explain(settings: Settings, job: str) -> None:
    """Say why JOB waits or failed: one reason, what shows it, and the next step. Exit code 0 whatever the reason."""
    from ..client.resolve import job as found

    ref, backend = found(job, settings)
    _show(ref, explained(ref, backend, settings), settings)


def explained(ref: "JobRef", backend: "Backend", voice: "Voice") -> "Explanation":
    """Raises BadInput for a job of a kind that cannot be explained, and what its backend raises."""
    if not isinstance(backend, Explain):
        raise BadInput(f"{ref}: jobs of kind {ref.kind} cannot be explained; `get` and `logs` show what is known")
    told = backend.explain(ref, elsewhere=lambda: _regions(ref.kind, voice))
    return replace(told, next_step=told.next_step.replace(" REF`", f" {ref}`"))


def _regions(kind: str, voice: "Voice") -> list[str]:
    """Of the user's targets of a kind. A job that exists needs none of them, so that a broken list of targets is no
    error."""
    from ..client.resolve import targets

    try:
        entries = targets(voice).entries.values()
    except JobsError as error:
        voice.warn(f"jobs in other regions are not looked for: {error.message}")
        return []
    of_kind = [entry.target for entry in entries if entry.target and entry.target.kind == kind]
    return list(dict.fromkeys(region for target in of_kind if (region := getattr(target, "region", ""))))


def _show(ref: "JobRef", told: "Explanation", settings: Settings) -> None:
    row: dict[str, Any] = {
        "ref": str(ref),
        "cause": told.cause,
        "reason": told.reason,
        "evidence": list(told.evidence),
        "next_step": told.next_step,
        "not_read": list(told.unread),
    }
    if settings.output == "json":
        click.echo(json.dumps(row, indent=2))
    elif settings.output == "jsonl":
        click.echo(json.dumps(row))
    elif settings.output == "id":
        click.echo(told.cause)
    else:
        _part("why", [f"{told.reason} ({told.cause})"])
        _part("evidence", told.evidence)
        _part("next", [told.next_step] if told.next_step else [])
        _part("not read", told.unread)


def _part(name: str, rows: "list[str] | tuple[str, ...]") -> None:
    for number, row in enumerate(rows):
        text = "".join(each if each.isprintable() else " " for each in row)
        click.echo(f"{'' if number else name:<10}{text}")
