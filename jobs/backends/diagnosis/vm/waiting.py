"""Causes of a job that has not ended: it waits for machines, they start, or it runs."""

from ...base import Explanation, Phase
from ...vm.record import ENDED, EXPIRED, FAILED, GONE, LOST, MADE, NO_CAPACITY, PLANNED
from ...vm.state_machine import ABSENT, STARTING, WAITING
from ..engine import span
from . import zones
from .facts import AGENT, SHOWN, VmFacts

NEW_S = 60
"""Age until which silence is no sign."""
TENDED_S = 300
"""Longest interval between two looks of a client that tends a job."""
AGENT_S = 600
"""Time within which a running machine boots and its agent speaks."""
PREPARE_S = 1800
"""Time for a driver, the other machines and an image. The agent waits no longer for the first two."""
RELEASE_S = 300
"""Longest time that machines take to go."""

TEND = (
    "`accel-jobs tend REF` moves it on, as a timer may; so does `accel-jobs wait REF` for as long as it runs, "
    "and a stack with gcp.vms.reconcile"
)


def next_attempt(facts: VmFacts) -> Explanation | None:
    last = facts.foreseen.last
    if last.state not in (ENDED, GONE):
        return None
    recorded = facts.record.last
    if recorded.state in (ENDED, GONE) and facts.since(recorded.ended) > TENDED_S:
        for_ = span(facts.since(recorded.ended))
        reason = f"its last attempt is over for {for_}, and no client has moved the job on since"
        return facts.explanation("nobody-tends", reason, facts.past_attempts, TEND)
    lost = facts.foreseen.count(LOST)
    if last.outcome == LOST:
        allowed = facts.record.body["lost_retries"]
        reason = f"its machines were preempted {lost} times; lost_retries allows {allowed} new starts"
        held = ("a suspended request holds its quota until it is deleted, which the next step does",)
        more = held if facts.record.kind == "tpu-vm" and recorded.state == MADE else ()
        return facts.explanation("starts-again", reason, (*facts.past_attempts, *facts.messages.states, *more), TEND)
    words = {NO_CAPACITY: "the zone had no machines", EXPIRED: "it has waited long enough in its zone"}
    what = words.get(last.outcome, "its command failed" if last.outcome == FAILED else last.outcome)
    reason = f"its last attempt is over ({what}), and the next one is to be made"
    return facts.explanation("next-attempt", reason, (*facts.past_attempts, zones.own(facts.record)), TEND)


def planned_attempt(facts: VmFacts) -> Explanation | None:
    last = facts.record.last
    if last.state != PLANNED or facts.machine_state.state != ABSENT:
        return None
    age = facts.since(last.planned)
    if age > TENDED_S:
        reason = f"attempt {last.number} is planned for {span(age)}, and nobody has asked Google for its machines"
        return facts.explanation("nobody-tends", reason, facts.past_attempts, TEND)
    return facts.explanation(
        "new", "the job, or its attempt, was planned a moment ago", facts.past_attempts, "wait a few seconds"
    )


def queued_request(facts: VmFacts) -> Explanation | None:
    if facts.machine_state.state != WAITING:
        return None
    last, body = facts.record.last, facts.record.body
    waited = facts.since(last.made or last.planned)
    limit = body.get("zone_wait_s") or facts.machine.get("valid_s")
    evidence = (
        f"{zones.request_text(facts.record)} in {last.zone}: {facts.machine_state.native} for {span(waited)}"
        f"{f', of {span(limit)} at most' if limit else ''}",
        *facts.messages.states,
        zones.own(facts.record),
        zones.others(facts.record),
        *facts.past_attempts,
    )
    reason = f"{last.zone} has no such machines for it just now: its request is in Google's queue"
    return facts.explanation("waiting-for-capacity", reason, evidence, zones.hint(facts.record))


def machine_starting(facts: VmFacts) -> Explanation | None:
    if facts.machine_state.state != STARTING:
        return None
    if explained := unhealthy(facts):
        return explained
    last = facts.record.last
    reason = (
        f"its machines are being made ({facts.machine_state.native}) for {span(facts.since(last.made or last.planned))}"
    )
    return facts.explanation("machine-starting", reason, (*facts.messages.states, *facts.history), "wait a few minutes")


def unhealthy(facts: VmFacts) -> Explanation | None:
    if not facts.messages.ill:
        return None
    step = (
        "Google repairs what it can; a symptom of the program (HBM_OUT_OF_MEMORY, LOW_MEMORY) is the program's; "
        "`accel-jobs cancel REF` and `retry` get other machines"
    )
    evidence = (*facts.messages.ill, *facts.messages.planned)
    return facts.explanation("unhealthy", "a machine of the job is not well", evidence, step)


def agent_silent(facts: VmFacts) -> Explanation | None:
    ran = facts.since(facts.record.last.started)
    if facts.arrived is None or facts.arrived or facts.results or ran < AGENT_S:
        return None
    said = [each for each in facts.printed if AGENT in each] or list(facts.printed)
    reason = f"its machines run for {span(ran)}, and what runs jobs on them has never spoken"
    return facts.explanation("agent-silent", reason, (*said[-SHOWN:], *facts.messages.states), NO_WAY_OUT)


NO_WAY_OUT = (
    "the account that jobs run as needs roles/storage.objectUser on the bucket and roles/logging.logWriter; machines "
    "without an address need Private Google Access on their subnetwork, or Cloud NAT; the boot image needs python3"
)


def missing(facts: VmFacts) -> Explanation | None:
    arrived, hosts = facts.arrived or (), facts.record.hosts
    absent = [str(host) for host in range(hosts) if host not in arrived]
    if not arrived or not absent or facts.since(facts.record.last.started) < NEW_S:
        return None
    limit = facts.record.body["job"].get("meet_wait_s")
    reason = f"{len(arrived)} of {hosts} hosts have come; they wait for the others, {limit} s at most"
    return facts.explanation(
        "hosts-missing", reason, (f"not yet: host {', '.join(absent)}", *facts.messages.states), "wait"
    )


def starting(facts: VmFacts) -> Explanation | None:
    """Take silence for preparation until PREPARE_S."""
    if not facts.agent or facts.output or facts.since(facts.record.last.started) > PREPARE_S:
        return None
    waits = facts.record.body.get("gpus") and len(facts.agent) == 1
    what = "the machine waits for its GPU driver" if waits else "the image is pulled, or the command is quiet"
    return facts.explanation("starting", f"{what}: the command has printed nothing yet", facts.agent[-SHOWN:], "wait")


def well(facts: VmFacts) -> Explanation:
    if facts.status.phase is Phase.SUCCEEDED:
        return facts.explanation("succeeded")
    quiet = ("its command has printed nothing yet",) if facts.output == () else ()
    return facts.explanation("running", evidence=(*quiet, *facts.messages.planned))
