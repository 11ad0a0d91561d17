"""The sandbox's Google for jobs of both kinds, with records as clients leave them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accel.clouds.timeouts import Timing
from accel.contract.targets import write
from jobs.backends.base import Explanation, JobRef
from jobs.backends.vm.backend import VmBackend
from jobs.backends.vm.gpu import GceBackend
from jobs.backends.vm.record import Record
from jobs.backends.vm.tpu import TpuVmBackend
from tests.jobs.backends import gce_cloud, gce_target, tpu_cloud, tpu_target
from tests.jobs.backends.vm_target import PROJECT
from tests.support.google_fake import Fake

BUCKET = "acme-jobs"
QUICK = Timing(connect_s=5, read_s=20, attempts=3, backoff_s=0.02, longest_wait_s=0.1, poll_s=0.02)
APIS = {"tpu": "", "compute": "compute/v1/", "storage": "storage/v1/", "logging": "", "cloudquotas": ""}


def variables(fake: Fake) -> dict[str, str]:
    """What leads a client to the sandbox's Google."""
    prefix = "CLOUDSDK_API_ENDPOINT_OVERRIDES"
    roots = {f"{prefix}_{api.upper()}": f"{fake.url}/{api}.googleapis.com/{path}" for api, path in APIS.items()}
    return {"GOOGLE_OAUTH_ACCESS_TOKEN": fake.token, **roots}


@pytest.fixture
def clouds(tpus: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """With a bucket and a network; whatever machines a test leaves are deleted."""
    for name, value in variables(tpus).items():
        monkeypatch.setenv(name, value)
    made = tpus.ask("POST", "storage.googleapis.com/storage/v1/b", {"name": BUCKET}, project=PROJECT)
    assert made.status_code in (200, 409)
    for name, target in write(targets()).items():
        published = {"uploadType": "media", "name": f"accel-targets/{name}.json"}
        tpus.call("POST", f"storage.googleapis.com/upload/storage/v1/b/{BUCKET}/o", target, **published)
    gce_cloud.network(tpus)
    yield tpus
    tpus.well()
    gce_cloud.clear(tpus)


def ago(minutes: float) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()


def gce(text: str, **fields: Any) -> Record:
    """The record of a job on a GPU VM, planned a minute ago."""
    return replace(gce_cloud.wanted(f"gce {text}", **fields), created=ago(1)).with_last(planned=ago(1))


def tpu(text: str, **fields: Any) -> Record:
    """The record of a job on four hosts of a TPU, planned a minute ago."""
    return replace(tpu_cloud.wanted(f"tpu {text}", **fields), created=ago(1)).with_last(planned=ago(1))


def backend(kind: str) -> VmBackend:
    of = TpuVmBackend if kind == "tpu-vm" else GceBackend
    return of.of_scope(BUCKET, timing=QUICK)


def ref(record: Record) -> JobRef:
    return JobRef(record.kind, BUCKET, record.name)


def keep(record: Record) -> Record:
    """The record in the bucket, over one that is there."""
    records = backend(record.kind).records
    _, generation = records.claim(record)
    if generation is None:
        generation = records.read(record.name)[1]
        assert records.replace(record, generation)
    return record


def why(record: Record) -> Explanation:
    return backend(record.kind).explain(ref(record))


def targets() -> dict[str, Any]:
    """Both kinds, in the sandbox's zones."""
    return {"tpus": tpu_target.make_target(**tpu_cloud.GROUND), "gpus": gce_target.make_target(**gce_cloud.GROUND)}
