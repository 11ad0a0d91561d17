"""What is not sent: files that look like secrets, names that another machine cannot have, links that lead outside."""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from .tree import Entry, Tree, shown

OURS = ".accel"
"""Folder of an archive that holds what accel adds."""

SECRETS = (
    *(".env", ".env.*", "*.env", ".netrc", "_netrc", ".pgpass", ".pypirc", ".npmrc", ".git-credentials", ".htpasswd"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "kubeconfig", "*.kubeconfig", "kaggle.json"),
    *("credentials", "credentials.*", "*credentials.json", "client_secret*.json", "service-account*.json"),
    *("service_account*.json", "secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "*.tfstate"),
)
"""Of a file's name in small letters."""
NO_SECRETS = ("*.example", "*.sample", "*.template", "*.dist", "credentials.py", "*.pub")


def secret(name: str) -> bool:
    """Whether a file of this name is likely to hold a secret."""
    base = PurePosixPath(name).name.lower()
    return any(fnmatchcase(base, each) for each in SECRETS) and not any(fnmatchcase(base, each) for each in NO_SECRETS)


def faults(tree: Tree) -> list[str]:
    """Why the tree is not sent, a line each."""
    return [f"--code: {shown(entry.name)}: {fault}" for entry in tree.entries for fault in _of(tree, entry)]


def warnings(tree: Tree) -> list[str]:
    """What is sent or left out, and perhaps should not be."""
    found = [f"--code: {line}" for line in tree.left_out]
    for entry in tree.entries:
        if entry.tracked and secret(entry.name):
            found.append(f"--code: {shown(entry.name)}: looks like a secret, and is sent since Git has it")
    return found


def _of(tree: Tree, entry: Entry) -> Iterator[str]:
    parts = entry.name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        yield "is not a name below the folder"
    if not _utf8(entry.name):
        yield "its name is not UTF-8; rename it"
    if parts[0] == OURS:
        yield f"{OURS} is for what accel adds; rename it"
    if secret(entry.name) and not entry.tracked:
        yield "looks like a secret; write it into .gitignore, give the job a reference in secrets, or `git add` it"
    if entry.link is not None:
        yield from _link(tree, entry.name, entry.link)


def _link(tree: Tree, name: str, target: str) -> Iterator[str]:
    if not _utf8(target):
        yield "it leads to a name that is not UTF-8"
    elif target.startswith("/"):
        yield f"leads to {shown(target)}, which another machine does not have; make it a relative link or a file"
    else:
        root = os.path.realpath(tree.folder)
        # As it is read, and as it is on this machine, through other links.
        read, led = os.path.normpath(f"{root}/{name}/../{target}"), os.path.realpath(f"{root}/{name}")
        if not all(os.path.commonpath([root, path]) == root for path in (read, led)):
            yield f"leads to {shown(target)}, outside of the folder; put a file there"


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
