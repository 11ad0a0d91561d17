"""Container images in a registry: the digest that a tag refers to, and the labels and variables of an image. Uses the
registry's HTTP API anonymously: https://github.com/opencontainers/distribution-spec/blob/main/spec.md; some issue an
anonymous token: https://distribution.github.io/distribution/spec/auth/token/. A private image is rejected with a hint
on what to do."""

import hashlib
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import Any, cast

from accel.json_values import entries, object_at
from accel.rules import image_names

from ..diagnostics.errors import BadInput, CloudRefused, CloudSilent, NoCredentials, NotFound

TIMEOUT_S = 10.0
"""Of each request."""

_HUB = "registry-1.docker.io"
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_BODY_MAX = 8 * 2**20
"""Maximum bytes of a manifest or a configuration; registries accept manifests up to 4 MiB."""


@dataclass(frozen=True)
class Name:
    """A parsed image name; `host` is that of its registry."""

    host: str
    repository: str
    reference: str
    """Tag or digest."""
    bare: str
    """Name as written, without tag and digest."""


@dataclass(frozen=True)
class Image:
    """An image in a registry: its digest, and the labels and variables for one platform."""

    digest: str
    labels: dict[str, str] = field(default_factory=dict[str, str])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    entry_point: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()

    @property
    def cuda(self) -> str | None:
        """The CUDA version: our template's label, or the variable that NVIDIA's images have."""
        return self.labels.get("dev.accel.cuda") or self.variables.get("CUDA_VERSION")


def parse(name: str) -> Name:
    """Parse an image name; without a host it is Docker Hub's. Raise BadInput."""
    try:
        found = image_names.parse(name)
    except ValueError as why:
        raise BadInput(f"image: {name[:200]}: is no image name: {why}") from None
    host = _HUB if found.host == image_names.HUB else found.host
    return Name(host, found.repository, found.digest or found.tag or "latest", found.bare)


def pin_digest(name: str) -> str:
    """Return the name with the digest of its tag; one with a digest stays as it is. Raise BadInput, NotFound,
    NoCredentials for a private image, CloudRefused, CloudSilent."""
    if "@" in name:
        parse(name)
        return name
    parts = parse(name)
    return f"{parts.bare}@{Registry(parts).digest()}"


def read(name: str, architecture: str = "amd64") -> Image:
    """Read the image for Linux on an architecture (amd64, arm64). Raise as pin_digest() does."""
    return Registry(parse(name)).image(architecture)


class Registry:
    """One repository, accessed without credentials, and without TLS if the registry is on this machine."""

    def __init__(self, name: Name, timeout_s: float = TIMEOUT_S) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._token: str | None = None
        plain = name.host.rpartition(":")[0] in _LOCAL or name.host in _LOCAL
        self._url = f"{'http' if plain else 'https'}://{name.host}/v2/{name.repository}"
        self._shown = f"{name.host}/{name.repository}"

    def digest(self) -> str:
        """Return that of the manifest, or of the manifest list for several platforms."""
        return self._manifest(self._name.reference)[0]

    def image(self, architecture: str) -> Image:
        digest, manifest = self._manifest(self._name.reference)
        several = _list(manifest.get("manifests"))
        if several:
            fit = [each for each in several if _of(each.get("platform"), "linux", architecture)]
            if not fit:
                raise NotFound(f"{self._shown}: has no image for linux/{architecture}")
            manifest = self._manifest(str(fit[0].get("digest")))[1]
        config = object_at(manifest, "config")
        blob = object_at(_json(self._body(f"blobs/{config.get('digest')}", ())[0], self._shown))
        inner = object_at(blob, "config")
        labels = {str(key): str(value) for key, value in object_at(inner, "Labels").items()}
        pairs = [str(each).partition("=") for each in cast(list[Any], inner.get("Env") or [])]
        variables = {name: value for name, _, value in pairs}
        return Image(digest, labels, variables, _words(inner.get("Entrypoint")), _words(inner.get("Cmd")))

    def _manifest(self, reference: str) -> tuple[str, dict[str, Any]]:
        body, headers = self._body(f"manifests/{urllib.parse.quote(reference, safe=':')}", _MANIFESTS)
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        for told in (headers.get("Docker-Content-Digest"), reference if reference.startswith("sha256:") else None):
            if told and told.startswith("sha256:") and told != digest:
                raise CloudRefused(f"{self._shown}: the registry says {told}, and what it sent is {digest}")
        return digest, object_at(_json(body, self._shown))

    def _body(self, path: str, accepts: tuple[str, ...]) -> tuple[bytes, Message]:
        for again in (True, False):
            try:
                return self._get(f"{self._url}/{path}", accepts, self._token)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 401 and again:
                        self._token = self._granted(error.headers.get("WWW-Authenticate", ""))
                        continue
                    raise self._refused(error.code) from None
        raise AssertionError

    def _get(self, url: str, accepts: tuple[str, ...], token: str | None) -> tuple[bytes, Message]:
        """Raise HTTPError, CloudSilent."""
        request = urllib.request.Request(url)  # noqa: S310  http and https alone come here
        if accepts:
            request.add_header("Accept", ", ".join(accepts))
        if token:
            # Not sent on redirect: a blob is elsewhere, in a bucket that accepts no token.
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:  # noqa: S310
                body = answer.read(_BODY_MAX + 1)
                headers = answer.headers
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, TimeoutError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise CloudSilent(f"{self._shown}: the registry does not answer: {reason}") from None
        if len(body) > _BODY_MAX:
            raise CloudRefused(f"{self._shown}: the registry sent more than {_BODY_MAX} bytes")
        return body, headers

    def _granted(self, challenge: str) -> str:
        """Get an anonymous token from the server named in the challenge. Raise NoCredentials."""
        scheme, _, rest = challenge.partition(" ")
        told: dict[str, str] = dict(_PARAMETER.findall(rest))
        realm = urllib.parse.urlsplit(told.get("realm", ""))
        safe = realm.scheme == "https" or (
            realm.scheme == "http" and realm.hostname in ("localhost", "127.0.0.1", "::1")
        )
        if scheme.lower() != "bearer" or not safe:
            raise self._refused(401)
        asked = {key: told[key] for key in ("service",) if key in told}
        asked["scope"] = told.get("scope", f"repository:{self._name.repository}:pull")
        query = "&".join(each for each in (realm.query, urllib.parse.urlencode(asked)) if each)
        try:
            body, _ = self._get(urllib.parse.urlunsplit(realm._replace(query=query)), (), None)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error.code) from None
        answer = object_at(_json(body, self._shown))
        token = answer.get("token") or answer.get("access_token")
        if not isinstance(token, str):
            raise self._refused(401)
        return token

    def _refused(self, code: int) -> Exception:
        reference = self._name.reference
        if code == 404:
            return NotFound(f"{self._shown}: has no {reference}", "see that it was pushed, and how it is spelt")
        if code in (401, 403):
            hint = "name its digest: `docker buildx imagetools inspect IMAGE` and `docker push` print it"
            return NoCredentials(
                f"{self._shown}: the registry does not show {reference} without credentials ({code})", hint
            )
        if code == 429 or code >= 500:
            return CloudSilent(f"{self._shown}: the registry answers {code}")
        return CloudRefused(f"{self._shown}: the registry answers {code}")


def _json(body: bytes, shown: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise CloudRefused(f"{shown}: the answer is not from a registry: it is not JSON") from None


def _list(value: object) -> list[dict[str, Any]]:
    return [object_at(each) for each in entries(value)]


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, entries(value)))


def _of(platform: object, system: str, architecture: str) -> bool:
    told = object_at(platform)
    return (told.get("os"), told.get("architecture")) == (system, architecture)
