"""Commands on machines of jobs, by the real relay and SSH server of the sandbox's Google."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import JobRef, Streams
from jobs.backends.vm.backend import VmBackend
from jobs.backends.vm.gpu import GceBackend
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends.gce_cloud import GROUND, QUICK
from tests.jobs.backends.gce_target import make_target
from tests.support.google_fake import Fake
from tests.support.waiting import until

USER = "somebody_example_com"
PROFILE = "oslogin.googleapis.com/v1/users/somebody@example.com"


@pytest.fixture
def entered(gce_cloud: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The client's variables lead to the relay too, and nothing of whoever runs the test is used."""
    for api in ("oslogin", "openidconnect", "tpu"):
        monkeypatch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", f"{gce_cloud.url}/{api}.googleapis.com/")
    monkeypatch.setenv("ACCEL_IAP_URL", f"{gce_cloud.url.replace('http', 'ws')}/v4")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for key in gce_cloud.call("GET", f"{PROFILE}/loginProfile")["sshPublicKeys"]:
        gce_cloud.call("DELETE", f"{PROFILE}/sshPublicKeys/{key}")
    return gce_cloud


def submit(text: str, **fields: Any) -> tuple[GceBackend, JobRef]:
    """A job that goes on until it is stopped, on machines that run."""
    backend = GceBackend("gpus", make_target(**GROUND), timing=QUICK)
    values: dict[str, Any] = {"command": ["sleep", "600"], "accelerator": {"type": "l4"}, "spot": True, **fields}
    job = Job(name=text, **values)
    key = submission_key(text, "once")
    ref = backend.submit(backend.render(job, platform_name(text, key), key))
    until(lambda: backend.tend(ref).phase == "RUNNING")
    return backend, ref


def run(
    backend: VmBackend, ref: JobRef, command: Sequence[str], given: bytes | None = None, **more: Any
) -> tuple[int, bytes, bytes]:
    """Exit code and what came on both streams."""
    said = {False: bytearray(), True: bytearray()}
    left = [given, b""] if given is not None else []
    streams = Streams(
        lambda is_error, data: said[is_error].extend(data),
        (lambda most: left.pop(0) or b"") if left else None,
        more.pop("size", None),
    )
    return backend.run(ref, command, streams, **more), bytes(said[False]), bytes(said[True])
