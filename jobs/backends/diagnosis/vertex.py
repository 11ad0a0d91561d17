"""Diagnosis of Vertex AI's custom jobs from their state, error and the end of their log. Reads only what it needs."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from accel.clouds.google.api import Google
from accel.clouds.quota_cache import Limit
from accel.diagnostics.errors import NotFound
from accel.json_values import object_at

from .. import google_logging
from ..base import Explanation, JobRef
from ..vertex import quota
from ..vertex.labels import Scope
from ..vertex.logs import SERVICE, query, since, text_of
from ..vertex.lookup import Job, look, query_jobs
from ..vertex.status import STOCKOUT, TAKEN, loss_reason
from . import outcome, words
from .cause import RETRY, THEN_RETRY
from .engine import LazyFacts, Rule, diagnose, newest, row, span, within

TAIL_LINES = 100
SHOWN = 3
HOLDING = ("JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLING")
"""States in which jobs have machines."""


class VertexFacts(LazyFacts):
    """Facts about one custom job, as of now."""

    PLATFORM = "vertex"
    NEXT_STEPS: ClassVar = {
        "gpu-not-visible": "the image's CUDA must not be newer than the driver of Vertex's machines, and needs a build "
        "for GPUs",
        "command-not-found": "give the path of the interpreter or the command, one argument an entry",
        "disk-full": "write to a bucket (/gcs/<bucket>), or give disk_gib",
        "shared-memory": "use fewer data loader workers",
    }

    def __init__(self, google: Google, scope: Scope, job: Job) -> None:
        super().__init__()
        self._google, self._scope = google, scope
        self.job = job

    def texts(self, kind: str) -> Sequence[str]:
        """Return the job's error without what it quotes of the program: the only place where Vertex gives reasons."""
        return [_QUOTES.split(self.job.error)[0]] if kind == "error" else super().texts(kind)

    def context(self, kind: str) -> Sequence[str]:
        """Return the end of the log of the replica that the error names."""
        return outcome.last(self.lines) if self.job.failed else ()

    def unknown(self) -> Explanation:
        evidence = (f"the job is {self.job.state}", self.job.error, *self.service_log[-SHOWN:])
        return self.explanation("unknown", evidence=evidence)

    @property
    def ran_s(self) -> float:
        start, end = self.job.at("startTime"), self.job.at("endTime") or self.now
        return (end - start).total_seconds() if start else 0.0

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """End of the log of the replica that failed, or of the first. None if it could not be read."""
        return self._tail(self.replica)

    @property
    def quoted(self) -> tuple[str, ...]:
        """End of the program's output that the error quotes, where Vertex does so."""
        message = str(object_at(self.job.body, "error").get("message") or "")
        return tuple(line for part in _QUOTES.split(message)[1:] for line in _MORE.split(part)[0].splitlines())

    @property
    def replica(self) -> str:
        return self.job.failed or next(iter(self.job.replicas), "workerpool0-0")

    @cached_property
    def service_log(self) -> tuple[str, ...]:
        return self._tail(SERVICE) or ()

    def _tail(self, task: str) -> tuple[str, ...] | None:
        wanted = f'{query(self.job, task)} AND timestamp>="{since(self.job):%Y-%m-%dT%H:%M:%SZ}"'
        entries = self.read(
            "its log", lambda: google_logging.newest(self._google, self._scope.project, wanted, TAIL_LINES)
        )
        return None if entries is None else tuple(line for entry in entries for line in text_of(entry).splitlines())

    @cached_property
    def needs(self) -> Mapping[str, float]:
        """Amount of each Vertex quota that the job takes."""
        return quota.usage([self.job.spec], self._scope.region)

    @cached_property
    def usage(self) -> Mapping[str, float] | None:
        """Amounts that the region's other jobs take. None if they could not be read."""
        states = " OR ".join(f'state="{state}"' for state in HOLDING)

        def read() -> Mapping[str, float]:
            others = [each.spec for each in query_jobs(self._google, self._scope, states) if each.state in HOLDING]
            return quota.usage(others, self._scope.region)

        return self.read("the region's other jobs", read)

    @cached_property
    def limits(self) -> Mapping[str, Limit]:
        limits = quota.limits(self._google, self._scope.project, self.job.spec, self._scope.region)
        for name, limit in limits.items():
            if limit.value is None:
                self.miss(f"{name}: {limit.why}")
        return limits

    @property
    def machines(self) -> str:
        machine: dict[str, Any] = self.job.machine
        count, kind = machine.get("acceleratorCount"), machine.get("acceleratorType")
        return f"{machine.get('machineType')}{f' with {count} x {kind}' if kind else ''}"


_QUOTES = re.compile(r"Termination reason: Error\.?\s*")
"""Words after which an error quotes the program. Source: https://github.com/tensorflow/models/issues/4294"""
_MORE = re.compile(r"To find out more about why")

FLEX_WAIT_S = 24 * 3600
"""If the job sets none: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec"""
TRANSIENT = {6, 134, 11, 139}
"""Exit codes after which Vertex retries up to three times. Source: the page of the training service."""


def explain(google: Google, scope: Scope, ref: JobRef) -> Explanation:
    try:
        facts = VertexFacts(google, scope, look(google, scope, ref.id))
    except NotFound as missing:
        reason = f"project {scope.project} has no job {ref.id} in {scope.region}"
        step = "check the reference: its project and region; a job that somebody deletes is gone"
        return VertexFacts.explanation("unknown-job", reason, (missing.message,), step)
    return diagnose(facts, RULES.get(facts.job.state, ()))


def _queued(facts: VertexFacts) -> Explanation:
    waits = f"queued for {span(facts.age_s(facts.job.at('createTime')))}"
    for name, need in facts.needs.items():
        limit = facts.limits[name].value
        if limit is None or limit < 0:
            continue
        if need > limit:
            reason = f"it takes {need:g} of {name} in its region, and the limit is {limit:g}"
            step = "ask for more of it, of the Vertex AI API, or cancel the job: it waits for as long as it takes"
            return facts.explanation("quota-too-small", reason, (waits,), step)
        held = (facts.usage or {}).get(name, 0)
        if facts.usage is not None and held + need > limit:
            reason = f"it takes {need:g} of {name}, and other jobs have {held:g} of {limit:g}"
            step = "wait until they are over, cancel one, or ask for more of that quota of the Vertex AI API"
            return facts.explanation("waits-for-quota", reason, (waits,), step)
    reason = "Vertex has not taken it up yet; for want of quota a job stays so until there is some"
    return facts.explanation("queued", reason, (waits, *facts.service_log[-SHOWN:]), "wait; it is usually brief")


def _pending(facts: VertexFacts) -> Explanation:
    job, lines = facts.job, facts.service_log[-SHOWN:]
    if job.at("startTime"):
        spot = " (its Spot machines may have been preempted, for which Vertex restarts a job up to six times)"
        reason = f"it ran, and Vertex starts it again{spot if job.strategy == 'SPOT' else ''}"
        return facts.explanation("starts-again", reason, lines, "wait; a program goes on from where it saved")
    if job.strategy == "FLEX_START":
        limit = job.scheduling.get("maxWaitDuration", f"{FLEX_WAIT_S}s")
        reason = f"it waits for {facts.machines} by flex-start, for {limit} at most"
        step = "wait, or give `vertex.wait_s`; without flex-start a job without machines fails instead of waiting"
        return facts.explanation("waiting-for-capacity", reason, lines, step)
    if job.spec.get("persistentResourceId"):
        reason = f"machines of the persistent resource {job.spec['persistentResourceId']} are to run it"
        return facts.explanation("waiting-for-machines", reason, lines, "wait until they are free, or leave it out")
    reason = f"its machines ({facts.machines}) and containers are being made ready"
    evidence = (f"made {span(facts.age_s(job.at('createTime')))} ago", *lines)
    return facts.explanation("starting", reason, evidence, "wait; large images and GPUs take some minutes")


def _running(facts: VertexFacts) -> Explanation:
    return facts.explanation("running", evidence=(f"for {span(facts.ran_s)}", *outcome.last(facts.lines)))


def _stopping(facts: VertexFacts) -> Explanation:
    return facts.explanation("stopping", evidence=facts.service_log[-SHOWN:])


def _succeeded(facts: VertexFacts) -> Explanation:
    return facts.explanation("succeeded", evidence=(f"after {span(facts.ran_s)}",))


def _timeout(facts: VertexFacts) -> Explanation | None:
    """Check for a timeout. Vertex cancels a job whose time is over: https://github.com/tensorflow/tfx/issues/6223"""
    limit = str(facts.job.scheduling.get("timeout", "")).removesuffix("s")
    if not limit.replace(".", "", 1).isdigit() or facts.ran_s < float(limit):
        return None
    reason = f"it ran longer than timeout_s, which is {float(limit):g}"
    return facts.explanation("timeout", reason, (facts.job.error, *outcome.last(facts.lines)))


def _stopped(facts: VertexFacts) -> Explanation:
    return facts.explanation("stopped", evidence=(facts.job.error,))


def _expired(facts: VertexFacts) -> Explanation:
    evidence = (facts.job.error, *facts.service_log[-SHOWN:])
    return facts.explanation("expired", "Vertex gave it up", evidence, RETRY)


def _no_machines(facts: VertexFacts) -> Explanation | None:
    if not STOCKOUT.search(facts.job.error):
        return None
    if loss_reason(facts.job) == TAKEN:
        reason = f"its Spot machines ({facts.machines}) were preempted more often than Vertex restarts a job"
        step = f"{RETRY}; spot: false asks for machines that stay"
        return facts.explanation("preempted", reason, (facts.job.error,), step)
    reason = f"the region has no {facts.machines} just now; quotas do not help"
    step = f"{RETRY}; another region, another GPU, or `vertex: {{provisioning: flex-start}}`, which waits for them"
    return facts.explanation("no-capacity", reason, (facts.job.error,), step)


def _program(facts: VertexFacts) -> Explanation | None:
    code = facts.job.exit_code
    if code is None:
        return None
    several = (f"replica {facts.replica}",) if len(facts.job.replicas) > 1 else ()
    retried = ("Vertex tried again up to three times, as it does for this code",) if code in TRANSIENT else ()
    gpus = int(facts.job.machine.get("acceleratorCount") or 0)
    ended = outcome.FailedAttempt(code, facts.lines or facts.quoted or facts.lines, gpus)
    return outcome.program_failure(facts, ended, (*several, *retried))


_NOT_MADE = r"StartError|failed to create (containerd|shim) task|ContainerCannotRun"

ERRORS = (
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/1898
    *within(_NOT_MADE, words.START),
    row("not-started", _NOT_MADE),
    row(
        "compute-quota",
        r"compute\.googleapis\.com/\S+.*quota|quota\W+'?(NVIDIA_|GPUS_ALL|CPUS|SSD_TOTAL)",
        "a quota of Compute Engine has no room for its machines; it is not the one of Vertex AI",
        f"`stacks quota --request` writes the request for more; {THEN_RETRY}",
    ),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/700,
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/264
    row(
        "quota",
        r"quota metrics exceed quota limits|quotas are exceeded|quota exceeded for",
        "a quota of Vertex AI has no room for it; quotas of Compute Engine of the same name are others and do not help",
        "ask for more of the metric that is named, of the Vertex AI API in this region (Spot and flex-start have one "
        f"of their own), or wait until other jobs are over; {THEN_RETRY}",
    ),
    # https://github.com/googleapis/python-aiplatform/issues/885
    row(
        "bucket-elsewhere",
        r"must be in the same regional location",
        "a bucket that the job names is in another place than the job",
        "use a bucket of the job's own region, as the target's is (`vertex.output`, `vertex.package`)",
    ),
    words.SERVICE_ACCOUNT,
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/2176
    row(
        "image-forbidden",
        r"permission to access Artifact Registry|artifactregistry\.repositories\.downloadArtifacts|"
        r"(image|registry).*(denied|forbidden|unauthorized|permission)",
        "Vertex may not read the image: its own service agent pulls it, not the account that jobs run as",
        f"give the agent that is named roles/artifactregistry.reader on the repository; {THEN_RETRY}",
    ),
    # The words are from memory.
    row("image-missing", r"(image|manifest|tag)\b.*(not found|does not exist|unknown|no such)|name unknown"),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/2611
    row(
        "network-not-peered",
        r"NETWORK_NOT_PEERED|not peered|peering|servicenetworking|reserved ip range",
        "the job's network is not peered with Google's services, or the peering has no addresses left",
        "deploy the stack of the target with a network that has private services access, or use a network attachment",
    ),
    words.ACCOUNT_MISSING,
    words.BILLING_DISABLED,
    words.API_DISABLED,
    *words.POLICIES,
    words.PERMISSION,
    row(
        "persistent-resource",
        r"persistent ?resource",
        "the persistent resource is not there or not ready, or has no pool of such machines",
        "look at it in the console; `vertex.persistent_resource` and the job's machines must fit one of its pools",
    ),
    row(
        "reservation",
        r"reservation",
        "the reservation cannot give the machines, or is not shared with Vertex AI",
        "look at what it holds, who uses it, and that it is shared with Google services; spot: true asks elsewhere; "
        f"{THEN_RETRY}",
    ),
    # The page of the training service, and https://github.com/google/agents-cli/issues/43
    row(
        "out-of-memory",
        r"ran out[- ]of[- ]memory|low on memory|OOMKilled",
        "the memory of a machine was full, not that of its GPU; on the smallest, Vertex itself takes up to 40 %",
        "raise memory_mib, or choose a larger machine (`vertex.machine_type`)",
    ),
    row(
        "internal-error",
        r"Internal error (occurred|encountered)",
        "Vertex itself failed, and gave up after three attempts",
        f"{RETRY}; a lack of machines in the region can be behind it, and so another region may help",
    ),
    words.NOT_OFFERED,
    words.NETWORK_MISSING,
)

RULES: dict[str, tuple[Rule[VertexFacts], ...]] = {
    "JOB_STATE_QUEUED": (_queued,),
    "JOB_STATE_PENDING": (_pending,),
    "JOB_STATE_RUNNING": (_running,),
    "JOB_STATE_UPDATING": (_running,),
    "JOB_STATE_CANCELLING": (_stopping,),
    "JOB_STATE_SUCCEEDED": (_succeeded,),
    "JOB_STATE_CANCELLED": (_timeout, _stopped),
    "JOB_STATE_EXPIRED": (_expired,),
    "JOB_STATE_FAILED": (_no_machines, newest("error", ERRORS), _program),
}
