"""Records that somebody forged in a bucket of jobs, as users and the stack's function meet them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from accel.clouds.google.api import Google
from jobs.backends.vm.function import Reconciler
from jobs.backends.vm.queues import DeclaredQueue, QueueRecords, _record  # pyright: ignore[reportPrivateUsage]
from jobs.backends.vm.record import Record, as_json
from tests.jobs.backends.test_vms_compare import EVIL, forged
from tests.jobs.backends.vms_cloud import BUCKET, QUICK, gce, keep, ref
from tests.sandbox.test_explain_vms_command import shell
from tests.support.google_fake import COMPUTE, Fake
from tests.support.waiting import until

__all__ = ["shell"]
pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus", "tests.jobs.backends.vms_cloud"]

ACCOUNT = "body.machine.properties.serviceAccounts.0.email"
UPLOAD = f"storage.googleapis.com/upload/storage/v1/b/{BUCKET}/o"


@pytest.fixture(autouse=True)
def empty(clouds: Fake) -> Iterator[None]:
    """Without the records and queues of the tests before."""
    yield
    for item in clouds.call("GET", f"storage.googleapis.com/storage/v1/b/{BUCKET}/o").get("items", []):
        if not item["name"].startswith("accel-targets/"):
            at = item["name"].replace("/", "%2F")
            clouds.ask("DELETE", f"storage.googleapis.com/storage/v1/b/{BUCKET}/o/{at}")


def names(clouds: Fake, kind: str = "instances") -> list[str]:
    return [each["name"] for each in clouds.call("GET", f"{COMPUTE}/zones/us-central1-a/{kind}").get("items", [])]


def evil(text: str) -> Record:
    """Of a job that asks for a machine of another account."""
    return keep(forged(gce(text), ACCOUNT, EVIL))


@pytest.mark.parametrize("verb", [["tend"], ["wait"], ["logs", "-f"]])
def test_whoever_moves_it_on_makes_nothing_and_names_the_field(
    verb: list[str], clouds: Fake, shell: Callable[..., str]
) -> None:
    record = evil("forged")
    told = shell(*verb, str(ref(record)), code=2)
    (line,) = [each for each in told.splitlines() if each.startswith("error:")]
    assert f"gs://{BUCKET}/accel-jobs/{record.name}/record.json: target gpus: serviceAccounts: is " in line
    assert EVIL in line and line.endswith("; nothing is made") and "Traceback" not in told
    assert names(clouds) == []
    shell("cancel", str(ref(record)), "-y")
    assert json.loads(shell("get", str(ref(record)), "-o", "json"))["phase"] == "FAILED"


def test_the_others_of_its_target_go_on(clouds: Fake, shell: Callable[..., str]) -> None:
    record, good = evil("forged"), keep(gce("good"))
    shell("tend", "--to", "gpus")
    assert names(clouds) == [good.name] != [record.name]


def test_the_function_makes_nothing_of_it_and_goes_on_with_the_others(clouds: Fake) -> None:
    # A job of its own name: a machine of the test before may report its end only now.
    record, good = evil("forged"), keep(gce("good for the function"))
    (failure,) = Reconciler(BUCKET).reconcile(Google(QUICK), lambda text: None, 0)
    assert failure.startswith(f"{record.name}: gs://{BUCKET}/") and EVIL in failure
    assert names(clouds) == [good.name]


def test_a_submit_under_the_key_of_a_forged_record_makes_nothing(
    clouds: Fake, shell: Callable[..., str], tmp_path: Any
) -> None:
    """The hash in the record is that of the honest request, and what it asks for is not."""
    (tmp_path / "job.json").write_text(
        json.dumps({"name": "digits", "command": ["true"], "accelerator": {"type": "l4"}})
    )
    honest = shell("submit", "job.json", "--to", "gpus", "--key", "k", "-o", "id").strip()
    name = honest.rpartition("/")[2]
    shell("cancel", honest, "-y")
    until(lambda: names(clouds) == [])  # a machine of this name that still leaves would pass for one that was made
    path = f"accel-jobs/{name}/record.json"
    at = f"storage.googleapis.com/storage/v1/b/{BUCKET}/o/{path.replace('/', '%2F')}"
    document = clouds.call("GET", at, alt="media")
    attempt = {**document["attempts"][0], "state": "planned", "outcome": "", "made": None, "ended": None}
    document |= {"ended": None, "outcome": "", "cancelled": None, "attempts": [attempt]}
    document["body"]["machine"]["properties"]["serviceAccounts"][0]["email"] = EVIL
    clouds.call("POST", UPLOAD, document, uploadType="media", name=path)
    assert EVIL in shell("submit", "job.json", "--to", "gpus", "--key", "k", code=2)
    assert names(clouds) == []


def test_a_declared_tpu_is_made_as_the_stack_declares_it(clouds: Fake) -> None:
    node = {
        "acceleratorType": "v5litepod-16",
        "runtimeVersion": "v2-alpha-tpuv5-lite",
        "networkConfig": {"network": "default"},
        "labels": {},
        "metadata": {},
    }
    machine = {"node": node, "node_id": "trainer", "subnetworks": {"us-central1": "default"}, "slices": 1}
    machine |= {"valid_s": None, "reservation": None, "guaranteed": False}
    body = {"standing": {"until": None}, "project": "accel-sandbox", "zones": ["us-central1-a"], "hosts": 4}
    body |= {"spot": True, "lost_retries": None, "machine": machine}
    made = clouds.call("POST", UPLOAD, body, uploadType="media", name="accel-queues/trainer.json")
    declared = DeclaredQueue(BUCKET, "trainer", made["generation"])
    honest = _record(declared, {**body, "bucket": BUCKET})
    account = {"email": EVIL, "scope": []}
    machine_of_evil = {**machine, "node": {**node, "serviceAccount": account}}
    other = replace(honest, body={**honest.body, "machine": machine_of_evil})
    path = f"accel-queues/{honest.name}/record.json"
    clouds.call("POST", UPLOAD, as_json(other), uploadType="media", name=path)
    (failure,) = Reconciler(BUCKET).reconcile(Google(QUICK), lambda text: None, 0)
    assert "is not what gs://acme-jobs/accel-queues/trainer.json declares; nothing is made" in failure
    everywhere = "tpu.googleapis.com/v2/projects/accel-sandbox/locations/-"
    assert clouds.call("GET", f"{everywhere}/queuedResources")["queuedResources"] == []
    QueueRecords(Google(QUICK), BUCKET).forget(honest.name)
    assert Reconciler(BUCKET).reconcile(Google(QUICK), lambda text: None, 0) == []
    (request,) = clouds.call("GET", f"{everywhere}/queuedResources")["queuedResources"]
    assert "serviceAccount" not in request["tpu"]["nodeSpec"][0]["node"] or EVIL not in json.dumps(request)
