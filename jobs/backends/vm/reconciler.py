"""Execution of a job's steps, one after the other. Any client may repeat a step after a crash, and a step decided on
old data does no harm: the record is replaced only if no other client has replaced it since, and machines that were
created for an attempt that had ended by then are removed again."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from accel.diagnostics.errors import CloudRefused, CloudSilent

from .record import ENDED, EXPIRED, GONE, LOST, MADE, NO_CAPACITY, PLANNED, REFUSED, Attempt, Record, Result
from .state_machine import ABSENT, Done, Machines, MachineState, Make, NoCapacity, Remove, Wait, Write, decide, end

STEPS = 50
"""Limit on the steps of one `advance`, more than it ever takes."""


class RecordStore(Protocol):
    """Store of records: see records.py."""

    def read(self, name: str) -> tuple[Record, str]: ...
    def replace(self, record: Record, generation: str) -> str | None: ...
    def results(self, record: Record, attempt: Attempt) -> Mapping[int, Result]: ...
    def check(self, record: Record) -> None: ...


def look(machines: Machines, kept: RecordStore, record: Record) -> tuple[MachineState, Mapping[int, Result]]:
    """Return what `decide` needs to know about the last attempt."""
    last = record.last
    if record.ended or last.state == GONE:
        return MachineState(ABSENT, ""), {}
    # The cloud first: machines that are gone have written their results before.
    seen = machines.look(record, last)
    results: Mapping[int, Result] = kept.results(record, last) if last.state in (PLANNED, MADE) else {}
    return seen, results


def advance(
    machines: Machines, kept: RecordStore, name: str, clock: Callable[[], datetime], say: Callable[[str], None]
) -> Record:
    """Take all steps that are possible for a job now, and return its record. `say` gets a line for each attempt that
    ended or was planned. Raise what the cloud's calls raise."""
    made = 0
    for _ in range(STEPS):
        record, generation = kept.read(name)
        seen, results = look(machines, kept, record)
        match decide(record, seen, results, clock()):
            case Write(news):
                if kept.replace(news, generation) is not None:
                    _tell(record, news, say)
            case Make() if record.last.number == made:
                return record  # the cloud does not show it yet
            case Make():
                made = record.last.number
                if ask(machines, kept, record, generation, clock, say) is None:
                    take_back(machines, kept, record)
            case Remove():
                machines.remove(record, record.last)
                if machines.look(record, record.last).state != ABSENT:
                    return record
            case Wait() | Done():
                return record
    raise AssertionError(f"{name}: no end after {STEPS} steps")


def ask(
    machines: Machines,
    kept: RecordStore,
    record: Record,
    generation: str,
    clock: Callable[[], datetime],
    say: Callable[[str], None] = lambda text: None,
) -> CloudRefused | None:
    """Create the last attempt's machines. Record and return a refusal; it is not recorded if another client has
    replaced the record meanwhile. Raise NotPromised for a record that requests what no target has."""
    kept.check(record)
    try:
        machines.make(record, record.last)
    except CloudSilent:
        # Another client may have seen them before this one did, and ended the attempt since.
        if not take_back(machines, kept, record):
            raise
    except CloudRefused as refused:
        outcome = NO_CAPACITY if isinstance(refused, NoCapacity) else REFUSED
        step = end(record, outcome, refused.message, clock())
        if kept.replace(step.record, generation) is not None:
            _tell(record, step.record, say)
        return refused
    return None


def take_back(machines: Machines, kept: RecordStore, before: Record) -> bool:
    """Remove what was created for an attempt that has ended meanwhile. Return whether it had ended. Another client may
    have ended the attempt while this one created its machines, which no other client would remove. If this client is
    killed before it removes them, the machines notice the end when they start: see the agent's hosts.py. A request that
    is preempted before it starts has no machines; `stacks leaks` deletes it."""
    now, _ = kept.read(before.name)
    attempt = next((each for each in now.attempts if each.number == before.last.number), None)
    if attempt is None or attempt.state not in (ENDED, GONE):
        return False
    machines.remove(now, attempt)
    return True


def _tell(before: Record, after: Record, say: Callable[[str], None]) -> None:
    old, new = before.last, after.last
    if new.state == ENDED and old.state != ENDED:
        why = f": {new.reason}" if new.reason else ""
        say(f"attempt {new.number} in {new.zone} {_WORDS.get(new.outcome, new.outcome)}{why}")
    if new.number != old.number:
        say(f"attempt {new.number} in {new.zone}: {new.name}")


_WORDS = {LOST: "was lost", NO_CAPACITY: "found no capacity", EXPIRED: "has waited long enough", REFUSED: "was refused"}
