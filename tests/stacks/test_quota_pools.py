"""`stacks quota STACK` for a section of Google Cloud: its pools against the quotas of its own project."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from accel.clouds.google import rest as api
from accel.quota import GooglePool
from stacks.cli.main import stacks
from stacks.environment.config import load_environment
from stacks.environment.gcp.config import Gcp
from stacks.operations.quota.aws import Readings
from stacks.operations.quota.judgement import google_pools, machine_of
from tests.support.google import Google
from tests.support.project import KEY, environment
from tests.support.tables import cells

from .quota_cloud import INFOS, PROJECT, REGION, quota_cloud

RUNNING = f"{PROJECT}/aggregated/instances"
LABELS = {"accel-project": "accel", "accel-stack": "it"}
L4 = {"kind": "gpu", "machine_type": "g2-standard-8", "max_nodes": 4}
T4 = {"kind": "gpu", "machine_type": "n1-standard-8", "accelerator": "nvidia-tesla-t4", "accelerator_count": 2}
V5E = {"kind": "tpu", "machine_type": "ct5lp-hightpu-4t", "topology": "4x4"}


def values(**given: dict[str, Any]) -> dict[str, Any]:
    """The GKE playground in the recorded project, with these pools beside its CPU pool."""
    found = environment("gke-dev", cloud="gcp")
    section = found["gcp"]
    section["project"] = "research"
    section["pools"] = {"system": section["pools"]["system"], **given}
    del section["workloads"]
    return found


def section(**given: dict[str, Any]) -> Gcp:
    found = load_environment(values(**given)).gcp
    assert found
    return found


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    with quota_cloud(monkeypatch) as found:
        monkeypatch.setattr(api, "BACKOFF_S", 0)
        found.on(RUNNING, {"items": {}})
        yield found


@pytest.fixture
def quota(cloud: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`stacks quota it` with these pools."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: accel\nruntime: python\n")

    def call(*arguments: str, also: dict[str, Any] | None = None, **given: dict[str, Any]) -> Result:
        text = yaml.safe_dump({"config": {KEY: {**values(**given), **(also or {})}}}, sort_keys=False)
        (tmp_path / "Pulumi.it.yaml").write_text(text)
        return CliRunner().invoke(stacks, ["quota", "it", *arguments])

    return call


def rows(told: Result) -> dict[str, Any]:
    return {row["quota"] or row["name"]: row for row in json.loads(told.stdout)}


# --- the pools


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (L4, GooglePool("it", "us-central1", "nvidia-l4", 1, 4, False, 100)),
        ({**L4, "capacity": "spot"}, GooglePool("it", "us-central1", "nvidia-l4", 1, 4, True, 100)),
        ({**L4, "limits": "per-zone", "zones": ["us-central1-a", "us-central1-b"]},
         GooglePool("it", "us-central1", "nvidia-l4", 1, 8, False, 100)),
        ({**L4, "disk": {"size_gib": 500, "type": "pd-ssd"}},
         GooglePool("it", "us-central1", "nvidia-l4", 1, 4, False, 500)),
        ({**T4, "max_nodes": 3, "disk": {"type": "pd-standard"}},
         GooglePool("it", "us-central1", "nvidia-tesla-t4", 2, 3, False, 0)),
        ({"kind": "gpu", "machine_type": "a2-highgpu-4g", "max_nodes": 2, "mig_partition": "1g.5gb"},
         GooglePool("it", "us-central1", "nvidia-tesla-a100", 4, 2, False, 100)),
        (V5E, GooglePool("it", "us-central1", "tpu-v5litepod", 4, 4)),
        ({**V5E, "topology": "2x4", "disk": {"type": "pd-balanced"}},
         GooglePool("it", "us-central1", "tpu-v5litepod", 4, 2, False, 100)),
    ],
)  # fmt: skip
def test_what_a_pool_can_come_to(pool: dict[str, Any], expected: GooglePool) -> None:
    assert google_pools(section(it=pool)) == [expected]


def test_cpu_pools_and_reservations_ask_for_no_accelerators() -> None:
    reserved = {**L4, "capacity": "reservation", "reservation": {"name": "kept"}}
    assert google_pools(section(kept=reserved)) == []


# --- the command


def test_enough(quota: Any, cloud: Google) -> None:
    told = quota(l4=L4, spot={**L4, "capacity": "spot"})
    assert told.exit_code == 0, told.output
    lines = cells(told)
    assert lines[0] == ["STACK", "NAME", "REGION", "NEED", "USE", "LIMIT", "UNIT", "VERDICT", "BY"]
    assert lines[1] == ["it", "NVIDIA L4 GPUs", "us-central1", "4", "2", "8", "GPU", "ok", "l4:4"]
    found = {line[1]: (line[3], line[7]) for line in lines[1:]}
    assert found["Preemptible NVIDIA L4 GPUs"] == ("4", "ok") and found["GPUs (all regions)"] == ("8", "ok")
    (asked,) = [each for each in cloud.asked if each.path == RUNNING]
    assert asked.query["filter"] == '(labels.accel-project = "accel") (labels.accel-stack = "it")'


def test_a_pool_that_cannot_reach_its_maximum(quota: Any) -> None:
    told = quota("-o", "json", l4={**L4, "max_nodes": 7}, spot={**L4, "capacity": "spot"})
    assert told.exit_code == 5
    found = rows(told)
    assert (found["NVIDIA_L4_GPUS"]["verdict"], found["NVIDIA_L4_GPUS"]["total"]) == ("over", 9)
    assert found["NVIDIA_L4_GPUS"]["by"] == {"l4": 7}
    assert found["PREEMPTIBLE_NVIDIA_L4_GPUS"]["verdict"] == "ok"
    error, hint = told.stderr.splitlines()[-2:]
    assert error == "error: NVIDIA L4 GPUs (NVIDIA_L4_GPUS) in us-central1: 9 of 8 GPUs: 1 too few"
    assert hint == "hint: stacks quota --request writes the request; or lower max_nodes"


def test_flex_start_spends_the_preemptible_quota(quota: Any) -> None:
    told = quota("-o", "json", flex={**L4, "capacity": "flex-start", "max_nodes": 5})
    assert told.exit_code == 5
    assert rows(told)["PREEMPTIBLE_NVIDIA_L4_GPUS"]["verdict"] == "over"


@pytest.mark.parametrize(("topology", "code", "total"), [("2x4", 0, 12), ("4x4", 5, 20)])
def test_chips_of_a_slice(quota: Any, cloud: Google, topology: str, code: int, total: int) -> None:
    chips = {"metric": "TPU_LITE_PODSLICE_V5", "limit": 16.0, "usage": 4.0}
    cloud.on(REGION, {"quotas": [chips, {"metric": "SSD_TOTAL_GB", "limit": -1.0, "usage": 0.0}]})
    told = quota("-o", "json", v5e={**V5E, "topology": topology})
    assert told.exit_code == code, told.output
    assert rows(told)["TPU_LITE_PODSLICE_V5"]["total"] == total


def test_a_metric_without_a_limit_says_so_to_people(quota: Any, cloud: Google) -> None:
    chips = {"metric": "TPU_LITE_PODSLICE_V5", "limit": -1.0, "usage": 4.0}
    cloud.on(REGION, {"quotas": [chips, {"metric": "SSD_TOTAL_GB", "limit": -1.0, "usage": 0.0}]})
    found = {line[1]: line[2:7] for line in cells(quota(v5e=V5E))}
    assert found["TPU v5 Lite PodSlice"] == ["us-central1", "16", "4", "unlimited", "chip"]
    assert rows(quota("-o", "json", v5e=V5E))["TPU_LITE_PODSLICE_V5"]["limit"] == -1


def instance(kind: str, labels: dict[str, str] = LABELS, **more: Any) -> dict[str, Any]:
    zone = "https://www.googleapis.com/compute/v1/projects/research/zones/us-central1-a"
    return {"machineType": f"{zone}/machineTypes/{kind}", "status": "RUNNING", "labels": labels, **more}


def test_what_the_stack_runs_is_counted_once(quota: Any, cloud: Google) -> None:
    items = [instance("g2-standard-8"), instance("g2-standard-8"), instance("g2-standard-8", {"accel-stack": "it"})]
    cloud.on(RUNNING, {"items": {"zones/us-central1-a": {"instances": items}, "zones/us-east4-a": {"warning": {}}}})
    found = rows(quota("-o", "json", l4={**L4, "max_nodes": 8}))
    row = found["NVIDIA_L4_GPUS"]
    assert (row["need"], row["use"], row["own"], row["total"], row["verdict"]) == (8, 2, 2, 8, "ok")
    assert found["GPUS_ALL_REGIONS"]["own"] == 2 and found["SSD_TOTAL_GB"]["own"] == 200


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (instance("g2-standard-8"), GooglePool("own", "us-central1", "nvidia-l4", 1, 1, False, 100)),
        (instance("g2-standard-8", scheduling={"provisioningModel": "SPOT"}),
         GooglePool("own", "us-central1", "nvidia-l4", 1, 1, True, 100)),
        (instance("n1-standard-8", guestAccelerators=[{"acceleratorType": "zones/a/acceleratorTypes/nvidia-tesla-t4",
                                                       "acceleratorCount": 2}]),
         GooglePool("own", "us-central1", "nvidia-tesla-t4", 2, 1)),
        (instance("ct5lp-hightpu-4t"), GooglePool("own", "us-central1", "tpu-v5litepod", 4, 1)),
        (instance("g2-standard-8", status="TERMINATED"), None),
        (instance("g2-standard-8", status="PENDING"), None),
        (instance("g2-standard-8", scheduling={"provisioningModel": "RESERVATION_BOUND"}), None),
        (instance("e2-standard-4"), None),
        (instance("q9-standard-4"), None),
        (instance("n1-standard-8", guestAccelerators=[{"acceleratorType": "nvidia-x9", "acceleratorCount": 2}]), None),
        ({}, None),
    ],
)  # fmt: skip
def test_an_instance_of_the_stack(item: dict[str, Any], expected: GooglePool | None) -> None:
    assert machine_of(section(l4=L4), "us-central1-a", item) == expected


# --- what cannot be read


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--strict",), 5)])
@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        (REGION, (403, {"error": {"message": "Required 'compute.regions.get' permission"}}), "Required 'compute.reg"),
        (REGION, (404, {"error": {"message": "The resource 'projects/research' was not found"}}), "was not found"),
        (REGION, (401, {"error": {"message": "invalid authentication credentials"}}), "invalid authentication"),
        (REGION, (503, "busy"), "503"),
        (RUNNING, (403, {"error": {"message": "Required 'compute.instances.list'"}}), "Required 'compute.instances"),
    ],
)
def test_a_project_that_cannot_be_read_is_unknown_for_each_pool(
    quota: Any, cloud: Google, path: str, answer: Any, said: str, arguments: tuple[str, ...], code: int
) -> None:
    cloud.on(path, answer)
    told = quota(*arguments, l4=L4, spot={**L4, "capacity": "spot"})
    assert told.exit_code == code, told.output
    lines = [line for line in told.stderr.splitlines() if line.startswith("quota unknown: ") and said in line]
    assert any(line.endswith("(for l4)") for line in lines) and any(line.endswith("(for spot)") for line in lines)


def test_an_api_that_is_not_there_leaves_what_the_others_tell(quota: Any, cloud: Google) -> None:
    del cloud.answers[INFOS]
    found = rows(quota("-o", "json", l4=L4, h200={"kind": "gpu", "machine_type": "a3-ultragpu-8g", "max_nodes": 1}))
    assert found["NVIDIA_L4_GPUS"]["verdict"] == "ok"
    assert found["GPUS_PER_GPU_FAMILY"]["verdict"] == "unknown" and found["GPUS_PER_GPU_FAMILY"]["by"] == {"h200": 8}


def test_without_credentials_every_pool_is_unknown(quota: Any, cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(api.GIVEN)
    monkeypatch.setitem(sys.modules, "google.auth", None)
    told = quota(l4=L4)
    assert told.exit_code == 0 and cloud.asked == []
    assert f"{api.GIVEN} is not set (for l4)" in told.stderr


def test_one_cloud_that_cannot_be_read_does_not_fail_the_other(
    quota: Any, cloud: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(region: str, quotas: Any, *_: Any) -> Readings:
        from accel.clouds.quota_cache import Limit

        return Readings({each.code: Limit(0) for each in quotas}, None, "denied")

    monkeypatch.setattr("stacks.operations.quota.aws.readings", read)
    del cloud.answers[REGION]
    told = quota("-o", "json", also={"aws": environment("dev")["aws"]}, l4=L4)
    assert told.exit_code == 5
    found = rows(told)
    assert found["NVIDIA_L4_GPUS"]["verdict"] == "unknown" and found["L-DB2E81BA"]["verdict"] == "over"
    assert told.stderr.splitlines()[-1].endswith("lower max_vcpus")


def test_a_pool_without_accelerators_asks_nothing(quota: Any, cloud: Google) -> None:
    told = quota()
    assert told.exit_code == 0 and cloud.asked == []


def test_the_request(quota: Any) -> None:
    told = quota("--request", l4={**L4, "max_nodes": 7})
    assert told.exit_code == 0, told.output
    assert "NVIDIA-L4-GPUS-per-project-region" in told.stdout and "# For project research." in told.stdout
    assert "stack it can use 7 GPUs" in told.stdout
