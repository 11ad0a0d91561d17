"""pulumi-kubernetes as the engine sees it: every type that the API server knows, errors in one line."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sandbox.kubernetes.client import Cluster, Refusal

from ..mapping import has_unknown
from ..server import Refused
from . import life
from .access import Access, Unreachable, active
from .life import MANAGER, one_line
from .objects import (
    State,
    about,
    annotation,
    difference,
    from_api,
    id_of,
    imported,
    kind_of,
    observed,
    to_api,
    with_generated_name,
)

_REFUSED = {
    "helm.sh/": "the sandbox renders no Helm charts: use typed resources",
    "kustomize": "the sandbox renders no kustomizations: use typed resources",
    "yaml": "the sandbox reads no manifests: use typed resources",
}
_SWITCHES = {
    *("deleteUnreachable", "enableConfigMapMutable", "enablePatchForce", "enableSecretMutable"),
    *("enableServerSideApply", "upsertExistingObjects"),
}
_SETTINGS = _SWITCHES | {
    *("cluster", "clusterIdentifier", "context", "helmReleaseSettings", "kubeClientSettings", "kubeconfig"),
    *("namespace", "suppressDeprecationWarnings", "suppressHelmHookWarnings", "version"),
}
_LOOSE = ("reading", "deleting")
_CONFLICT = "to take the fields over, set enable_patch_force of the provider or the annotation pulumi.com/patchForce"


def moved(olds: State, news: State) -> set[str]:
    """The settings whose change replaces all objects: those that lead to another cluster, or may do so."""
    if "clusterIdentifier" in olds or "clusterIdentifier" in news:
        same = olds.get("clusterIdentifier") == news.get("clusterIdentifier")
        return set() if same else {"clusterIdentifier"}
    keys = {"kubeconfig", "context", "cluster"}
    if unknown := {key for key in keys if has_unknown(news.get(key))}:
        return unknown
    before, after = active(olds), active(news)
    changed = before is not None and after is not None and before != after
    return {key for key in keys if changed and olds.get(key) != news.get(key)}


class KubernetesPlugin:
    """One provider instance, which is one cluster."""

    def __init__(self, home: Path) -> None:
        self.version = version("pulumi_kubernetes")
        self._home = home
        self._settings: State = {}
        self._access: Access | None = None
        self._unreachable = "this connection was never configured"

    def configured(self, args: State) -> State:
        self._settings = {key: _switch(value) if key in _SWITCHES else value for key, value in args.items()}
        self._unreachable = ""
        try:
            self._access = Access(self._home, self._settings)
            self._access.answers()
        except Unreachable as error:
            self._unreachable = one_line(str(error))
        return self._settings

    def check_config(self, news: State) -> list[tuple[str, str]]:
        unknown = sorted(news.keys() - _SETTINGS)
        faults = [(key, f"the sandbox's kubernetes provider does not know the setting {key}") for key in unknown]
        if _switch(news.get("enableServerSideApply", True)) is False:
            faults.append(("enableServerSideApply", "the sandbox's kubernetes provider knows server-side apply only"))
        return faults

    def check(self, type: str, name: str, olds: State, news: State, config: State, seed: str) -> State:
        api, kind = _supported(type)
        if about(news).get("generateName"):
            raise Refused(f"{kind} ({name}): the `.metadata.generateName` field is not supported: leave the name out")
        inputs = with_generated_name({"apiVersion": api, "kind": kind, **news}, olds, name, seed)
        metadata, inside = about(inputs), self._namespaced(inputs)
        # Where nobody can tell whether it has a namespace, it keeps what it had.
        place = about(olds).get("namespace") if inside is None else inside and self._access and self._access.namespace
        if metadata and not metadata.get("namespace") and place:
            inputs["metadata"] = {**metadata, "namespace": place}
        return inputs

    def diff(self, type: str, olds: State, news: State) -> tuple[dict[str, str], set[str], bool]:
        return difference(olds, news, self._settings)

    def create(self, type: str, inputs: State, preview: bool) -> tuple[str, State]:
        if preview and not self._previews(inputs):
            return "", inputs
        manager = annotation(inputs, "patchFieldManager") or f"pulumi-kubernetes-{secrets.token_hex(4)}"
        how = {"upsert": bool(self._settings.get("upsertExistingObjects")), "force": self._forced(inputs) or preview}
        with self._asked("creating", f"{inputs['kind']} ({id_of(inputs)})", manager) as cluster:
            try:
                live = life.create(cluster, inputs, manager, **how, preview=preview)
            except Refusal as error:
                absent = error.status == 404 and error.details.get("kind") == "namespaces"
                if preview and (absent or error.reason in ("AlreadyExists", "Forbidden")):
                    return "", inputs
                raise
            if preview:
                return "", from_api({key: value for key, value in live.items() if key != "status"})
            return id_of(live), life.settled(cluster, inputs, live, manager)

    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any:
        api, kind = _supported(type)
        if self._unreachable and self._settings.get("deleteUnreachable"):
            return None
        with self._asked("reading", f"{kind} ({id})") as cluster:
            live = life.live_object(cluster, inputs.get("apiVersion", api), inputs.get("kind", kind), id)
        if live is None:
            return None
        known = observed(to_api(inputs), live) if inputs else imported(live)
        return from_api(known), {**from_api(live), **{key: outputs[key] for key in (MANAGER,) if key in outputs}}

    def update(self, type: str, id: str, outputs: State, olds: State, news: State, preview: bool) -> State:
        if preview and not self._previews(news):
            return news
        manager = annotation(news, "patchFieldManager") or outputs.get(MANAGER) or "pulumi-kubernetes"
        with self._asked("updating", f"{news['kind']} ({id})", manager) as cluster:
            live = life.update(cluster, id, news, manager, force=self._forced(news), preview=preview)
            return from_api(live) if preview else life.settled(cluster, news, live, manager)

    def delete(self, type: str, id: str, outputs: State) -> None:
        api, kind = kind_of(type)
        if self._unreachable and self._settings.get("deleteUnreachable"):
            return
        with self._asked("deleting", f"{kind} ({id})") as cluster:
            life.delete(cluster, outputs.get("apiVersion", api), outputs.get("kind", kind), id, outputs)

    def invoke(self, token: str, args: State, config: State) -> State:
        raise Refused(f"the sandbox's kubernetes provider has no function {token}: {_reason(token) or 'unknown'}")

    @contextmanager
    def _asked(self, doing: str, what: str, manager: str = "") -> Generator[Cluster]:
        """The cluster; what it refuses becomes one line that names the object."""
        try:
            if self._unreachable or self._access is None:
                raise Unreachable(self._unreachable)
            yield self._access.cluster()
        except Unreachable as error:
            hint = "; if it was deleted, set delete_unreachable of the provider" if doing in _LOOSE else ""
            raise Refused(f"{doing} {what}: configured Kubernetes cluster is unreachable: {error}{hint}") from error
        except Refusal as error:
            said = one_line(error.message or error.reason)
            if error.reason == "Conflict" and "conflict" in said and manager:
                said = f"Server-Side Apply field conflict detected for {manager}: {said}; {_CONFLICT}"
            raise Refused(f"{doing} {what}: {said}") from error

    def _previews(self, inputs: State) -> bool:
        return not has_unknown(inputs) and self._namespaced(inputs) is not None

    def _namespaced(self, inputs: State) -> bool | None:
        """None: there is no such kind, or not yet, or the cluster does not answer."""
        if self._unreachable or self._access is None:
            return None
        try:
            paths = {self._access.cluster().path(inputs["apiVersion"], inputs["kind"], "x", place) for place in "ab"}
        except (Refusal, Unreachable):
            return None
        return len(paths) > 1

    def _forced(self, inputs: State) -> bool:
        return annotation(inputs, "patchForce") == "true" or bool(self._settings.get("enablePatchForce"))


def _supported(type: str) -> tuple[str, str]:
    api, kind = kind_of(type)
    reason = _reason(type)
    if kind.endswith("List"):
        reason = "list resources cannot be created: use the type of their items"
    if kind.endswith("Patch"):
        reason = "the sandbox patches no objects of others: manage the whole object"
    if reason:
        raise Refused(f"{type}: {reason}")
    return api, kind


def _reason(token: str) -> str:
    module = token.split(":")[1]
    return next((reason for start, reason in _REFUSED.items() if module.startswith(start)), "")


def _switch(value: Any) -> Any:
    return value == "true" if isinstance(value, str) else value
