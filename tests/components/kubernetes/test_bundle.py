"""Releases: which file is taken, and in which order its objects are made."""

import hashlib
import io
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from accel.diagnostics.faults import find
from components.kubernetes.bundle import ReleaseBundle, ReleaseBundleSpec, ReleaseError, documents, manifest
from tests.support import memory

from . import makers

TEXT = makers.RELEASE.read_bytes()
DIGEST = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answers every request with the release, and keeps what was asked."""
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> Any:
        asked.append(url)
        return io.BytesIO(TEXT)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return asked


def test_definitions_come_first_and_webhooks_last() -> None:
    seen = memory.run(lambda: ReleaseBundle("small", makers.release())).registrations
    by_kind = {one.type.rpartition(":")[2]: one for one in seen}
    first = {by_kind["CustomResourceDefinition"].urn, by_kind["Namespace"].urn}
    assert by_kind["CustomResourceDefinition"].dependencies == []
    assert set(by_kind["Deployment"].dependencies) == first
    assert by_kind["Deployment"].urn in by_kind["ValidatingWebhookConfiguration"].dependencies


def test_types_are_those_of_the_typed_classes() -> None:
    types = {one.type for one in memory.run(lambda: ReleaseBundle("small", makers.release())).registrations}
    assert {
        "kubernetes:core/v1:ConfigMap",
        "kubernetes:apps/v1:Deployment",
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
        "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",
    } <= types


def test_definitions_are_spelt_as_the_provider_reads_them_back() -> None:
    made = memory.run(lambda: ReleaseBundle("small", makers.release())).one(":CustomResourceDefinition").inputs
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"] == {"type": "object", "x_kubernetes_preserve_unknown_fields": True}


def test_what_is_there_already_is_neither_fetched_nor_made(fetched: list[str]) -> None:
    seen = memory.run(lambda: ReleaseBundle("kueue", ReleaseBundleSpec(release="kueue", install=False)))
    assert [one.type for one in seen.registrations] == ["accel:kubernetes:ReleaseBundle"]
    assert fetched == []


def test_a_release_is_fetched_once(fetched: list[str], tmp_path: Path) -> None:
    spec = ReleaseBundleSpec(release="kueue", sha256=DIGEST)
    texts = [manifest(spec, tmp_path) for _ in range(2)]
    assert fetched == ["https://github.com/kubernetes-sigs/kueue/releases/download/v0.14.0/manifests.yaml"]
    assert texts == [TEXT.decode()] * 2
    assert [path.name for path in tmp_path.iterdir()] == [f"{DIGEST}.yaml"]


def test_another_file_than_the_pinned_is_refused_and_not_kept(fetched: list[str], tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=f"jobset 0.10.1: https.*has sha256 {DIGEST}, not {'0' * 64}"):
        manifest(ReleaseBundleSpec(release="jobset", sha256="0" * 64), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cached_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"{DIGEST}.yaml").write_bytes(TEXT + b"\n")
    with pytest.raises(ReleaseError, match="it is another file"):
        manifest(ReleaseBundleSpec(release="jobset", sha256=DIGEST), tmp_path)


def test_no_network_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def urlopen(url: str, timeout: float) -> Any:
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    with pytest.raises(ReleaseError, match=r"no route to host; name a file that you have by path"):
        manifest(ReleaseBundleSpec(release="jobset", sha256=DIGEST), tmp_path)


def test_an_install_needs_a_digest() -> None:
    (fault,) = find(ReleaseBundleSpec, {"release": "kueue"})
    assert str(fault).startswith("sha256: is missing; run: curl -sL https://github.com/kubernetes-sigs/kueue/")


@pytest.mark.parametrize(
    "text, says", [("a: [", "expected"), ("kind: A\n", "without apiVersion"), ("- 1\n", "without")]
)
def test_what_is_no_manifest_is_refused(text: str, says: str) -> None:
    with pytest.raises(ReleaseError, match=says):
        documents(text, "kueue")


def test_lists_are_opened() -> None:
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    text = "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n---\n"
    assert documents(text, "kueue") == [one]
