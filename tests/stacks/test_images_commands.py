"""`stacks images commands` and `stacks images check`, on stacks' files and a registry that answers on this machine."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from accel.catalog import accelerators, cuda
from stacks.cli.main import stacks
from stacks.environment.images_lock import LOCK
from stacks.operations.images.build_commands import TEMPLATE
from tests.support.image_registry import Registry, serving
from tests.support.project import KEY, environment

NVIDIA = "ECS_AL2023_NVIDIA"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as found:
        yield found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`stacks images` in a folder with the stack dev, whose environments have A10G and L4."""
    monkeypatch.chdir(tmp_path)
    stack(tmp_path, "dev", environment("dev"))

    def call(*arguments: str) -> Result:
        result = CliRunner().invoke(stacks, ["images", *arguments])
        assert "Traceback" not in result.output and "unexpected" not in result.output, result.output
        return result

    return call


def stack(folder: Path, name: str, values: dict[str, Any]) -> None:
    (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": {KEY: values}}, sort_keys=False))


def lock(folder: Path, driver: str) -> None:
    image = {"image_id": "ami-0e46815163b0833b8", "nvidia_driver": driver}
    (folder / LOCK).write_text(yaml.safe_dump({"images": {NVIDIA: {"us-east-1": image}}}))


def built(told: Result) -> list[dict[str, str]]:
    """What each `docker build` of the output is given, by option; BASE and CUDA among them."""
    assert told.exit_code == 0, told.output
    lines = [shlex.split(line) for line in told.stdout.splitlines() if line.startswith("docker build ")]
    found: list[dict[str, str]] = []
    for words in lines:
        given = dict(zip(words[2:-1:2], words[3::2], strict=True))
        arguments = [words[i + 1] for i, word in enumerate(words) if word == "--build-arg"]
        found.append(given | dict(each.split("=", 1) for each in arguments))
    return found


# --- commands


def test_the_base_is_the_newest_that_the_pinned_driver_runs(run: Any, tmp_path: Path) -> None:
    bases = {}
    for driver in ("580.126.09", "570.195.03", "535.104.05", "unknown"):
        lock(tmp_path, driver)
        (bases[driver],) = [each["CUDA"] for each in built(run("commands"))]
    assert bases == {"580.126.09": "13.0", "570.195.03": "12.8", "535.104.05": "12.9", "unknown": "13.0"}
    lock(tmp_path, "470.82.01")
    refused = run("commands")
    assert refused.exit_code == 2
    assert "dev/spot: there is no base image for nvidia-a10g and driver 470.82.01" in refused.stderr


def test_gpus_of_other_generations_and_processors_have_images_of_their_own(run: Any) -> None:
    told = run("commands", "--accelerator", "v100", "--accelerator", "h100", "--accelerator", "gb200", "--tag", "v1")
    found = {(each["CUDA"], each["--platform"]) for each in built(told)}
    assert found == {("12.9", "linux/amd64"), ("13.0", "linux/amd64"), ("13.0", "linux/arm64")}


def test_the_commands_are_shell_and_name_the_stacks_repository(run: Any, tmp_path: Path) -> None:
    told = run("commands", "dev", "--tag", "v1")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    log = tmp_path / "log"
    url = "123456789012.dkr.ecr.us-east-1.amazonaws.com/training-1a2b"
    scripts = {
        "docker": f'cat > /dev/null < /dev/null; echo "docker $@" >> {log}',
        "aws": f'echo "aws $@" >> {log}; echo secret',
        "pulumi": f"echo '{json.dumps({'training': url})}'; echo \"pulumi $@\" >> {log}",
    }
    for name, text in scripts.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_folder / name).chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", "-eu"], input=told.stdout, text=True, check=True, env={**os.environ, "PATH": path})
    lines = log.read_text().splitlines()
    assert lines[0] == "pulumi stack output repositories --stack dev --json"
    assert {"aws ecr get-login-password --region us-east-1", f"docker push {url}:v1-cuda13.0"} < set(lines)
    assert "docker login --username AWS --password-stdin 123456789012.dkr.ecr.us-east-1.amazonaws.com" in lines
    (build,) = [line for line in lines if line.startswith("docker build ")]
    assert build.endswith(f"--tag {url}:v1-cuda13.0 .")


def test_google_repositories_and_stacks_without_gpus(run: Any, tmp_path: Path) -> None:
    google = {"gcp": {"project": "ml-dev-4821", "region": "us-central1", "images": {"train": {}}}}
    stack(tmp_path, "google", {**{key: value for key, value in environment("dev").items() if key != "aws"}, **google})
    refused = run("commands", "google")
    assert (refused.exit_code, "name GPUs: --accelerator" in refused.stderr) == (2, True)
    told = run("commands", "google", "--accelerator", "l4").stdout
    assert "REPOSITORY=$(pulumi stack output gcp_repositories --stack google" in told
    assert 'gcloud auth configure-docker --quiet "${REPOSITORY%%/*}"' in told


def test_the_base_is_named_by_its_digest(run: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = registry.push("nvidia/cuda", "13", {})
    base = cuda.Base((13, 0), f"{registry.host}/nvidia/cuda:13", "580", "2028-06", "https://example.com")
    monkeypatch.setattr("accel.catalog.cuda.bases", lambda: (base,))
    (one,) = built(run("commands", "--pin"))
    assert one["BASE"] == f"{registry.host}/nvidia/cuda@{digest}"


def test_the_dockerfile_is_written_once_and_nothing_is_overwritten(run: Any, tmp_path: Path) -> None:
    assert "Dockerfile: written" in run("commands", "--write", ".").stdout
    assert (tmp_path / "Dockerfile").read_bytes() == TEMPLATE.read_bytes()
    assert "Dockerfile: is there already" in run("commands", "--write", ".").stdout
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    refused = run("commands", "--write", ".")
    assert refused.exit_code == 2 and "Dockerfile: is there, and another one" in refused.stderr
    assert run("commands", "--write", "no/such").exit_code == 2


def test_the_dockerfile_takes_what_the_commands_give(run: Any) -> None:
    text = TEMPLATE.read_text()
    (one,) = built(run("commands"))
    for argument in ("BASE", "CUDA"):
        assert f"ARG {argument}\n" in text and argument in one
    context, _, folder = one["--build-context"].partition("=")
    assert f"COPY --from={context} " in text
    assert (Path(folder) / "health.py").is_file()
    assert "accel_runtime" in text


# --- check


def rows(told: Result) -> list[dict[str, str]]:
    return json.loads(told.stdout)


def test_an_image_is_held_against_each_environment(run: Any, tmp_path: Path) -> None:
    lock(tmp_path, "570.195.03")
    told = run("check", "registry.invalid/train:1", "--cuda", "12.8", "-o", "json")
    assert told.exit_code == 0
    assert [(row["place"], row["driver"], row["says"]) for row in rows(told)] == [
        ("dev/spot", "570.195.03", "runs"), ("dev/on-demand", "570.195.03", "runs")
    ]  # fmt: skip
    told = run("check", "registry.invalid/train:1", "--cuda", "13.0", "-o", "json")
    assert told.exit_code == 0
    assert {row["rule"] for row in rows(told)} == {"container.image.driver"}
    assert run("check", "registry.invalid/train:1", "--cuda", "13.0", "--strict").exit_code == 2


def test_labels_in_the_registry_tell_the_cuda(run: Any, registry: Registry) -> None:
    registry.push("team/train", "1", {"Env": ["CUDA_VERSION=11.7.1"]})
    told = run("check", f"{registry.host}/team/train:1", "--accelerator", "h100", "-o", "json")
    assert [(row["rule"], row["cuda"]) for row in rows(told)] == [("container.image.cuda", "11.7")]
    registry.push("team/train", "2", {})
    (row,) = rows(run("check", f"{registry.host}/team/train:2", "--accelerator", "h100", "-o", "json"))
    assert row["cuda"] == "unknown" and row["says"].startswith("not known")
    registry.push("team/train", "3", {"Labels": {"dev.accel.cuda": "twelve"}})
    assert run("check", f"{registry.host}/team/train:3", "--accelerator", "h100").exit_code == 4
    assert run("check", f"{registry.host}/team/train:4", "--accelerator", "h100").exit_code == 6


def test_a_driver_older_than_the_gpu_cannot_run_anything(run: Any) -> None:
    told = run("check", "a/b:1", "--cuda", "12.8", "--accelerator", "b200", "--driver", "550.54.14")
    assert told.exit_code == 2
    assert (
        "error: --accelerator: accelerator is nvidia-b200, and the machines' driver 550.54.14 is older" in told.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--accelerator", "tpu-v5p"], "tpu-v5p is no GPU of NVIDIA's"),
        (["--accelerator", "h1000"], "h100"),
        (["--driver", "new"], "must be a version such as 580.126.09, is 'new'"),
    ],
)
def test_bad_arguments(run: Any, arguments: list[str], said: str) -> None:
    refused = run("check", "a/b:1", *arguments)
    assert refused.exit_code == 2 and said in refused.stderr


# --- the catalogue


def test_every_gpu_has_a_base_that_knows_it() -> None:
    for kind in accelerators().values():
        if not kind.is_nvidia_gpu:
            continue
        known, base = cuda.architecture(kind), cuda.base(kind)
        assert known and base, kind.name
        assert known.first <= base.cuda <= (known.last or base.cuda)


def test_releases_are_in_order_and_bases_are_pinned() -> None:
    found = list(cuda.releases().values())
    assert [each.cuda for each in found] == sorted((each.cuda for each in found), reverse=True)
    for newer, older in itertools.pairwise(found):
        assert newer.driver > older.driver and newer.least_driver >= older.least_driver
    for base in cuda.bases():
        assert ".".join(map(str, base.cuda)) in base.image.rpartition(":")[2]
        assert cuda.releases()[base.cuda].driver[0] == int(base.driver_branch)
    assert cuda.release((12, 7)) == cuda.releases()[12, 6]
    assert cuda.release((14, 0)) is None
