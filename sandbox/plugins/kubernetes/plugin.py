"""pulumi-kubernetes as the engine sees it: every type that the API server knows, errors in one line."""

import base64
import functools
import hashlib
import json
import os
import secrets
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from sandbox.kubernetes.client import Cluster, Refusal

from ..mapping import has_unknown
from ..server import ProviderError, one_line
from . import life
from .life import MANAGER
from .objects import (
    State,
    about,
    annotation,
    difference,
    from_api,
    id_of,
    import_inputs,
    kind_of,
    observe,
    to_api,
    with_generated_name,
)

_EXEC_S = 60
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_MARGIN_S = 10


class Unreachable(Exception):
    """Reason, in one line, why the kubeconfig leads to no cluster that answers."""


class Access:
    def __init__(self, home: Path, settings: dict[str, Any]) -> None:
        self._home = home
        config = _loaded(settings.get("kubeconfig"))
        context = _named(config, "contexts", "context", settings.get("context") or config.get("current-context"))
        self._where = _named(config, "clusters", "cluster", settings.get("cluster") or context.get("cluster"))
        self._user = _named(config, "users", "user", context.get("user"))
        self.namespace = settings.get("namespace") or context.get("namespace") or "default"
        self._token, self._until = "", 0.0

    def cluster(self) -> Cluster:
        """Return the cluster with a valid token. Raises Unreachable."""
        if not self._token or datetime.now().timestamp() > self._until - _MARGIN_S:
            self._token, self._until = self._credential()
        return _cluster(self._server(), self._token, self._authority())

    def answers(self) -> None:
        """Raise Unreachable where the server does not list its core resources."""
        try:
            self.cluster().get("/api/v1")
        except Refusal as error:
            raise Unreachable(f"unable to load schema information from the API server: {error.message}") from error

    def _server(self) -> str:
        url = str(self._where.get("server", ""))
        if urlsplit(url).hostname not in _LOOPBACK:
            raise Unreachable(
                f"the kubeconfig's server is {url or 'not set'}: the sandbox reaches its own cluster only"
            )
        return url

    def _authority(self) -> Path:
        data, path = self._where.get("certificate-authority-data"), self._where.get("certificate-authority")
        if path:
            return Path(path)
        if not data:
            raise Unreachable("the kubeconfig's cluster has neither certificate-authority-data nor -authority")
        try:
            pem = base64.b64decode(data, validate=True)
        except ValueError as error:
            raise Unreachable(f"certificate-authority-data of the kubeconfig is no base64: {error}") from error
        kept = self._home / "kubeconfigs" / f"{hashlib.sha256(pem).hexdigest()[:16]}.pem"
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            kept.write_bytes(pem)
        return kept

    def _credential(self) -> tuple[str, float]:
        match self._user:
            case {"token": str(token)}:
                return token, float("inf")
            case {"tokenFile": str(path)}:
                return Path(path).read_text().strip(), datetime.now().timestamp() + 60
            case {"exec": dict(plugin)}:
                return self._ran(plugin)
            case _:
                raise Unreachable("the kubeconfig's user has no token, tokenFile or exec: the sandbox knows no other")

    def _ran(self, plugin: dict[str, Any]) -> tuple[str, float]:
        command, version = str(plugin.get("command")), plugin.get("apiVersion")
        spec: dict[str, Any] = {"interactive": False}
        if plugin.get("provideClusterInfo"):
            pem = base64.b64encode(self._authority().read_bytes()).decode()
            spec["cluster"] = {"server": self._server(), "certificate-authority-data": pem}
        asked = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        given = {entry["name"]: entry["value"] for entry in plugin.get("env") or []}
        path = os.pathsep.join([str(self._home / "bin"), os.environ.get("PATH", os.defpath)])
        variables = {**os.environ, "PATH": path, **given, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
        try:
            done = subprocess.run(
                [_found(command, variables["PATH"]), *(plugin.get("args") or [])],
                env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_EXEC_S,
            )  # fmt: skip
        except FileNotFoundError as error:
            hint = _line(plugin.get("installHint") or "")
            raise Unreachable(f"exec: executable {command} not found{hint and f'; {hint}'}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unreachable(f"exec: {command}: {error}") from error
        if done.returncode:
            said = _line(done.stderr)
            raise Unreachable(
                f"exec: executable {command} failed with exit code {done.returncode}{said and f': {said}'}"
            )
        try:
            answer = json.loads(done.stdout)
            status = answer["status"]
            if answer["apiVersion"] != version:
                raise Unreachable(f"exec: {command} answered in {answer['apiVersion']}, the kubeconfig says {version}")
            ends = status.get("expirationTimestamp")
            return status["token"], datetime.fromisoformat(ends).timestamp() if ends else float("inf")
        except (ValueError, KeyError, TypeError) as error:
            raise Unreachable(f"exec: {command} printed no ExecCredential with a token") from error


@functools.lru_cache(maxsize=32)
def _cluster(url: str, token: str, authority: Path) -> Cluster:
    """Return a cluster, with one pool of connections for all commands of the engine."""
    return Cluster(url, token, authority)


def active(settings: dict[str, Any]) -> Any:
    """Return what identifies the cluster of the settings, or None where that is not known."""
    try:
        config = _loaded(settings.get("kubeconfig"))
        context = _named(config, "contexts", "context", settings.get("context") or config.get("current-context"))
        return _named(config, "clusters", "cluster", settings.get("cluster") or context.get("cluster"))
    except Unreachable:
        return None


def _loaded(given: Any) -> dict[str, Any]:
    text = given or os.environ.get("KUBECONFIG")
    if not text:
        raise Unreachable("no kubeconfig: set `kubeconfig` of the provider, or KUBECONFIG")
    try:
        if isinstance(text, str) and "\n" not in text and not text.lstrip().startswith("{"):
            text = Path(text).expanduser().read_text()
        config = yaml.safe_load(text) if isinstance(text, str) else text
    except (OSError, yaml.YAMLError) as error:
        raise Unreachable(f"failed to parse kubeconfig: {_line(str(error))}") from error
    if not isinstance(config, dict) or not config.get("clusters"):
        raise Unreachable("failed to parse kubeconfig: it names no clusters")
    return config


def _named(config: dict[str, Any], group: str, kind: str, name: Any) -> dict[str, Any]:
    for entry in config.get(group) or []:
        if entry.get("name") == name:
            return entry.get(kind) or {}
    raise Unreachable(f'{kind} "{name}" does not exist in the kubeconfig')


def _found(command: str, path: str) -> str:
    # subprocess searches this process's PATH, not the one that it passes on.
    if os.sep in command:
        return command
    for folder in path.split(os.pathsep):
        if os.access(candidate := Path(folder) / command, os.X_OK):
            return str(candidate)
    raise FileNotFoundError(command)


def _line(text: str) -> str:
    return "; ".join(filter(None, map(str.strip, text.splitlines())))


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


def moved_settings(olds: State, news: State) -> set[str]:
    """Return the settings whose change replaces all objects: those that lead to another cluster, or may do so."""
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
            raise ProviderError(
                f"{kind} ({name}): the `.metadata.generateName` field is not supported: leave the name out"
            )
        inputs = with_generated_name({"apiVersion": api, "kind": kind, **news}, olds, name, seed)
        metadata, inside = about(inputs), self._namespaced(inputs)
        # An object whose kind is not known to be namespaced keeps what it had.
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
            return id_of(live), life.settle(cluster, inputs, live, manager)

    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any:
        api, kind = _supported(type)
        if self._unreachable and self._settings.get("deleteUnreachable"):
            return None
        with self._asked("reading", f"{kind} ({id})") as cluster:
            live = life.live_object(cluster, inputs.get("apiVersion", api), inputs.get("kind", kind), id)
        if live is None:
            return None
        known = observe(to_api(inputs), live) if inputs else import_inputs(live)
        return from_api(known), {**from_api(live), **{key: outputs[key] for key in (MANAGER,) if key in outputs}}

    def update(self, type: str, id: str, outputs: State, olds: State, news: State, preview: bool) -> State:
        if preview and not self._previews(news):
            return news
        manager = annotation(news, "patchFieldManager") or outputs.get(MANAGER) or "pulumi-kubernetes"
        with self._asked("updating", f"{news['kind']} ({id})", manager) as cluster:
            live = life.update(cluster, id, news, manager, force=self._forced(news), preview=preview)
            return from_api(live) if preview else life.settle(cluster, news, live, manager)

    def delete(self, type: str, id: str, outputs: State) -> None:
        api, kind = kind_of(type)
        if self._unreachable and self._settings.get("deleteUnreachable"):
            return
        with self._asked("deleting", f"{kind} ({id})") as cluster:
            life.delete(cluster, outputs.get("apiVersion", api), outputs.get("kind", kind), id, outputs)

    def invoke(self, token: str, args: State, config: State) -> State:
        raise ProviderError(f"the sandbox's kubernetes provider has no function {token}: {_reason(token) or 'unknown'}")

    @contextmanager
    def _asked(self, doing: str, what: str, manager: str = "") -> Generator[Cluster]:
        """Yield the cluster. Turns its refusals into one line that names the object."""
        try:
            if self._unreachable or self._access is None:
                raise Unreachable(self._unreachable)
            yield self._access.cluster()
        except Unreachable as error:
            hint = "; if it was deleted, set delete_unreachable of the provider" if doing in _LOOSE else ""
            raise ProviderError(
                f"{doing} {what}: configured Kubernetes cluster is unreachable: {error}{hint}"
            ) from error
        except Refusal as error:
            said = one_line(error.message or error.reason)
            if error.reason == "Conflict" and "conflict" in said and manager:
                said = f"Server-Side Apply field conflict detected for {manager}: {said}; {_CONFLICT}"
            raise ProviderError(f"{doing} {what}: {said}") from error

    def _previews(self, inputs: State) -> bool:
        return not has_unknown(inputs) and self._namespaced(inputs) is not None

    def _namespaced(self, inputs: State) -> bool | None:
        """Return whether a kind is namespaced; None where no cluster answers, or the kind does not exist (yet)."""
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
        raise ProviderError(f"{type}: {reason}")
    return api, kind


def _reason(token: str) -> str:
    module = token.split(":")[1]
    return next((reason for start, reason in _REFUSED.items() if module.startswith(start)), "")


def _switch(value: Any) -> Any:
    return value == "true" if isinstance(value, str) else value
