"""OS Login v1: a user's SSH keys and POSIX account, which machines look up. A profile is stored under
"oslogin/users/EMAIL"."""

import base64
import hashlib
import re
import time
from collections.abc import Callable
from typing import Any

from ..errors import ApiError
from ..verbs import missing
from ..world import Call, Collection, Json, merge_patch

_KEY = re.compile(
    r"(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-nistp(?:256|384|521)|sk-[\w-]+@openssh\.com) ([A-Za-z0-9+/=]+)(?: .*)?"
)


def _user(call: Call) -> str:
    return call.path["usersId"]


def _profile(call: Call) -> Json:
    name = _user(call)
    profile = call.world.items.setdefault(
        f"oslogin/users/{name}", {"name": name, "posixAccounts": [], "sshPublicKeys": {}}
    )
    keys, now = profile["sshPublicKeys"], time.time() * 1e6
    for mark in [mark for mark, key in keys.items() if float(key.get("expirationTimeUsec", "inf")) <= now]:
        del keys[mark]
    return profile


def _account(call: Call, profile: Json, project: str) -> Json:
    """Return the user's POSIX account, created on first use. A person's user name is the address with underscores:
    https://help.fluidnumerics.com/slurm-gcp/documentation/tutorials/managing-posix-accounts. A service account's is sa_
    and its number: https://docs.cloud.google.com/compute/docs/oslogin."""
    if not profile["posixAccounts"]:
        name = _user(call)
        number = next((item["uniqueId"] for key, item in call.world.items.items()
                       if key.endswith(f"/serviceAccounts/{name}") and key.startswith("iam/")), "")  # fmt: skip
        username = f"sa_{number}" if number else re.sub(r"[^a-z0-9]", "_", name.lower())[:32]
        uid = str(2**31 + int(hashlib.sha256(name.encode()).hexdigest()[:6], 16))
        profile["posixAccounts"] = [
            {
                "primary": True, "username": username, "uid": uid, "gid": uid, "homeDirectory": f"/home/{username}",
                "shell": "/bin/bash", "operatingSystemType": "LINUX", "accountId": project,
                "name": f"users/{name}/projects/{project}",
            }
        ]  # fmt: skip
    return profile["posixAccounts"][0]


def _kept(call: Call, body: Json) -> Json:
    """Store a key, and return it. A repeated key replaces the stored one, perhaps with another expiry."""
    text = str(body.get("key", "")).strip()
    found = _KEY.fullmatch(text)
    try:
        blob = base64.b64decode(found[1], validate=True) if found else b""
    except ValueError:
        blob = b""
    if not blob:
        raise ApiError(400, "Invalid SSH public key: it is not of the form 'TYPE BASE64 [COMMENT]'")
    expires = body.get("expirationTimeUsec")
    if expires is not None and int(expires) <= time.time() * 1e6:
        raise ApiError(400, f"Expiration time {expires} is in the past")
    mark = hashlib.sha256(blob).hexdigest()
    made = {"key": text, "fingerprint": mark, "name": f"users/{_user(call)}/sshPublicKeys/{mark}"}
    made |= {"expirationTimeUsec": str(expires)} if expires is not None else {}
    _profile(call)["sshPublicKeys"][mark] = made
    return made


def _import(call: Call, collection: Collection) -> Json:
    """Add a key, and give the user a POSIX account. Source:
    https://cloud.google.com/compute/docs/oslogin/rest/v1/users/importSshPublicKey."""
    if call.body.get("key"):
        _kept(call, call.body)
    profile = _profile(call)
    _account(call, profile, call.query.get("projectId", ""))
    return {"loginProfile": profile}


def _get_profile(call: Call, collection: Collection) -> Json:
    return _profile(call)


def _provision(call: Call, collection: Collection) -> Json:
    return _account(call, _profile(call), call.path["projectsId"])


def _key(call: Call, collection: Collection) -> Json:
    found = _profile(call)["sshPublicKeys"].get(call.path["sshPublicKeysId"])
    if found is None:
        raise missing(collection, call.key)
    return found


def _create_key(call: Call, collection: Collection) -> Json:
    return _kept(call, call.body)


def _patch_key(call: Call, collection: Collection) -> Json:
    return _kept(call, merge_patch(_key(call, collection), call.body))


def _delete_key(call: Call, collection: Collection) -> Json:
    del _profile(call)["sshPublicKeys"][_key(call, collection)["fingerprint"]]
    return {}


COLLECTIONS = tuple(
    Collection(id=f"oslogin.users{below}", schema=schema)
    for below, schema in (("", "LoginProfile"), (".sshPublicKeys", "SshPublicKey"), (".projects", "PosixAccount"))
)
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    "oslogin.users.importSshPublicKey": _import,
    "oslogin.users.getLoginProfile": _get_profile,
    "oslogin.users.projects.provisionPosixAccount": _provision,
    "oslogin.users.sshPublicKeys.create": _create_key,
    "oslogin.users.sshPublicKeys.get": _key,
    "oslogin.users.sshPublicKeys.patch": _patch_key,
    "oslogin.users.sshPublicKeys.delete": _delete_key,
}
