"""Output of `submit`, `retry` and the jobs that replace another: the reference of each submitted job."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say
from accel.console.options import Settings, program
from accel.console.output import age
from accel.console.progress import Progress
from accel.diagnostics.errors import Interrupted, JobsError

from ..client.dispatch import Receipts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..backends.base import Backend, JobRef, Request
    from ..client.bulk import Item


@dataclass(frozen=True)
class PrintedReceipts(Receipts):
    """References in the requested form. `caller` is the user's --key, or a random one."""

    settings: Settings
    caller: str

    def one(self, backend: "Backend", request: "Request", ref: "JobRef") -> None:
        form = self.settings.output
        if form in ("json", "jsonl"):
            click.echo(json.dumps(self._row(ref, request), indent=2 if form == "json" else None))
        else:
            click.echo(str(ref))
        if form in ("table", "wide"):
            done = _before(backend, ref) if ref.there else "submitted"
            say(f"{done} {request.name} to {request.target}; `{program()} logs -f {ref}` follows it")

    @contextmanager
    def many(self, items: "list[Item]") -> "Generator[Callable[[int, JobRef], None]]":
        form = self.settings.output
        rows: list[dict[str, Any]] = []

        def tell(number: int, ref: "JobRef") -> None:
            rows.append(self._row(ref, items[number][1]))
            if form == "jsonl":
                click.echo(json.dumps(rows[-1]))
            elif form != "json":
                click.echo(str(ref))
            progress(len(rows))

        if form in ("table", "wide"):
            goes_on = f"after a crash too, the same command with --key {self.caller} goes on"
            say(f"submitting {len(items):,} jobs; {goes_on}")
        with Progress(lambda count: f"{count:,} of {len(items):,} jobs") as progress:
            yield tell
        if form == "json":
            click.echo(json.dumps(rows, indent=2))

    def stopping(self, count: int) -> None:
        say(f"interrupted; what is under way is waited for, at most {count} submits")

    def all_made(self, refs: "list[JobRef]") -> None:
        if self.settings.output in ("table", "wide"):
            before = sum(ref.there for ref in refs)
            new = f"{len(refs) - before:,} of " if before else ""
            say(f"submitted {new}{len(refs):,} jobs{'; the others were submitted already' if before else ''}")

    def interrupt(self, pressed: KeyboardInterrupt, hint: str) -> BaseException:
        return Interrupted("interrupted while submitting; the job may have been made", hint)

    def _row(self, ref: "JobRef", request: "Request") -> dict[str, Any]:
        return {"ref": str(ref), "name": request.name, "target": request.target, "key": self.caller}


def _before(backend: "Backend", ref: "JobRef") -> str:
    try:
        status = backend.status(ref)
    except JobsError:
        return "already submitted"
    return f"already submitted {age(status.created)} ago, {status.phase} now:"
