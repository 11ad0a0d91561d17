"""Causes of what the sandbox does not show, from the cloud's and docker's own words; and the page that lists all."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from accel.diagnostics.errors import CloudRefused
from jobs.backends.base import Explain, Explanation
from jobs.backends.diagnosis.vm import explain, zones
from jobs.backends.vm.cloud_messages import MachineMessages, maintenance
from jobs.backends.vm.gpu import instances as gce_states
from jobs.backends.vm.record import Attempt, Record, Result
from jobs.backends.vm.state_machine import MachineState
from jobs.backends.vm.tpu import queued_resources as tpu_states
from tests.jobs.backends.vms_cloud import ago, backend, gce, ref, tpu


class Cloud:
    """A job as a cloud tells of it: the record, the machines, the bucket and the log, without one."""

    bucket = "acme-jobs"

    def __init__(self, record: Record, seen: MachineState, results: tuple[Result, ...] = (), **more: Any) -> None:
        self.record, self.seen = record, seen
        self._results = {each.host: each for each in results}
        self._told: MachineMessages = more.get("told", MachineMessages())
        self._lines: tuple[str, ...] = more.get("lines", ())
        self._left: dict[str, int] = more.get("left", {"host-0.json": 9})
        self._printed: tuple[str, ...] = more.get("printed", ())
        self._blind: bool = more.get("blind", False)

    # Of records
    def read(self, *path: str) -> tuple[Any, str]:
        return (self.record, "1") if len(path) == 1 else (b"2026-11-22T00:00:00Z kept line\n", "1")

    def results(self, record: Record, attempt: Attempt) -> Any:
        return self._results

    # Of machines
    def look(self, record: Record, attempt: Attempt) -> MachineState:
        if self._blind:
            raise CloudRefused("permission tpu.queuedResources.get is missing on p")
        return self.seen

    def messages(self, record: Record, attempt: Attempt) -> MachineMessages:
        return self._told

    def printed(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        return self._printed

    def history(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        return ()

    # Of Google
    def pages(self, *path: str, prefix: str, **query: Any) -> Iterator[dict[str, Any]]:
        yield from ({"name": f"{prefix}{name}", "size": str(size)} for name, size in self._left.items())

    def post(self, *path: Any, **query: Any) -> dict[str, Any]:
        return {"entries": [{"textPayload": line} for line in reversed(self._lines)]}

    def why(self) -> Explanation:
        cloud = cast(Any, self)
        return explain(cloud, cloud, cloud, ref(self.record))


def made(record: Record, minutes: float = 30, **changes: Any) -> Record:
    return record.with_last(state="made", made=ago(minutes), started=ago(minutes - 1), **changes)


def result(reason: str, code: int | None = None, host: int = 0) -> Result:
    return Result(host, code, reason, ago(9), ago(8))


ABSENT, RUNS = MachineState("absent", ""), MachineState("running", "RUNNING")
REGISTRY = "not-started: docker pull ghcr.io/x/y:1: Error response from daemon: "


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("driver-not-ready: after 900 s it has 0 of 2 GPUs", "driver-not-ready"),
        ("not-met: after 900 s without host 3", "hosts-did-not-meet"),
        (f"{REGISTRY}manifest unknown", "image-missing"),
        (f"{REGISTRY}pull access denied for y, repository does not exist or may require login", "image-forbidden"),
        (
            f"{REGISTRY}Get https://ghcr.io/v2/: request canceled (Client.Timeout exceeded)",
            "image-unreachable",
        ),
        (f"{REGISTRY}no matching manifest for linux/amd64 in the manifest list entries", "image-platform"),
        (f"{REGISTRY}toomanyrequests", "image-rate-limit"),
        (f"{REGISTRY}something new", "image-pull"),
        ("not-started: docker login us-docker.pkg.dev: unauthorized", "image-forbidden"),
        ("not-started: docker pull x: [Errno 2] No such file or directory: 'docker'", "docker-missing"),
        (
            'not-started: docker: Error response from daemon: could not select device driver "" with capabilities: '
            "[[gpu]].",
            "container-gpu",
        ),
        ("not-started: mount gs://b: gcsfuse: Error: 403 does not have storage.objects.list access", "mount"),
        ("not-started: mount gs://b: gcsfuse: [Errno 2] No such file or directory: 'gcsfuse'", "gcsfuse-missing"),
        (
            'not-started: docker: Error response from daemon: error while mounting volume "/x": permission denied',
            "mount",
        ),
        ("not-started: secret projects/p/secrets/s/versions/1: HTTP 403: it cannot be read", "secret-unreadable"),
        ("not-started: the agent failed, see the machine's serial console", "not-started"),
        ("timeout", "timeout"),
        ("stopped: host 1 ended: exit code 3", "peer-failed"),
    ],
)
def test_what_a_host_told(reason: str, cause: str) -> None:
    told = Cloud(made(gce("told")), ABSENT, (result(reason),)).why()
    assert told.cause == cause and told.next_step


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (
            "Quota limit 'TPUV2sPodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0 in zone us-a.",
            "quota",
        ),
        ("Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region us-central1. (NVIDIA_L4: limit 1)", "quota"),
        ("Permission 'iam.serviceAccounts.actAs' denied on service account x", "service-account"),
        ("permission iam.serviceAccounts.actAs is missing on projects/-/serviceAccounts/x", "service-account"),
        ("Service account x@p.iam.gserviceaccount.com does not exist.", "account-missing"),
        ("the API is not enabled: gcloud services enable tpu.googleapis.com --project p", "api-disabled"),
        # Sources are in jobs/backends/diagnosis/words.py.
        ("Project charming-module-137923 (#808448574146) has billing disabled. Please enable it.", "billing-disabled"),
        (
            "This API method requires billing to be enabled. Please enable billing on project #1051023892108 by "
            "visiting https://console.developers.google.com/billing/enable?project=1051023892108 then retry.",
            "billing-disabled",
        ),
        ("The project to be billed is associated with an absent billing account.", "billing-disabled"),
        (
            "Billing account for project '522837608576' is not found. Billing must be enabled for activation of "
            "service(s) 'compute.googleapis.com' to proceed.",
            "billing-disabled",
        ),
        ("permission tpu.nodes.create is missing on projects/p/locations/z", "permission"),
        (
            "Insufficient regional quota to satisfy request: resource 'CPUS': requires '8.0' and is short '4.0'.",
            "quota",
        ),
        # https://github.com/cloud-barista/cb-spider/issues/1125
        (
            "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request.",
            "no-capacity",
        ),
        ("The reservation x was not found", "reservation"),
        ("Permission 'compute.reservations.use' denied on resource 'projects/p/zones/z/reservations/r'", "permission"),
        # https://github.com/Privatehive/gcp-hosted-github-runner/pull/7
        (
            "IP space of 'projects/p/regions/us-central1/subnetworks/s' is exhausted. Insufficient free IP addresses "
            "in the IP range '10.0.1.0/24'. (IP_SPACE_EXHAUSTED_WITH_DETAILS)",
            "no-addresses",
        ),
        (
            "Invalid value for field 'resource.networkInterfaces[0].subnetwork': 'projects/p/regions/r/subnetworks/x'. "
            "The referenced subnetwork resource cannot be found. (invalid)",
            "network-missing",
        ),
        ("the accelerator v4-8 was not found in zone us-central1-a", "not-offered"),
        ("Machine type with name 'a3-x' does not exist in zone 'us-central1-a'.", "not-offered"),
        ("something else", "refused"),
    ],
)
def test_why_google_refused(reason: str, cause: str) -> None:
    over = gce("refused").with_last(state="gone", outcome="refused", reason=reason, ended=ago(1))
    told = Cloud(replace(over, ended=ago(1), outcome="failed", reason=reason), ABSENT).why()
    assert told.cause == cause and told.evidence[0] == reason


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("jaxlib.xla_extension.XlaRuntimeError: ABORTED: The TPU is already in use by process with pid 7.", "tpu-busy"),
        (
            "RuntimeError: Unable to initialize backend 'tpu': No device found.",
            "tpu-not-visible",
        ),
        ("No space left on device", "disk-full"),
        ("no luck", "exit-code"),
    ],
)
def test_the_last_words_of_a_job_on_tpus(line: str, cause: str) -> None:
    results = (result("stopped: host 2 ended: exit code 1", host=0), result("exited", 1, host=2))
    told = Cloud(made(tpu("words")), ABSENT, results, lines=("accel: host 2 of 4: n", line)).why()
    assert told.cause == cause and "host 2 of 4" in told.evidence
    assert line in told.evidence and not any("accel: " in each for each in told.evidence)


def test_a_machine_that_told_nothing_after_its_timeout() -> None:
    record = made(gce("mute", timeout_s=60), minutes=120)
    told = Cloud(record, RUNS, printed=("Out of memory: Killed process 7",)).why()
    assert told.cause == "vm-silent" and "Out of memory: Killed process 7" in told.evidence


@pytest.mark.parametrize(
    ("outcome", "reason", "cause"),
    [
        ("expired", "waited 60 s", "waited-too-long"),
        ("no-capacity", "the allocation interval has elapsed", "waited-too-long"),
        ("no-capacity", "There is no more capacity in the zone", "no-capacity"),
        ("no-capacity", "Insufficient reserved capacity. Contact customer support.", "no-capacity"),
    ],
)
def test_requests_that_were_not_filled(outcome: str, reason: str, cause: str) -> None:
    late = tpu("late").with_last(state="gone", outcome=outcome, reason=reason, ended=ago(1))
    told = Cloud(replace(late, ended=ago(1), outcome="failed"), ABSENT).why()
    assert told.cause == cause and reason in told.evidence[1]


def test_a_reservation_that_has_nothing_left() -> None:
    record = tpu("reserved")
    record = replace(record, body={**record.body, "spot": False, "machine": {"reservation": "r"}})
    late = record.with_last(state="gone", outcome="no-capacity", reason="Insufficient reserved capacity.", ended=ago(1))
    told = Cloud(replace(late, ended=ago(1), outcome="failed"), ABSENT).why()
    assert told.cause == "reservation" and "of reservation r" in told.evidence[0]


def test_hosts_that_are_missing_and_a_command_that_is_not_there_yet() -> None:
    told = Cloud(made(tpu("slow")), RUNS, left={"host-0.json": 1, "host-2.json": 1}).why()
    assert told.cause == "hosts-missing" and told.evidence[0] == "not yet: host 1, 3"
    lines = ("accel: host 0 of 1: digits, attempt 1, boot 1", "accel: pulls ghcr.io/x/y:1")
    told = Cloud(made(gce("pulls"), minutes=5), RUNS, lines=lines).why()
    assert told.cause == "starting" and told.evidence[-1] == lines[-1]
    told = Cloud(made(gce("pulls"), minutes=90), RUNS, lines=lines).why()
    assert (told.cause, told.evidence) == ("running", ("its command has printed nothing yet",))


def test_health_symptoms_and_maintenance() -> None:
    node = {
        "health": "UNHEALTHY_MAINTENANCE",
        "symptoms": [{"symptomType": "HBM_OUT_OF_MEMORY", "workerId": "2", "createTime": "t", "details": "full"}],
        "upcomingMaintenance": {"maintenanceStatus": "PENDING", "windowStartTime": "a", "windowEndTime": "b"},
    }
    ill = tuple(tpu_states.health_texts("n", node))
    assert ill == ("node n is UNHEALTHY_MAINTENANCE", "node n: HBM_OUT_OF_MEMORY of worker 2 at t: full")
    assert tpu_states.health_texts("n", {"health": "HEALTHY"}) == []
    assert maintenance("node n", node) == ("node n: maintenance is PENDING, from a to b",)
    left = {f"host-{host}.json": 1 for host in range(4)}
    told = Cloud(made(tpu("ill")), RUNS, told=MachineMessages(ill=ill), left=left).why()
    assert told.cause == "unhealthy" and told.evidence == ill
    planned = MachineMessages(planned=maintenance("node n", node))
    told = Cloud(made(tpu("ok")), RUNS, told=planned, left=left, lines=("step 1",)).why()
    assert (told.cause, told.evidence) == ("running", planned.planned)


def test_managed_instances_and_operations_in_words() -> None:
    error = {"code": "RESOURCE_OPERATION_RATE_EXCEEDED", "message": "too many"}
    found = {"currentAction": "CREATING", "lastAttempt": {"errors": {"errors": [error]}}}
    said = "too many (RESOURCE_OPERATION_RATE_EXCEEDED)"
    assert gce_states.instance_text("n-0", found) == f"instance n-0 is CREATING: {said}"
    assert gce_states.instance_text("n-1", None) == "instance n-1 is not there"
    operation = {"insertTime": "t", "operationType": "insert", "user": "u@x", "error": {"errors": [error]}}
    assert gce_states.operation_text(operation) == f"t insert by u@x: {said}"


def test_what_may_not_be_read_names_no_cause() -> None:
    told = Cloud(made(tpu("blind")), ABSENT, blind=True).why()
    assert told.cause == "unknown" and told.unread == (
        "the machines' state: permission tpu.queuedResources.get is missing on p",
    )


def test_a_log_that_cloud_logging_did_not_take() -> None:
    left = {"host-0.json": 9, "log-0.txt": 40}
    told = Cloud(made(gce("kept")), ABSENT, (result("exited", 3),), left=left).why()
    assert told.cause == "exit-code" and told.evidence[0] == "kept line" and "log-0.txt" in told.evidence[-1]


def test_what_is_asked_for_in_words() -> None:
    assert zones.request_text(gce("two", nodes=2)) == "2 x g2-standard-4, Spot"
    fields: dict[str, Any] = {"accelerator": {"type": "t4", "count": 1}, "spot": False}
    assert "nvidia-tesla-t4" in zones._priced(gce("n1", **fields))  # pyright: ignore[reportPrivateUsage]
    assert zones.others(gce("n1", **fields))


def test_both_kinds_can_be_explained() -> None:
    assert isinstance(backend("gce"), Explain) and isinstance(backend("tpu-vm"), Explain)
