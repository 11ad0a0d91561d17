"""Why a job on Google Batch waits or failed: one cause, judged by what Batch and its logs say.

Reads only, and each fact when it is first asked for. What may not be read makes no cause true.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from accel.clouds.google.api import Google
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from ... import outcome
from ...base import Explanation, JobRef, Phase, Status
from ...causes import CauseRow
from .. import logs
from ..labels import Scope
from ..lookup import KEPT, BatchJob, Task, look
from ..status import decided, gpus, moved, seen_tasks, status_of
from .table import AGENT, CAUSES, DOCKER_WORDS, EVENTS, NOT_STARTED, OF_BATCH, OWN_CODES

__all__ = ["CAUSES", "explain"]


TAIL = 100

Result = TypeVar("Result")


class Facts:
    """One job, now."""

    def __init__(self, google: Google, scope: Scope, ref: JobRef, job: BatchJob) -> None:
        self.google, self.scope, self.ref, self.job = google, scope, ref, job
        self.unread: list[str] = []

    @cached_property
    def tasks(self) -> list[Task]:
        """Those that tell how the job goes."""
        return self._ask("batch.tasks.list", lambda: seen_tasks(self.google, self.scope, self.job)) or []

    @cached_property
    def status(self) -> Status:
        """With what the tasks say."""
        return status_of(self.ref, self.job, self.tasks)

    @cached_property
    def task(self) -> Task | None:
        """The one that decided how the job ended."""
        return decided(self.job, self.tasks)

    @property
    def age_s(self) -> float:
        """Since the job was made."""
        created = self.status.created
        return (datetime.now(UTC) - created).total_seconds() if created else 0.0

    @property
    def event_texts(self) -> list[str]:
        """Of the job's events, the newest first."""
        return [event.text for event in reversed(self.job.events)]

    @property
    def texts_since_start(self) -> list[str]:
        """Those after it began to run, the newest first."""
        begun = moved(self.job, "RUNNING", oldest=True)
        after = [event for event in self.job.events if begun and event.at and event.at > begun]
        return [event.text for event in reversed(after)]

    @cached_property
    def agent(self) -> list[str]:
        """The end of what Batch's agent says, the newest first; empty where logs go to a mount."""
        if self.job.logs_path:
            return []
        told = self._ask("logging.logEntries.list", lambda: logs.agent(self.google, self.scope, self.job, TAIL))
        return (told or [])[::-1]

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """The end of the decisive task's log; None: it could not be read, or is in a mount."""
        if self.job.logs_path:
            return None
        index = self.task.index if self.task is not None and self.job.several else None
        told = self._ask(
            "logging.logEntries.list", lambda: logs.printed(self.google, self.scope, self.job, index, TAIL)
        )
        return None if told is None else tuple(line for text in told for line in text.splitlines())

    @property
    def whose(self) -> tuple[str, ...]:
        """Which task, and which attempt, the words are of."""
        if self.task is None:
            return ()
        place = f"{self.job.several} {self.task.index} of {self.job.count}" if self.job.several else ""
        again = f"attempt {self.task.attempts}" if self.task.attempts > 1 else ""
        both = ", ".join(each for each in (place, again) if each)
        return (both,) if both else ()

    @property
    def gpus(self) -> int:
        """Of a task."""
        return round(gpus(self.job))

    def _ask(self, permission: str, call: Callable[[], Result]) -> Result | None:
        try:
            return call()
        except NotFound:
            return None
        except (CloudRefused, CloudSilent) as error:
            self.unread.append(f"{permission}: {error.message}")
            return None


NEW_S = 60
"""Until then silence is no sign."""
SLOW_S = 20 * 60
"""A VM that boots takes less; Batch gives it 18 minutes to report. Source: the event of agent-silent."""
GIVEN_UP_S = 2 * 24 * 3600 - 600
WIDTH = 400
PULL_FAILED, DOCKER_FAILED, OWN = 1, 125, 50000
"""Exit codes; from the last on they are Batch's own. Source of the second:
https://docs.docker.com/reference/cli/docker/container/run/#exit-status"""


def explain(google: Google, scope: Scope, ref: JobRef) -> Explanation:
    """Raises NoCredentials, and CloudRefused or CloudSilent where the job itself cannot be read."""
    try:
        job = look(google, scope, ref.id)
    except NotFound as missing:
        where = f"Batch in {scope.region} of project {scope.project} has no job {ref.id}"
        return _because("unknown-job", where, (missing.message,), f"check the reference; {KEPT}")
    facts = Facts(google, scope, ref, job)
    order = (_stopping,) if job.state == "CANCELLATION_IN_PROGRESS" else _ORDER[facts.status.phase]
    told = next((said for cause in order if (said := cause(facts))), None) or _unknown(facts)
    return replace(told, unread=tuple(dict.fromkeys(facts.unread)))


def _because(cause: str, reason: str, evidence: Iterable[str], next_step: str) -> Explanation:
    assert cause in CAUSES, cause
    return Explanation(cause, reason, tuple(_cut(line) for line in evidence if line), next_step)


def _by(rows: Sequence[CauseRow], texts: Iterable[str], *more: str) -> Explanation | None:
    """The newest text that has the words of a row; the first row of those that it has."""
    for text in texts:
        for row in rows:
            if row.pattern.search(text):
                return _because(row.cause, row.reason, (text, *more), row.next_step)
    return None


def _held(facts: Facts) -> Explanation | None:
    return _by(EVENTS, facts.event_texts)


def _queued(facts: Facts) -> Explanation:
    if facts.age_s < NEW_S:
        return _because("new", "the job was made a moment ago", (), "wait a few seconds")
    step = "wait: Batch gives no reason, and gives up after two days; google_batch.priority puts a job before others"
    return _because("queued", "Batch has the job, and has not begun with it", facts.event_texts[:3], step)


def _agent(facts: Facts) -> Explanation | None:
    return _by(AGENT, facts.agent)


def _starting(facts: Facts) -> Explanation:
    if facts.age_s < SLOW_S:
        return _because("starting", "its VMs are being made, or boot", facts.event_texts[:3], "wait a few minutes")
    step = (
        "VMs that boot and do not report end the job after a while; has the account that jobs run as "
        "roles/batch.agentReporter, and the subnetwork Private Google Access?"
    )
    return _because("starting", "its VMs are still being made, or boot", facts.event_texts[:3], step)


def _stopping(facts: Facts) -> Explanation:
    return _because(
        "stopping", "someone cancelled the job, and its VMs are being cleaned up", facts.event_texts[:1], "wait"
    )


def _waiting_again(facts: Facts) -> Explanation | None:
    """A task of one whose VM went waits for the next."""
    counts = facts.job.counts
    if counts.get("RUNNING") or counts.get("ASSIGNED") or not counts.get("PENDING"):
        return None
    if held := _by(EVENTS, facts.texts_since_start):
        return held
    lost = [event.text for task in facts.tasks for event in task.failures]
    return _because("again", "a task was lost or failed, and waits for another VM", lost[-3:], "wait") if lost else None


def _parallel(facts: Facts) -> Explanation | None:
    counts, most = facts.job.counts, facts.job.group.get("parallelism")
    running = counts.get("RUNNING", 0) + counts.get("ASSIGNED", 0)
    if not counts.get("PENDING") or facts.job.several != "task":
        return None
    told = (f"{counts['PENDING']} tasks wait, {running} run", f"parallelism is {most or 'left to Batch'}")
    step = "`parallelism` in the job file lets more run at once, up to 5,000; quotas and capacity may be smaller"
    held = _by(EVENTS, facts.texts_since_start, *told)
    if held and (most is None or running < int(most)):
        return held
    return _because("parallelism", "the job runs, and some of its tasks wait for their turn", told, step)


def _well(facts: Facts) -> Explanation:
    if facts.status.phase is Phase.SUCCEEDED:
        again = (
            () if facts.job.state == "SUCCEEDED" else (f"Batch calls it {facts.job.state}, and all tasks succeeded",)
        )
        return _because("succeeded", "the job has succeeded: there is nothing to explain", again, "")
    return _because("running", "the job runs: it neither waits nor has it failed", (), "`accel-jobs logs -f REF`")


def _ended_by_someone(facts: Facts) -> Explanation | None:
    if facts.job.state == "DELETION_IN_PROGRESS":
        return _because("deleted", "someone deletes the job", facts.event_texts[:1], "submit the job file again")
    if facts.job.state != "CANCELLED":
        return None
    return _because(
        "stopped", "someone cancelled the job", facts.event_texts[:1], "`accel-jobs retry REF` runs it again"
    )


def _own_code(facts: Facts) -> Explanation | None:
    """A code of Batch's own that the decisive attempt ended with; those of attempts before do not count."""
    code = facts.status.exit_code
    if code not in OWN_CODES:
        return None
    cause, reason, step = OWN_CODES[code]
    ends = facts.task.failures[-1:] if facts.task else []
    lost = f"{facts.status.lost} attempts lost their VM" if (facts.status.lost or 0) > 1 else ""
    told = (*(event.text for event in ends), *facts.whose, lost)
    return _because(cause, reason, told if any(told) else facts.event_texts[:1], step)


def _never_began(facts: Facts) -> Explanation | None:
    if facts.status.started is not None:
        return None
    found = _by(EVENTS, facts.event_texts) or _by(AGENT, facts.agent)
    if found is not None or facts.task is not None:
        return found
    stopped, created = facts.status.stopped, facts.status.created
    if stopped and created and (stopped - created).total_seconds() >= GIVEN_UP_S:
        step = "a smaller or another machine, more zones, or a quota that is raised; then `accel-jobs retry REF`"
        return _because("waited-too-long", "it waited for two days, and Batch gave it up", facts.event_texts[:2], step)
    return None


def _not_started(facts: Facts) -> Explanation | None:
    """The container, or what it needs, was not made. Batch gives 1 for an image that it cannot pull, which programs
    give too: there only docker's words in the agent's log tell."""
    code = facts.status.exit_code
    if code == PULL_FAILED:
        return _by(NOT_STARTED, filter(DOCKER_WORDS.search, facts.agent), *facts.whose)
    if code is not None and code != DOCKER_FAILED and code < OWN:
        return None
    printed = list(facts.lines or ())[::-1]
    found = _by(NOT_STARTED, [*printed, *facts.agent], *facts.whose)
    if found is not None or code != DOCKER_FAILED:
        return found
    step = "the lines are docker's own; look at image, entrypoint, docker_options and mounts"
    shown = outcome.last(facts.lines) or tuple(facts.agent[2::-1])
    return _because("container", "docker did not start the container (exit code 125)", (*shown, *facts.whose), step)


def _outcome(facts: Facts) -> Explanation | None:
    """What the exit code and the end of the log say."""
    code = facts.status.exit_code
    if code is None or code >= OWN:
        return None
    told = outcome.explain(outcome.Ended(code, facts.lines, facts.gpus))
    if told is None:
        return None
    return replace(told, evidence=(*told.evidence, *facts.whose), next_step=OF_BATCH.get(told.cause, told.next_step))


def _unknown(facts: Facts) -> Explanation:
    status = facts.status
    told = (f"the job is {status.phase} ({status.native}), {status.reason or 'without a reason'}",)
    step = f"`gcloud batch jobs describe {facts.ref.id} --location {facts.scope.region}` shows all that Batch knows"
    return _because("unknown", "unknown: no known cause fits what could be read", (*told, *facts.event_texts[:4]), step)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


_ORDER: dict[Phase, tuple[Callable[[Facts], Explanation | None], ...]] = {
    Phase.QUEUED: (_held, _queued),
    Phase.STARTING: (_held, _agent, _starting),
    Phase.RUNNING: (_waiting_again, _parallel, _well),
    Phase.SUCCEEDED: (_well,),
    Phase.FAILED: (_ended_by_someone, _own_code, _never_began, _not_started, _outcome),
}
