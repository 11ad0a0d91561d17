"""`jobs explain`."""

import json
from typing import TYPE_CHECKING, Any

import click

from accel.console.options import Settings
from accel.console.verb import Verb

from ..client import resolve
from ..client.explain import explanation

if TYPE_CHECKING:
    from ..backends.base import Explanation, JobRef


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.pass_obj
def explain(settings: Settings, job: str) -> None:
    """Explain why JOB waits or failed: one cause, the evidence, and the next step. The exit code is 0 whatever the
    cause."""
    ref, backend = resolve.job(job, settings)
    _show(ref, explanation(ref, backend, settings), settings)


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
