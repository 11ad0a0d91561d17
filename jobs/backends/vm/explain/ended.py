"""Causes of a job that has ended, or will have once somebody moves it on."""

import re
from collections.abc import Callable
from dataclasses import replace

from ... import outcome
from ...base import Explanation
from ..record import EXPIRED, FAILED, LOST, NO_CAPACITY, REFUSED
from ..state_machine import ABSENT, LEAVING
from . import zones
from .explanation import because, by
from .facts import Facts
from .table import OF_VMS, TPU, UNREADY
from .table import REFUSED as REFUSALS
from .waiting import NO_WAY_OUT, RELEASE_S, SHOWN, attempts

_VANISHED = re.compile(r"no longer there|it was deleted")
"""Google leaves what it takes away where it was, in another state, or says so."""
_RAN_OUT = re.compile(r"allocation interval|valid.until|its time ran out", re.IGNORECASE)
"""Of a queued resource that failed: see STOCKOUT of tpu_vm/states.py."""
_NOT_RELEASED = re.compile(r"the machines are not released")
_RELEASE = (
    "`accel-jobs tend REF` removes them; the account that jobs run as must be able to delete its own machines, so that "
    "they go where no client comes back"
)


def left(facts: Facts) -> Explanation | None:
    """The command has ended, and its machines have not gone."""
    stopped = [each.stopped for each in facts.results.values() if each.stopped]
    there = facts.machine_state.state not in (ABSENT, LEAVING)
    if not there or len(stopped) < facts.record.hosts or facts.since(max(stopped)) < RELEASE_S:
        return None
    said = [line for line in facts.agent if _NOT_RELEASED.search(line)]
    reason = "its command has ended, and its machines are still there: they cost money"
    return because("not-released", reason, (*said[-1:], *facts.messages.states), _RELEASE)


def cancelled(facts: Facts) -> Explanation | None:
    """Someone wanted no more of it."""
    if facts.record.cancelled is None:
        return None
    told = (
        f"reason: {facts.record.cancelled}",
        *(facts.messages.states if facts.machine_state.state != ABSENT else ()),
    )
    return because("stopped", "someone cancelled the job", told, "`accel-jobs retry REF` runs it again")


def refused(facts: Facts) -> Explanation | None:
    """Google said no, for another reason than that it has none."""
    last = facts.last
    if last.outcome != REFUSED:
        return None
    place = (f"attempt {last.number}: {zones.request_text(facts.record)} in {last.zone}",)
    found = by(REFUSALS, last.reason, (*place, *attempts(facts)[:-1]))
    step = "the evidence has Google's words; then `accel-jobs retry REF`"
    return found or because("refused", "Google refused its machines", (last.reason, *place), step)


def no_room(facts: Facts) -> Explanation | None:
    """Every zone was asked."""
    if facts.last.outcome not in (NO_CAPACITY, EXPIRED):
        return None
    tried = [each for each in facts.foreseen.attempts if each.outcome in (NO_CAPACITY, EXPIRED)]
    expired = all(each.outcome == EXPIRED or _RAN_OUT.search(each.reason) for each in tried)
    cause = "request-expired" if expired else "no-capacity"
    reason = (
        "it waited in its zones for as long as it might, and got no machines"
        if expired
        else "no zone that it may use had such machines"
    )
    evidence = (zones.request_text(facts.record), *attempts(facts), zones.own(facts.record), zones.others(facts.record))
    step = f"`accel-jobs retry REF` asks again; {zones.hint(facts.record).removeprefix('wait; ')}"
    return because(cause, reason, evidence, step)


def lost(facts: Facts) -> Explanation | None:
    """Machines that went too often; those whose agent deleted them without a word are another matter."""
    last = facts.last
    if last.outcome != LOST:
        return None
    if _VANISHED.search(last.reason) and facts.arrived == ():
        reason = "its machines went by themselves, and what runs jobs on them has never spoken"
        told = (*attempts(facts), *facts.history[-SHOWN:])
        return because("agent-silent", reason, told, NO_WAY_OUT)
    count, allowed = facts.foreseen.count(LOST), facts.record.body["lost_retries"]
    reason = f"its machines were taken away {count} times, and lost_retries is {allowed}"
    step = "raise lost_retries, save and resume, or `spot: false`, which asks for machines that stay"
    return because("lost-too-often", reason, attempts(facts), step)


def unready(facts: Facts) -> Explanation | None:
    """A host told that its command was not started, or why it was stopped."""
    result = facts.failed
    if facts.last.outcome != FAILED or result is None or result.reason in (None, "exited"):
        return None
    if result.exit_code in outcome.SHELL:  # by the agent, which plays the shell's part
        return None
    whose = _whose(facts)
    said = str(result.reason)
    if said == "timeout":
        limit = facts.record.body.get("timeout_s")
        reason = f"the command ran longer than timeout_s, which is {limit}"
        shown = outcome.last(facts.output)
        return because("timeout", reason, (*whose, *shown), "raise timeout_s, or save and resume")
    if said.startswith("stopped: "):
        reason = "it was stopped because another host had failed, and that one told nothing of its own"
        return because("peer-failed", reason, (said, *whose), "`accel-jobs logs REF` shows all hosts")
    arrived = facts.arrived or ()
    absent = [f"host {host} never came" for host in range(facts.record.hosts) if host not in arrived]
    return by(UNREADY, said, (*whose, *(absent if said.startswith("not-met") else ()), *facts.messages.ill))


def no_word(facts: Facts) -> Explanation | None:
    """The time is over, and no host has told."""
    if facts.last.outcome != FAILED or facts.results:
        return None
    said = facts.printed[-SHOWN:]
    step = "`accel-jobs logs REF` shows what they printed; a machine that has no memory left, or no network, is silent"
    return because("no-word", "its machines told of no end", (facts.last.reason, *said), step)


def exited(facts: Facts) -> Explanation | None:
    """What the exit code and the end of the log say."""
    result = facts.failed
    if facts.last.outcome != FAILED or result is None:
        return None
    body = facts.record.body
    lines = facts.output
    if facts.record.kind == "tpu-vm":
        told = next((line for line in outcome.region(lines or ()) if by(TPU, line)), "")
        if told:
            return by(TPU, told, (f"exit code {result.exit_code}", *_whose(facts)))
    ended = outcome.Ended(result.exit_code, lines, int(body.get("gpus") or 0), shm_mib=body["job"].get("shm_mib"))
    found = outcome.explain(ended)
    if found is None:
        return None
    said = () if result.reason in (None, "exited") else (str(result.reason),)
    evidence = (*found.evidence, *said, *_whose(facts), *facts.messages.ill, *_kept(facts))
    return replace(found, evidence=evidence, next_step=OF_VMS.get(found.cause, found.next_step))


def _whose(facts: Facts) -> tuple[str, ...]:
    """Which host, and which attempt, the words are of."""
    hosts = f"host {facts.host} of {facts.record.hosts}" if facts.record.hosts > 1 else ""
    again = f"attempt {facts.last.number}" if len(facts.record.attempts) > 1 else ""
    both = ", ".join(each for each in (hosts, again) if each)
    return (both,) if both else ()


def _kept(facts: Facts) -> tuple[str, ...]:
    """Where the log is, if Cloud Logging did not take it."""
    if facts.kept_name is None:
        return ()
    return (f"lines that Cloud Logging did not take are in {facts.kept_name} of the attempt's folder in the bucket",)


CAUSES_OF_FAILURE: tuple[Callable[[Facts], Explanation | None], ...] = (
    cancelled,
    refused,
    no_room,
    lost,
    unready,
    no_word,
    exited,
)
"""In the order in which they are looked at."""
