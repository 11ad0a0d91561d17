"""Address of a cluster's API server, and the credentials for it. The address comes from Google, or the user has
confirmed it (endpoint_trust.py). A target only chooses among the addresses that Google has for the cluster: otherwise
whoever can write a target would receive a token."""

import base64
import binascii
import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from accel.clouds.google import rest
from accel.clouds.kubernetes import endpoint_trust
from accel.clouds.kubernetes.client import Api, Timing
from accel.clouds.kubernetes.endpoint_trust import Endpoint
from accel.contract.gke import GkeTarget
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NotFound
from accel.folders import cache, write_json
from accel.json_values import object_at

MAX_AGE_S = 3600.0
_OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER"


@dataclass(frozen=True)
class ClusterName:
    """The location of a cluster."""

    project: str
    location: str
    cluster: str


class Clusters:
    """The API server of one cluster, as confirmed by the user or reported by Google (asked at most once an hour).
    `target` may name one of its addresses."""

    def __init__(self, name: ClusterName, target: GkeTarget | None = None, timing: Timing | None = None) -> None:
        self.name = name
        self.timing = timing or Timing()
        self._target = target
        self._google: Any = None

    @cached_property
    def api(self) -> Api:
        """Raises BadInput for an invalid target, CloudRefused if Google does not reveal the cluster's address and
        nobody has confirmed it, and the errors of rest.get."""
        copy = _copy(self.name)
        places, known = endpoint_trust.of(path_of(self.name)), _kept(copy)
        if self._target is not None:
            return self._made(self._named(target_place(self._target), places, known, copy))
        if places:
            return self._made(places[0])
        if known is None:
            return self._made(self._looked_up(copy)[0])
        try:
            self._made(known[0], once=True).get("/api")
        except CloudSilent:
            return self._made(self._looked_up(copy)[0])  # the cluster may have been made again
        except JobsError:
            pass  # it is there; what is wrong, the call itself says
        return self._made(known[0])

    def _named(self, named: Endpoint, places: list[Endpoint], known: list[Endpoint] | None, copy: Path) -> Endpoint:
        """Return the address that a target names if it is allowed, otherwise Google's first."""
        if named in places:
            return named
        if known and (same := _at(known, named.endpoint)) and same.ca_pem in (named.ca_pem, None):
            return same
        try:
            told = self._looked_up(copy)
        except CloudRefused as refused:
            raise CloudRefused(
                f"cluster {self.name.cluster}: no credentials were sent: Google does not show you its address "
                f"({refused.message}), and the address in the target, {named.endpoint}, is not confirmed",
                "if you know that the address is right, confirm it once: accel-jobs targets --confirm TARGET",
            ) from refused
        return _at(told, named.endpoint) or told[0]

    def _looked_up(self, copy: Path) -> list[Endpoint]:
        places = self._asked()
        _keep(copy, places)
        return places

    def _made(self, place: Endpoint, once: bool = False) -> Api:
        timing = replace(self.timing, attempts=1) if once else self.timing
        return Api(place.endpoint, place.ca_pem, self._sign, timing=timing)

    def _asked(self) -> list[Endpoint]:
        """Fetch the addresses, the usual one first. A cluster without an IP address has a DNS name of Google's. Source:
        https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters"""
        own = self.name
        names = [rest.path_segment(name) for name in (own.project, own.location, own.cluster)]
        path = "v1/projects/{}/locations/{}/clusters/{}".format(*names)
        try:
            found = rest.get(self._session(), "container", path)
        except NotFound as missing:
            raise NotFound(f"cluster {own.cluster} in {own.location} of {own.project}: {missing.message}") from None
        endpoints = object_at(found, "controlPlaneEndpointsConfig")
        name, addresses = (
            object_at(endpoints, "dnsEndpointConfig").get("endpoint"),
            object_at(endpoints, "ipEndpointsConfig"),
        )
        by_name = [Endpoint(str(name), None)] if name else []
        if by_name and addresses.get("enabled") is False:
            return by_name
        endpoint, ca = found.get("endpoint"), object_at(found, "masterAuth").get("clusterCaCertificate")
        if not endpoint or not ca:
            state = found.get("status") or "its state is not known"
            raise CloudSilent(f"cluster {own.cluster}: has no API server yet ({state})")
        others = [addresses.get("publicEndpoint"), addresses.get("privateEndpoint")]
        ca_pem = pem(str(ca), "clusterCaCertificate")
        return [Endpoint(str(each), ca_pem) for each in dict.fromkeys([endpoint, *others]) if each] + by_name

    def _session(self) -> Any:
        self._google = self._google or rest.session()
        return self._google

    def _sign(self) -> str:
        """Return a new token on each call, unless the environment provides one."""
        session, self._google = self._session(), None
        return str(session.headers["Authorization"]).removeprefix("Bearer ")


def pem(text: str, field: str) -> str:
    """Decode base64. Raise BadInput unless it is a PEM certificate."""
    try:
        found = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        found = ""
    if "-----BEGIN CERTIFICATE-----" not in found:
        raise BadInput(f"{field}: must be a PEM certificate in base64")
    return found


def path_of(name: ClusterName) -> str:
    return f"projects/{name.project}/locations/{name.location}/clusters/{name.cluster}"


def target_place(target: GkeTarget) -> Endpoint:
    """Raise BadInput for an invalid certificate."""
    return Endpoint(target.endpoint, pem(target.ca_certificate, "ca_certificate"))


def _at(places: list[Endpoint], endpoint: str) -> Endpoint | None:
    """Find an endpoint in any spelling."""
    plain = endpoint.removeprefix("https://").rstrip("/").removesuffix(":443")
    return next((place for place in places if place.endpoint in (endpoint, plain)), None)


def _copy(name: ClusterName) -> Path:
    text = "\n".join([path_of(name), os.environ.get(_OVERRIDE, "")])
    return cache() / f"gke-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _kept(path: Path) -> list[Endpoint] | None:
    try:
        kept: Any = json.loads(path.read_text())
        young = 0 <= time.time() - float(kept["fetched"]) < MAX_AGE_S
        return [Endpoint(str(endpoint), ca) for endpoint, ca in kept["places"]] or None if young else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, places: list[Endpoint]) -> None:
    with suppress(OSError):  # the next command asks again
        write_json(path, {"fetched": time.time(), "places": places})
