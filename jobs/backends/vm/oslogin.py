"""Who one is on machines: the user's own OS Login profile, and a key pair that it knows.

The key is gcloud's (~/.ssh/google_compute_engine) where there is one, else one of our own, made on first use. A profile
that has it already is left as it is; else it gets the key with an expiry. Source:
https://docs.cloud.google.com/compute/docs/oslogin/rest/v1/users/importSshPublicKey
"""

import logging
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

from accel import folders
from accel.clouds.google.account import email
from accel.clouds.google.api import Google
from accel.clouds.google.rest import mapping, part
from accel.clouds.kubernetes.responses import part as inside
from accel.clouds.kubernetes.responses import parts
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

API = "oslogin"
KEPT_S = 12 * 3600
"""How long a profile keeps the key that it is given."""
LEFT_S = 600
"""One that expires sooner is given again."""
LATELY_S = 120
COMMENT = "accel-jobs"


@dataclass(frozen=True)
class Login:
    """`fresh`: the key was given to the profile lately, and machines may not know it yet."""

    user: str
    key: Any
    fresh: bool


def login(google: Google, project: str, region: str) -> Login:
    """The user's name and key on machines of the project.

    Raises CloudRefused for a profile that may not be seen or changed, or has no POSIX account; NoCredentials.
    """
    key = key_pair()
    user = f"v1/users/{part(email())}"
    profile: dict[str, Any] = {}
    with suppress(NotFound):
        profile = google.get(API, f"{user}/loginProfile", projectId=project)
    name, left_s = _name(profile), _left_s(profile, key.get_base64())
    if not name or left_s < LEFT_S:
        body = {
            "key": f"{key.get_name()} {key.get_base64()} {COMMENT}",
            "expirationTimeUsec": str(int((time.time() + KEPT_S) * 1e6)),
        }
        try:
            # With a region it is answered when machines there can see the key.
            answer = google.post(
                API, f"{user}:importSshPublicKey", body, repeat=True, projectId=project, regions=[region]
            )
        except NotFound as missing:
            raise CloudRefused(missing.message) from missing
        name, left_s = _name(mapping(answer.get("loginProfile")) or {}), KEPT_S
    if not name:
        raise CloudRefused(
            f"OS Login: the profile of {email()} has no POSIX account for {project}",
            "an administrator of your organisation can give it one",
        )
    return Login(name, key, fresh=KEPT_S - LATELY_S < left_s < inf)


def _name(profile: dict[str, Any]) -> str:
    """Of the primary account, or of the only one."""
    accounts = sorted(parts(profile, "posixAccounts"), key=lambda each: not each.get("primary"))
    return str(accounts[0].get("username") or "") if accounts else ""


def _left_s(profile: dict[str, Any], key: str) -> float:
    """For how long the profile keeps the key: 0 for one that it has not, for ever without an expiry."""
    kept: Iterable[Any] = inside(profile, "sshPublicKeys").values()
    ours = (each for each in map(mapping, kept) if each and key in str(each.get("key", "")).split())
    return max((float(each.get("expirationTimeUsec") or inf) / 1e6 - time.time() for each in ours), default=0)


def key_pair() -> Any:
    """A private key of paramiko's. Raises CloudSilent where the file of one can be neither read nor made."""
    paramiko = ssh_library()
    gclouds = Path.home() / ".ssh" / "google_compute_engine"
    # One with a passphrase is of no use here, and nor is one of a kind that is not supported any more.
    with suppress(OSError, ValueError, paramiko.SSHException):
        return paramiko.PKey.from_path(gclouds)
    own = folders.state() / "ssh" / "key"
    try:
        if not own.exists():
            _make(own)
        return paramiko.PKey.from_path(own)
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise CloudSilent(f"{own}: {error}", "delete it, and another is made") from error


def _make(path: Path) -> None:
    """A new key, unless another process has made one meanwhile."""
    form = import_module("cryptography.hazmat.primitives.serialization")
    ed25519 = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_bytes(
        ed25519.Ed25519PrivateKey.generate().private_bytes(
            form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()
        )
    )
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()


def ssh_library() -> Any:
    """Paramiko, which says nothing by itself: what goes wrong is told as an error."""
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    return import_module("paramiko")
