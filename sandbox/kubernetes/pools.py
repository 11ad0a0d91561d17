"""The node pools that Google's side has, read over its API, and what it has run out of."""

from pathlib import Path
from typing import Any

import requests

from ..google import scoped
from .pool import Pool

_TIMEOUT_S = 10


class Google:
    """The sandbox's Google. Every method raises requests.RequestException where it does not answer as it should."""

    def __init__(self, url: str, home: Path) -> None:
        self._url, self._token = url.rstrip("/"), home / "key"
        self._http = requests.Session()
        self._http.trust_env = False
        self._sizes: dict[str, int] = {}

    def pools(self) -> list[Pool]:
        """All node pools that are there or nearly; one that is not autoscaled with the size it was given last."""
        clusters = self._get("container.googleapis.com/v1/projects/-/locations/-/clusters").get("clusters") or []
        return [
            Pool(cluster, self._sized(body), cluster["selfLink"].partition("/projects/")[2].partition("/")[0])
            for cluster in clusters
            for body in cluster.get("nodePools") or []
            if cluster.get("status") != "STOPPING" and body.get("status") != "STOPPING"
        ]

    def out_of_stock(self) -> set[str]:
        """Machine types, alone or as ZONE/TYPE, that cannot be had."""
        return set(self._get("sandbox-api/faults").get("stockout") or [])

    def resize(self, sizes: dict[str, int]) -> None:
        """Tells it what its autoscaler has made of groups, by their paths; those that are as before are left out."""
        if changed := {path: size for path, size in sizes.items() if self._sizes.get(path) != size}:
            self._http.post(
                f"{self._url}/sandbox-api/sizes", json=changed, headers=self._headers(), timeout=_TIMEOUT_S
            ).raise_for_status()
        self._sizes = sizes

    def _sized(self, body: dict[str, Any]) -> dict[str, Any]:
        """A pool's initialNodeCount stays what it was; its groups have what it was set to."""
        if (body.get("autoscaling") or {}).get("enabled"):
            return body
        for url in body.get("instanceGroupUrls") or []:
            group = self._get(f"compute.googleapis.com/compute/v1/{url.partition('/compute/v1/')[2]}")
            return {**body, "initialNodeCount": group["targetSize"]}
        return body

    def _headers(self) -> dict[str, str]:
        token = self._token.read_text().strip() if self._token.exists() else ""
        return {"Authorization": f"Bearer {scoped(token, '')}"}

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._http.get(f"{self._url}/{path}", headers=self._headers(), timeout=_TIMEOUT_S)
        answer.raise_for_status()
        return answer.json()
