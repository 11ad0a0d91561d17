"""What the sandbox's project may use: by Compute Engine, and by Cloud Quotas."""

from typing import Any

import pytest

from accel.catalog.quotas import quota_for
from accel.clouds.google.quotas import limit_of
from accel.quota import GooglePool
from stacks.operations.quota.google import judge_google
from tests.jobs.backends.vms_cloud import variables
from tests.support.google_fake import COMPUTE, Fake, P
from tests.support.google_vms import gpu
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vms"]

INFOS = f"cloudquotas.googleapis.com/v1/{P}/locations/global/services"
L4 = "NVIDIA_L4_GPUS"


def metric(fake: Fake, path: str, name: str = L4) -> tuple[float, float]:
    """Limit and use."""
    (found,) = [each for each in fake.call("GET", path)["quotas"] if each["metric"] == name]
    return found["limit"], found["usage"]


def value(fake: Fake, accelerator: str, place: str, service: str = "compute", spot: bool = False) -> float | None:
    quota = quota_for("gcp", accelerator, spot, service=service)
    assert quota
    info = fake.call("GET", f"{INFOS}/{service}.googleapis.com/quotaInfos/{quota.quota_id}")
    return limit_of(info, quota, place)


def test_a_region_and_the_project_report_limits_and_use(compute: Fake) -> None:
    region = f"{COMPUTE}/regions/us-central1"
    assert metric(compute, region) == (-1, 0)
    compute.fault(quota={f"compute/us-central1/{L4}": 4, "compute/global/GPUS_ALL_REGIONS": 8})
    compute.call("POST", f"{COMPUTE}/zones/us-central1-a/instances", gpu())
    until(lambda: metric(compute, region) == (4, 1))
    assert metric(compute, COMPUTE, "GPUS_ALL_REGIONS") == (8, 1)
    assert metric(compute, f"{COMPUTE}/regions/us-east4") == (-1, 0)
    # What has a dimension is not among them.
    assert not [each for each in compute.call("GET", region)["quotas"] if each["metric"] == "GPUS_PER_GPU_FAMILY"]


def test_cloud_quotas_has_all_of_a_service(fake: Fake) -> None:
    family = "GPUS_PER_GPU_FAMILY[gpu_family=NVIDIA_H100]"
    fake.fault(quota={f"compute/us-central1/{family}": 0, "tpu/us-central1-a/v5litepod": 16})
    assert value(fake, "nvidia-h100-80gb", "us-central1") == 0
    assert value(fake, "nvidia-h100-80gb", "us-east4") == -1
    assert value(fake, "nvidia-h200-141gb", "us-central1") == -1
    assert value(fake, "tpu-v5litepod", "us-central1-a", "tpu", True) == 16
    assert value(fake, "tpu-v5litepod", "us-east5-b", "tpu", True) == -1
    listed = fake.call("GET", f"{INFOS}/tpu.googleapis.com/quotaInfos")["quotaInfos"]
    assert {"TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI"} <= {each["quotaId"] for each in listed}
    fake.well()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{INFOS}/compute.googleapis.com/quotaInfos/none", 404),
        ("cloudquotas.googleapis.com/v1/projects/other/locations/global/services/tpu.googleapis.com/quotaInfos", 403),
        ("cloudquotas.googleapis.com/v2/anything", 404),
    ],
)
def test_what_is_not_there(fake: Fake, path: str, code: int) -> None:
    assert fake.ask("GET", path).status_code == code
    assert fake.ask("GET", path, token="").status_code == 401


def test_a_stack_is_held_against_them(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in variables(fake).items():
        monkeypatch.setenv(name, text)
    fake.fault(quota={f"compute/us-central1/{L4}": 4})
    pool: Any = GooglePool("train", "us-central1", "nvidia-l4", 1, 5)
    words = {each.need.label: each.word for each in judge_google("accel-sandbox", [pool])}
    assert words == {L4: "over", "GPUS_ALL_REGIONS": "ok"}
    fake.well()
