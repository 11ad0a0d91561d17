"""Quotas before a submit to TPU VMs and GPU VMs: what is asked, what is kept, and what is said."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accel import folders
from accel.contract.targets import write
from jobs.backends.base import QuotaAnswer, Quotas
from jobs.backends.vm.gpu import GceBackend
from jobs.backends.vm.quota import gpus
from jobs.backends.vm.tpu import TpuVmBackend
from jobs.model.job import Job
from tests.jobs.backends import gce_target, tpu_target
from tests.jobs.backends.vms_cloud import PROJECT, QUICK, targets, variables
from tests.support import commands
from tests.support.google import Google, google
from tests.support.google_fake import Fake

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus", "tests.jobs.backends.vms_cloud"]

L4 = {"accelerator": {"type": "l4", "count": 2}, "spot": False}
LITE = {"accelerator": {"type": "v5litepod-16"}, "spot": True}
H100 = {"accelerator": {"type": "h100-80gb", "count": 8}, "spot": True}
REGION = f"/compute/v1/projects/{PROJECT}/regions/us-central1"
INFOS = f"/v1/projects/{PROJECT}/locations/global/services"


def job(**fields: Any) -> Job:
    return Job(**{"name": "digits", "command": ["true"], **fields})


def of_gce(**fields: Any) -> QuotaAnswer:
    target = gce_target.make_target(zones=["us-central1-a", "us-central1-b", "us-east4-c"])
    return GceBackend("gpus", target, timing=QUICK).quota(job(**fields))


def of_tpu(**fields: Any) -> QuotaAnswer:
    return TpuVmBackend("tpus", tpu_target.make_target(zones=["us-central1-a"]), timing=QUICK).quota(job(**fields))


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """Answers of a project with some quotas."""
    with google() as found:
        for name, value in found.variables.items():
            monkeypatch.setenv(name, value)
        yield found


def quota(metric: str, limit: float) -> dict[str, Any]:
    return {"metric": metric, "limit": limit, "usage": 0}


def info(limit: str, **dimensions: str) -> dict[str, Any]:
    place = dimensions.get("zone") or "us-central1"
    row = {"dimensions": dimensions, "details": {"value": limit}, "applicableLocations": [place]}
    return {"quotaId": "x", "dimensionsInfos": [row]}


# --- against the sandbox's Google


def test_nothing_is_said_where_there_is_room(clouds: Fake) -> None:
    assert isinstance(GceBackend.of_scope("b"), Quotas) and isinstance(TpuVmBackend.of_scope("b"), Quotas)
    assert of_gce(**L4) == of_tpu(**LITE) == QuotaAnswer()


def test_each_region_and_zone_that_has_too_few(clouds: Fake) -> None:
    clouds.fault(quota={"compute/us-central1/NVIDIA_L4_GPUS": 1, "tpu/us-central1-a/v5litepod": 8})
    (over,) = of_gce(**L4).over
    assert over.startswith("us-central1: g2-standard-24 takes 2 GPUs, and the limit of NVIDIA L4 GPUs (NVIDIA_L4_GPUS)")
    assert over.endswith(" in us-central1 is 1")
    (over,) = of_tpu(**LITE).over
    assert over.startswith("us-central1-a: v5litepod-16 takes 16 cores, and the limit of Preemptible TPU v5 lite pod")
    assert over.endswith("in us-central1-a is 8")
    assert of_tpu(accelerator={"type": "v5litepod-8"}, spot=True) == QuotaAnswer()


def test_the_limit_of_all_regions(clouds: Fake) -> None:
    clouds.fault(quota={"compute/global/GPUS_ALL_REGIONS": 3})
    over = of_gce(**L4, nodes=2).over
    assert [line.partition(":")[0] for line in over] == ["us-central1", "us-east4"]
    assert "2 x g2-standard-24 takes 4 GPUs" in over[0] and "in all regions is 3" in over[0]


def test_a_preemptible_quota_of_zero_may_never_have_been_granted(clouds: Fake) -> None:
    spot, standard = "compute/us-central1/PREEMPTIBLE_NVIDIA_L4_GPUS", "compute/us-central1/NVIDIA_L4_GPUS"
    clouds.fault(quota={spot: 0})
    answer = of_gce(**{**L4, "spot": True})
    assert answer.over == () and "if it was never granted, NVIDIA_L4_GPUS holds Spot machines" in answer.unknown[0]
    clouds.fault(quota={spot: 0, standard: 1})
    (path,) = folders.cache().glob("quotas-*.json")
    path.unlink()
    assert len(of_gce(**{**L4, "spot": True}).over) == 1


Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shell(clouds: Fake, tmp_path: Path) -> Shell:
    """Runs `jobs` with both targets."""
    path = tmp_path / "targets.json"
    path.write_text(json.dumps(write(targets())))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ACCEL_", "CLOUDSDK_"))}
    own = {"ACCEL_TARGETS": str(path), "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(Path.cwd())}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {**kept, **variables(clouds), **own, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return commands.run("jobs", *arguments, cwd=tmp_path, env=environ)

    return call


def test_submit_warns_and_with_strict_refuses(clouds: Fake, shell: Shell, tmp_path: Path) -> None:
    clouds.fault(quota={"compute/us-central1/NVIDIA_L4_GPUS": 1})
    (tmp_path / "job.yaml").write_text(json.dumps({"name": "digits", "command": ["true"], **L4}))
    refused = shell("submit", "job.yaml", "--to", "gpus", "--strict")
    assert refused.returncode == 5, refused.stderr
    first, second = refused.stderr.splitlines()
    assert first.startswith("error: quota: us-central1: g2-standard-24 takes 2 GPUs, and the limit of NVIDIA L4 GPUs")
    assert second.startswith("hint: ask for more")
    checked = shell("validate", "job.yaml", "--to", "gpus")
    assert checked.returncode == 0 and "warning: job.yaml: quota: us-central1: " in checked.stderr
    assert shell("validate", "job.yaml", "--to", "gpus", "--strict", "--no-quota").returncode == 0


# --- from recorded answers


def test_one_call_each_hour(recorded: Google) -> None:
    recorded.on(REGION, {"quotas": [quota("NVIDIA_L4_GPUS", 8)]})
    recorded.on(REGION.replace("us-central1", "us-east4"), {"quotas": [quota("NVIDIA_L4_GPUS", 8)]})
    recorded.on(f"/compute/v1/projects/{PROJECT}", {"quotas": [quota("GPUS_ALL_REGIONS", 8)]})
    assert of_gce(**L4) == of_gce(**L4) == QuotaAnswer()
    assert sorted(each.path.rpartition("/")[2] for each in recorded.asked) == [PROJECT, "us-central1", "us-east4"]
    assert all(each.query == {"fields": "quotas"} for each in recorded.asked)


def test_what_compute_engine_does_not_report_is_asked_of_cloud_quotas(recorded: Google) -> None:
    recorded.on(REGION, {"quotas": []})
    recorded.on(f"/compute/v1/projects/{PROJECT}", {"quotas": [quota("GPUS_ALL_REGIONS", -1)]})
    spot = f"{INFOS}/compute.googleapis.com/quotaInfos/PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region"
    standard = f"{INFOS}/compute.googleapis.com/quotaInfos/GPUS-PER-GPU-FAMILY-per-project-region"
    recorded.on(spot, info("4", region="us-central1"))
    recorded.on(standard, info("0", gpu_family="NVIDIA_H100", region="us-central1"))
    target = gce_target.make_target(zones=["us-central1-a"])
    answer = GceBackend("gpus", target, timing=QUICK).quota(job(**H100))
    assert len(answer.over) == 1 and "takes 8 GPUs" in answer.over[0] and answer.over[0].endswith("us-central1 is 4")


def test_what_cannot_be_read_is_not_known(recorded: Google) -> None:
    path = f"{INFOS}/tpu.googleapis.com/quotaInfos/TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI"
    recorded.on(path, (403, {"error": {"code": 403, "message": "cloudquotas.quotas.get denied"}}))
    answer = of_tpu(**LITE)
    assert answer.over == () and "cloudquotas.quotas.get denied" in answer.unknown[0]
    assert of_tpu(accelerator={"type": "v2-8"}, spot=True).unknown == ("none is known that holds tpu-v2 Spot",)


def test_an_api_that_does_not_answer_is_one_line(recorded: Google) -> None:
    path = f"{INFOS}/tpu.googleapis.com/quotaInfos/TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI"
    recorded.on(path, (503, {"error": {"code": 503, "message": "later"}}))
    answer = of_tpu(**LITE)
    assert answer.over == () and len(answer.unknown) == 1 and "later" in answer.unknown[0]


def test_what_takes_no_quota_asks_nothing(recorded: Google) -> None:
    target = tpu_target.make_target(zones=["us-central1-a"], reservation="kept")
    assert TpuVmBackend("tpus", target).quota(job(accelerator={"type": "v5litepod-16"})) == QuotaAnswer()
    target = gce_target.make_target(machine_types=["n2-standard-4"])
    assert GceBackend("cpus", target).quota(job()) == QuotaAnswer()
    assert gpus(["us-central1-a"], "no-such-machine", None, 1, 1, spot=False) == []
    assert recorded.asked == []
