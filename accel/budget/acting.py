"""Stops a stack whose budget is crossed, step by step, and resumes it. Every step is idempotent: `look` runs for every
notification, duplicates included, and on a schedule, which continues unfinished work. Previous values are saved before
anything changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from accel.budget.levers import RUNNING, SUBMISSIONS, Change, Lever, LeverError, sort_levers
from accel.budget.spending import Crossing, Limit, Reading, crossing
from accel.budget.state import State, Store

LEASE_S = 360
"""Longer than a function may run. A killed function blocks others for this long."""


class Busy(Exception):
    """Another process is working on this stack's stop."""


@dataclass(frozen=True)
class Outcome:
    """The result of a call: a line for each step in `done`; `failures` are left for the next call."""

    state: State
    done: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    news: tuple[str, ...] = ()
    """Failures that the previous call did not have: people are notified once, not at every attempt."""


def look(
    limits: Sequence[Limit], readings: Sequence[Reading], levers: Sequence[Lever], store: Store, now: float
) -> Outcome:
    """Stop the stack if a budget is over its line, or continue an unfinished stop. `now`: Unix seconds. Raise Busy, and
    StateConflict if another process has changed the state meanwhile; call it again."""
    state, seen = store.load()
    over = _over(limits, readings, state)
    fresh = [each for each in over if not any(known.covers(each) for known in state.crossings)]
    state = _with(state, fresh, now)
    left = _left(state, levers, now)
    if state.stopped is None or not (fresh or left):
        return Outcome(state)
    _free(state, now)
    begun = fresh and SUBMISSIONS not in state.changes
    known = state.failures
    state = replace(state, changes=state.recorded([SUBMISSIONS]), failures=(), busy_until=now + LEASE_S)
    seen = store.save(state, seen)
    done = [SUBMISSIONS.text] if begun else []
    for lever in left:
        state, seen = _pulled(lever, state, store, seen, done)
    state = replace(state, busy_until=None)
    store.save(state, seen)
    return Outcome(state, tuple(done), state.failures, tuple(each for each in state.failures if each not in known))


def resume(levers: Sequence[Lever], store: Store, now: float) -> Outcome:
    """Undo the stop in reverse order, submissions last. A budget over its line then stops the stack again only in the
    next period, or at a higher line. After failures the stack stays stopped: the next call continues, and a `look`
    before that stops again what was restored. Raise Busy and StateConflict."""
    state, seen = store.load()
    if state.stopped is None:
        return Outcome(state)
    _free(state, now)
    state = replace(state, finished=())
    seen = store.save(replace(state, busy_until=now + LEASE_S), seen)
    done: list[str] = []
    failures: list[str] = []
    left: list[Change] = []
    by_kind = {lever.kind: lever for lever in levers}
    for change in reversed(state.changes):
        if change == SUBMISSIONS or not change.reversible:
            continue
        if any(change.name == each.name for each in left):  # what came after it is not taken back yet
            left.insert(0, change)
            continue
        try:
            if change.kind not in by_kind:
                raise LeverError(f"{change.name}: there is no lever {change.kind} here")
            other = by_kind[change.kind].restore(change)
        except LeverError as failed:
            failures.append(str(failed))
            left.insert(0, change)
        else:
            done.append(f"left as it is: {other}" if other else f"restored: {change.back}")
    if failures:
        kept = (*(each for each in state.changes if each in left or each == SUBMISSIONS),)
        state = replace(state, changes=kept, failures=tuple(failures))
    else:
        done.append("new submissions: accepted again")
        state = State(resumed=_remembered(state))
    store.save(state, seen)
    return Outcome(state, tuple(done), tuple(failures))


def _over(limits: Sequence[Limit], readings: Sequence[Reading], state: State) -> list[Crossing]:
    by_name = {reading.budget: reading for reading in readings}
    found = [crossing(limit, by_name[limit.budget]) for limit in limits if limit.budget in by_name]
    return [each for each in found if each and not any(known.covers(each) for known in state.resumed)]


def _with(state: State, fresh: list[Crossing], now: float) -> State:
    """Add crossings; the earliest deadline decides when running work stops."""
    if not fresh:
        return state
    ends = [now + each.running_after_s for each in fresh if each.running_after_s is not None]
    ends += [state.running_at] if state.running_at is not None else []
    return replace(
        state,
        stopped=state.stopped or fresh[0].text,
        since=state.since if state.since is not None else now,
        crossings=(*state.crossings, *fresh),
        running_at=min(ends, default=None),
    )


def _left(state: State, levers: Sequence[Lever], now: float) -> list[Lever]:
    running = state.running_at is not None and now >= state.running_at
    return [
        lever
        for lever in sort_levers(levers)
        if lever.kind not in state.finished and (running or lever.stage != RUNNING)
    ]


def _free(state: State, now: float) -> None:
    if state.busy_until is not None and now < state.busy_until:
        raise Busy(f"another run is at work on it; it is free in {state.busy_until - now:.0f} s at the latest")


def _pulled(lever: Lever, state: State, store: Store, seen: Any, done: list[str]) -> tuple[State, Any]:
    failures: list[str] = []
    try:
        changes = lever.plan()
    except LeverError as failed:
        return replace(state, failures=(*state.failures, str(failed))), seen
    known = {(change.kind, change.name): change.after for change in state.changes}
    fresh = [change for change in changes if known.get((change.kind, change.name)) != change.after]
    state = replace(state, changes=state.recorded(changes))
    # Saved before the change: a function that is killed in between must not lose the previous value.
    seen = store.save(state, seen) if fresh else seen
    for change in changes:
        try:
            lever.pull(change)
        except LeverError as failed:
            failures.append(str(failed))
        else:
            done += [change.text] if change in fresh else []
    through = not failures and not any(change.later for change in changes)
    finished = (*state.finished, lever.kind) if through else state.finished
    return replace(state, finished=finished, failures=(*state.failures, *failures)), seen


def _remembered(state: State) -> tuple[Crossing, ...]:
    latest = {each.budget: each for each in (*state.resumed, *state.crossings)}
    return tuple(latest.values())
