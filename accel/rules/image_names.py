"""Names of container images, as Docker and containerd parse them. Sources: regexp.go and normalize.go of
https://github.com/distribution/reference"""

import re
from dataclasses import dataclass

HUB = "docker.io"
NAME_MAX = 255
"""Longest registry and repository together."""

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_IDENTIFIER = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ImageName:
    """A parsed name. `host` is that of the registry as written, and Docker Hub's without one."""

    host: str
    repository: str
    tag: str
    digest: str
    bare: str
    """Name as written, without tag and digest."""


def parse(name: str) -> ImageName:
    """Raise ValueError with what is wrong."""
    rest, at, digest = name.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError("the digest is not sha256: and 64 digits")
    bare, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        bare, colon, tag = rest, "", ""
    if "://" in name:
        raise ValueError("it is a URL")
    if _IDENTIFIER.fullmatch(rest):
        raise ValueError("it is an id of 64 digits")
    host, repository = _split(bare)
    if repository.lower() != repository:
        raise ValueError("the repository is not in lower case")
    if not _HOST.fullmatch(host) or not _REPOSITORY.fullmatch(repository):
        raise ValueError("it is not registry/repository:tag")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError("the tag is not 1 to 128 letters, digits and _ . -, of which the first is no . or -")
    if len(host) + 1 + len(repository) > NAME_MAX:
        raise ValueError(f"registry and repository have more than {NAME_MAX} characters")
    return ImageName(host, repository, tag, digest, bare)


def _split(bare: str) -> tuple[str, str]:
    first, slash, rest = bare.partition("/")
    # Without dot and port it is a user of Docker Hub. Docker takes one with capital letters for a registry, but a
    # registry of a cloud has a dot.
    named = slash and (first == "localhost" or "." in first or ":" in first)
    host, repository = (first, rest) if named else (HUB, bare)
    if host == "index.docker.io":
        host = HUB
    return host, f"library/{repository}" if host == HUB and repository and "/" not in repository else repository
