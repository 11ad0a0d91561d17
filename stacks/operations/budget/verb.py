"""`stacks budget`: what is spent of a stack's budgets, what crossing one would stop, and what takes a stop back."""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from accel.budget.acting import Busy
from accel.budget.acting import resume as restored
from accel.budget.levers import LeverFailed
from accel.budget.levers import drill as rehearsed
from accel.budget.state import Moved
from accel.console.errors import say
from accel.console.options import OneOf
from accel.console.output import table
from accel.contract.budgets import Budget
from accel.diagnostics.errors import CloudRefused, NotFound

from ...cli.main import StackVerb
from .parts import PARTS

if TYPE_CHECKING:
    from accel.budget.state import State

    from .parts import Part

TRIES, PAUSE_S = 5, 1.0
"""Of a resume that meets the function at work."""

_STACK = click.option("--stack", metavar="STACK", help="The stack; without it, the selected one.")
_OUTPUT = click.option("-o", "--output", type=OneOf("table", "json"), default="table", help="Form of the output.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def budget() -> None:
    """Show budgets, rehearse what crossing one stops, and take a stop back.

    Clouds know what was spent some hours later: a budget stops what goes on too long, not what is too large to begin
    with. For that, allowances are held when a job is submitted.
    """


@budget.command("status", cls=StackVerb, short_help="Show what is spent, and what is stopped.")
@_STACK
@_OUTPUT
def status(stack: str | None, output: str) -> None:
    """Show what the clouds say is spent of each budget that stops the stack, and what a stop has changed."""
    found: list[tuple[Part, State, list[dict[str, Any]]]] = []
    for part in _parts(stack):
        with _asked(part):
            found.append((part, part.store.load()[0], _spent(part)))
    if output == "json":
        documents = [{"cloud": part.cloud, "budgets": rows, "stop": asdict(state)} for part, state, rows in found]
        click.echo(json.dumps(documents, indent=2))
        return
    table([row for _, _, rows in found for row in rows], ("budget", "cloud", "spent", "basis", "line", "period"))
    for part, state, _ in found:
        for line in _stopped(part, state):
            click.echo(line)


@budget.command("drill", cls=StackVerb, short_help="Show what crossing a budget would stop now.")
@_STACK
@_OUTPUT
def drill(stack: str | None, output: str) -> None:
    """Show every change that crossing a budget would make now, in order; nothing is changed.

    It is read from the clouds by the levers that are pulled in earnest. Running work is listed where a budget stops
    that too, after its grace period.
    """
    rows: list[dict[str, Any]] = []
    for part in _parts(stack):
        after = [each.running_after_s for each in part.limits if each.running_after_s is not None]
        with _asked(part):
            stopped = part.store.load()[0].stopped
            changes = rehearsed(part.levers(), running=bool(after))
        for change in changes[1:] if stopped else changes:  # the first are the submissions
            wait = f" (after {min(after) // 60} min)" if change.stage == "running" else ""
            rows.append({"cloud": part.cloud, **asdict(change), "shown": f"{change.text}{wait}"})
    if output == "json":
        click.echo(json.dumps([{key: row[key] for key in row if key != "shown"} for row in rows], indent=2))
        return
    if not rows:
        say("all of it is stopped already: `stacks budget status`")
    for number, row in enumerate(rows, 1):
        final = "" if row["before"] is not None else "; this cannot be taken back"
        click.echo(f"{number}. {row['cloud']}: {row['shown']}{final}")


@budget.command("resume", cls=StackVerb, short_help="Take a stop back: everything is as it was before.")
@_STACK
def resume(stack: str | None) -> None:
    """Put back what a stop changed, in the opposite order; new submissions are taken again at the end.

    What somebody has changed since is left as it is, and said. The budget that is over its line stops the stack again
    only in its next period, or once its amount is raised and crossed too. Work that was ended is not begun again.
    """
    failures: list[str] = []
    stopped = False
    for part in _parts(stack):
        with _asked(part):
            done = _patiently(lambda part=part: restored(part.levers(), part.store, time.time()))
        for line in done.done:
            click.echo(f"{part.cloud}: {line}")
        stopped = stopped or bool(done.done or done.failures)
        failures += [f"{part.cloud}: {each}" for each in done.failures]
    if failures:
        raise CloudRefused("; ".join(failures), "the stack stays stopped; run it again, it goes on")
    if not stopped:
        say("no budget has stopped this stack")


def _parts(stack: str | None) -> list["Part"]:
    """Of each cloud that the stack has budgets on that stop it. Raises NotFound where there are none."""
    from ..stack_files import stack_outputs

    outputs = stack_outputs(stack)
    found: list[Part] = []
    for output, module in PARTS.items():
        if outputs.get(output):
            promises = {name: Budget.model_validate(each, extra="ignore") for name, each in outputs[output].items()}
            made = import_module(f".{module}", __package__).part(promises)
            found += [made] if made else []
    if not found:
        raise NotFound(
            f"stack {stack or 'selected'} has no budget that stops it", "give one a `stop`, and deploy: pulumi up"
        )
    return found


@contextmanager
def _asked(part: "Part") -> Generator[None]:
    """What the cloud refuses is raised as an error of accel.diagnostics.errors."""
    try:
        yield
    except LeverFailed as failed:
        if failed.__cause__:
            with part.asking(f"budgets of {part.cloud}"):
                raise failed.__cause__ from None
        raise CloudRefused(str(failed)) from failed


def _patiently(call: Callable[[], Any]) -> Any:
    for left in reversed(range(TRIES)):
        try:
            return call()
        except (Busy, Moved) as error:
            if not left:
                raise CloudRefused(str(error), "the function that stops the stack is at work; run it again") from None
        time.sleep(PAUSE_S)
    raise AssertionError


def _spent(part: "Part") -> list[dict[str, Any]]:
    limits = {limit.budget: limit for limit in part.limits}
    rows: list[dict[str, Any]] = []
    for reading in part.readings():
        limit = limits[reading.budget]
        spent = reading.spent(limit.basis)
        rows.append(
            {
                "budget": reading.budget,
                "cloud": part.cloud,
                "spent": "unknown" if spent is None else f"{spent:,.2f} {reading.currency}",
                "basis": limit.basis,
                "line": f"{limit.at * reading.amount:,.2f} {reading.currency}",
                "period": reading.period,
            }
        )
    return rows


def _stopped(part: "Part", state: "State") -> Iterator[str]:
    if state.stopped is None:
        yield f"{part.cloud}: takes new jobs"
        return
    since = datetime.fromtimestamp(state.since or 0, UTC).isoformat(timespec="seconds")
    yield f"{part.cloud}: stopped since {since}: {state.stopped}"
    yield from (f"  {change.text}" for change in state.changes)
    yield from (f"  failed, and tried again: {each}" for each in state.failures)
    if state.running_at is not None and "running" not in {change.stage for change in state.changes}:
        at = datetime.fromtimestamp(state.running_at, UTC).isoformat(timespec="seconds")
        yield f"  running work is stopped at {at}"
    yield "  `stacks budget resume` takes it back"
