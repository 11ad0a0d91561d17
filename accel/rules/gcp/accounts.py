"""Service accounts and their roles."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from accel.catalog import gcp_roles
from accel.diagnostics.findings import Finding
from accel.rules.jobs import placeholders
from accel.rules.table import rule

BASIC_ROLE = rule("gcp.account.basic-role")
ROLE = rule("gcp.account.role")
ADMINISTERS = rule("gcp.account.administers")
TRUSTED = rule("gcp.account.trusted-stores")
DEFAULT_ACCOUNT = rule("gcp.account.default")
EMAIL = rule("gcp.account.email")
REPOSITORY = rule("gcp.account.repository")
KEY_LENGTH = rule("gcp.account.key-length")
PROJECT = rule("gcp.project.id")
SHARED_NAME = rule("gcp.account.shared-name")

BUCKET = rule("gcp.bucket.name")

KEY_MOST = 22
"""Maximum characters of an account's key, so that the id stays within 30 with - and 7 random ones."""

_ROLE = re.compile(r"(roles|(projects|organizations)/[a-z0-9.:-]+/roles)/[A-Za-z0-9._]+")
_ADMINISTERS = (
    "roles/iam.serviceAccountTokenCreator",
    "roles/iam.serviceAccountUser",
    "roles/iam.serviceAccountKeyAdmin",
    "roles/iam.serviceAccountAdmin",
    "roles/iam.securityAdmin",
    "roles/resourcemanager.projectIamAdmin",
)
_WRITES = {
    *("storage.objects.create", "storage.objects.delete", "storage.objects.update", "storage.buckets.setIamPolicy"),
    *("datastore.entities.create", "datastore.entities.update", "datastore.entities.delete"),
}
_DEFAULT = re.compile(r"\d+-compute@developer\.gserviceaccount\.com|.*@(.*\.)?appspot\.gserviceaccount\.com|default")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9_.-]+[a-z0-9]")
_EMAIL = re.compile(r"[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com")
_REPOSITORY = re.compile(r"projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/repositories/[a-z0-9-]+")


def project(name: str, field: str = "project") -> list[Finding]:
    """Check an id, which is neither name nor number. It may have the prefix `company.com:`."""
    if found := placeholders.value(field, name):
        return found
    if re.fullmatch(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]", name):
        return []
    return [PROJECT.finding(field, f'is "{name}"', "write its id (gcloud projects list)")]


def buckets(names: Mapping[str, str]) -> list[Finding]:
    fix = "write the name alone, without gs:// and folders, of each bucket that is meant"
    return [
        BUCKET.finding(field, f'is "{name}", which is no bucket\'s name', fix)
        for field, name in names.items()
        if not _BUCKET.fullmatch(name) or len(name) > (222 if "." in name else 63)
    ]


def access(read: Sequence[str], write: Sequence[str]) -> list[Finding]:
    listed = (("read_buckets", read), ("write_buckets", write))
    return buckets({f"{field}[{i}]": name for field, names in listed for i, name in enumerate(names)})


def identities(given: Mapping[str, tuple[str, str]]) -> list[Finding]:
    """Check the namespace and Kubernetes account of each Google account, by its key."""
    found: list[Finding] = []
    first: dict[tuple[str, str], str] = {}
    for name, identity in given.items():
        if identity in first:
            message = f"is {'/'.join(identity)}, which {first[identity]} is already"
            found.append(SHARED_NAME.finding(f"{name}.service_account", message, "join the two, or name another"))
        first.setdefault(identity, name)
    return found


def roles(given: Sequence[str], field: str = "roles") -> list[Finding]:
    """Check the roles that an account has in the whole project."""
    return [finding for i, name in enumerate(given) for finding in _role(f"{field}[{i}]", name)]


def grants(
    repositories_: Sequence[str], roles_: Sequence[str], read: Sequence[str], write: Sequence[str]
) -> list[Finding]:
    """Check all that an account is given."""
    return repositories(repositories_) + roles(roles_) + access(read, write)


def _role(field: str, name: str) -> list[Finding]:
    if name in ("roles/owner", "roles/editor", "roles/viewer", "owner", "editor", "viewer"):
        message = f"is {name}, of the whole project"
        return [BASIC_ROLE.finding(field, message, "name what it needs, such as roles/storage.objectViewer")]
    if not _ROLE.fullmatch(name):
        return [ROLE.finding(field, f'is "{name}"', "write it in full, such as roles/storage.objectViewer")]
    if name in _ADMINISTERS:
        message = f"is {name}, with which it may become any account of the project"
        return [ADMINISTERS.finding(field, message, "give it on the one account that it is for")]
    if name in _writers():
        message = f"is {name}, with which jobs write what others trust"
        return [TRUSTED.finding(field, message, "name buckets in write_buckets, or give it on one database")]
    return []


@cache
def _writers() -> frozenset[str]:
    known = (role.name for role in gcp_roles.roles() if role.permissions & _WRITES)
    return frozenset(["roles/storage.objectCreator", *known])


def nodes_email(email: str, field: str = "email") -> list[Finding]:
    if _DEFAULT.fullmatch(email):
        message = f"is {email}, a default account that whole projects share"
        return [DEFAULT_ACCOUNT.finding(field, message, "let the stack make one (kind: create), or name your own")]
    if not _EMAIL.fullmatch(email):
        return [EMAIL.finding(field, f'is "{email}"', "write <id>@<project>.iam.gserviceaccount.com")]
    return []


def repositories(given: Sequence[str], field: str = "repositories") -> list[Finding]:
    return [
        REPOSITORY.finding(f"{field}[{i}]", f'is "{name}"', "write projects/p/locations/us/repositories/images")
        for i, name in enumerate(given)
        if not _REPOSITORY.fullmatch(name)
    ]


def key(name: str, field: str) -> list[Finding]:
    if len(name) <= KEY_MOST:
        return []
    return [KEY_LENGTH.finding(field, f"has {len(name)} characters, of which {KEY_MOST} are taken", "shorten it")]
