"""GPU types that do not ship: read from a cloud, and used like any other where the refreshed catalogue is chosen."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from accel.catalog.tables import shipped_table
from stacks.operations.refresh.aws import types as types_of_aws
from stacks.operations.refresh.gcp import types as types_of_google
from tests.support import commands

from .live_clouds import (
    Answer,
    Asked,
    ec2_error,
    instance_type,
    instance_types,
    offerings,
    price_list,
    product,
    serving,
    spot_history,
)

AT = "2026-11-22T08:00:00.000Z"
ROOT = Path(__file__).parents[2]
G8 = instance_type("g8.2xlarge", "RTX PRO 9000", 1, 131072)
SHIPPED = [row["machine"] for row in shipped_table("machines.csv").rows()]


def world(asked: Asked) -> Answer:
    """One region where a new type is sold beside g5.xlarge, with a GPU that nobody knew."""
    match asked.operation:
        case "DescribeInstanceTypes":
            others = (instance_type("g5.xlarge", "A10G", 1, 24576), instance_type("g9ad.xlarge", "MI", 1, 1, "AMD"))
            return instance_types(G8, *others)
        case "GetProducts":
            return price_list(product("g8.2xlarge", "2.5000000000", asked.price_region))
        case "DescribeSpotPriceHistory":
            return spot_history(("g8.2xlarge", f"{asked.region}a", "0.900000", AT))
        case _:
            return offerings(("g8.2xlarge", "use1-az1"), ("g5.xlarge", "use1-az1"))


ENVIRONMENT = """config:
  accel:environment:
    owner: ml
    strict: STRICT
    aws:
      region: us-east-1
      network: {kind: create, cidr: 10.40.0.0/16, zones: [us-east-1a, us-east-1b], egress: nat}
      environments: {gpu: {capacity: on-demand, instance_types: [g8.2xlarge], max_vcpus: 16}}
      queues: {gpu: {environments: [gpu], priority: 10}}
"""


def test_a_new_type_of_aws_is_priced_judged_and_known_to_strict(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}

    def run(*words: str, **env: str) -> Any:
        done = commands.run(*words, cwd=tmp_path, env=cache | keys | env)
        assert "Traceback" not in done.stderr
        return done

    place = tmp_path / "Pulumi.dev.yaml"
    place.write_text(ENVIRONMENT.replace("STRICT", "false"))
    done = run("stacks", "validate")
    assert done.returncode == 0 and '"g8.2xlarge", which the catalogue of 20' in done.stdout
    assert json.loads(run("stacks", "cost", "dev", "-o", "json").stdout)[0]["unknown"]
    with serving(world) as url:
        refreshed = run("stacks", "refresh", "--region", "us-east-1", AWS_ENDPOINT_URL=url)
    assert refreshed.returncode == 0, refreshed.stderr
    place.write_text(ENVIRONMENT.replace("STRICT", "true"))
    assert run("stacks", "validate").returncode == 2, "nothing changes unless it is asked for, and strict refuses"
    done = run("stacks", "validate", ACCEL_CATALOG="refreshed")
    assert (done.returncode, done.stdout) == (0, "Pulumi.dev.yaml: valid\n"), done.stderr
    costs = run("stacks", "cost", "dev", "-o", "json", ACCEL_CATALOG="refreshed")
    assert costs.returncode == 0, costs.stderr
    (found,) = json.loads(costs.stdout)
    assert not found["unknown"] and found["lines"][0]["worst"]["usd_hour"] == 5.0
    offers = run("jobs", "offers", "--gpu", "rtx-pro-9000:1", "-o", "json", ACCEL_CATALOG="refreshed")
    assert offers.returncode == 0, offers.stderr
    (offer,) = json.loads(offers.stdout)
    assert (offer["machine"], offer["on_demand"], offer["spot"]) == ("g8.2xlarge", 2.5, 0.9)


@pytest.fixture
def aws_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")


@pytest.mark.usefixtures("aws_keys")
def test_what_is_known_of_a_new_instance_type(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: instance_types(instance_type("p7.48xlarge", "B300", 8, 275041))) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        found = types_of_aws(["us-east-1"], SHIPPED)
    line = found.machines["p7.48xlarge"]
    wanted = {
        "series": "p7", "accelerator": "nvidia-b300", "accelerator_count": "8", "vcpus": "8", "memory_gib": "64",
        "cpu_arch": "x86_64", "local_ssd_gb": "900", "efa": "yes", "efa_max_interfaces": "4", "network_gbps": "400",
        "capacity_block": "yes", "source": "live-aws-types",
    }  # fmt: skip
    assert {name: line[name] for name in wanted} == wanted
    assert not found.accelerators and set(line) <= set(shipped_table("machines.csv").columns)


@pytest.mark.usefixtures("aws_keys")
def test_a_region_that_refuses_its_types_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: ec2_error(403, "UnauthorizedOperation")) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        found = types_of_aws(["us-east-1"], SHIPPED)
    assert not found.machines and "DescribeInstanceTypes of us-east-1" in found.kept[0]


def listed(name: str, gpu: str) -> Mapping[str, Any]:
    held = [{"guestAcceleratorType": gpu, "guestAcceleratorCount": 8}]
    disks = {"defaultInterface": "NVME", "partitionCount": 32}
    return {"name": name, "guestCpus": 224, "memoryMb": 4062592, "accelerators": held, "bundledLocalSsds": disks}


def test_new_types_of_google_are_those_whose_gpu_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        "": {"zones/us-central1-b": [listed("a5-highgpu-8g", "nvidia-b200"), listed("a4-highgpu-8g", "nvidia-b200")]},
        "t": {
            "zones/us-central1-c": [listed("a5-highgpu-8g", "nvidia-b200"), listed("a6-new-8g", "nvidia-r100")],
            "zones/europe-west4-b": [listed("a5-highgpu-8g", "nvidia-b200")],
        },
    }

    def answer(asked: Asked) -> Answer:
        items = {place: {"machineTypes": types} for place, types in pages[asked.token].items()}
        return 200, json.dumps({"items": items} | ({} if asked.token else {"nextPageToken": "t"}))

    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "acme-ml")
    with serving(answer) as url:
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", f"{url}/compute/v1/")
        found = types_of_google(["us-central1"], SHIPPED)
    assert set(found.machines) == {"a5-highgpu-8g"}
    assert found.places == {("us-central1", "a5-highgpu-8g"): {"us-central1-b", "us-central1-c"}}
    line = found.machines["a5-highgpu-8g"]
    assert (line["accelerator"], line["accelerator_count"], line["local_ssd_gb"]) == ("nvidia-b200", "8", "12000")
    assert set(line) <= set(shipped_table("machines.csv").columns)
    assert found.kept == ["a6-new-8g: the memory of its GPU is not known, so it stays unknown"]


def test_without_a_project_google_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    found = types_of_google(["us-central1"], SHIPPED)
    assert found.source is None and "GOOGLE_CLOUD_PROJECT names no project" in found.kept[0]
