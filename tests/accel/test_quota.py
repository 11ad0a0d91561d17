"""The arithmetic of quotas: what an environment needs, and when that is too much."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.catalog.quotas import quota_for
from accel.quota import (
    GooglePool,
    Need,
    Pool,
    Use,
    google_needs,
    google_reading,
    google_readings,
    needs,
    verdict,
)

REGION = "us-east-1"


def pool(name: str = "spot", **changes: Any) -> Pool:
    given: dict[str, Any] = {"region": REGION, "spot": True, "instance_types": ("g5",), "max_vcpus": 64} | changes
    return Pool(name=name, **given)


def test_a_need_is_the_sum_of_the_maximums_under_one_quota() -> None:
    found = needs(
        [
            pool("a", max_vcpus=64, exceeds=False),
            pool("b", instance_types=("g6",), max_vcpus=128, exceeds=False),
            pool("c", spot=False, max_vcpus=32, exceeds=False),
        ]
    )
    assert [(need.quota and need.quota.code, need.amount, dict(need.by)) for need in found] == [
        ("L-3819A6DF", 192, {"a": 64, "b": 128}),
        ("L-DB2E81BA", 32, {"c": 32}),
    ]


def test_batch_may_exceed_by_one_instance_of_the_largest_type() -> None:
    (need,) = needs([pool(instance_types=("g5.xlarge", "g5.12xlarge"), max_vcpus=64)])
    assert need.amount == 64 + 48
    assert need.extra == {"spot": "48 vCPUs of one g5.12xlarge"}


def test_an_environment_under_two_quotas_counts_towards_each() -> None:
    found = needs([pool(instance_types=("p4d.24xlarge", "p5.48xlarge"), max_vcpus=768)])
    assert {need.label: need.amount for need in found} == {"L-7212CCBC": 768 + 96, "L-C4BD4855": 768 + 192}
    (one,) = needs([pool(spot=False, instance_types=("p4d.24xlarge", "p5.48xlarge"), max_vcpus=768)])
    assert (one.label, one.amount) == ("L-417A185B", 768 + 192)


def test_regions_are_apart() -> None:
    found = needs([pool("a", exceeds=False), pool("b", region="us-west-2", exceeds=False)])
    assert [(need.region, need.amount) for need in found] == [(REGION, 64), ("us-west-2", 64)]


def test_a_family_without_a_known_quota_is_unknown() -> None:
    (need,) = needs([pool(instance_types=("p6-b200.48xlarge",))])
    assert (need.quota, need.label) == (None, "p6-b200 Spot")
    judged = verdict(need, Use(0), 10_000)
    assert (judged.word, judged.reason) == ("unknown", "no quota is known that holds p6-b200 Spot")


def of(amount: float, **changes: Any) -> Need:
    return Need(quota_for("aws", "g5", True), "L-3819A6DF", REGION, amount, {"spot": amount}, **changes)


@pytest.mark.parametrize(
    ("amount", "use", "limit", "word", "total"),
    [
        (64, Use(0), 64, "ok", 64),
        (64, Use(0), 63, "over", 64),
        (64, Use(32), 96, "ok", 96),
        (64, Use(33), 96, "over", 97),
        # The environment runs 48 of the 80 itself: they are a part of its 64, and others have 32.
        (64, Use(80, own=48), 96, "ok", 96),
        (64, Use(80, own=48), 95, "over", 96),
        # It runs more than its maximum of today: nothing more will start, and what runs stays.
        (64, Use(100, own=90), 100, "ok", 100),
        (64, Use(0), 0, "over", 64),
        (0, Use(0), 0, "ok", 0),
        # Nobody knows what others use.
        (64, None, 63, "over", None),
        (64, None, 640, "unknown", None),
        (64, Use(0), None, "unknown", None),
        (64, None, None, "unknown", None),
        # Google's way to say that there is no limit.
        (64, None, -1, "ok", None),
    ],
)
def test_verdicts(amount: float, use: Use | None, limit: float | None, word: str, total: float | None) -> None:
    judged = verdict(of(amount), use, limit)
    assert (judged.word, judged.total) == (word, total)
    assert judged.reason


def test_a_reason_is_handed_on() -> None:
    assert verdict(of(1), None, None, "AccessDenied").reason == "AccessDenied"
    assert verdict(of(97), Use(0), 96).reason == "97 of 96 vCPUs: 1 too few"


def test_a_type_of_unknown_size_is_never_ok() -> None:
    (need,) = needs([pool(instance_types=("g5.xlarge", "g5.999xlarge"))])
    assert need.unsized == ("g5.999xlarge",)
    assert verdict(need, Use(0), 1000).word == "unknown"
    assert verdict(need, Use(0), 1).word == "over"


@given(
    need=st.integers(0, 5000),
    others=st.integers(0, 5000),
    own=st.integers(0, 5000),
    limit=st.integers(0, 10_000),
)
def test_own_use_never_changes_the_verdict_while_it_is_within_the_maximum(
    need: int, others: int, own: int, limit: int
) -> None:
    own = min(own, need)
    assert verdict(of(need), Use(others + own, own), limit).word == verdict(of(need), Use(others), limit).word


@given(need=st.integers(0, 5000), total=st.integers(0, 5000), own=st.integers(0, 5000), limit=st.integers(0, 10_000))
def test_ok_means_that_everything_fits(need: int, total: int, own: int, limit: int) -> None:
    judged = verdict(of(need), Use(total, min(own, total)), limit)
    assert judged.total is not None and (judged.word == "ok") == (judged.total <= limit)
    assert judged.total >= max(need, total)


# --- Google


def google(name: str = "train", **changes: Any) -> GooglePool:
    given: dict[str, Any] = {"region": "us-central1", "accelerator": "nvidia-tesla-a100", "count": 4, "machines": 4}
    return GooglePool(name=name, **(given | changes))


def test_google_needs_are_count_times_machines() -> None:
    found = google_needs([google(ssd_gb=200), google("small", accelerator="nvidia-l4", count=1, spot=True)])
    assert {(need.label, need.region): need.amount for need in found} == {
        ("NVIDIA_A100_GPUS", "us-central1"): 16,
        ("PREEMPTIBLE_NVIDIA_L4_GPUS", "us-central1"): 4,
        ("GPUS_ALL_REGIONS", "global"): 20,
        ("SSD_TOTAL_GB", "us-central1"): 800,
    }


def test_tpus_and_vertex_are_not_among_the_gpus_of_compute_engine() -> None:
    found = google_needs([google(accelerator="tpu-v6e", service="tpu"), google("b", service="aiplatform")])
    assert [need.label for need in found] == [
        "TPUV6EPerProjectPerZoneForTPUAPI",
        "custom_model_training_nvidia_a100_gpus",
    ]
    assert google_needs([google(accelerator="nvidia-gb300")])[0].quota is None


@pytest.mark.parametrize(("accelerator", "cores"), [("tpu-v5p", 32), ("tpu-v6e", 16)])
def test_the_tpu_api_counts_cores(accelerator: str, cores: int) -> None:
    (need,) = google_needs([google(accelerator=accelerator, service="tpu")])
    assert need.quota and (need.quota.unit, need.amount) == ("core", cores)
    (need,) = google_needs([google(accelerator=accelerator)])
    assert need.quota and (need.quota.unit, need.amount) == ("chip", 16)


# The shape of compute.regions.get, as `gcloud compute regions describe us-central1 --format=json` prints it.
RECORDED: dict[str, Any] = {
    "kind": "compute#region",
    "name": "us-central1",
    "quotas": [
        {"limit": 96.0, "metric": "CPUS", "usage": 28.0},
        {"limit": 5000.0, "metric": "SSD_TOTAL_GB", "usage": 896.0},
        {"limit": 0.0, "metric": "PREEMPTIBLE_CPUS", "usage": 0.0},
        {"limit": 1.0, "metric": "NVIDIA_P100_GPUS", "usage": 1.0},
        {"limit": 4.0, "metric": "PREEMPTIBLE_NVIDIA_P100_GPUS", "usage": 0.0},
        {"limit": 8.0, "metric": "NVIDIA_L4_GPUS", "usage": 2.0},
        {"metric": "BROKEN", "limit": "many"},
        {"limit": 1.0},
    ],
}


def judged(accelerator: str, spot: bool, count: int = 1) -> str:
    (need, *_) = google_needs([google(accelerator=accelerator, spot=spot, count=count, machines=1)])
    assert need.quota
    reading = google_reading(need.quota, google_readings(RECORDED))
    return verdict(need, Use(reading.use) if reading else None, reading.limit if reading else None).word


def test_a_recorded_answer() -> None:
    assert set(google_readings(RECORDED)) == {
        "CPUS", "SSD_TOTAL_GB", "PREEMPTIBLE_CPUS", "NVIDIA_P100_GPUS", "PREEMPTIBLE_NVIDIA_P100_GPUS",
        "NVIDIA_L4_GPUS",
    }  # fmt: skip
    assert judged("nvidia-tesla-p100", spot=False) == "over"
    assert judged("nvidia-tesla-p100", spot=True, count=4) == "ok"
    assert judged("nvidia-l4", spot=False, count=6) == "ok"
    assert judged("nvidia-l4", spot=False, count=7) == "over"


def test_a_metric_that_is_not_reported_is_unknown() -> None:
    assert judged("nvidia-tesla-v100", spot=False) == "unknown"
    assert judged("nvidia-tesla-v100", spot=True) == "unknown"
    # Never in this answer, whatever the project has.
    assert judged("nvidia-h100-80gb", spot=False) == "unknown"
    assert judged("nvidia-h100-80gb", spot=True) == "unknown"


def test_spot_without_a_metric_of_its_own_counts_towards_the_standard_one() -> None:
    spot = quota_for("gcp", "nvidia-l4", True)
    assert spot
    reading = google_reading(spot, google_readings(RECORDED))
    assert reading and (reading.limit, reading.use) == (8, 2)
    assert "NVIDIA_L4_GPUS holds Spot machines too" in reading.remark


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"quotas": None},
        {"quotas": []},
        {"quotas": "CPUS"},
        {"quotas": ["CPUS", {"metric": "CPUS", "limit": 8.0, "usage": -1.0}]},
        {"quotas": [{"metric": "CPUS", "limit": float("inf"), "usage": 0.0}]},
    ],
)
def test_an_answer_without_quotas(answer: dict[str, Any]) -> None:
    assert google_readings(answer) == {}
