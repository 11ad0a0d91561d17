"""Addresses of cluster API servers that the user has confirmed for credentials, each in a file of its own in the state
folder, so that two concurrent commands lose nothing."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...folders import state, write_json


class Endpoint(NamedTuple):
    """An API server's address. `ca_pem`: authority of its certificate; None: those that the system trusts."""

    endpoint: str
    ca_pem: str | None

    @property
    def fingerprint(self) -> str:
        return f"SHA256:{hashlib.sha256(json.dumps(self).encode()).hexdigest()}"


def of(cluster: str) -> list[Endpoint]:
    """Return the newest first."""
    newest = sorted(_kept(), key=lambda kept: kept[0], reverse=True)
    return [place for _, whose, place in newest if whose == cluster]


def add(cluster: str, place: Endpoint) -> None:
    """Store it until somebody removes the file. Raise OSError."""
    name = hashlib.sha256(f"{cluster}\n{place.fingerprint}".encode()).hexdigest()[:32]
    write_json(_folder() / f"{name}.json", {"cluster": cluster, "endpoint": place.endpoint, "ca": place.ca_pem})


def _kept() -> Iterator[tuple[float, str, Endpoint]]:
    for path in _folder().glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):  # a file that cannot be read confirms nothing
            kept: Any = json.loads(path.read_text())
            yield path.stat().st_mtime, str(kept["cluster"]), Endpoint(str(kept["endpoint"]), kept["ca"])


def _folder() -> Path:
    return state() / "confirmed"
