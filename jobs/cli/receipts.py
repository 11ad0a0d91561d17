"""What `submit`, `retry` and the jobs that take another's place print: the reference of each job that was submitted."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say
from accel.console.options import Settings, program
from accel.console.output import age
from accel.console.progress import Progress
from accel.diagnostics.errors import Interrupted, JobsError

from ..client.bulk import submit_all
from ..client.dispatch import how_to_find, raise_if_incomplete, record_history, submit_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backends.base import Backend, JobRef, Request
    from ..client.allowances.submitter import Submitter
    from ..client.bulk import Item


@dataclass(frozen=True)
class Receipts:
    """Submits, and prints references in the form that was asked for. `caller`: the user's --key, or a drawn one."""

    settings: Settings
    caller: str

    def one(
        self, backend: "Backend", request: "Request", submitter: "Submitter", unknown: "Sequence[str]" = ()
    ) -> "JobRef":
        """Submit a job, and print its reference, then the lines `unknown`."""
        form = self.settings.output
        try:
            ref = submit_one(backend, request, self.caller, self.settings, submitter)
        except KeyboardInterrupt:
            hint = how_to_find(self.caller, self.settings)
            raise Interrupted("interrupted while submitting; the job may have been made", hint) from None
        if form in ("json", "jsonl"):
            click.echo(json.dumps(self._row(ref, request), indent=2 if form == "json" else None))
        else:
            click.echo(str(ref))
        if form in ("table", "wide"):
            done = _before(backend, ref) if ref.there else "submitted"
            say(f"{done} {request.name} to {request.target}; `{program()} logs -f {ref}` follows it")
        # Said afterwards: where nobody answers, the submit fails for the same reason and says so itself.
        for line in unknown:
            say(line)
        return ref

    def many(
        self, items: "list[Item]", rate: int | None, submitter: "Submitter", unknown: "Sequence[str]"
    ) -> "list[JobRef]":
        """Submit many jobs, and print the references in the order of the files as they are made.

        Raises Interrupted, or the first error; both say how many were made, and that the same command goes on.
        """
        form = self.settings.output
        rows: list[dict[str, Any]] = []

        def tell(number: int, ref: "JobRef") -> None:
            request = items[number][1]
            record_history(ref, request, self.caller, submitter, self.settings)
            rows.append(self._row(ref, request))
            if form == "jsonl":
                click.echo(json.dumps(rows[-1]))
            elif form != "json":
                click.echo(str(ref))
            progress(len(rows))

        def stopping(count: int) -> None:
            say(f"interrupted; what is under way is waited for, at most {count} submits")

        if form in ("table", "wide"):
            goes_on = f"after a crash too, the same command with --key {self.caller} goes on"
            say(f"submitting {len(items):,} jobs; {goes_on}")
        with Progress(lambda count: f"{count:,} of {len(items):,} jobs") as progress:
            result = submit_all(items, submits_per_s=rate, made=tell, stopping=stopping, send=submitter.submit)
        if form == "json":
            click.echo(json.dumps(rows, indent=2))
        raise_if_incomplete(result, len(items), self.caller, self.settings)
        for line in unknown:
            say(line)
        if form in ("table", "wide"):
            before = sum(ref.there for ref in result.refs.values())
            new = f"{len(items) - before:,} of " if before else ""
            say(f"submitted {new}{len(items):,} jobs{'; the others were submitted already' if before else ''}")
        return [result.refs[number] for number in range(len(items))]

    def _row(self, ref: "JobRef", request: "Request") -> dict[str, Any]:
        return {"ref": str(ref), "name": request.name, "target": request.target, "key": self.caller}


def _before(backend: "Backend", ref: "JobRef") -> str:
    """That it was submitted before, and when where its platform tells."""
    try:
        status = backend.status(ref)
    except JobsError:
        return "already submitted"
    return f"already submitted {age(status.created)} ago, {status.phase} now:"
