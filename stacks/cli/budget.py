"""`stacks budget`: the spending of a stack's budgets, what crossing one would stop, and how to resume."""

import json
from dataclasses import asdict
from typing import Any

import click

from accel.budget.levers import drill as rehearse
from accel.budget.state import State
from accel.console.errors import say
from accel.console.options import OneOf
from accel.console.output import table
from accel.diagnostics.errors import CloudRefused

from ..operations.budget.cloud_budgets import CloudBudgets, stack_budgets
from .verb import StackVerb

_STACK = click.option("--stack", metavar="STACK", help="Stack. Default: the selected one.")
_OUTPUT = click.option("-o", "--output", type=OneOf("table", "json"), default="table", help="Output format.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def budget() -> None:
    """Show budgets, rehearse what crossing one stops, and undo a stop.

    Clouds report spending some hours late: a budget ends what runs for too long, not what is too large from the start.
    For that, set allowances, which reserve a job's cost when it is submitted.
    """


@budget.command("status", cls=StackVerb, short_help="Show spending, and what is stopped.")
@_STACK
@_OUTPUT
def status(stack: str | None, output: str) -> None:
    """Show the reported spending of each budget that stops the stack, and what a stop has changed."""
    states: list[tuple[CloudBudgets, State, list[dict[str, Any]]]] = []
    for part in stack_budgets(stack):
        with part.errors():
            states.append((part, part.store.load()[0], part.spending()))
    if output == "json":
        documents = [{"cloud": part.cloud, "budgets": rows, "stop": asdict(state)} for part, state, rows in states]
        click.echo(json.dumps(documents, indent=2))
        return
    table([row for _, _, rows in states for row in rows], ("budget", "cloud", "spent", "basis", "line", "period"))
    for part, state, _ in states:
        for line in part.state_lines(state):
            click.echo(line)


@budget.command("drill", cls=StackVerb, short_help="Show what crossing a budget would stop now.")
@_STACK
@_OUTPUT
def drill(stack: str | None, output: str) -> None:
    """Show, in order, every change that crossing a budget would make now. Nothing is changed.

    The same code reads the clouds as in a real stop. Running work is listed if the budget ends it too, after its grace
    period.
    """
    rows: list[dict[str, Any]] = []
    for part in stack_budgets(stack):
        after = [each.running_after_s for each in part.limits if each.running_after_s is not None]
        with part.errors():
            stopped = part.store.load()[0].stopped
            changes = rehearse(part.levers(), running=bool(after))
        for change in changes[1:] if stopped else changes:  # the first are the submissions
            wait = f" (after {min(after) // 60} min)" if change.stage == "running" else ""
            rows.append({"cloud": part.cloud, **asdict(change), "shown": f"{change.text}{wait}"})
    if output == "json":
        click.echo(json.dumps([{key: row[key] for key in row if key != "shown"} for row in rows], indent=2))
        return
    if not rows:
        say("all of it is stopped already: `stacks budget status`")
    for number, row in enumerate(rows, 1):
        final = "" if row["before"] is not None else "; this cannot be undone"
        click.echo(f"{number}. {row['cloud']}: {row['shown']}{final}")


@budget.command("resume", cls=StackVerb, short_help="Undo a stop: everything is as it was before.")
@_STACK
def resume(stack: str | None) -> None:
    """Undo the changes of a stop in reverse order, and accept submissions again at the end.

    A change that somebody has made since then is left alone and reported. The budget that was crossed stops the stack
    again only in its next period, or after its amount is raised and crossed again. Ended work is not started again.
    """
    failures: list[str] = []
    stopped = False
    for part in stack_budgets(stack):
        with part.errors():
            done = part.resume()
        for line in done.done:
            click.echo(f"{part.cloud}: {line}")
        stopped = stopped or bool(done.done or done.failures)
        failures += [f"{part.cloud}: {each}" for each in done.failures]
    if failures:
        raise CloudRefused("; ".join(failures), "the stack stays stopped; run the command again to continue")
    if not stopped:
        say("no budget has stopped this stack")
