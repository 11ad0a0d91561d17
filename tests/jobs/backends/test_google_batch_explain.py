"""Why jobs on Google Batch wait and fail, from the words of Google, its agent and docker; and the page of them all."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from accel.clouds.google.api import Google
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from jobs.backends.base import Explanation
from jobs.backends.diagnosis import causes
from jobs.backends.diagnosis.google_batch import explain
from jobs.backends.google_batch.lookup import BatchJob, Task
from tests.jobs.backends.google_batch_jobs import NAME, REF, SCOPE, ended, event, failed_by, job, moved, ran, task

CAUSES = causes.of_platform("google_batch")


Lines = Sequence[str] | None
"""The end of a log; None: it may not be read."""


class Fake(Google):
    """A job as Google tells of it, without one."""

    def __init__(self, found: BatchJob | None, *tasks: Task, agent: Lines = (), printed: Lines = ()) -> None:
        super().__init__()
        self.found, self.tasks, self.logs = found, tasks, {"batch_agent_logs": agent, "batch_task_logs": printed}

    def get(self, api: str, path: str, **query: object) -> dict[str, Any]:
        assert api == "batch"
        if "/tasks/" in path:
            return self._one(path.rpartition("/")[2])
        if self.found is None:
            raise NotFound(f"{path} was not found")
        return self.found.body

    def _one(self, index: str) -> dict[str, Any]:
        for each in self.tasks:
            if each.index == int(index):
                return each.body
        raise NotFound(f"task {index} was not found")

    def pages(self, api: str, path: str, member: str, **query: object) -> Any:
        assert (api, member) == ("batch", "tasks")
        state = str(query.get("filter") or "").removeprefix("State=")
        yield from (each.body for each in self.tasks if state in ("", each.state))

    def post(self, api: str, path: str, body: Any, *, repeat: bool = False, **query: object) -> dict[str, Any]:
        assert (api, path, body["orderBy"]) == ("logging", "v2/entries:list", "timestamp desc")
        lines = next(lines for log, lines in self.logs.items() if log in body["filter"])
        if lines is None:
            raise CloudRefused("permission logging.logEntries.list is missing on p")
        return {"entries": [{"textPayload": line} for line in lines[::-1]]}


def told(found: BatchJob, *tasks: Task, **logs: Any) -> Explanation:
    answer = explain(Fake(found, *tasks, **logs), SCOPE, REF)
    assert answer.cause in CAUSES and answer.reason
    assert answer.next_step or answer.cause == "succeeded"
    return answer


SCHEDULED = moved(1, "QUEUED", "SCHEDULED")
RUN = [SCHEDULED, moved(2, "SCHEDULED", "RUNNING")]
EVENTS = {
    "Quota checking process decides to delay scheduling for the job j-uid due to inadequate quotas [Quota: "
    "GPUS_ALL_REGIONS, limit: 0, usage: 0, wanted: 1.].": "waits-for-quota",
    "VM in Managed Instance Group meets error: Batch Error: code - CODE_GCE_QUOTA_EXCEEDED, description - error count "
    "is 4, latest message example: Instance 'n-0' creation failed: Quota 'N2_CPUS' exceeded.  Limit: 24.0": "quota",
    "VM in Managed Instance Group meets error: Batch Error: code - CODE_GCE_ZONE_RESOURCE_POOL_EXHAUSTED, description "
    "- error count is 1": "no-capacity",
    "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request.": "no-capacity",
    "No VM has agent reporting correctly within time window 1080 seconds, VM state for instance n is "
    "2026-11-22T03:00:00Z,agent,start": "agent-silent",
    "Batch Error: code - CODE_SERVICE_ACCOUNT_MISMATCH, description - The service account specified in the instance "
    "template a doesn't match the service account specified in the job b": "service-account",
    "Instance n creation failed: Constraint constraints/compute.vmExternalIpAccess violated for project 1.": (
        "address-policy"
    ),
    "Instance n creation failed: Constraint constraints/compute.trustedImageProjects violated for project p. Use of "
    "images from project batch-custom-image is prohibited.": "image-policy",
    "Instance n creation failed: Constraint constraints/compute.requireShieldedVm violated": "policy",
    "Batch Error: code - CODE_GCE_INVALID_FIELD_VALUE, description - Machine type with name 'a3-highgpu-8g' does not "
    "exist in zone 'us-central1-f'.": "not-offered",
    "Batch Error: code - X, description - 'projects/p/global/networks/ml' was not found": "network-missing",
    "Batch Error: code - X, description - The resource 'projects/p/global/images/old' was not found": (
        "boot-image-missing"
    ),
    "Batch Error: code - X, description - reservation r has no capacity": "reservation",
    "Permission 'compute.reservations.use' denied on resource 'projects/p/zones/z/reservations/r'": "permission",
    # https://github.com/GoogleCloudPlatform/cluster-toolkit/issues/2389
    "Instance 'n-0' creation failed: IP space of 'projects/p/regions/r/subnetworks/s' is exhausted.": "no-addresses",
    # https://github.com/kubernetes/k8s.io/issues/9834
    "Instance 'n-0' creation failed: A n1-standard-4 VM instance with 1 nvidia-tesla-t4 accelerator(s) is currently "
    "unavailable in the us-central1-b zone. Consider trying your request in the us-central1-a zone(s).": "no-capacity",
    # https://github.com/nextflow-io/nextflow/issues/5550
    "Job gets non-retryable information Batch Error: code - CODE_GCE_INVALID_FIELD_VALUE, description - No zone "
    "supports all of the provided instance templates. The resource 'projects/6/zones/europe-north1-a/acceleratorTypes/"
    "nvidia-tesla-t4' was not found": "not-offered",
    "Invalid value for field 'resource.networkInterfaces[0].network': 'projects/p/global/networks/x'. The referenced "
    "network resource cannot be found.": "network-missing",
    "Invalid value for field 'resource.disks[0].initializeParams.sourceImage': 'projects/debian-cloud/global/images/"
    "family/debian-9'. The referenced image resource cannot be found.": "boot-image-missing",
    "The service account runner@p.iam.gserviceaccount.com does not exist": "account-missing",
    "INVALID_FIELD_VALUE,BACKEND_ERROR": "template",
    "Batch Error: code - CODE_GCE_BAD_REQUEST, description - googleapi: Error 400: something new": "refused",
}
"""By the words of an event of a job; where they are seen, see words.py."""


@pytest.mark.parametrize(("text", "cause"), EVENTS.items())
def test_events_of_jobs_that_wait_and_that_never_began(text: str, cause: str) -> None:
    waits = told(job("SCHEDULED", SCHEDULED, event(3, text)))
    failed = told(job("FAILED", SCHEDULED, event(3, text), moved(9, "SCHEDULED", "FAILED")))
    assert (waits.cause, failed.cause) == (cause, cause)
    assert text[:60] in waits.evidence[0]
    assert told(job("QUEUED", event(0, text))).cause == cause


def test_the_newest_event_counts() -> None:
    quota, stockout = [text for text, cause in EVENTS.items() if cause in ("quota", "no-capacity")][:2]
    assert told(job("SCHEDULED", SCHEDULED, event(3, quota), event(5, stockout))).cause == "no-capacity"


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def test_jobs_of_which_nothing_is_said() -> None:
    assert told(job("QUEUED", createTime=now())).cause == "new"
    assert told(job("QUEUED", createTime="2020-01-01T00:00:00Z")).cause == "queued"
    assert told(job("SCHEDULED", SCHEDULED, createTime=now())).cause == "machine-starting"
    assert "agentReporter" in told(job("SCHEDULED", SCHEDULED, createTime="2020-01-01T00:00:00Z")).next_step
    gave_up = job("FAILED", moved(0, "", "QUEUED"), moved(2 * 24 * 60, "QUEUED", "FAILED"))
    assert told(gave_up).cause == "waited-too-long"
    assert told(job("FAILED", moved(9, "QUEUED", "FAILED"))).cause == "unknown"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "report agent state: rpc error: code = PermissionDenied desc = Permission 'batch.states.report' denied on "
            "resource 'projects/1/locations/us-central1'",
            "agent-permission",
        ),
        (
            "rpc error: code = FailedPrecondition, desc = Invalid resource state for cloud-batch-agent_20221103.00_p00 "
            ": outdated Batch agent version used.",
            "agent-outdated",
        ),
        (
            "rpc error: code = FailedPrecondition, desc = Invalid resource state for batch-debian-11-20220909-00-p00 : "
            "outdated Batch image version.",
            "agent-outdated",
        ),
    ],
)
def test_agents_that_do_not_report(line: str, cause: str) -> None:
    assert told(job("SCHEDULED", SCHEDULED), agent=["well", line, "more"]).cause == cause
    assert told(job("FAILED", SCHEDULED, moved(9, "SCHEDULED", "FAILED")), agent=[line]).cause == cause


CODES = {
    50001: "preempted", 50002: "vm-silent", 50003: "vm-rebooted", 50004: "vm-unresponsive", 50005: "timeout",
    50006: "vm-recreated",
}  # fmt: skip


@pytest.mark.parametrize(("code", "cause"), CODES.items())
def test_codes_of_batchs_own(code: int, cause: str) -> None:
    failed = job("FAILED", *RUN, failed_by(20, code), counts={"FAILED": 1})
    answer = told(failed, task("FAILED", ran(2), ended(9, 50001), ran(10), ended(20, code)))
    assert answer.cause == cause and f"exit code {code}" in answer.evidence[0]
    assert told(failed).cause == cause, "without its task"


def test_an_attempt_before_does_not_count() -> None:
    """It was preempted, tried again, and then failed by itself; or succeeded."""
    lost = [ran(2), ended(9, 50001), ran(10)]
    failed = told(job("FAILED", *RUN, failed_by(20, 3)), task("FAILED", *lost, ended(20, 3)), printed=["oh no"])
    assert failed.cause == "exit-code" and "oh no" in failed.evidence and "attempt 2" in failed.evidence
    wrong = job("FAILED", *RUN, failed_by(9, 50001), counts={"SUCCEEDED": 1})
    well = told(wrong, task("SUCCEEDED", *lost, ran(30, "SUCCEEDED", "RUNNING")))
    assert well.cause == "succeeded" and "FAILED" in well.evidence[0]


DOCKER = "docker: Error response from daemon:"
NOT_STARTED = {
    f'{DOCKER} could not select device driver "" with capabilities: [[gpu]].': "container-gpu",
    "installing drivers: installing GPU drivers: exit status 255": "driver-not-ready",
    "failed to download gpu_default_version, status: 401 Unauthorized": "driver-not-ready",
    f"{DOCKER} no matching manifest for linux/amd64 in the manifest list entries.": "image-platform",
    f"{DOCKER} pull access denied for acme/x, repository does not exist": "image-forbidden",
    f'{DOCKER} Permission "artifactregistry.repositories.downloadArtifacts" denied on resource': "image-forbidden",
    f"{DOCKER} manifest for us-docker.pkg.dev/a/b:c not found: manifest unknown": "image-missing",
    f"{DOCKER} Get https://us-docker.pkg.dev/v2/: dial tcp 64.233.1.1:443: i/o timeout": "image-unreachable",
    "mount: gcsfuse exit status 1: bucket acme does not exist": "mount",
    f"{DOCKER} failed to create task: error mounting '/mnt/x' to rootfs: not a directory": "mount",
    "secret projects/p/secrets/s/versions/1: Permission denied": "secret-unreadable",
    f"{DOCKER} OCI runtime create failed: something else": "not-started",
}


@pytest.mark.parametrize(("line", "cause"), NOT_STARTED.items())
@pytest.mark.parametrize("log", ["agent", "printed"])
def test_containers_that_did_not_start(line: str, cause: str, log: str) -> None:
    failed = job("FAILED", *RUN, failed_by(20, 125), counts={"FAILED": 1})
    answer = told(failed, task("FAILED", ran(2), ended(20, 125)), **{log: [line]})
    assert answer.cause == cause


def test_an_image_that_cannot_be_pulled_ends_with_1_too() -> None:
    failed = job("FAILED", *RUN, failed_by(20, 1), counts={"FAILED": 1})
    seen = task("FAILED", ran(2), ended(20, 1))
    pull = f"{DOCKER} pull access denied for acme/x, repository does not exist"
    assert told(failed, seen, agent=[pull]).cause == "image-forbidden"
    assert told(failed, seen, agent=["installing drivers: exit status 3"], printed=["Traceback"]).cause == "exit-code"
    assert told(failed, seen, printed=["registry: access denied: said the program"]).cause == "exit-code"


def test_what_a_program_says() -> None:
    failed = job("FAILED", *RUN, failed_by(20, 1), counts={"FAILED": 1})
    seen = task("FAILED", ran(2), ended(20, 1))
    assert told(failed, seen, printed=["torch.OutOfMemoryError: CUDA out of memory"]).cause == "cuda-out-of-memory"
    driver = told(failed, seen, printed=["RuntimeError: Found no NVIDIA driver on your system"])
    assert driver.cause == "gpu-not-visible" and "ECS" not in driver.next_step
    killed = job("FAILED", *RUN, failed_by(20, 137), counts={"FAILED": 1})
    assert told(killed, task("FAILED", ran(2), ended(20, 137))).cause == "killed"


def test_a_task_that_failed_for_a_reason_that_batch_does_not_know() -> None:
    failed = job("FAILED", *RUN, failed_by(20, 50000), counts={"FAILED": 1})
    seen = task("FAILED", ran(2), ended(20, 50000))
    assert told(failed, seen, printed=["torch.OutOfMemoryError: CUDA out of memory"]).cause == "cuda-out-of-memory"
    assert told(failed, seen, printed=["bye"]).cause == "unknown"


def test_lines_are_shown_in_the_order_in_which_they_were_written() -> None:
    lines = ["Traceback (most recent call last):", 'File "t.py", line 3, in <module>', "ValueError: bad"]
    failed = job("FAILED", *RUN, failed_by(20, 1), counts={"FAILED": 1})
    seen = task("FAILED", ran(2), ended(20, 1))
    assert list(told(failed, seen, printed=lines).evidence) == lines
    silent = job("FAILED", *RUN, failed_by(20, 125), counts={"FAILED": 1})
    agent = ["starts the container", "the container was not started", "gives up"]
    assert list(told(silent, task("FAILED", ran(2), ended(20, 125)), agent=agent).evidence) == agent


def test_what_may_not_be_read_says_nothing() -> None:
    failed = job("FAILED", *RUN, failed_by(20, 1), counts={"FAILED": 1})
    answer = told(failed, task("FAILED", ended(20, 1)), agent=None, printed=None)
    assert answer.cause == "exit-code" and "its log was not read" in answer.evidence
    assert answer.unread == ("logging.logEntries.list: permission logging.logEntries.list is missing on p",)
    path = job("FAILED", *RUN, failed_by(20, 1), logsPolicy={"destination": "PATH", "logsPath": "/mnt/l"})
    assert told(path, task("FAILED", ended(20, 1)), agent=None, printed=None).unread == ()


def test_running_jobs() -> None:
    assert told(job("RUNNING", *RUN, counts={"RUNNING": 1})).cause == "running"
    again = job("RUNNING", *RUN, counts={"PENDING": 1})
    lost = task("PENDING", ran(2), ended(9, 50001))
    assert told(again, lost).cause == "starts-again"
    stockout = next(text for text, cause in EVENTS.items() if cause == "no-capacity")
    held = job("RUNNING", *RUN, event(10, stockout), counts={"PENDING": 1})
    assert told(held, lost).cause == "no-capacity"
    array: dict[str, Any] = {"group": {"taskCount": "100", "parallelism": "10"}}
    assert told(job("RUNNING", *RUN, counts={"RUNNING": 10, "PENDING": 90}, **array)).cause == "parallelism"
    fewer = job("RUNNING", *RUN, event(10, stockout), counts={"RUNNING": 4, "PENDING": 96}, **array)
    assert told(fewer).cause == "no-capacity"
    assert told(job("SUCCEEDED", *RUN)).cause == "succeeded"


def test_jobs_that_someone_ended() -> None:
    assert told(job("CANCELLATION_IN_PROGRESS", *RUN)).cause == "stopping"
    assert told(job("CANCELLED", *RUN)).cause == "stopped"
    assert told(job("DELETION_IN_PROGRESS", *RUN)).cause == "deleted"


def test_a_job_that_is_not_there() -> None:
    answer = explain(Fake(None), SCOPE, REF)
    assert answer.cause == "unknown-job" and NAME in answer.reason
    with pytest.raises(CloudSilent):
        explain(Silent(None), SCOPE, REF)


class Silent(Fake):
    def get(self, api: str, path: str, **query: object) -> dict[str, Any]:
        raise CloudSilent("no answer")
