"""Why custom jobs of Vertex AI wait or failed, from the sandbox and from Vertex's own words."""

from dataclasses import replace
from typing import Any, cast

import pytest

from accel.diagnostics.errors import CloudRefused
from jobs.backends.base import Explain, Explanation, JobRef, Phase
from jobs.backends.diagnosis import causes, outcome
from jobs.backends.diagnosis.vertex import ERRORS, VertexFacts, explain
from jobs.backends.vertex.labels import Scope
from tests.jobs.backends.traceback_lines import TRACEBACK, UPRIGHT
from tests.jobs.backends.vertex_cloud import Cloud
from tests.support.soak import sampled, soak_only

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.vertex_cloud"]


@pytest.fixture
def cloud(vertex_cloud: Cloud) -> Cloud:
    return vertex_cloud


CAUSES = causes.of_platform("vertex")
CREATE = "aiplatform.projects.locations.customJobs.create"
L4 = {"accelerator": {"type": "l4", "count": 2}}
QUOTA = "aiplatform/us-central1/custom_model_training_nvidia_l4_gpus"


def run(text: str, **fields: Any) -> dict[str, Any]:
    """Of a job that really runs here."""
    return {"image": "local/examples", "command": ["sh", "-c", text], **fields}


def why(cloud: Cloud, ref: JobRef) -> Explanation:
    backend = cloud.backend()
    assert isinstance(backend, Explain)
    told = backend.explain(ref)
    assert told.cause in CAUSES and told.reason and told.next_step
    return told


def ended(cloud: Cloud, text: str, **fields: Any) -> Explanation:
    ref = cloud.backend().submit(cloud.request(f"explain {text}", **fields))
    cloud.becomes(ref, lambda status: status.phase.ended)
    return why(cloud, ref)


def refused(cloud: Cloud, message: str, **fields: Any) -> Explanation:
    """Of a job that ends with this error before it runs."""
    cloud.fake.fault(method=CREATE, fails=message)
    return ended(cloud, message, **fields)


NOT_MADE = (
    "The replica workerpool0-0 exited with a non-zero status of 128. Termination reason: StartError. \n Termination "
    "log message: failed to create containerd task: failed to create shim task: OCI runtime create failed: "
)

WORDS = [
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/700
    (
        "The following quota metrics exceed quota limits: "
        "aiplatform.googleapis.com/custom_model_training_nvidia_k80_gpus",
        "quota",
    ),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/264
    ("The following quotas are exceeded: AutoMLImageClassificationDeployedModelNodes", "quota"),
    ("Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region us-central1.", "compute-quota"),
    # https://github.com/openreview/openreview-expertise/issues/401
    (
        "Resources are insufficient in region: us-central1. Try a different region or use a different accelerator.",
        "no-capacity",
    ),
    # https://github.com/googleapis/python-aiplatform/issues/885
    (
        "The Cloud Storage bucket of `gs://model_metadata_prod/aiplatform-custom-job-2021-12-05` is in location `us`. "
        "It must be in the same regional location as the service location `us-central1`.",
        "bucket-elsewhere",
    ),
    # https://github.com/googleapis/python-aiplatform/issues/1073
    (
        "You do not have permission to act as service_account: 1-compute@developer.gserviceaccount.com. "
        "(or it may not exist).",
        "service-account",
    ),
    (
        "Vertex AI Service Agent service-1@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does not have permission to "
        "access Artifact Registry repository projects/p/locations/europe-west4/repositories/r.",
        "image-forbidden",
    ),
    (
        "Error NETWORK_NOT_PEERED",
        "network-not-peered",
    ),  # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/2611
    # https://github.com/google/agents-cli/issues/43
    ("Replicas low on memory: workerpool0. Specify a machine with larger memory and try again.", "out-of-memory"),
    ("The replica workerpool0-0 ran out of memory and exited with a non-zero status of 9.", "out-of-memory"),
    ("Internal error occurred for the current attempt", "internal-error"),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/1898
    (
        "The replica workerpool0-0 exited with a non-zero status of 128. Termination reason: StartError. \n "
        "Termination log message: failed to create containerd task: failed to create shim task: OCI runtime create "
        'failed: exec: "trainer.task": executable file not found in $PATH',
        "command-not-found",
    ),
    (f'{NOT_MADE}exec: "/app/run.sh": permission denied: unknown', "command-not-executable"),
    (f'{NOT_MADE}exec: "/app/run": exec format error: unknown', "image-platform"),
    (f"{NOT_MADE}nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6", "container-gpu"),
    (f"{NOT_MADE}mkdir /var/lib/containerd/x: no space left on device", "disk-full"),
    (f"{NOT_MADE}something else", "not-started"),
    ("Internal error encountered.", "internal-error"),
    ("Image us-docker.pkg.dev/p/r/train:2 not found.", "image-missing"),
    ("PersistentResource projects/1/locations/us-central1/persistentResources/x is not found.", "persistent-resource"),
    ("Machine type a9-highgpu-1g is not supported.", "not-offered"),
    ("Reservation projects/p/zones/z/reservations/r cannot be used.", "reservation"),
    ("Permission 'compute.reservations.get' denied on projects/p/zones/z/reservations/r.", "permission"),
    ("Vertex AI API has not been used in project 1 before or it is disabled.", "api-disabled"),
    (
        "This API method requires billing to be enabled. Please enable billing on project #1 then retry.",
        "billing-disabled",
    ),
    ("runner@p.iam.gserviceaccount.com does not have storage.objects.get access to the object.", "permission"),
    ("Service account runner@p.iam.gserviceaccount.com does not exist.", "account-missing"),
    ("Constraint constraints/compute.vmExternalIpAccess violated for project 1.", "address-policy"),
    ("Constraint constraints/compute.trustedImageProjects violated for project p.", "image-policy"),
    ("Constraint constraints/gcp.resourceLocations violated for project p.", "policy"),
    ("The resource 'projects/p/global/networks/ml' was not found", "network-missing"),
    ("Something that nobody has seen before", "unknown"),
]


@pytest.mark.parametrize(
    ("message", "cause"),
    sampled(WORDS, [WORDS[0], WORDS[3], WORDS[-1]]),
    ids=[f"{cause}-{i}" for i, (_, cause) in enumerate(WORDS)],
)
def test_words_of_vertex(cloud: Cloud, message: str, cause: str) -> None:
    told = refused(cloud, message)
    assert told.cause == cause
    assert any(" ".join(message.split())[:60] in line for line in told.evidence)


def test_every_row_of_words_is_met() -> None:
    known = [(message, cause) for message, cause in WORDS if cause not in ("no-capacity", "unknown")]
    met = [next(row for row in ERRORS if row.fits(message)) for message, _ in known]
    assert [row.cause for row in met] == [cause for _, cause in known]
    assert {row.cause for row in ERRORS} == {row.cause for row in met}
    assert {row.cause for row in ERRORS} | {*VertexFacts.NEXT_STEPS} <= CAUSES.keys()
    assert {row.cause for row in outcome.WORDS} | {*outcome.SHELL.values()} <= CAUSES.keys()


def test_a_job_that_waits_for_quota(cloud: Cloud) -> None:
    """Numbers, where they can be read; and nothing is claimed where they cannot."""
    cloud.fake.fault(quota={QUOTA: 3})
    first = cloud.backend().submit(cloud.request("holds", **run("sleep 60", **L4)))
    cloud.becomes(first, lambda status: status.phase is Phase.RUNNING)
    second = cloud.backend().submit(cloud.request("waits", **run("sleep 60", **L4)))
    told = why(cloud, second)
    assert (
        told.cause == "waits-for-quota" and "it takes 2 of" in told.reason and "other jobs have 2 of 3" in told.reason
    )
    cloud.proxy.faults["GET jobs"] = ["403"]
    blind = why(cloud, second)
    assert blind.cause == "queued" and any("the region's other jobs" in line for line in blind.unread)
    cloud.fake.fault(quota={QUOTA: 1})
    assert why(cloud, second).cause == "quota-too-small"
    cloud.backend().cancel(second, "")
    assert why(cloud, cloud.backend().submit(cloud.request("holds", **run("sleep 60", **L4)))).cause == "running"


def test_a_job_that_is_made_ready(cloud: Cloud) -> None:
    cloud.fake.fault(method=CREATE, delay_s=3)
    ref = cloud.backend().submit(cloud.request("ready", **L4))
    cloud.becomes(ref, lambda status: status.phase is Phase.STARTING)
    told = why(cloud, ref)
    assert told.cause == "starting" and "g2-standard" in told.reason and "2 x NVIDIA_L4" in told.reason
    assert any("Job is preparing" in line for line in told.evidence)


def test_flex_start_waits_for_machines(cloud: Cloud) -> None:
    cloud.fake.fault(stockout=["g2-standard-24"])
    ref = cloud.backend().submit(cloud.request("flex", **L4, vertex={"provisioning": "flex-start", "wait_s": "2h"}))
    cloud.becomes(ref, lambda status: status.phase is Phase.STARTING)
    told = why(cloud, ref)
    assert (told.cause, "7200s" in told.reason) == ("waiting-for-capacity", True)


def test_spot_machines_that_were_taken_away(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("taken", **run("sleep 60", spot=True)))
    cloud.becomes(ref, lambda status: status.native == "RUNNING")
    cloud.fake.fault(stockout=["n1-standard-4"])
    assert cloud.preempt(ref)
    cloud.becomes(ref, lambda status: status.native in ("PENDING", "FAILED"))
    cloud.becomes(ref, lambda status: status.phase.ended)
    assert why(cloud, ref).cause == "preempted"


@soak_only
def test_a_job_that_starts_again(cloud: Cloud) -> None:
    cloud.fake.fault(method=CREATE, delay_s=1)
    ref = cloud.backend().submit(cloud.request("again", **run("sleep 60", spot=True)))
    cloud.becomes(ref, lambda status: status.native == "RUNNING")
    entered = _entered(cloud, ref)
    assert cloud.preempt(ref)
    # PENDING may be over before it is seen.
    cloud.becomes(ref, lambda _: _entered(cloud, ref) != entered)
    assert why(cloud, ref).cause in ("starts-again", "running")


def _entered(cloud: Cloud, ref: JobRef) -> str:
    """When the job entered its state."""
    return next(each["updateTime"] for each in cloud.all() if each["name"].endswith(f"/{ref.id}"))


def test_a_job_that_runs_stops_and_was_cancelled(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("runs", **run("echo it is here; sleep 60")))
    cloud.becomes(ref, lambda status: status.phase is Phase.RUNNING)
    assert why(cloud, ref).cause == "running"
    cloud.backend().cancel(ref, "")
    assert why(cloud, ref).cause in ("stopping", "stopped")
    cloud.becomes(ref, lambda status: status.phase.ended)
    assert why(cloud, ref).cause == "stopped"


def test_a_job_whose_time_is_over(cloud: Cloud) -> None:
    told = ended(cloud, "timeout", **run("echo still here; sleep 60", timeout_s=1))
    assert told.cause == "timeout" and "timeout_s, which is 1" in told.reason
    assert "still here" in told.evidence


def test_a_job_that_succeeded(cloud: Cloud) -> None:
    assert ended(cloud, "well").cause == "succeeded"


FAILURES = [
    ("echo Traceback...; echo ValueError: bad; exit 3", "exit-code"),
    ("no-such-command", "command-not-found"),
    ("echo torch.OutOfMemoryError: CUDA out of memory. Tried; exit 1", "cuda-out-of-memory"),
    ("echo OSError: [Errno 28] No space left on device; exit 1", "disk-full"),
    ("kill -9 $$", "killed"),
]


@pytest.mark.parametrize(("text", "cause"), sampled(FAILURES, [FAILURES[1], FAILURES[2]]))
def test_a_program_that_failed(cloud: Cloud, text: str, cause: str) -> None:
    told = ended(cloud, text, **run(text))
    assert told.cause == cause
    assert told.next_step == VertexFacts.NEXT_STEPS.get(cause, told.next_step)


def test_a_traceback_after_many_lines(cloud: Cloud) -> None:
    told = ended(cloud, "traceback", **run(TRACEBACK))
    assert told.cause == "exit-code"
    assert [line.split(",")[0] for line in told.evidence[-4:]] == UPRIGHT


def test_of_several_replicas_the_one_that_the_error_names(cloud: Cloud) -> None:
    text = 'if [ "$RANK" = 1 ]; then echo it was me; exit 5; fi; sleep 60'
    told = ended(cloud, "several", **run(text, nodes=2))
    assert told.cause == "exit-code" and {"it was me", "replica workerpool1-0"} <= {*told.evidence}


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ({"state": "JOB_STATE_PENDING", "jobSpec": {"persistentResourceId": "kept"}}, "waiting-for-machines"),
        ({"state": "JOB_STATE_EXPIRED"}, "expired"),
        ({"state": "JOB_STATE_QUEUED"}, "queued"),
        ({"state": "JOB_STATE_PAUSED"}, "unknown"),
    ],
)
def test_what_the_sandbox_does_not_show(body: dict[str, Any], cause: str) -> None:
    class Blind:
        """A job that may be seen, and nothing else."""

        def get(self, *path: str, **query: Any) -> dict[str, Any]:
            name = "projects/1/locations/us-central1/customJobs/17"
            return {"name": name, "createTime": "2026-01-01T00:00:00Z", **body}

        def post(self, *path: Any, **query: Any) -> dict[str, Any]:
            raise CloudRefused("permission logging.logEntries.list is missing on p")

    scope = Scope("acme", "us-central1")
    told = explain(cast(Any, Blind()), scope, scope.ref("17"))
    assert told.cause == cause and told.unread


class Failed:
    """A job that has failed with an error, and the entry of its log; None: the log may not be read."""

    def __init__(self, error: str, entry: str | None) -> None:
        self._error, self._entry = error, entry

    def get(self, *path: str, **query: Any) -> dict[str, Any]:
        name, error = "projects/1/locations/us-central1/customJobs/17", {"message": self._error}
        return {"name": name, "createTime": "2026-01-01T00:00:00Z", "state": "JOB_STATE_FAILED", "error": error}

    def post(self, *path: Any, **query: Any) -> dict[str, Any]:
        if self._entry is None:
            raise CloudRefused("permission logging.logEntries.list is missing on p")
        return {"entries": [{"jsonPayload": {"message": self._entry}, "timestamp": "2026-01-01T00:00:01Z"}]}

    def why(self) -> Explanation:
        scope = Scope("acme", "us-central1")
        return explain(cast(Any, self), scope, scope.ref("17"))


QUOTES = (
    "The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error. \nTraceback (most recent "
    'call last):\n  [...]\n  File "t.py", line 3, in <module>\n{}\n\nTo find out more about why your job exited please '
    "check the logs: https://console.cloud.google.com/logs/viewer?project=1"
)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        # The form: https://github.com/tensorflow/models/issues/4294
        ("KeyError: 'reservation_status'", "exit-code"),
        ("FileNotFoundError: image /data/x.png: no such file or directory", "exit-code"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB", "cuda-out-of-memory"),
    ],
)
@pytest.mark.parametrize("readable", [True, False])
def test_what_an_error_quotes_of_the_program_is_the_programs(said: str, cause: str, readable: bool) -> None:
    told = Failed(QUOTES.format(said), said if readable else None).why()
    assert told.cause == cause and said in told.evidence
    assert not any("find out more" in line for line in told.evidence)


def test_a_signal_is_no_exit_code() -> None:
    """The form: https://github.com/tensorflow/models/issues/5591"""
    told = Failed("The replica workerpool0-0 exited with a non-zero status of 9(SIGKILL).", "step 3").why()
    assert told.cause == "killed" and "exit code 137 (SIGKILL)" in told.evidence


def test_a_traceback_in_one_entry_is_lines() -> None:
    """As a program's own logging handler writes it."""
    message = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\nValueError: bad\n'
    told = Failed("The replica workerpool0-0 exited with a non-zero status of 1.", message).why()
    assert told.evidence == (
        "Traceback (most recent call last):",
        'File "t.py", line 3, in <module>',
        "ValueError: bad",
    )


def test_a_job_that_is_not_there(cloud: Cloud) -> None:
    ref = JobRef("vertex", "accel-sandbox.us-central1", "404")
    told = why(cloud, ref)
    assert told.cause == "unknown-job" and "us-central1" in told.reason
    cloud.proxy.faults["GET job"] = ["403"]
    with pytest.raises(CloudRefused):
        cloud.backend().explain(replace(ref, id="405"))


def test_a_log_that_may_not_be_read_makes_no_cause_true(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("unread", **run("echo CUDA out of memory; exit 1")))
    cloud.becomes(ref, lambda status: status.phase.ended)
    cloud.proxy.faults["POST entries:list"] = ["403"] * 9
    told = why(cloud, ref)
    assert told.cause == "exit-code" and any(line.startswith("its log: ") for line in told.unread)
