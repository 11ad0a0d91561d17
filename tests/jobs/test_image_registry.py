"""Digests and labels from a registry that answers on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from accel.clouds import image_registry
from accel.clouds.image_registry import parse, pin_digest, read
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound
from tests.jobs.batch_target import BATCH
from tests.support.image_registry import Registry, serving

CUDA = {"Env": ["PATH=/bin", "CUDA_VERSION=12.8.1"], "Labels": {"maintainer": "us"}}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving() as found:
        yield found


@pytest.mark.parametrize(
    ("name", "host", "repository", "reference"),
    [
        ("ubuntu", "registry-1.docker.io", "library/ubuntu", "latest"),
        ("nvidia/cuda:12.8.1-base", "registry-1.docker.io", "nvidia/cuda", "12.8.1-base"),
        ("docker.io/nvidia/cuda:1", "registry-1.docker.io", "nvidia/cuda", "1"),
        ("docker.io/ubuntu:1", "registry-1.docker.io", "library/ubuntu", "1"),
        ("nvcr.io/nvidia/pytorch:25.01-py3", "nvcr.io", "nvidia/pytorch", "25.01-py3"),
        ("localhost:5000/a/b", "localhost:5000", "a/b", "latest"),
        ("us-docker.pkg.dev/p/r/i:1@sha256:" + "a" * 64, "us-docker.pkg.dev", "p/r/i", "sha256:" + "a" * 64),
    ],
)
def test_names(name: str, host: str, repository: str, reference: str) -> None:
    found = parse(name)
    assert (found.host, found.repository, found.reference) == (host, repository, reference)


@pytest.mark.parametrize("name", ["a@sha256:12", "a@md5:1", "UPPER/case:1", "", "nvcr.io/", "a b"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(BadInput, match=r"^image: "):
        pin_digest(name)


@pytest.mark.parametrize("with_token", [False, True])
@pytest.mark.parametrize("digest_header", [False, True])
def test_a_tag_becomes_its_digest(registry: Registry, with_token: bool, digest_header: bool) -> None:
    registry.with_token, registry.digest_header = with_token, digest_header
    digest = registry.push("team/train", "1", CUDA, ("amd64", "arm64"))
    assert pin_digest(f"{registry.host}/team/train:1") == f"{registry.host}/team/train@{digest}"
    asked = len(registry.asked)
    assert asked == (3 if with_token else 1)
    whole = f"{registry.host}/team/train:1@{digest}"
    assert pin_digest(whole) == whole
    assert len(registry.asked) == asked, "nothing is asked where there is nothing to find out"


def test_labels_and_variables_are_those_of_the_platform(registry: Registry) -> None:
    registry.with_token = True
    digest = registry.push("team/train", "1", CUDA, ("amd64", "arm64"))
    for architecture in ("amd64", "arm64"):
        image = read(f"{registry.host}/team/train:1", architecture)
        assert (image.digest, image.labels["architecture"], image.cuda) == (digest, architecture, "12.8.1")
    with pytest.raises(NotFound, match="has no image for linux/s390x"):
        read(f"{registry.host}/team/train:1", "s390x")
    assert all(token is None for path, token in registry.asked if path.startswith("/elsewhere/"))


def test_our_label_goes_before_the_variable_and_some_tell_nothing(registry: Registry) -> None:
    registry.push("a/b", "1", {"Labels": {"dev.accel.cuda": "13.0"}, **{"Env": ["CUDA_VERSION=12.8.1"]}})
    registry.push("a/b", "2", {})
    assert read(f"{registry.host}/a/b:1").cuda == "13.0"
    assert read(f"{registry.host}/a/b:2").cuda is None


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (404, b"{}", NotFound, "has no 1"),
        (403, b"{}", NoCredentials, r"does not show 1 without credentials \(403\)"),
        (429, b"{}", CloudSilent, "answers 429"),
        (503, b"", CloudSilent, "answers 503"),
        (400, b"", CloudRefused, "answers 400"),
        (200, b"<html>", CloudRefused, "the answer is not from a registry"),
    ],
)
def test_refusals(registry: Registry, status: int, body: bytes, error: type[JobsError], words: str) -> None:
    registry.answers["/v2/a/b/manifests/1"] = status, body
    with pytest.raises(error, match=words):
        pin_digest(f"{registry.host}/a/b:1")


def test_a_private_image_is_said_to_be_one(registry: Registry) -> None:
    registry.with_token = True
    registry.answers["/token"] = 401, b"{}"
    with pytest.raises(NoCredentials, match=r"without credentials \(401\)") as refused:
        pin_digest(f"{registry.host}/a/b:1")
    assert "digest" in str(refused.value.hint)
    registry.answers["/token"] = 200, b'{"token": "of another"}'
    with pytest.raises(NoCredentials):
        pin_digest(f"{registry.host}/a/b:1")


def test_what_was_sent_has_to_be_what_was_said(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = registry.push("a/b", "1", {})
    registry.answers[f"/v2/a/b/manifests/{digest}"] = 200, b'{"other": 1}'
    with pytest.raises(CloudRefused, match="what it sent is sha256:"):
        read(f"{registry.host}/a/b@{digest}")


def test_no_registry_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as registry:
        host = registry.host
    with pytest.raises(CloudSilent, match=f"{host}/a/b: the registry does not answer"):
        pin_digest(f"{host}/a/b:1")


# --- submit


JOB = """\
name: train
image: {image}
command: [python, train.py]
cpus: 4
memory_mib: 12000
accelerator: {{type: a10g}}
"""


def rendered(told: Result) -> str:
    return json.dumps(json.loads(told.stdout)["body"])


def test_submit_names_the_image_by_its_digest_where_it_is_told_to(
    registry: Registry, home: Path, invoke: Callable[..., Result]
) -> None:
    (home / "targets.json").write_text(json.dumps({"batch": BATCH}))
    (home / "job.yaml").write_text(JOB.format(image=f"{registry.host}/team/train:1"))
    digest = registry.push("team/train", "1", CUDA)
    submit = ("submit", "job.yaml", "--targets", "targets.json", "--to", "batch", "--dry-run")
    plain = invoke(*submit)
    assert f"{registry.host}/team/train:1" in rendered(plain), plain.stderr
    assert registry.asked == [], "no registry is asked without the flag"
    told = invoke(*submit, "--pin-image")
    assert f"{registry.host}/team/train@{digest}" in rendered(told), told.stderr
    assert f"image: {registry.host}/team/train:1 is {registry.host}/team/train@{digest}" in told.stderr
    over = invoke(*submit, "--pin-image", "--set", f"image={registry.host}/team/other:1")
    assert (over.exit_code, "has no 1" in over.stderr) == (6, True)


def test_an_image_whose_cuda_is_too_old_is_warned_of(home: Path, invoke: Callable[..., Result]) -> None:
    target = {**BATCH, "environments": [{**BATCH["environments"][0], "instance_types": ["p5"], "max_vcpus": 192}]}
    (home / "targets.json").write_text(json.dumps({"batch": target}))
    text = JOB.format(image="pytorch/pytorch:2.0.0-cuda11.7-cudnn8-runtime").replace(
        "{type: a10g}", "{type: h100, count: 8}"
    )
    (home / "job.yaml").write_text(text)
    told = invoke("submit", "job.yaml", "--targets", "targets.json", "--to", "batch", "--dry-run")
    assert "of CUDA 11.7, and nvidia-h100-80gb wants 11.8" in told.stderr


def test_a_token_is_fetched_from_nowhere_in_the_clear(registry: Registry) -> None:
    found = image_registry.Registry(parse(f"{registry.host}/a/b:1"))
    for realm in ("http://example.com/token", "ftp://127.0.0.1/", "file:///etc/passwd"):
        with pytest.raises(NoCredentials):
            found._granted(f'Bearer realm="{realm}",service="here"')
    with pytest.raises(NoCredentials):
        found._granted('Basic realm="x"')
    assert registry.asked == []
