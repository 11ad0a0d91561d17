"""Where a cluster's API server is, and who asks it."""

import base64
import binascii
import hashlib
import json
import os
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from accel.contract.gke import GkeTarget

from ... import google
from ...errors import BadInput, CloudSilent, JobsError, NotFound
from ...folders import cache, write_json
from ...kubernetes import Api, Timing
from ...kubernetes_answers import part
from .marks import Scope

MAX_AGE_S = 3600.0
_OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER"


class Clusters:
    """The API server of one scope. `target` says where it is; without one, Google is asked, at most once an hour."""

    def __init__(self, scope: Scope, target: GkeTarget | None = None, timing: Timing | None = None) -> None:
        self.scope = scope
        self.timing = timing or Timing()
        self._target = target
        self._google: Any = None

    @cached_property
    def api(self) -> Api:
        """Raises BadInput for a target that cannot be right, and what google.get raises."""
        if self._target is not None:
            return self._made(self._target.endpoint, pem(self._target.ca_certificate, "ca_certificate"))
        copy = _copy(self.scope)
        kept = _kept(copy)
        if kept is None:
            return self._looked_up(copy)
        try:
            self._made(*kept, once=True).get("/api")
        except CloudSilent:
            return self._looked_up(copy)  # the cluster may have been made again
        except JobsError:
            pass  # it is there; what is wrong, the call itself says
        return self._made(*kept)

    def _looked_up(self, copy: Path) -> Api:
        endpoint, ca_pem = self._asked()
        _keep(copy, endpoint, ca_pem)
        return self._made(endpoint, ca_pem)

    def _made(self, endpoint: str, ca_pem: str | None, once: bool = False) -> Api:
        timing = replace(self.timing, attempts=1) if once else self.timing
        return Api(endpoint, ca_pem, self._sign, timing=timing)

    def _asked(self) -> tuple[str, str | None]:
        """From GKE. A cluster without an address for its API server has a name of Google's instead."""
        scope = self.scope
        names = [google.part(name) for name in (scope.project, scope.location, scope.cluster)]
        path = "v1/projects/{}/locations/{}/clusters/{}".format(*names)
        try:
            found = google.get(self._session(), "container", path)
        except NotFound as missing:
            raise NotFound(
                f"cluster {scope.cluster} in {scope.location} of {scope.project}: {missing.message}"
            ) from None
        endpoints = part(found, "controlPlaneEndpointsConfig")
        name = part(endpoints, "dnsEndpointConfig").get("endpoint")
        if name and part(endpoints, "ipEndpointsConfig").get("enabled") is False:
            return str(name), None
        endpoint, ca = found.get("endpoint"), part(found, "masterAuth").get("clusterCaCertificate")
        if not endpoint or not ca:
            state = found.get("status") or "its state is not known"
            raise CloudSilent(f"cluster {scope.cluster}: has no API server yet ({state})")
        return str(endpoint), pem(str(ca), "clusterCaCertificate")

    def _session(self) -> Any:
        self._google = self._google or google.session()
        return self._google

    def _sign(self) -> str:
        """A token; another one each time, where nobody gave us one."""
        session, self._google = self._session(), None
        return str(session.headers["Authorization"]).removeprefix("Bearer ")


def pem(text: str, field: str) -> str:
    """What base64 says of a certificate. Raises BadInput."""
    try:
        found = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        found = ""
    if "-----BEGIN CERTIFICATE-----" not in found:
        raise BadInput(f"{field}: must be a PEM certificate in base64")
    return found


def _copy(scope: Scope) -> Path:
    text = "\n".join([scope.project, scope.location, scope.cluster, os.environ.get(_OVERRIDE, "")])
    return cache() / f"gke-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _kept(path: Path) -> tuple[str, str | None] | None:
    """A copy that is young enough; one from the future has no age."""
    try:
        kept: Any = json.loads(path.read_text())
        young = 0 <= time.time() - float(kept["fetched"]) < MAX_AGE_S
        return (str(kept["endpoint"]), kept["ca"]) if young else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, endpoint: str, ca_pem: str | None) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(path, {"fetched": time.time(), "endpoint": endpoint, "ca": ca_pem})
    except OSError:
        return  # the next command asks again
