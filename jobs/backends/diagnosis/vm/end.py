"""Causes of a job that has ended, or will have once a client advances it."""

import re

from ...base import Explanation
from ...vm.record import EXPIRED, FAILED, LOST, NO_CAPACITY, REFUSED
from ...vm.state_machine import ABSENT, LEAVING
from .. import outcome, words
from ..cause import THEN_RETRY
from ..engine import Rule, match, row, within
from . import zones
from .facts import SHOWN, VmFacts
from .waiting import NO_WAY_OUT, RELEASE_S

_VANISHED = re.compile(r"no longer there|it was deleted")
"""Words about machines that are missing. Google leaves preempted ones in place, in another state, or says so."""
_RAN_OUT = re.compile(r"allocation interval|valid.until|its time ran out", re.IGNORECASE)
"""Words of a queued resource that failed: see STOCKOUT of tpu/queued_resources.py."""
_RESERVED = re.compile(r"reserved capacity|reservation", re.IGNORECASE)
_NOT_RELEASED = re.compile(r"the machines are not released")
_RELEASE = (
    "`accel-jobs tend REF` removes them; the account that jobs run as must be able to delete its own machines, so that "
    "they go where no client comes back"
)

REFUSALS = (
    words.QUOTA,
    row("no-capacity", words.STOCKOUT, "the zone had no such machines", f"more zones, or another GPU; {THEN_RETRY}"),
    *words.GOOGLE,
)

NOT_STARTED = (
    row(
        "driver-not-ready",
        r"^driver-not-ready",
        "the driver did not find the machine's GPUs in time, or not all of them",
        "the target's boot image must bring a driver (or install one at the first boot) that knows the GPU; Secure "
        "Boot must be off for a driver that is built on the machine",
    ),
    row(
        "hosts-did-not-meet",
        r"^not-met",
        "not all machines of the job came in time",
        "one of them did not boot, or its agent could not reach the bucket: the evidence names them. Machines meet in "
        "the bucket; once they run, the firewall must let them talk: a stack's rule is for the tag accel-jobs",
    ),
    row(
        "timeout",
        r"^timeout$",
        "the time of the job was over before its command was started",
        "raise timeout_s",
    ),
    row(
        "docker-missing",
        r"No such file or directory: '?docker",
        "the machine has no docker",
        "use a boot image or a TPU runtime that has docker, or leave `image` out and run the command on the machine",
    ),
    words.CONTAINER_GPU,
    words.IMAGE_PLATFORM,
    words.EXEC_FORMAT,
    words.MOUNT,
    row("image-forbidden", r"docker login"),
    *within(r"docker(:| pull)", (words.PULL_DENIED, *words.PULL)),
    row("image-pull", r"docker pull"),
    row(
        "gcsfuse-missing",
        r"No such file or directory: '?gcsfuse",
        "the machine has no gcsfuse, so that no bucket can be mounted",
        "use a boot image that has it, or read and write the bucket by its API (`gcloud storage`, gcsfs)",
    ),
    row("mount", r"mount "),
    row("secret-unreadable", r"secret projects/"),
    row(
        "not-started",
        r"^not-started",
        "the command was not started",
        "the evidence says why; `accel-jobs logs REF` shows what the machine did before",
    ),
)
"""Words of a host's result whose command was not run."""


def unreleased_machines(facts: VmFacts) -> Explanation | None:
    stopped = [each.stopped for each in facts.results.values() if each.stopped]
    there = facts.machine_state.state not in (ABSENT, LEAVING)
    if not there or len(stopped) < facts.record.hosts or facts.since(max(stopped)) < RELEASE_S:
        return None
    lines = [line for line in facts.agent if _NOT_RELEASED.search(line)]
    reason = "its command has ended, and its machines are still there: they cost money"
    return facts.explanation("not-released", reason, (*lines[-1:], *facts.messages.states), _RELEASE)


def stopped_job(facts: VmFacts) -> Explanation | None:
    if facts.record.cancelled is None:
        return None
    states = facts.messages.states if facts.machine_state.state != ABSENT else ()
    return facts.explanation("stopped", evidence=(f"reason: {facts.record.cancelled}", *states))


def refused_request(facts: VmFacts) -> Explanation | None:
    last = facts.last
    if last.outcome != REFUSED:
        return None
    place = (f"attempt {last.number}: {zones.request_text(facts.record)} in {last.zone}",)
    step = f"the evidence has Google's words; {THEN_RETRY}"
    return match(facts, REFUSALS, [last.reason], (*place, *facts.past_attempts[:-1])) or facts.explanation(
        "refused", "Google refused its machines", (last.reason, *place), step
    )


def no_capacity(facts: VmFacts) -> Explanation | None:
    if facts.last.outcome not in (NO_CAPACITY, EXPIRED):
        return None
    tried = [each for each in facts.foreseen.attempts if each.outcome in (NO_CAPACITY, EXPIRED)]
    expired = all(each.outcome == EXPIRED or _RAN_OUT.search(each.reason) for each in tried)
    cause = "waited-too-long" if expired else "no-capacity"
    reason = (
        "it waited in its zones for as long as it might, and got no machines"
        if expired
        else "no zone that it may use had such machines"
    )
    evidence = (
        zones.request_text(facts.record),
        *facts.past_attempts,
        zones.own(facts.record),
        zones.others(facts.record),
    )
    if _RESERVED.search(facts.last.reason) and zones.reservation(facts.record):
        return facts.explanation("reservation", evidence=evidence)
    step = f"`accel-jobs retry REF` asks again; {zones.hint(facts.record).removeprefix('wait; ')}"
    return facts.explanation(cause, reason, evidence, step)


def preempted_machines(facts: VmFacts) -> Explanation | None:
    """Give machines that vanished before their agent spoke another cause."""
    last = facts.last
    if last.outcome != LOST:
        return None
    if _VANISHED.search(last.reason) and facts.arrived == ():
        reason = "its machines went by themselves, and what runs jobs on them has never spoken"
        return facts.explanation("agent-silent", reason, (*facts.past_attempts, *facts.history[-SHOWN:]), NO_WAY_OUT)
    count, allowed = facts.foreseen.count(LOST), facts.record.body["lost_retries"]
    reason = f"its machines were preempted {count} times, and lost_retries is {allowed}"
    step = "raise lost_retries, save and resume, or `spot: false`, which asks for machines that stay"
    return facts.explanation("preempted", reason, facts.past_attempts, step)


def unstarted_command(facts: VmFacts) -> Explanation | None:
    result = facts.failed
    if facts.last.outcome != FAILED or result is None or result.reason in (None, "exited"):
        return None
    if result.exit_code in outcome.SHELL:  # by the agent, which acts as the shell
        return None
    text = str(result.reason)
    if text == "timeout":
        reason = f"it ran longer than timeout_s, which is {facts.record.body.get('timeout_s')}"
        return facts.explanation("timeout", reason, (*facts.place, *outcome.last(facts.output)))
    if text.startswith("stopped: "):
        reason = "it was stopped because another host had failed, and that one told nothing of its own"
        return facts.explanation("peer-failed", reason, (text, *facts.place), "`accel-jobs logs REF` shows all hosts")
    arrived = facts.arrived or ()
    absent = [f"host {host} never came" for host in range(facts.record.hosts) if host not in arrived]
    more = (*facts.place, *(absent if text.startswith("not-met") else ()), *facts.messages.ill)
    return match(facts, NOT_STARTED, [text], more)


def vm_silent(facts: VmFacts) -> Explanation | None:
    if facts.last.outcome != FAILED or facts.results:
        return None
    lines = facts.printed[-SHOWN:]
    step = "`accel-jobs logs REF` shows what they printed; a machine that has no memory left, or no network, is silent"
    return facts.explanation("vm-silent", "its machines told of no end", (facts.last.reason, *lines), step)


def program(facts: VmFacts) -> Explanation | None:
    result = facts.failed
    if facts.last.outcome != FAILED or result is None:
        return None
    body = facts.record.body
    lines = facts.output
    code = f"exit code {result.exit_code}"
    if facts.record.kind == "tpu-vm" and (
        of_tpu := match(facts, words.TPU, outcome.region(lines or ()), (code, *facts.place))
    ):
        return of_tpu
    ended = outcome.FailedAttempt(
        result.exit_code, lines, int(body.get("gpus") or 0), shm_mib=body["job"].get("shm_mib")
    )
    reason = "" if result.reason in (None, "exited") else str(result.reason)
    return outcome.program_failure(facts, ended, (reason, *facts.place, *facts.messages.ill, *_kept(facts)))


def _kept(facts: VmFacts) -> tuple[str, ...]:
    if facts.kept_name is None:
        return ()
    return (f"lines that Cloud Logging did not take are in {facts.kept_name} of the attempt's folder in the bucket",)


RULES: tuple[Rule[VmFacts], ...] = (
    stopped_job, refused_request, no_capacity, preempted_machines, unstarted_command, vm_silent, program,
)  # fmt: skip
