"""Google's quotas, read over HTTP from recorded answers."""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from accel.catalog.quotas import quota_for
from accel.clouds.google import rest as api
from accel.clouds.google.quotas import limit_of
from accel.diagnostics.errors import CloudSilent, NoCredentials, NotFound
from accel.quota import GooglePool, Verdict
from stacks.operations.quota.google import judge_google, quota_usage
from tests.support.google import RECORDED, Google

from .quota_cloud import INFOS, PROJECT, REGION, SERIES, quota_cloud

VERTEX = INFOS.replace("compute", "aiplatform")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    with quota_cloud(monkeypatch) as found:
        monkeypatch.setattr(api, "BACKOFF_S", 0)
        found.on(VERTEX, "quota_infos_vertex.json")
        yield found


def judged(accelerator: str, machines: int = 1, count: int = 1, **more: Any) -> Verdict:
    """The verdict on the accelerators themselves."""
    pool = GooglePool("train", "us-central1", accelerator, count, machines, **more)
    return judge_google("research", [pool])[0]


@pytest.mark.parametrize(
    ("accelerator", "machines", "spot", "word", "reason"),
    [
        ("nvidia-l4", 6, False, "ok", "8 of 8 GPUs"),
        ("nvidia-l4", 7, False, "over", "9 of 8 GPUs: 1 too few"),
        ("nvidia-l4", 4, True, "ok", "4 of 4 GPUs"),
        ("nvidia-l4", 5, True, "over", "5 of 4 GPUs: 1 too few"),
        ("nvidia-tesla-t4", 500, False, "ok", "there is no limit"),
        # Without a preemptible metric the standard one holds Spot machines.
        ("nvidia-tesla-p4", 3, True, "ok", "4 of 4 GPUs (PREEMPTIBLE_NVIDIA_P4_GPUS is not reported: "),
        ("nvidia-tesla-p4", 4, True, "over", "5 of 4 GPUs: 1 too few (PREEMPTIBLE_NVIDIA_P4_GPUS is not reported: "),
        # One of 0 may be one that was never granted.
        ("nvidia-tesla-a100", 16, True, "unknown", "PREEMPTIBLE_NVIDIA_A100_GPUS is 0; if it was never granted, "),
        ("nvidia-tesla-a100", 17, True, "over", "17 of 0 GPUs: 17 too few"),
        # In no answer at all.
        ("nvidia-tesla-v100", 1, False, "unknown", "Cloud Quotas does not have NVIDIA_V100_GPUS for this project"),
        ("nvidia-gb300", 1, False, "unknown", "no quota is known that holds nvidia-gb300 on-demand"),
        # Quotas with a dimension.
        ("nvidia-h100-80gb", 8, False, "ok", "16 of 16 GPUs (use as of the last day, by Cloud Monitoring)"),
        ("nvidia-h100-80gb", 9, False, "over", "17 of 16 GPUs: 1 too few (use as of the last day"),
        # The project has no preemptible quota of them, so the family's holds Spot machines.
        ("nvidia-h100-80gb", 9, True, "over", "17 of 16 GPUs: 1 too few (PREEMPTIBLE_NVIDIA_H100_GPUS is not there: "),
        # Nothing is reported of their use: only a need above the limit is sure.
        (
            "nvidia-h200-141gb",
            8,
            False,
            "unknown",
            "Cloud Monitoring has no use of GPUS_PER_GPU_FAMILY[gpu_family=NVID",
        ),
        ("nvidia-h200-141gb", 9, False, "over", "9 is above the limit of 8, whatever else is in use"),
        # A limit of 0 is absent from the JSON, and a family without an entry has that of all families.
        ("nvidia-b200", 1, False, "over", "1 is above the limit of 0"),
        ("nvidia-gb200", 1, False, "over", "1 is above the limit of 0"),
        ("tpu-v6e", 256, False, "ok", "there is no limit"),
    ],
)
def test_metrics_of_a_region_and_quotas_with_a_dimension(
    cloud: Google, accelerator: str, machines: int, spot: bool, word: str, reason: str
) -> None:
    found = judged(accelerator, machines, spot=spot)
    assert found.word == word and found.reason.startswith(reason), found.reason


def test_vertex_has_quotas_of_its_own(cloud: Google) -> None:
    cloud.on(SERIES, "series_vertex.json")
    found = judged("nvidia-a100-80gb", 6, service="aiplatform")
    assert (found.word, found.total, found.limit) == ("ok", 8, 8)
    # The catalogue does not have its id; the answer does.
    assert found.need.quota and found.need.quota.quota_id == "CustomModelTrainingA10080GBGPUsPerProjectPerRegion"
    assert judged("nvidia-a100-80gb", 7, service="aiplatform").word == "over"
    asked = [each.query["filter"] for each in cloud.asked if each.path == SERIES]
    assert asked[0] == (
        'metric.type = "serviceruntime.googleapis.com/quota/allocation/usage" AND metric.labels.quota_metric = '
        '"aiplatform.googleapis.com/custom_model_training_nvidia_a100_80gb_gpus"'
    )


def test_all_gpus_of_the_project_and_disks_are_judged_too(cloud: Google) -> None:
    found = judge_google("research", [GooglePool("a", "us-central1", "nvidia-l4", 1, 23, ssd_gb=200)])
    assert {row.need.label: (row.word, row.total) for row in found} == {
        "NVIDIA_L4_GPUS": ("over", 25),
        "GPUS_ALL_REGIONS": ("over", 33),
        "SSD_TOTAL_GB": ("over", 5496),
    }


def test_each_is_asked_once_and_with_the_token(cloud: Google) -> None:
    pools = [GooglePool(kind, "us-central1", kind, 1, 1) for kind in ("nvidia-l4", "nvidia-h100-80gb", "nvidia-b200")]
    judge_google("research", pools)
    assert [each.path for each in cloud.asked] == [REGION, PROJECT, INFOS, INFOS, SERIES]
    assert [each.query.get("pageToken") for each in cloud.asked if each.path == INFOS] == [None, "page-2"]
    assert {each.headers["Authorization"] for each in cloud.asked} == {"Bearer made-up"}
    query = cloud.asked[-1].query
    assert query["filter"] == 'metric.type = "compute.googleapis.com/quota/gpus_per_gpu_family/usage"'
    assert query["aggregation.alignmentPeriod"] == "86400s" and query["interval.endTime"].endswith("+00:00")


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        (INFOS, (403, "disabled.json"), "the API is not enabled: gcloud services enable cloudquotas.goog"),
        (SERIES, (403, "denied.json"), "permission monitoring.timeSeries.list is missing on projects/research"),
        (REGION, (403, {"error": {"message": "Required 'compute.regions.get' permission"}}), "Required 'compute.re"),
        (REGION, (400, {"error": {"message": "Invalid value"}}), "Invalid value"),
        (INFOS, "<html>Welcome to the hotel", "the answer is not a JSON object"),
        (INFOS, '{"quotaInfos": [{"quotaId": "GPUS-PER', "the answer is not a JSON object"),
        (INFOS, [], "the answer is not a JSON object"),
        (INFOS, {}, "Cloud Quotas does not have GPUS_PER_GPU_FAMILY[gpu_family=NVIDIA_H100] for this project"),
        (INFOS, {"quotaInfos": "many"}, "Cloud Quotas does not have"),
        (REGION, (302, "moved"), "HTTP 302 without an error of Google's"),
        (REGION, (403, "<html>no entry"), "HTTP 403 without an error of Google's"),
        (SERIES, {"timeSeries": [{"points": 7}]}, "Cloud Monitoring has no use of"),
        (SERIES, {}, "Cloud Monitoring has no use of"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_unknown(cloud: Google, path: str, answer: Any, reason: str) -> None:
    cloud.on(path, answer)
    found = judged("nvidia-h100-80gb")
    assert found.word == "unknown" and reason in found.reason, found.reason


@pytest.mark.parametrize(
    "entry",
    [
        {"metric": "NVIDIA_L4_GPUS", "limit": "8", "usage": 0.0},
        {"metric": "NVIDIA_L4_GPUS", "limit": 8.0},
        {"metric": "NVIDIA_L4_GPUS", "limit": 8.0, "usage": -9.0},
        {"metric": "NVIDIA_L4_GPUS", "limit": float("nan"), "usage": 0.0},
        {"metric": "NVIDIA_L4_GPUS", "limit": True, "usage": False},
        "NVIDIA_L4_GPUS",
    ],
)
def test_a_garbled_metric_is_never_ok(cloud: Google, entry: Any) -> None:
    cloud.on(REGION, {"quotas": [entry]})
    assert judged("nvidia-l4").word == "unknown"
    cloud.on(REGION, {"quotas": entry})
    assert judged("nvidia-l4").word == "unknown"


H100, HERE = {"gpu_family": "NVIDIA_H100"}, ["us-central1"]


@pytest.mark.parametrize(
    "entry",
    [
        {"dimensions": "all", "details": {"value": "16"}, "applicableLocations": HERE},
        {"dimensions": H100, "applicableLocations": HERE},
        {"dimensions": H100, "details": {"value": "lots"}, "applicableLocations": HERE},
        {"dimensions": H100, "details": {"value": "NaN"}, "applicableLocations": HERE},
        {"dimensions": H100, "details": {"value": "16"}, "applicableLocations": ["us-east4"]},
        {"dimensions": H100, "details": {"value": "16"}},
        {"dimensions": {"user": "me"}, "details": {"value": "16"}, "applicableLocations": HERE},
        "16",
    ],
)
def test_an_entry_for_something_else_is_no_limit(entry: Any) -> None:
    quota = quota_for("gcp", "nvidia-h100-80gb")
    assert quota and limit_of({"dimensionsInfos": [entry]}, quota, "us-central1") is None


def test_the_entry_that_says_most_counts() -> None:
    quota = quota_for("gcp", "nvidia-h100-80gb")
    infos = json.loads((RECORDED / "quota_infos_2.json").read_text())["quotaInfos"]
    assert quota
    for entries in (infos[0]["dimensionsInfos"], infos[0]["dimensionsInfos"][::-1]):
        places = [
            limit_of({"dimensionsInfos": entries}, quota, place) for place in ("us-central1", "us-east4", "mars1")
        ]
        assert places == [16, 8, None]


def test_quotas_of_the_tpu_api_are_of_zones_and_in_cores() -> None:
    (found,) = [quota for quota in [quota_for("gcp", "tpu-v5p", service="tpu")] if quota]
    entry = {"details": {"value": "64"}, "applicableLocations": ["us-east5-a"]}
    assert limit_of({"dimensionsInfos": [entry]}, found, "us-east5-a") == 64
    assert limit_of({"dimensionsInfos": [entry]}, found, "us-east5") is None


@pytest.mark.parametrize("value", [{"int64Value": "-8"}, {"int64Value": None}, {"stringValue": "8"}, {}, "8"])
def test_a_garbled_point_is_no_use(value: Any) -> None:
    quota = quota_for("gcp", "nvidia-h100-80gb")
    series = json.loads((RECORDED / "series_h100.json").read_text())["timeSeries"]
    assert quota and quota_usage(series, quota, "us-central1") == 8
    series[1]["points"][0]["value"] = value
    assert quota_usage(series, quota, "us-central1") is None
    # Nor is one without the label that says which family it is.
    del series[0]["metric"]["labels"]["gpu_family"]
    assert quota_usage(series, quota, "us-east4") is None


# --- what ends the command


def test_what_may_pass_is_asked_again(cloud: Google) -> None:
    cloud.on(REGION, (429, {"error": {"message": "slow down"}}), (503, "busy"), "region.json")
    assert judged("nvidia-l4").word == "ok"
    assert [each.path for each in cloud.asked] == [REGION] * 3 + [PROJECT]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_silence(cloud: Google, status: int) -> None:
    cloud.on(REGION, (status, {"error": {"message": "not now"}}))
    with pytest.raises(CloudSilent, match="not now"):
        judged("nvidia-l4")
    assert len(cloud.asked) == api.ATTEMPTS


def test_a_project_that_is_not_there(cloud: Google) -> None:
    del cloud.answers[REGION]
    with pytest.raises(NotFound, match="was not found"):
        judged("nvidia-l4")


def test_nobody_listens(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", "http://127.0.0.1:9")
    with pytest.raises(CloudSilent, match="compute projects/research/regions/us-central1: "):
        judged("nvidia-l4")


def test_a_token_that_is_not_accepted(cloud: Google) -> None:
    cloud.on(REGION, (401, {"error": {"message": "Request had invalid authentication credentials."}}))
    with pytest.raises(NoCredentials, match="invalid authentication"):
        judged("nvidia-l4")


# --- credentials


def test_a_netrc_does_not_replace_the_token(cloud: Google, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert judged("nvidia-l4").word == "ok"
    assert cloud.asked[0].headers["Authorization"] == "Bearer made-up"


class _Failure(Exception):
    pass


class _Unreachable(_Failure):
    pass


@pytest.fixture
def signed_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a google-auth in place that gives a token, or fails."""

    def install(failure: Exception | None = None) -> None:
        class Credentials:
            def refresh(self, request: object) -> None:
                if failure:
                    raise failure

            def apply(self, headers: Any) -> None:
                headers.update({"authorization": "Bearer fresh", "x-goog-user-project": "payer"})

        def default(scopes: list[str]) -> tuple[Credentials, str]:
            assert scopes == [api.SCOPE, api.EMAIL]
            return Credentials(), "elsewhere"

        modules = {
            "google.auth": {"default": default},
            "google.auth.exceptions": {"GoogleAuthError": _Failure, "TransportError": _Unreachable},
            "google.auth.transport": {},
            "google.auth.transport.requests": {"Request": object},
        }
        for name, members in modules.items():
            module = ModuleType(name)
            module.__path__ = []
            vars(module).update(members)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delenv(api.GIVEN)

    return install


def test_application_default_credentials(cloud: Google, signed_in: Callable[..., None]) -> None:
    signed_in()
    assert judged("nvidia-l4").word == "ok"
    assert cloud.asked[0].headers["authorization"] == "Bearer fresh"
    assert cloud.asked[0].headers["x-goog-user-project"] == "payer"


@pytest.mark.parametrize(
    ("failure", "error"), [(_Failure("expired"), NoCredentials), (_Unreachable("no route"), CloudSilent)]
)
def test_no_token(cloud: Google, signed_in: Callable[..., None], failure: Exception, error: type[Exception]) -> None:
    signed_in(failure)
    with pytest.raises(error, match=str(failure)):
        judged("nvidia-l4")
    assert cloud.asked == []


def test_without_google_auth(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(api.GIVEN)
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(NoCredentials, match=api.GIVEN):
        judged("nvidia-l4")


@pytest.mark.skipif(
    not importlib.util.find_spec("google") or not importlib.util.find_spec("google.auth"), reason="no google-auth"
)
def test_the_real_library_without_credentials(cloud: Google, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(api.GIVEN)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(NoCredentials, match=r"none\.json"):
        judged("nvidia-l4")
