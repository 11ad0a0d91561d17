"""Why a job on machines of its own waits or failed, judged in the sandbox's Google, where it really does."""

import re
from datetime import timedelta
from typing import Any

import pytest

from jobs.backends.base import JobRef, Phase
from jobs.backends.diagnosis.vm.end import unreleased_machines
from jobs.backends.diagnosis.vm.facts import VmFacts
from jobs.backends.vm.record import Record
from tests.jobs.backends.vms_cloud import PROJECT, ago, backend, gce, keep, ref, tpu, why
from tests.support.google_fake import Fake
from tests.support.google_tpus import preempt
from tests.support.soak import sampled, soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus", "tests.jobs.backends.vms_cloud"]

ONE_HOST = {"type": "v5litepod-8"}
MAKERS = {"gce": gce, "tpu-vm": tpu}
PLACES = {"gce": "zones/us-central1-a/instances", "tpu-vm": "locations/us-central1-a/queuedResources"}


def begin(record: Record, **changes: Any) -> Record:
    """Makes the machines, with a record that says so."""
    keep(record)
    machines = backend(record.kind).machines()
    machines.make(record, record.last)
    return keep(record.with_last(state="made", made=ago(1), **changes))


def phase(record: Record) -> Phase:
    return backend(record.kind).status(ref(record)).phase


def ended(record: Record) -> Any:
    until(lambda: backend(record.kind).tend(ref(record)).phase.ended)
    return why(record)


def test_a_job_that_is_not_there_and_one_of_the_other_kind(clouds: Fake) -> None:
    record = gce("nowhere")
    told = why(record)
    assert (told.cause, told.reason) == ("unknown-job", f"gs://acme-jobs/accel-jobs has no job {record.name}")
    keep(record)
    told = backend("tpu-vm").explain(JobRef("tpu-vm", "acme-jobs", record.name))
    assert told.cause == "unknown-job" and told.next_step == f"its reference is gce:acme-jobs/{record.name}"


@pytest.mark.parametrize("kind", MAKERS)
def test_an_attempt_that_nobody_asked_for(clouds: Fake, kind: str) -> None:
    record = keep(MAKERS[kind]("crashed"))
    assert why(record).cause == "new"
    lost = {"outcome": "lost", "reason": "Google took it back", "made": ago(60), "ended": ago(30)}
    told = why(keep(record.with_last(state="ended", **lost)))
    assert told.cause == "nobody-tends" and "Google took it back" in told.evidence[0]
    told = why(keep(record.with_last(planned=ago(20))))
    assert told.cause == "nobody-tends" and "20 min" in told.reason and "accel-jobs tend REF" in told.next_step


def test_a_queue_without_capacity(clouds: Fake) -> None:
    clouds.fault(stockout=["v5litepod-16"])
    record = begin(tpu("full", accelerator={"type": "v5litepod-16"}))
    until(lambda: backend("tpu-vm").machines().look(record, record.last).native == "WAITING_FOR_RESOURCES")
    told = why(record)
    assert told.cause == "waiting-for-capacity"
    waits = re.fullmatch(r"v5litepod-16, Spot in us-central1-a: WAITING_FOR_RESOURCES for (\d+) s", told.evidence[0])
    assert waits and int(waits[1]) >= 60
    assert told.evidence[1] == f"queued resource {record.name} in us-central1-a is WAITING_FOR_RESOURCES"
    assert any(line.startswith("other zones that are known to have v5litepod-16: ") for line in told.evidence)
    assert "spot: false" in told.next_step and "zone_wait_s" in told.next_step


@pytest.mark.parametrize("kind", MAKERS)
def test_machines_that_google_takes_away(clouds: Fake, kind: str) -> None:
    record = begin(MAKERS[kind]("taken", lost_retries=0 if kind == "gce" else 2))
    until(lambda: phase(record) is Phase.RUNNING)
    assert preempt(clouds, f"projects/{PROJECT}/{PLACES[kind]}/{record.name}").ok
    until(lambda: phase(record) is not Phase.RUNNING)
    told = why(record)
    if kind == "gce":
        assert told.cause == "preempted" and "preempted 1 times, and lost_retries is 0" in told.reason
    else:
        assert told.cause == "starts-again" and "lost_retries allows 2 new starts" in told.reason
        assert "accel-jobs wait REF" in told.next_step
        assert "a suspended request holds its quota until it is deleted, which the next step does" in told.evidence
        over = record.with_last(state="ended", outcome="lost", reason="Google took it", ended=ago(30), started=ago(40))
        assert why(keep(over)).cause == "nobody-tends"


def test_no_zone_has_the_machine(clouds: Fake) -> None:
    clouds.fault(stockout=["g2-standard-4"])
    told = ended(keep(gce("no room")))
    assert told.cause == "no-capacity"
    assert [line.split(":")[0] for line in told.evidence[1:3]] == [
        "attempt 1 in us-central1-a", "attempt 2 in us-central1-b",
    ]  # fmt: skip
    assert "does not have enough resources" in told.evidence[1] and "retry REF" in told.next_step


def test_the_next_zone_of_several_machines(clouds: Fake) -> None:
    clouds.fault(stockout=["us-central1-a/g2-standard-4"])
    record = begin(gce("group", nodes=2))
    machines = backend("gce").machines()
    until(lambda: machines.look(record, record.last).state == "failed")
    told = why(record)
    assert told.cause == "next-attempt" and "does not have enough resources" in told.evidence[0]
    assert told.evidence[-1] == "its zones are us-central1-a, us-central1-b"
    states = machines.messages(record, record.last).states
    assert len(states) == 2 and "does not have enough resources" in states[1]


def test_a_quota_with_its_numbers(clouds: Fake) -> None:
    clouds.fault(quota={"compute/us-central1/PREEMPTIBLE_NVIDIA_L4_GPUS": 0})
    told = ended(keep(gce("no quota")))
    assert told.cause == "quota" and "limit 0, region us-central1" in told.evidence[0]
    clouds.fault(quota={"tpu/us-central1-a/v5litepod": 0})
    told = ended(keep(tpu("no chips", accelerator={"type": "v5litepod-16"})))
    assert told.cause == "quota" and "has been exceeded. Limit: 0" in told.evidence[0]


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        (403, "The user does not have access to service account 'x@y'. Ask a project owner", "service-account"),
        (403, "Required 'compute.instances.create' permission for 'projects/x'", "permission"),
        (404, "The resource 'projects/x/regions/r/subnetworks/default' was not found", "network-missing"),
        (404, "The resource 'projects/x/global/images/family/old' was not found", "boot-image-missing"),
        (412, "Constraint constraints/compute.vmExternalIpAccess violated", "address-policy"),
        (400, "Invalid value for field 'resource.x'", "refused"),
    ],
)
def test_what_google_refuses(clouds: Fake, code: int, message: str, cause: str) -> None:
    clouds.fault(method="compute.instances.insert", code=code, message=message, count=9)
    if code == 412:  # which is a conflict with something of that name, as the client takes it
        record = gce(message).with_last(state="gone", outcome="refused", reason=message, ended=ago(0))
        told = why(keep(record))
    else:
        told = ended(keep(gce(message)))
    assert told.cause == cause and any(message in line for line in told.evidence)


@pytest.mark.parametrize("kind", sampled(MAKERS, ["gce"]))
def test_how_a_command_ended(clouds: Fake, kind: str) -> None:
    text = "echo epoch 1; echo 'torch.OutOfMemoryError: CUDA out of memory.'; exit 1"
    hbm = "echo 'RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 9.08G of 7.48G hbm.'; exit 1"
    record = begin(MAKERS[kind]("ends", command=["sh", "-c", text if kind == "gce" else hbm], spot=False))
    told = ended(record)
    assert told.cause == ("cuda-out-of-memory" if kind == "gce" else "tpu-out-of-memory")
    assert any("out of memory" in line.lower() for line in told.evidence) and told.unread == ()
    if kind == "tpu-vm":
        assert any(" of 4" in line for line in told.evidence)


@soak_only
def test_a_log_that_is_not_to_be_had(clouds: Fake) -> None:
    record = begin(gce("mute", command=["sh", "-c", "exit 3"], spot=False))
    until(lambda: backend("gce").tend(ref(record)).phase.ended)
    clouds.fault(method="logging.entries.list", code=403, message="no", count=9)
    told = why(record)
    assert told.cause == "exit-code" and told.evidence == ("its log was not read",)
    assert told.unread == ("its log: logging post v2/entries:list: no",)


UNSTARTED: list[tuple[dict[str, Any], str, str]] = [
    ({"secrets": {"TOKEN": "projects/accel-sandbox/secrets/none"}}, "secret-unreadable", "secrets/none"),
    ({"mounts": [{"source": "gs://acme-data", "path": "/tmp/accel-mounted"}]}, "gcsfuse-missing", "gcsfuse"),
    ({"command": ["no-such-command"]}, "command-not-found", ""),
]


@pytest.mark.parametrize(("fields", "cause", "said"), sampled(UNSTARTED, UNSTARTED[:1]))
def test_a_command_that_does_not_start(clouds: Fake, fields: dict[str, Any], cause: str, said: str) -> None:
    told = ended(begin(gce(cause, **{"command": ["true"], "spot": False, **fields})))
    assert (told.cause, said in told.evidence[0]) == (cause, True)


def test_a_timeout_and_a_cancelled_job(clouds: Fake) -> None:
    record = begin(gce("slow", timeout_s=1, spot=False))
    told = ended(record)
    assert told.cause == "timeout" and "which is 1" in told.reason
    record = begin(tpu("stopped", accelerator=ONE_HOST))
    backend("tpu-vm").cancel(ref(record), "too slow")
    told = why(record)
    assert (told.cause, told.evidence[0]) == ("stopped", "reason: too slow")


def test_a_machine_whose_account_may_not_write_to_the_bucket(clouds: Fake) -> None:
    """Its serial port tells; it may not even delete itself."""
    record = keep(gce("silent", spot=False).with_last(state="made", made=ago(30), started=ago(25)))
    clouds.fault(method="storage.objects.insert", code=403, message="storage.objects.create denied", count=99)
    clouds.fault(method="compute.instances.delete", code=403, message="may not delete", count=99)
    machines = backend("gce").machines()
    machines.make(record, record.last)
    until(lambda: any("may not delete" in line for line in machines.printed(record, record.last)))
    told = why(record)
    assert told.cause == "agent-silent" and told.reason.startswith("its machines run for 25 min")
    assert any("HTTP 403: storage.objects.create denied" in line for line in told.evidence)
    assert "Private Google Access" in told.next_step


def test_a_machine_that_may_delete_itself_and_write_nothing(clouds: Fake) -> None:
    record = keep(gce("gone", lost_retries=0).with_last(state="made", made=ago(30), started=ago(25)))
    clouds.fault(method="storage.objects.insert", code=403, message="denied", count=99)
    machines = backend("gce").machines()
    machines.make(record, record.last)
    until(lambda: machines.look(record, record.last).state == "absent")
    told = why(record)
    assert told.cause == "agent-silent" and any(" delete" in line for line in told.evidence)


def test_machines_that_are_not_released(clouds: Fake) -> None:
    clouds.fault(method="compute.instances.delete", code=403, message="may not delete", count=99)
    record = begin(gce("kept", command=["true"], spot=False), started=ago(20))
    records = backend("gce").records
    until(lambda: records.results(record, record.last))
    assert why(record).cause == "succeeded"
    facts = VmFacts(backend("gce").google, records, backend("gce").machines(), ref(record), record)
    until(lambda: any("not released" in line for line in fresh(facts).agent))
    late = fresh(facts)
    late.now += timedelta(minutes=10)
    told = unreleased_machines(late)
    assert told and told.cause == "not-released" and "may not delete" in told.evidence[0]


def fresh(facts: VmFacts) -> VmFacts:
    """The same job, read anew."""
    one = backend(facts.record.kind)
    return VmFacts(one.google, one.records, one.machines(), facts.ref, facts.record)


def test_a_slice_runs_and_is_well(clouds: Fake) -> None:
    record = begin(tpu("well", accelerator=ONE_HOST, command=["sh", "-c", "echo begins; sleep 600"]))
    until(lambda: why(record).cause == "running")
    (name,) = [f"projects/{PROJECT}/locations/us-central1-a/nodes/{record.name}"]
    assert clouds.call("GET", f"tpu.googleapis.com/v2/{name}")["state"] == "READY"
