"""Jobs on TPU VMs against the sandbox's Google."""

from typing import Any

import pytest

from accel.clouds.timeouts import Timing
from jobs.backends.vm.record import Record
from jobs.backends.vm.state_machine import MachineState
from jobs.backends.vm.tpu.queued_resources import QueuedResources
from tests.jobs.backends.gce_cloud import lead_to
from tests.jobs.backends.tpu_target import make_request, make_target
from tests.jobs.backends.vm_records import make_record
from tests.support.google_fake import Fake
from tests.support.waiting import until

QUICK = Timing(connect_s=5, read_s=20, attempts=4, backoff_s=0.02, longest_wait_s=0.1)
GROUND = {
    "network": "default",
    "subnetworks": {"us-central1": "default", "us-east5": "default", "europe-west4": "default"},
    "service_account": "runner@elsewhere.iam.gserviceaccount.com",
    "zones": ["us-central1-a", "us-east5-b"],
}


@pytest.fixture(name="tpu_cloud")
def cloud(tpus: Fake, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The sandbox's Google, with a bucket; the client's variables lead there."""
    lead_to(tpus, monkeypatch, tpu="")
    return tpus


def wanted(text: str, **fields: Any) -> Record:
    """A job of four hosts that goes on until it is stopped."""
    values: dict[str, Any] = {"command": ["sleep", "600"], "spot": True, **fields}
    return make_record(make_request(make_target(**GROUND), text, **values))


def look(machines: QueuedResources, record: Record) -> MachineState:
    return machines.look(record, record.last)


def reach(machines: QueuedResources, record: Record, state: str) -> list[str]:
    """The states on the way to one, with the cloud's words."""
    seen: list[str] = []

    def there() -> bool:
        found = look(machines, record)
        told = f"{found.state} {found.native}"
        if not seen or seen[-1] != told:
            seen.append(told)
        return found.state == state

    until(there)
    return seen
