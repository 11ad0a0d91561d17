"""A registry of container images on this machine: the pull half of the HTTP API, with tokens, several platforms and
blobs that lie elsewhere. Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from .serving import QuietServer

INDEX, MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"
TOKEN = "for-anybody"


class Registry:
    """Repositories and what was asked of them; `answers` by path come before everything else: status and body."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, bytes]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.with_token = False
        self.digest_header = True
        self.host = ""

    def push(self, repository: str, tag: str, config: dict[str, Any], platforms: tuple[str, ...] = ()) -> str:
        """Keeps an image under a tag; its digest. `platforms`: architectures, as an index of them."""
        manifests: list[dict[str, Any]] = []
        for architecture in platforms or ("amd64",):
            own = {**config, "Labels": {**config.get("Labels", {}), "architecture": architecture}}
            blob = self._put(f"/v2/{repository}/blobs/", "application/json", {"config": own})
            manifest = {"mediaType": MANIFEST, "config": {"digest": blob}}
            digest = self._put(f"/v2/{repository}/manifests/", MANIFEST, manifest)
            manifests.append({"digest": digest, "platform": {"os": "linux", "architecture": architecture}})
        digest, kind = manifests[0]["digest"], MANIFEST
        if platforms:
            digest, kind = self._put(f"/v2/{repository}/manifests/", INDEX, {"manifests": manifests}), INDEX
        self.held[f"/v2/{repository}/manifests/{tag}"] = (kind, self.held[f"/v2/{repository}/manifests/{digest}"][1])
        return digest

    def _put(self, folder: str, kind: str, value: dict[str, Any]) -> str:
        body = json.dumps(value).encode()
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        self.held[folder + digest] = (kind, body)
        return digest


@contextmanager
def serving() -> Generator[Registry]:
    """A registry at its `host`, until the end of the block."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            token = self.headers.get("Authorization")
            registry.asked.append((self.path, token))
            if path in registry.answers:
                return self._answer(*registry.answers[path])
            if path == "/token":
                wanted = "service=here&scope=repository%3A" in query
                return self._answer(200 if wanted else 400, json.dumps({"token": TOKEN}).encode())
            if path.startswith("/elsewhere/"):
                # As a bucket with a signed address: a second way to prove oneself is refused.
                return self._answer(
                    *((400, b"") if token else (200, registry.held[path.removeprefix("/elsewhere")][1]))
                )
            if registry.with_token and token != f"Bearer {TOKEN}":
                repository = path.removeprefix("/v2/").partition("/manifests/")[0].partition("/blobs/")[0]
                challenge = (
                    f'Bearer realm="http://{registry.host}/token",service="here",scope="repository:{repository}:pull"'
                )
                return self._answer(401, b"{}", {"WWW-Authenticate": challenge})
            if path not in registry.held:
                return self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
            kind, body = registry.held[path]
            if "/blobs/" in path:
                return self._answer(307, b"", {"Location": f"http://{registry.host}/elsewhere{path}"})
            if kind not in self.headers.get("Accept", ""):
                return self._answer(404, b"")
            told = {"Docker-Content-Digest": "sha256:" + hashlib.sha256(body).hexdigest()}
            return self._answer(200, body, {"Content-Type": kind, **(told if registry.digest_header else {})})

        def _answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(code)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = QuietServer(Handler)
    registry.host = server.host
    try:
        yield registry
    finally:
        server.stop()
