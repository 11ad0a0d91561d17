"""A machine type that is newer than the catalogue: what follows from its name is left open, and nothing falls over."""

import json
import os
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.quota import Pool, needs
from tests.jobs.batch_target import BATCH
from tests.support import commands
from tests.support.project import KEY, environment

from .test_refresh_types import ENVIRONMENT, ROOT

JOB = """name: train
image: pytorch/pytorch:2.6.0-cuda12.6-cudnn9-runtime
command: [python, train.py]
cpus: 4
memory_mib: 8000
accelerator: {count: 1}
"""


def run(place: Path, *words: str) -> Any:
    done = commands.run(*words, cwd=place, env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]})
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("name", ["g8.2xlarge", "p7"])
def test_its_price_is_unknown_and_strict_refuses_it(name: str, tmp_path: Path) -> None:
    place, text = tmp_path / "Pulumi.dev.yaml", ENVIRONMENT.replace("g8.2xlarge", name)
    place.write_text(text.replace("STRICT", "false"))
    assert run(tmp_path, "stacks", "validate").returncode == 0
    (found,) = json.loads(run(tmp_path, "stacks", "cost", "dev", "-o", "json").stdout)
    assert found["lines"][0]["worst"]["usd_hour"] is None and found["totals"]["worst"]["at_least"]
    assert any(name in line for line in found["unknown"])
    place.write_text(text.replace("STRICT", "true"))
    done = run(tmp_path, "stacks", "validate")
    assert done.returncode == 2 and "aws.types.newer" in done.stdout + done.stderr


def test_whether_it_holds_a_job_is_said_to_be_unknown(tmp_path: Path) -> None:
    target = deepcopy(BATCH)
    target["environments"][0]["instance_types"] = ["g8.2xlarge"]
    (tmp_path / "targets.json").write_text(json.dumps({"gpu": target}))
    (tmp_path / "job.yaml").write_text(JOB)
    done = run(tmp_path, "jobs", "submit", "job.yaml", "--targets", "targets.json", "--to", "gpu", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "g8.2xlarge: not in the catalogue; whether it holds the job is not known" in done.stderr


def test_its_quota_is_named_as_unsized() -> None:
    pool = Pool(name="gpu", region="us-east-1", spot=False, instance_types=("g8.2xlarge", "g6"), max_vcpus=64)
    assert [name for need in needs([pool]) for name in need.unsized] == ["g8.2xlarge"]


ROWS = {
    "accelerators.csv": "nvidia-r200,NVIDIA,gpu,R200,nvidia-r200,nvidia-r200,R200,,,288,288,HBM4,Rubin,,,,,,,,own,,",
    "machines.csv": "gcp,a5-highgpu-8g,accelerator,a5,listed,nvidia-r200,8,2304,256,,,4096,,,x86_64,12000,bundled,"
    "3600,,no,0,rdma,NVLink 6,bundled,,,,,,,,,,,own,,",
}


def test_rows_of_ones_own_are_the_way_around(tmp_path: Path) -> None:
    """A family of Google's with a GPU that nobody here knows, in a pool of GKE: its maker says what it has."""
    own = tmp_path / "catalogue"
    own.mkdir()
    data = ROOT / "accel" / "catalog" / "data"
    for name in ("prices.csv", "regions.csv", "sources.csv"):
        shutil.copy(data / name, own)
    for name, row in ROWS.items():
        (own / name).write_text((data / name).read_text().splitlines()[0] + f"\n{row}\n")
    values = environment("gke-dev", cloud="gcp")
    pool = {"kind": "gpu", "machine_type": "a5-highgpu-8g", "capacity": "spot", "driver": "latest", "max_nodes": 2}
    values["gcp"]["pools"]["r200"] = pool
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {KEY: values}}, sort_keys=False))
    refused = run(tmp_path, "stacks", "validate")
    assert refused.returncode == 2 and "does not know" in refused.stderr and "ACCEL_CATALOG" in refused.stderr
    variables = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "ACCEL_CATALOG": str(own)}
    done = commands.run("stacks", "validate", cwd=tmp_path, env=variables)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(commands.run("stacks", "cost", "dev", "-o", "json", cwd=tmp_path, env=variables).stdout)
    assert any("a5-highgpu-8g" in line for line in found["unknown"]) and found["totals"]["worst"]["at_least"]
