"""Targets that a stack publishes, and their local copy, which is kept for an hour.

ssm:<region>/<path>                                         an SSM parameter per target, below the path, and perhaps
                                                            one per definition
configmap:<project>/<location>/<cluster>/<namespace>        the ConfigMap accel-targets of a GKE cluster, a key per
                                                            target
gs://<bucket>[/<folder>]                                    an object <target>.json per target, in accel-targets
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from accel.clouds.aws.errors import asking
from accel.clouds.timeouts import Timing
from accel.contract import buckets
from accel.contract.target_layout import whole
from accel.diagnostics.errors import BadInput, CloudSilent, NotFound
from accel.folders import cache, write_json

SSM, CONFIGMAP, BUCKET = PREFIXES = ("ssm:", "configmap:", "gs://")
CONFIGMAP_NAME = FOLDER = buckets.TARGETS
MAX_AGE_S = 3600.0
NOW_S = 60.0
"""Highest age of a copy that targets are compared with: many submits in a row read it once."""

_IDENTITY = (
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_SSM",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE",
)
"""Variables that determine whose targets are read: one account's copy must not serve another."""


@dataclass(frozen=True)
class Documents:
    """Targets as raw JSON values."""

    source: str
    by_name: dict[str, Any]
    age_s: float | None = None
    warnings: tuple[str, ...] = ()


def load(source: str, *, refresh: bool = False, max_age_s: float = MAX_AGE_S) -> Documents:
    """Return the targets published at `source`, or a copy younger than `max_age_s`; an old copy, with a warning, where
    the service cannot be reached. Raises CloudSilent without a copy, NoCredentials, CloudRefused, NotFound where
    nothing is published, and BadInput for another spelling."""
    fetch = next(fetch(source) for prefix, fetch in _SOURCES.items() if source.startswith(prefix))
    identity = "\n".join([source, *(os.environ.get(name, "") for name in _IDENTITY)])
    copy = cache() / f"targets-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    kept = _kept(copy)
    age = time.time() - kept["fetched"] if kept else None
    # A copy may seem to come from the future if the clock was set back; its age then says nothing.
    if kept and age is not None and 0 <= age < max_age_s and not refresh:
        return Documents(source, kept["documents"], age)
    try:
        documents = fetch()
    except CloudSilent as silent:
        if kept is None or age is None:
            raise
        warning = f"targets of {source} are {age / 3600:.1f} h old: {silent.message}"
        return Documents(source, kept["documents"], age, (warning,))
    warnings = _keep(copy, {"source": source, "fetched": time.time(), "documents": documents})
    return Documents(source, documents, 0.0, warnings)


def _parameters(source: str) -> Callable[[], dict[str, Any]]:
    region, slash, path = source.removeprefix(SSM).partition("/")
    if not (region and slash and path.strip("/")):
        raise BadInput(f"targets: {source!r}: expected ssm:<region>/<path>, such as ssm:us-east-1/accel/prod/targets")
    return partial(_fetch, region, f"/{path.strip('/')}")


def _config_map(source: str) -> Callable[[], dict[str, Any]]:
    parts = source.removeprefix(CONFIGMAP).split("/")
    if len(parts) != 4 or not all(parts):
        raise BadInput(f"targets: {source!r}: expected configmap:<project>/<location>/<cluster>/<namespace>")
    return partial(_read, source, *parts)


def _read(source: str, project: str, location: str, cluster: str, namespace: str) -> dict[str, Any]:
    from accel.clouds.kubernetes.clusters import Clusters

    from ..backends.gke.labels import Scope

    scope = Scope(project, location, cluster, namespace)
    try:
        found = Clusters(scope).api.get(f"{scope.core('configmaps')}/{CONFIGMAP_NAME}")
    except NotFound as missing:
        raise NotFound(f"targets: {missing.message}", "has the stack been deployed?") from None
    documents: dict[str, Any] = {}
    for name, text in dict(found.get("data") or {}).items():
        try:
            documents[name] = json.loads(text)
        except ValueError:
            raise BadInput(f"{source}: {CONFIGMAP_NAME}.{name}: is not JSON") from None
    if not documents:
        raise NotFound(f"targets: {source}: ConfigMap {CONFIGMAP_NAME} is empty", "has the stack been deployed?")
    return documents


def _objects(source: str) -> Callable[[], dict[str, Any]]:
    bucket, _, folder = source.removeprefix(BUCKET).partition("/")
    if not bucket:
        raise BadInput(f"targets: {source!r}: expected gs://<bucket>, or gs://<bucket>/<folder>")
    return partial(_listed, source, bucket, folder.strip("/") or FOLDER)


def _listed(source: str, bucket: str, folder: str) -> dict[str, Any]:
    from accel.clouds.google.api import Google
    from accel.clouds.google.bucket_targets import published_targets

    try:
        documents = dict(published_targets(Google(Timing(connect_s=3, read_s=10, attempts=2)), bucket, folder))
    except NotFound as missing:
        raise NotFound(f"targets: {missing.message}", "has the stack been deployed?") from None
    if not documents:
        raise NotFound(f"targets: {source}: there is no target in {folder}", "has the stack been deployed?")
    return documents


def _fetch(region: str, path: str) -> dict[str, Any]:
    from accel.clouds.aws.clients import client

    documents: dict[str, Any] = {}
    with asking(f"GetParametersByPath {path}"):
        ssm = client("ssm", region, connect_s=3, read_s=10, attempts=2)
        pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True, WithDecryption=True)
        for parameter in (parameter for page in pages for parameter in page["Parameters"]):
            name: str = parameter["Name"].removeprefix(f"{path}/")
            try:
                documents[name] = json.loads(parameter["Value"])
            except ValueError:
                raise BadInput(f"ssm:{region}{parameter['Name']}: is not JSON") from None
    if not documents:
        raise NotFound(f"targets: there is no parameter below {path} in {region}", "has the stack been deployed?")
    return whole(documents)


_SOURCES: dict[str, Callable[[str], Callable[[], dict[str, Any]]]] = {
    SSM: _parameters,
    CONFIGMAP: _config_map,
    BUCKET: _objects,
}


def _kept(path: Path) -> dict[str, Any] | None:
    try:
        kept: Any = json.loads(path.read_text())
        return {"fetched": float(kept["fetched"]), "documents": dict(kept["documents"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a copy that cannot be read is no copy


def _keep(path: Path, kept: dict[str, Any]) -> tuple[str, ...]:
    try:
        write_json(path, kept)
    except OSError as error:
        return (f"the targets could not be kept for the next command: {error}",)
    return ()
