"""Diagnosis of Google Batch jobs from their events, tasks and logs. Reads only, each when a rule first needs it."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar

from accel.clouds.google.api import Google
from accel.diagnostics.errors import NotFound

from ..base import Explanation, JobRef, Phase, Status
from ..google_batch import logs
from ..google_batch.labels import Scope
from ..google_batch.lookup import KEPT, BatchJob, Task, look
from ..google_batch.status import deciding_task, gpus, representative_tasks, state_time, status_of
from . import outcome, words
from .cause import DEPLOY
from .engine import LazyFacts, Rule, diagnose, match, newest, row, within

_LOGS = "logging.logEntries.list"


class BatchFacts(LazyFacts):
    """Facts about one job, as of now."""

    PLATFORM = "google_batch"
    MISSING_IS_UNREAD = False
    NEXT_STEPS: ClassVar = {
        "container-gpu": "leave install_drivers and boot_image out, and `--gpus` out of docker_options: Batch sets it "
        "itself",
        "disk-full": "write to a bucket, or give disk_gib or a disk of its own (google_batch.disks)",
        "gpu-not-visible": "the image's CUDA must not be newer than the driver that Batch installs: leave "
        "driver_version and boot_image out, and build the image for an older CUDA if that is not enough",
        "mount": "of a bucket: is it there, and has the account that jobs run as roles/storage.objectUser on it? of "
        "NFS: server, path, and a firewall that lets the VMs to it",
        "not-offered": "`accel-jobs offers` shows the zones that have it; give those to the job (google_batch.zones) "
        "or to the target",
    }

    def __init__(self, google: Google, scope: Scope, ref: JobRef, job: BatchJob) -> None:
        super().__init__()
        self.google, self.scope, self.ref, self.job = google, scope, ref, job

    def texts(self, kind: str) -> Sequence[str]:
        """Return the job's events, all or those since it began to run, or lines of Batch's agent, newest first."""
        match kind:
            case "event":
                return [event.text for event in reversed(self.job.events)]
            case "event-since-start":
                start = state_time(self.job, "RUNNING", oldest=True)
                after = [event for event in self.job.events if start and event.at and event.at > start]
                return [event.text for event in reversed(after)]
            case "agent":
                return self.agent
            case _:
                return super().texts(kind)

    def unknown(self) -> Explanation:
        status = self.status
        state = f"the job is {status.phase} ({status.native}), {status.reason or 'without a reason'}"
        step = f"`gcloud batch jobs describe {self.ref.id} --location {self.scope.region}` shows all that Batch knows"
        return self.explanation("unknown", evidence=(state, *self.texts("event")[:4]), next_step=step)

    @cached_property
    def tasks(self) -> list[Task]:
        """Tasks that show how the job is doing."""
        return self.read("batch.tasks.list", lambda: representative_tasks(self.google, self.scope, self.job)) or []

    @cached_property
    def status(self) -> Status:
        return status_of(self.ref, self.job, self.tasks)

    @cached_property
    def task(self) -> Task | None:
        return deciding_task(self.job, self.tasks)

    @cached_property
    def agent(self) -> list[str]:
        """End of the agent's log, newest first. Empty if logs go to a mount."""
        if self.job.logs_path:
            return []
        lines = self.read(_LOGS, lambda: logs.agent(self.google, self.scope, self.job, outcome.TAIL))
        return (lines or [])[::-1]

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """End of the decisive task's log. None if it could not be read, or is in a mount."""
        if self.job.logs_path:
            return None
        index = self.task.index if self.task is not None and self.job.several else None
        entries = self.read(_LOGS, lambda: logs.newest_lines(self.google, self.scope, self.job, index, outcome.TAIL))
        return None if entries is None else tuple(line for text in entries for line in text.splitlines())

    @property
    def place(self) -> tuple[str, ...]:
        if self.task is None:
            return ()
        place = f"{self.job.several} {self.task.index} of {self.job.count}" if self.job.several else ""
        attempt = f"attempt {self.task.attempts}" if self.task.attempts > 1 else ""
        both = ", ".join(each for each in (place, attempt) if each)
        return (both,) if both else ()

    @property
    def gpus(self) -> int:
        """GPUs of a task."""
        return round(gpus(self.job))


NEW_S = 60
"""Age until which silence is no sign."""
SLOW_S = 20 * 60
"""Longest time to boot a VM. Batch gives it 18 minutes to report. Source: the event of agent-silent."""
GIVEN_UP_S = 2 * 24 * 3600 - 600
PULL_FAILED, DOCKER_FAILED, OWN = 1, 125, 50000
"""From OWN on, codes are Batch's own. 125: https://docs.docker.com/reference/cli/docker/container/run/#exit-status"""

# Unless another source is given: https://docs.cloud.google.com/batch/docs/troubleshooting
EVENTS = (
    row(
        "waits-for-quota",
        r"quota checking process decides to delay",
        "a quota of the project has no room for the job's VMs just now, and Batch waits for it",
        "wait until other machines are gone, or have the quota raised: `stacks quota --request` writes the request",
    ),
    # https://github.com/amnahsiddiqa/cloud_nfcore_pipelines
    words.QUOTA,
    row(
        "no-capacity",
        words.STOCKOUT,
        "its zones have no such machine just now",
        "Batch asks again by itself; more zones, another GPU, Spot or flex-start may be quicker: `accel-jobs offers`",
    ),
    row(
        "agent-silent",
        r"no VM has agent reporting correctly",
        "its VMs have booted, and Batch's agent on them has not reported in time",
        "the account that jobs run as needs roles/batch.agentReporter; VMs without an address of their own need "
        "Private Google Access on the subnetwork; a boot image of your own must be made from a recent one of Batch's",
    ),
    row(
        "service-account",
        r"SERVICE_ACCOUNT_MISMATCH",
        "the instance template has another account than the one that the job runs as",
    ),
    *words.GOOGLE,
    row(
        "template",
        r"INVALID_FIELD_VALUE,BACKEND_ERROR",
        "the instance template makes no VM that Batch can use",
        "make a managed instance group of it by hand: its errors say more",
    ),
    row("refused", r"Batch Error: code|creation failed", "its VMs cannot be made", "the evidence has Google's words"),
)

AGENT = (
    # https://github.com/nextflow-io/nextflow/issues/3273
    row(
        "agent-permission",
        r"batch\.states\.report",
        "the account that jobs run as may not report to Batch, so the job stays as it is and its VMs cost money",
        f"it needs roles/batch.agentReporter on the project: {DEPLOY}; cancel this job",
    ),
    row(
        "agent-outdated",
        r"outdated Batch (agent|image) version",
        "the VMs' boot image, or Batch's agent in it, is too old",
        "leave boot_image out, or make yours anew from a recent image of Batch's",
    ),
)
"""Words of the agent's log while a job does not begin."""

NOT_STARTED = (
    # https://github.com/nextflow-io/nextflow/issues/3273
    words.CONTAINER_GPU,
    # The first are from Cloud Life Sciences (https://github.com/DataBiosphere/dsub/issues/229) and the installer
    # (https://github.com/GoogleCloudPlatform/cos-gpu-installer/issues/80); Batch's own words for it were not found.
    row(
        "driver-not-ready",
        r"install\w* (nvidia |gpu )*drivers?.*(exit status [1-9]|fail|error(?!: ?<nil>))"
        r"|fail\w* to (download|install|load|build).*(driver|gpu_default_version|nvidia)",
        "the GPU driver was not installed on the VM",
        "retry: a download may have failed; VMs without an address of their own reach it by Cloud NAT and Private "
        "Google Access; leave driver_version and boot_image out, so that Batch takes a driver that fits",
    ),
    words.IMAGE_PLATFORM,
    words.EXEC_FORMAT,
    words.MOUNT,
    words.PULL_DENIED,
    *within(r"docker|pull|manifest|image|registry|pkg\.dev|gcr\.io", words.PULL),
    row("secret-unreadable", r"secret\w*.*(denied|not found|disabled|destroyed)"),
    row(
        "mount",
        r"fail\w* to mount|(gcsfuse|mount\b).*(fail|error(?!: ?<nil>)|denied|exit status [1-9]|not exist|timed out)",
    ),
)
"""Words at the end of a log and of the agent's, if the command was not started."""

DOCKER_WORDS = re.compile(r"\bdocker\b|error response from daemon", re.IGNORECASE)
"""Words of docker, written by itself or by the agent."""

OWN_CODES = {
    50001: (
        "preempted",
        "its Spot VM was preempted, and its attempts were used up",
        "give lost_retries (at most 10 in all), save and resume, or `spot: false`, which asks for VMs that stay",
    ),
    50002: (
        "vm-silent",
        "Batch heard no more from its VM: it crashed, or was out of memory or network",
        "retry; if it comes again, look at the job's use of memory, and give it a larger machine",
    ),
    50003: ("vm-rebooted", "its VM rebooted while it ran", "retry, with lost_retries"),
    50004: (
        "vm-unresponsive",
        "its task did not answer, and could not be stopped",
        "retry, with lost_retries; if it comes again, look at the job's use of memory and disk",
    ),
    50005: (
        "timeout",
        "it ran longer than timeout_s, or a step of it longer than its own timeout_s",
        "raise it, or save and resume; the evidence does not tell which of the two it was",
    ),
    50006: ("vm-recreated", "its VM was recreated while it ran", "retry, with lost_retries"),
}
"""Cause, reason and next step by exit codes of Batch's own."""


def explain(google: Google, scope: Scope, ref: JobRef) -> Explanation:
    try:
        job = look(google, scope, ref.id)
    except NotFound as missing:
        where = f"Batch in {scope.region} of project {scope.project} has no job {ref.id}"
        return BatchFacts.explanation("unknown-job", where, (missing.message,), f"check the reference; {KEPT}")
    facts = BatchFacts(google, scope, ref, job)
    return diagnose(facts, (_stopping,) if job.state == "CANCELLATION_IN_PROGRESS" else RULES[facts.status.phase])


def _queued(facts: BatchFacts) -> Explanation:
    if facts.age_s(facts.status.created) < NEW_S:
        return facts.explanation("new")
    step = "wait: Batch gives no reason, and gives up after two days; google_batch.priority puts a job before others"
    return facts.explanation("queued", "Batch has the job, and has not begun with it", facts.texts("event")[:3], step)


def _starting(facts: BatchFacts) -> Explanation:
    if facts.age_s(facts.status.created) < SLOW_S:
        return facts.explanation("machine-starting", evidence=facts.texts("event")[:3])
    step = (
        "VMs that boot and do not report end the job after a while; has the account that jobs run as "
        "roles/batch.agentReporter, and the subnetwork Private Google Access?"
    )
    reason = "its machines are still being made, or boot"
    return facts.explanation("machine-starting", reason, facts.texts("event")[:3], step)


def _stopping(facts: BatchFacts) -> Explanation:
    return facts.explanation("stopping", evidence=facts.texts("event")[:1])


def _hindrance(facts: BatchFacts, more: Iterable[str] = ()) -> Explanation | None:
    return match(facts, EVENTS, facts.texts("event-since-start"), more)


def _starts_again(facts: BatchFacts) -> Explanation | None:
    counts = facts.job.counts
    if counts.get("RUNNING") or counts.get("ASSIGNED") or not counts.get("PENDING"):
        return None
    if hindrance := _hindrance(facts):
        return hindrance
    failures = [event.text for task in facts.tasks for event in task.failures]
    reason = "a task was lost or failed, and waits for another VM"
    return facts.explanation("starts-again", reason, failures[-3:], "wait") if failures else None


def _parallelism(facts: BatchFacts) -> Explanation | None:
    counts, most = facts.job.counts, facts.job.group.get("parallelism")
    running = counts.get("RUNNING", 0) + counts.get("ASSIGNED", 0)
    if not counts.get("PENDING") or facts.job.several != "task":
        return None
    evidence = (f"{counts['PENDING']} tasks wait, {running} run", f"parallelism is {most or 'left to Batch'}")
    hindrance = _hindrance(facts, evidence)
    if hindrance and (most is None or running < int(most)):
        return hindrance
    step = "`parallelism` in the job file lets more run at once, up to 5,000; quotas and capacity may be smaller"
    return facts.explanation("parallelism", evidence=evidence, next_step=step)


def _well(facts: BatchFacts) -> Explanation:
    if facts.status.phase is not Phase.SUCCEEDED:
        return facts.explanation("running")
    state = facts.job.state
    odd = () if state == "SUCCEEDED" else (f"Batch calls it {state}, and all tasks succeeded",)
    return facts.explanation("succeeded", evidence=odd)


def _ended_by_someone(facts: BatchFacts) -> Explanation | None:
    if facts.job.state == "DELETION_IN_PROGRESS":
        events = facts.texts("event")[:1]
        return facts.explanation("deleted", "someone deletes the job", events, "submit the job file again")
    if facts.job.state != "CANCELLED":
        return None
    return facts.explanation("stopped", evidence=facts.texts("event")[:1])


def _own_code(facts: BatchFacts) -> Explanation | None:
    """Judge the decisive attempt: codes of earlier ones do not count."""
    code = facts.status.exit_code
    if code not in OWN_CODES:
        return None
    cause, reason, step = OWN_CODES[code]
    ends = facts.task.failures[-1:] if facts.task else []
    lost = f"{facts.status.lost} attempts lost their VM" if (facts.status.lost or 0) > 1 else ""
    evidence = (*(event.text for event in ends), *facts.place, lost)
    return facts.explanation(cause, reason, evidence if any(evidence) else facts.texts("event")[:1], step)


def _never_began(facts: BatchFacts) -> Explanation | None:
    if facts.status.started is not None:
        return None
    explained = match(facts, EVENTS, facts.texts("event")) or match(facts, AGENT, facts.agent)
    if explained is not None or facts.task is not None:
        return explained
    stopped, created = facts.status.stopped, facts.status.created
    if stopped and created and (stopped - created).total_seconds() >= GIVEN_UP_S:
        reason = "it waited for two days, and Batch gave it up"
        step = "a smaller or another machine, more zones, or a quota that is raised; then `accel-jobs retry REF`"
        return facts.explanation("waited-too-long", reason, facts.texts("event")[:2], step)
    return None


def _not_started(facts: BatchFacts) -> Explanation | None:
    """Trust only docker's words for code 1: programs give it, and Batch for an image that it cannot pull."""
    code = facts.status.exit_code
    if code == PULL_FAILED:
        return match(facts, NOT_STARTED, filter(DOCKER_WORDS.search, facts.agent), facts.place)
    if code is not None and code != DOCKER_FAILED and code < OWN:
        return None
    printed = list(facts.lines or ())[::-1]
    explained = match(facts, NOT_STARTED, [*printed, *facts.agent], facts.place)
    if explained is not None or code != DOCKER_FAILED:
        return explained
    step = "the lines are docker's own; look at image, entrypoint, docker_options and mounts"
    lines = outcome.last(facts.lines) or tuple(facts.agent[2::-1])
    reason = "docker did not start the container (exit code 125)"
    return facts.explanation("not-started", reason, (*lines, *facts.place), step)


def _program(facts: BatchFacts) -> Explanation | None:
    """Take OWN for no code: Batch gives it to a task that failed for a reason that it does not know. Source: exitCode
    in https://docs.cloud.google.com/batch/docs/reference/rest/v1/StatusEvent"""
    code = facts.status.exit_code
    known = None if code is None or code >= OWN else code
    return outcome.program_failure(facts, outcome.FailedAttempt(known, facts.lines, facts.gpus), facts.place)


RULES: dict[Phase, tuple[Rule[BatchFacts], ...]] = {
    Phase.QUEUED: (newest("event", EVENTS), _queued),
    Phase.STARTING: (newest("event", EVENTS), newest("agent", AGENT), _starting),
    Phase.RUNNING: (_starts_again, _parallelism, _well),
    Phase.SUCCEEDED: (_well,),
    Phase.FAILED: (_ended_by_someone, _own_code, _never_began, _not_started, _program),
}
