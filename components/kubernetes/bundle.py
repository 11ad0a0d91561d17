"""A release of Kueue or JobSet, installed from the manifest that its project publishes and pinned by its digest."""

import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

import platformdirs
import pulumi
import yaml
from pydantic import Field, model_validator

from accel.diagnostics.faults import several
from accel.folders import write
from accel.json_values import object_at

from ..base import Component, Spec
from .objects import Document, register

MANIFESTS = {
    "kueue": "https://github.com/kubernetes-sigs/kueue/releases/download/v{version}/manifests.yaml",
    "jobset": "https://github.com/kubernetes-sigs/jobset/releases/download/v{version}/manifests.yaml",
}
VERSIONS = {"kueue": "0.14.0", "jobset": "0.10.1"}
"""Releases whose API the queues and jobs of this project use."""

_FIRST = ("CustomResourceDefinition", "Namespace", "PriorityClass")
_LAST = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding")
_TIMEOUT_S = 60


class ReleaseError(Exception):
    """A manifest that is not available, differs from the pinned one, or is no manifest."""


class ReleaseBundleSpec(Spec):
    """The release and the digest of its manifest. The file is downloaded once, into the user's cache."""

    release: Literal["kueue", "jobset"]
    version: str = Field(
        default="",
        pattern=r"^(\d+\.\d+\.\d+)?$",
        description="Version of the release. Default: the tested one",
        validate_default=False,
    )
    install: bool = Field(
        default=True,
        description="Install the release; false: it is installed already, so nothing is created or downloaded",
    )
    installed_by: str | None = Field(
        default=None, description="Who installs the release in a cluster that this stack creates, if install is false"
    )
    sha256: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{64}$", description="SHA-256 digest of the manifest, as sha256sum prints it"
    )
    path: str | None = Field(
        default=None, description="Path of a manifest on this machine, in place of the published one"
    )

    @property
    def pinned(self) -> str:
        return self.version or VERSIONS[self.release]

    @property
    def url(self) -> str:
        return MANIFESTS[self.release].format(version=self.pinned)

    @model_validator(mode="after")
    def _known_by_digest(self) -> Self:
        if self.install and not self.sha256:
            raise several([("sha256", f"is missing; run: curl -sL {self.url} | sha256sum")])
        return self


class ReleaseBundle(Component):
    """Every object of a release's manifest, in an order that the API server accepts: definitions and namespaces first,
    webhooks last, since they refuse requests while their controller is unreachable. Removing a bundle removes its
    definitions, and with those every queue and job."""

    TYPE = "accel:kubernetes:ReleaseBundle"

    version: pulumi.Output[str]

    def __init__(self, name: str, spec: ReleaseBundleSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        found = stages(documents(manifest(spec), spec.url)) if spec.install else []
        super().__init__(name, spec, opts)
        before: list[pulumi.Resource] = []
        for stage in found:
            made = [self._register(name, document, before) for document in stage]
            before = [*before, *made]
        self.version = pulumi.Output.from_input(spec.pinned)
        self.finish()

    def _register(self, name: str, document: Document, before: list[pulumi.Resource]) -> pulumi.Resource:
        # Released objects name each other by constants, which the engine cannot follow.
        return register(f"{name}-{identity(document)}", document, self.child(depends_on=before))


def manifest(spec: ReleaseBundleSpec, cache: Path | None = None) -> str:
    """Return the text of the manifest, from `path`, the cache or the network. Raise ReleaseError."""
    told = f"{spec.release} {spec.pinned}"
    if spec.path:
        try:
            return _checked(Path(spec.path).read_bytes(), spec.sha256, f"{told}: {spec.path}")
        except OSError as error:
            raise ReleaseError(f"{told}: {spec.path}: {error.strerror}") from None
    kept = (cache or Path(platformdirs.user_cache_dir("accel")) / "releases") / f"{spec.sha256}.yaml"
    if kept.exists():
        return _checked(kept.read_bytes(), spec.sha256, f"{told}: {kept}")
    text = _checked(_fetched(spec.url, told), spec.sha256, f"{told}: {spec.url}")
    write(kept, text)  # two programs may download at once, and one may be killed
    return text


def _fetched(url: str, told: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310  one of MANIFESTS, all https
            return answer.read()
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise ReleaseError(f"{told}: {url}: {reason}; name a file that you have by path") from None


def _checked(content: bytes, wanted: str | None, told: str) -> str:
    is_ = hashlib.sha256(content).hexdigest()
    if is_ != wanted:
        raise ReleaseError(f"{told}: has sha256 {is_}, not {wanted}; it is another file than the one that was pinned")
    return content.decode("utf-8")


def documents(text: str, told: str) -> list[Document]:
    """Return the objects of a manifest, with lists expanded. Raise ReleaseError."""
    try:
        read = list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise ReleaseError(f"{told}: {' '.join(str(error).split())}") from None
    found: list[Document] = []
    for each in read:
        if each is None:
            continue
        inner = object_at(each)
        found += inner["items"] if inner.get("kind") == "List" else [inner]
    if not all(each.get("apiVersion") and each.get("kind") and _name(each) for each in found):
        raise ReleaseError(f"{told}: has a document without apiVersion, kind or name")
    return found


def stages(found: Iterable[Document]) -> list[list[Document]]:
    """Return the objects in groups, each of which needs those before it."""
    ordered: tuple[list[Document], ...] = ([], [], [])
    for each in found:
        ordered[0 if each["kind"] in _FIRST else 2 if each["kind"] in _LAST else 1].append(each)
    return [stage for stage in ordered if stage]


def identity(document: Document) -> str:
    """Return a name that no other object of the manifest has."""
    namespace = document["metadata"].get("namespace")
    return "-".join(part for part in (document["kind"].lower(), namespace, _name(document)) if part)


def _name(document: Document) -> str | None:
    return object_at(document, "metadata").get("name")
