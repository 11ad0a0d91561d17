"""From a kubeconfig to its cluster, as client-go goes: inline or a path, a token, a token file or an `exec` plugin."""

import base64
import functools
import hashlib
import json
import os
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from sandbox.kubernetes.client import Cluster, Refusal

_EXEC_S = 60
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_MARGIN_S = 10


class Unreachable(Exception):
    """The kubeconfig leads to no cluster that answers; one line why."""


class Access:
    """The cluster of one provider instance."""

    def __init__(self, home: Path, settings: dict[str, Any]) -> None:
        self._home = home
        config = _loaded(settings.get("kubeconfig"))
        context = _named(config, "contexts", "context", settings.get("context") or config.get("current-context"))
        self._where = _named(config, "clusters", "cluster", settings.get("cluster") or context.get("cluster"))
        self._user = _named(config, "users", "user", context.get("user"))
        self.namespace = settings.get("namespace") or context.get("namespace") or "default"
        self._token, self._until = "", 0.0

    def cluster(self) -> Cluster:
        """The cluster with a token that is still good. Raises Unreachable."""
        if not self._token or datetime.now().timestamp() > self._until - _MARGIN_S:
            self._token, self._until = self._credential()
        return _cluster(self._server(), self._token, self._authority())

    def answers(self) -> None:
        """Raises Unreachable where the server does not answer to its version and its resources."""
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
    """One pool of connections for each, however many commands of the engine ask."""
    return Cluster(url, token, authority)


def active(settings: dict[str, Any]) -> Any:
    """What identifies the cluster that the settings lead to; None where that cannot be told."""
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
    # subprocess looks on this process's PATH, not on the one it passes on.
    if os.sep in command:
        return command
    for folder in path.split(os.pathsep):
        if os.access(candidate := Path(folder) / command, os.X_OK):
            return str(candidate)
    raise FileNotFoundError(command)


def _line(text: str) -> str:
    return "; ".join(filter(None, map(str.strip, text.splitlines())))
