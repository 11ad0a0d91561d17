"""`stacks quota --machine`: machines that are only planned, on both clouds; and the request that Google gets."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from accel.catalog.quotas import quotas
from accel.quota import GooglePool, Pool, Use, Verdict, google_needs, needs, verdict
from stacks.cli.main import stacks
from stacks.operations.quota.request import program
from tests.support.google import Google
from tests.support.tables import cells

from .quota_cloud import INFOS, REGION, quota_cloud
from .test_config import ROOT

HERE = ("--region", "us-central1", "--project", "research")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    with quota_cloud(monkeypatch) as found:
        monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
        yield found


def quota(*arguments: str) -> Result:
    return CliRunner().invoke(stacks, ["quota", *arguments])


MACHINE = "a3-highgpu-8g:8"


def test_machines_that_fit(cloud: Google) -> None:
    told = quota("--machine", "gcp:a3-highgpu-8g", *HERE)
    assert told.exit_code == 0, told.output
    lines = cells(told)
    assert lines[0] == ["NAME", "REGION", "NEED", "USE", "LIMIT", "UNIT", "VERDICT", "BY"]
    assert lines[1] == [
        "GPUs per GPU family: NVIDIA H100",
        "us-central1",
        "8",
        "8",
        "16",
        "GPU",
        "ok",
        "a3-highgpu-8g:8",
    ]
    assert lines[2] == ["GPUs (all regions)", "global", "8", "10", "32", "GPU", "ok", "a3-highgpu-8g:8"]
    assert told.stderr == ""


def test_too_many(cloud: Google) -> None:
    told = quota("--machine", "gcp:a3-highgpu-8g:2", "--machine", "gcp:g2-standard-4", *HERE, "-o", "json")
    assert told.exit_code == 5
    rows = {row["quota"]: row for row in json.loads(told.stdout)}
    assert {code: (row["verdict"], row["total"]) for code, row in rows.items()} == {
        "GPUS_PER_GPU_FAMILY": ("over", 24),
        "GPUS_ALL_REGIONS": ("ok", 27),
        "NVIDIA_L4_GPUS": ("ok", 3),
    }
    assert rows["GPUS_ALL_REGIONS"]["by"] == {"a3-highgpu-8g": 16, "g2-standard-4": 1}
    assert rows["NVIDIA_L4_GPUS"]["stack"] is None
    assert told.stderr.splitlines()[-1] == "hint: stacks quota --request writes the request; or take fewer machines"


@pytest.mark.parametrize(
    ("text", "by", "said"),
    [
        ("l4:1", "g2-standard-4:1", "l4:1: g2-standard-4 is meant, the cheapest in us-central1 with 1 nvidia-l4"),
        ("gcp:l4:8", "g2-standard-96:8", "gcp:l4:8: g2-standard-96 is meant"),
        ("t4:1", "n1+nvidia-tesla-t4x1:1", "t4:1: n1+nvidia-tesla-t4x1 is meant"),
        ("h100-80gb:8", "a3-highgpu-8g:8", "h100-80gb:8: a3-highgpu-8g is meant"),
    ],
)
def test_gpus_by_kind_and_number_are_the_cheapest_machine(cloud: Google, text: str, by: str, said: str) -> None:
    told = quota("--machine", text, *HERE)
    assert by in told.stdout, told.output
    assert f"note: {said}" in told.stderr


def test_a_slice_by_its_name(cloud: Google) -> None:
    for text in ("gcp:v5litepod-8", "v5e-8"):
        told = quota("--machine", text, *HERE)
        assert f"note: {text}: one slice of 8 chips in us-central1-a is meant" in told.stderr
        # The recorded answers have no TPUs, and theirs is the service that is asked about.
        assert told.exit_code == 6 and "services/tpu.googleapis.com/quotaInfos was not found" in told.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [("l4:3", "--machine: nvidia-l4: 3 is not a count"), ("v4-8", "v4-8 is not known to be offered in us-central1"),
     ("gcp:v5litepod-7", "--machine: ")],
)  # fmt: skip
def test_gpus_and_slices_that_there_are_not(cloud: Google, text: str, said: str) -> None:
    told = quota("--machine", text, *HERE)
    assert told.exit_code == 2 and said in told.stderr, told.output
    assert cloud.asked == []


def test_spot_has_other_quotas(cloud: Google) -> None:
    assert quota("--machine", "gcp:g2-standard-4:5", *HERE).exit_code == 0
    assert quota("--machine", "gcp:g2-standard-4:5", "--spot", *HERE).exit_code == 5


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 5)])
def test_not_known(cloud: Google, strict: tuple[str, ...], code: int) -> None:
    cloud.on(INFOS, (403, "disabled.json"))
    told = quota("--machine", "gcp:a3-highgpu-8g", *HERE, *strict)
    assert told.exit_code == code
    assert "the API is not enabled: gcloud services enable cloudquotas.googleapis.com --project 123" in told.stderr


def test_gpus_attached_to_a_host(cloud: Google) -> None:
    told = quota("--machine", "gcp:n1+nvidia-tesla-p4x2", *HERE)
    assert told.exit_code == 0 and "NVIDIA P4 GPUs" in told.stdout
    assert "the CPUs of its host have a quota of their own" in told.stderr


def test_the_project_may_be_in_the_environment(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "research")
    assert quota("--machine", "gcp:g2-standard-4", "--region", "us-central1").exit_code == 0


def test_a_region_without_the_machine_is_only_noted(cloud: Google) -> None:
    cloud.on(REGION.replace("us-central1", "africa-south1"), "region.json")
    told = quota("--machine", "gcp:g2-standard-4", "--region", "africa-south1", "--project", "research")
    assert told.exit_code == 0 and told.stderr.startswith("note: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--machine", "gcp:a3-hihgpu-8g", *HERE), "--machine: unknown machine type"),
        (("--machine", "gcp:a3-hihgpu-8g", *HERE), "a3-highgpu-8g"),
        (("--machine", "gpc:a3-highgpu-8g", *HERE), "nearest: gcp"),
        (("--machine", "a3-highgpu-8g", *HERE), "must be CLOUD:TYPE or CLOUD:TYPE:COUNT"),
        (("--machine", "gcp:a3-highgpu-8g:0", *HERE), "must be CLOUD:TYPE or CLOUD:TYPE:COUNT"),
        (("--machine", "gcp:a3-highgpu-8g:x", *HERE), "must be CLOUD:TYPE or CLOUD:TYPE:COUNT"),
        (("--machine", "gcp:n2-standard-4", *HERE), "n2-standard-4 has no whole GPU or TPU"),
        (("--machine", "gcp:g4-standard-6", *HERE), "g4-standard-6 has no whole GPU or TPU"),
        (("--machine", "gcp:g2-standard-4", "--region", "us-central1-a"), "is a zone; the region is us-central1"),
        (("--machine", "gcp:g2-standard-4", "--region", "us-centrl1"), "nearest: us-central1"),
        (("--machine", "gcp:g2-standard-4", "--region", "us-east-1"), "--region: unknown region"),
        (("--machine", "gcp:g2-standard-4"), "--region is missing"),
        (("--machine", "gcp:g2-standard-4", "--region", "us-central1"), "--project is missing"),
        (("--machine", "aws:g5.xlarge", "--region", "us-east-1", "--project", "p"), "--project is for gcp"),
        (("--machine", "aws:g5.xlarge", "--machine", "gcp:g2-standard-4", *HERE), "one cloud at a time"),
        (("dev", "--machine", "gcp:g2-standard-4", *HERE), "exclude each other"),
        (("dev", "--spot"), "are for --machine"),
        (("--region", "us-east-1"), "are for --machine"),
    ],
)
def test_bad_arguments(cloud: Google, arguments: tuple[str, ...], said: str) -> None:
    told = quota(*arguments)
    assert told.exit_code == 2 and said in told.stderr, told.stderr
    assert cloud.asked == []


def test_a_process_of_its_own(cloud: Google, tmp_path: Path) -> None:
    def call(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "CLOUDSDK_"))}
        environ = {**kept, **cloud.variables, "PYTHONPATH": str(ROOT), **variables}
        command = [sys.executable, "-m", "stacks", "quota", "--machine", "gcp:g2-standard-4:9", *HERE, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)

    done = call()
    assert done.returncode == 5 and "11 of 8 GPUs: 3 too few" in done.stderr, done.stderr
    missing = str(tmp_path / "none.json")
    done = call(GOOGLE_OAUTH_ACCESS_TOKEN="", GOOGLE_APPLICATION_CREDENTIALS=missing, NO_GCE_CHECK="true")
    assert done.returncode == 3 and done.stderr.startswith("error: Google: "), done.stderr


# --- AWS


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the reader of AWS was asked; it says that the limit is 400, and that 192 run."""
    asked: list[tuple[Any, ...]] = []

    def judge(region: str, pools: Any) -> tuple[Verdict, ...]:
        asked.append((region, *pools))
        return tuple(verdict(need, Use(192), 400) for need in needs(pools))

    monkeypatch.setattr("stacks.operations.quota.planned_machines.judge_aws", judge)
    return asked


@pytest.mark.parametrize(("count", "code"), [("", 0), (":1", 0), (":2", 5)])
def test_machines_of_aws(aws: list[Any], count: str, code: int) -> None:
    told = quota("--machine", f"aws:p5.48xlarge{count}", "--region", "us-east-1", "--spot")
    assert told.exit_code == code, told.output
    vcpus = 192 * int(count[1:] or 1)
    assert aws == [("us-east-1", Pool("p5.48xlarge", "us-east-1", True, ("p5.48xlarge",), vcpus, exceeds=False))]
    assert cells(told)[1][:3] == ["All P5 Spot Instance Requests", "us-east-1", str(vcpus)]


# --- the request


def written(*pools: GooglePool) -> str:
    return program([("prod", None, [verdict(need, Use(0), 1) for need in google_needs(pools)])])


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[dict[str, Any]]]:
    """Runs a written program with a stand-in for the provider's package, which takes what the real one takes."""

    def call(text: str) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []

        def preference(
            name: str,
            *,
            parent: str,
            service: str,
            quota_id: str,
            dimensions: dict[str, str],
            quota_config: dict[str, str],
            contact_email: str,
            justification: str,
        ) -> None:
            assert contact_email == "quotas:contact_email" and justification
            made.append(
                {"name": name, "parent": parent, "service": service, "id": quota_id, "in": dimensions, **quota_config}
            )

        def config(preferred_value: str) -> dict[str, str]:
            assert isinstance(preferred_value, str)
            return {"value": preferred_value}

        provider = ModuleType("pulumi_gcp")
        vars(provider)["cloudquota"] = SimpleNamespace(
            SQuotaPreference=preference, SQuotaPreferenceQuotaConfigArgs=config
        )
        engine = ModuleType("pulumi")
        vars(engine)["Config"] = lambda space: SimpleNamespace(require=lambda key: f"{space}:{key}")
        monkeypatch.setitem(sys.modules, "pulumi_gcp", provider)
        monkeypatch.setitem(sys.modules, "pulumi", engine)
        exec(compile(text, "request.py", "exec"), {})  # noqa: S102 - what the command wrote is what is tested
        return made

    return call


def test_the_request_names_quota_and_dimensions(run: Any) -> None:
    """Source: https://www.pulumi.com/registry/packages/gcp/api-docs/cloudquota/squotapreference/"""
    text = written(
        GooglePool("a", "us-central1", "nvidia-l4", 1, 16),
        GooglePool("b", "us-central1", "nvidia-h100-80gb", 8, 2),
        GooglePool("c", "us-central1", "nvidia-h100-80gb", 8, 2, service="aiplatform"),
        GooglePool("d", "us-central1", "nvidia-tesla-p4", 1, 2, service="aiplatform"),
    )
    compute = {"parent": "projects/gcp:project", "service": "compute.googleapis.com"}
    family = {"region": "us-central1", "gpu_family": "NVIDIA_H100"}
    assert run(text) == [
        {
            "name": "nvidia-l4-gpus-us-central1",
            "id": "NVIDIA-L4-GPUS-per-project-region",
            "in": {"region": "us-central1"},
            "value": "16",
            **compute,
        },
        {"name": "gpus-all-regions-global", "id": "GPUS-ALL-REGIONS-per-project", "in": {}, "value": "32", **compute},
        {
            "name": "gpus-per-gpu-family-nvidia-h100-us-central1",
            "id": "GPUS-PER-GPU-FAMILY-per-project-region",
            "in": family,
            "value": "16",
            **compute,
        },
        {
            "name": "custom-model-training-nvidia-h100-gpus-per-region-us-central1",
            "id": "CustomModelTrainingH100GPUsPerProjectPerRegion",
            "in": {"region": "us-central1"},
            "value": "16",
            **compute,
            "service": "aiplatform.googleapis.com",
        },
    ]
    assert "Its id for Cloud Quotas is not known" in text and "import pulumi_aws" not in text


def test_every_google_quota_can_be_asked_for(run: Any) -> None:
    pools = [
        GooglePool(f"pool-{number}", "us-east5", quota.applies_to[0], 4, 2, quota.purchase == "spot", 0, quota.service)
        for number, quota in enumerate(quotas())
        if quota.cloud == "gcp" and quota.scope != "global" and quota.applies_to[0] not in ("cpus", "ssd")
    ]
    made = run(written(*pools))
    assert len({each["name"] for each in made}) == len(made) > 30
    assert {each["service"] for each in made} == {f"{name}.googleapis.com" for name in ("compute", "aiplatform", "tpu")}


def test_the_command_writes_it(cloud: Google, run: Any) -> None:
    told = quota("--machine", "gcp:a3-highgpu-8g:2", *HERE, "--request")
    assert told.exit_code == 0 and told.stderr == ""
    (made,) = run(told.stdout)
    assert (made["id"], made["value"]) == ("GPUS-PER-GPU-FAMILY-per-project-region", "24")
    assert "# For project research." in told.stdout and "planned machines use 16 GPUs" in told.stdout
    assert "nothing to ask for" in quota("--machine", "gcp:a3-highgpu-8g", *HERE, "--request").stderr
