"""Targets that a stack publishes as SSM parameters, and the copy of them that is kept for an hour."""

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BadInput, CloudSilent, NotFound
from .folders import cache, write_json

PREFIX = "ssm:"
MAX_AGE_S = 3600.0

_IDENTITY = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SSM")
"""What decides whose parameters are read: one account's copy must not serve another."""


@dataclass(frozen=True)
class Documents:
    """Targets as JSON values, not yet understood."""

    source: str
    by_name: dict[str, Any]
    age_s: float | None = None
    warnings: tuple[str, ...] = ()


def load(source: str, *, refresh: bool = False) -> Documents:
    """The parameters below `ssm:<region>/<path>`, or the copy of them if it is young enough.

    An old copy is used, with a warning, where the service cannot be reached. Raises CloudSilent without a
    copy, NoCredentials, CloudRefused, NotFound where there is no parameter, and BadInput for another
    spelling.
    """
    region, slash, path = source.removeprefix(PREFIX).partition("/")
    if not (region and slash and path.strip("/")):
        raise BadInput(f"targets: {source!r}: expected ssm:<region>/<path>, such as ssm:us-east-1/accel/prod/targets")
    identity = "\n".join([source, *(os.environ.get(name, "") for name in _IDENTITY)])
    copy = cache() / f"targets-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    kept = _kept(copy)
    age = time.time() - kept["fetched"] if kept else None
    # A copy from the future: the clock was set back, so its age says nothing.
    if kept and age is not None and 0 <= age < MAX_AGE_S and not refresh:
        return Documents(source, kept["documents"], age)
    try:
        documents = _fetch(region, f"/{path.strip('/')}")
    except CloudSilent as silent:
        if kept is None or age is None:
            raise
        warning = f"targets of {source} are {age / 3600:.1f} h old: {silent.message}"
        return Documents(source, kept["documents"], age, (warning,))
    warnings = _keep(copy, {"source": source, "fetched": time.time(), "documents": documents})
    return Documents(source, documents, 0.0, warnings)


def _fetch(region: str, path: str) -> dict[str, Any]:
    from .aws import client
    from .backends.aws_batch.errors import asking

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
    return documents


def _kept(path: Path) -> dict[str, Any] | None:
    try:
        kept: Any = json.loads(path.read_text())
        return {"fetched": float(kept["fetched"]), "documents": dict(kept["documents"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a copy that cannot be read is no copy


def _keep(path: Path, kept: dict[str, Any]) -> tuple[str, ...]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(path, kept)
    except OSError as error:
        return (f"the targets could not be kept for the next command: {error}",)
    return ()
