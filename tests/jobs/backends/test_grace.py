"""Every backend's job knows the seconds between SIGTERM and SIGKILL that its platform really leaves."""

from typing import Any

import pytest

from accel.contract.targets import LocalTarget
from accel.rules.gke.jobs import SPOT_GRACE_S
from jobs.backends import local
from jobs.backends.base import Request
from jobs.model.job import Job
from jobs.runtime import platforms
from tests.jobs.backends import gce_target, gke_target, tpu_target

ROWS = {row.name: row for row in platforms.PLATFORMS}
A100 = {"accelerator": {"type": "a100"}}


def on_gke(**fields: Any) -> tuple[float, dict[str, str]]:
    spec = gke_target.make_request(**A100, **fields).body["objects"][-1]["spec"]["template"]["spec"]
    env = {each["name"]: each.get("value", "") for each in spec["containers"][0]["env"]}
    return spec["terminationGracePeriodSeconds"], env


def on_machines(request: Request) -> tuple[float, dict[str, str]]:
    told = request.body["job"]
    return told["grace_s"], told["env"]


def on_this_machine() -> tuple[float, dict[str, str]]:
    job = Job(name="x", command=["true"])
    body = local.LocalBackend("local", LocalTarget()).render(job, "x-1", "0" * 64).body
    return body["grace_s"], body["env"]


@pytest.mark.parametrize(
    "platform, found, seconds",
    [
        ("kubernetes", on_gke(spot=False), 30),
        ("kubernetes", on_gke(spot=True), SPOT_GRACE_S),
        ("kubernetes", on_gke(spot=False, gke={"grace_s": 600}), 600),
        ("gce", on_machines(gce_target.make_request(spot=False)), 30),
        ("gce", on_machines(gce_target.make_request(spot=True)), 20),
        ("gce", on_machines(gce_target.make_request(spot=False, gce={"grace_s": 90})), 90),
        ("tpu-vm", on_machines(tpu_target.make_request()), 30),
        ("tpu-vm", on_machines(tpu_target.make_request(tpu_vm={"grace_s": 45})), 45),
        ("other", on_this_machine(), 30),
    ],
)
def test_a_job_knows_what_its_platform_leaves_it(
    platform: str, found: tuple[float, dict[str, str]], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, env = found
    monkeypatch.delenv(platforms.GRACE, raising=False)
    if platforms.GRACE in env:
        monkeypatch.setenv(platforms.GRACE, env[platforms.GRACE])
    assert asked == seconds == platforms.grace_s(ROWS.get(platform, platforms.ELSEWHERE))
    assert (platforms.GRACE in env) == (ROWS.get(platform, platforms.ELSEWHERE).grace_s != seconds)
