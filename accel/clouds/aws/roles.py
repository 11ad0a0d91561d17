"""Reads instance profiles, and whether their role allows the ECS agent's first call."""

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from .reader import Absent, Reader
from .responses import structure, structures

REGISTER = "ecs:RegisterContainerInstance"
MANAGED = "/AmazonEC2ContainerServiceforEC2Role"


@dataclass(frozen=True)
class Role:
    """An instance profile's role. `trusted`: EC2 may assume it; `registers`: some policy lets it join ECS."""

    profile: str
    exists: bool
    role: str = ""
    trusted: bool = True
    registers: bool = True


def role(reader: Reader, profile: str) -> Role | None:
    """Look up a profile, by name or ARN. Return None if it may not be read."""
    name = profile.rpartition("/")[2]
    try:
        found = reader.ask(
            "iam:GetInstanceProfile",
            lambda iam: iam.get_instance_profile(InstanceProfileName=name),
            absent=("NoSuchEntity",),
        )
    except Absent:
        return Role(name, exists=False)
    if found is None:
        return None
    roles = structures(structure(found, "InstanceProfile"), "Roles")
    if not roles:
        return Role(name, exists=True)
    held_by = str(roles[0]["RoleName"])
    registers = _registers(reader, held_by)
    return Role(name, True, held_by, trusts(roles[0], "ec2.amazonaws.com"), registers is not False)


def _registers(reader: Reader, role: str) -> bool | None:
    missing = lacking(reader, role, (REGISTER,), complete=MANAGED)
    return None if missing is None else not missing


def lacking(reader: Reader, role: str, actions: Sequence[str], complete: str = "") -> tuple[str, ...] | None:
    """Return the actions that no policy of a role allows on any resource, or None if its policies may not be read.
    Ignores denials, conditions and boundaries. `complete`: end of the ARN of a managed policy that has all actions and
    is not read."""
    attached = reader.pages(
        "iam:ListAttachedRolePolicies", "list_attached_role_policies", "AttachedPolicies", RoleName=role
    )
    if attached is None:
        return None
    if complete and any(str(each["PolicyArn"]).endswith(complete) for each in attached):
        return ()
    inline = reader.ask("iam:ListRolePolicies", lambda iam: list(iam.list_role_policies(RoleName=role)["PolicyNames"]))
    if inline is None:
        return None
    documents: list[Any] = []
    for each in inline:
        found = reader.ask(
            "iam:GetRolePolicy", lambda iam, each=each: iam.get_role_policy(RoleName=role, PolicyName=each)
        )
        documents.append(found and found["PolicyDocument"])
    for each in attached:
        documents.append(_managed(reader, str(each["PolicyArn"])))
    known = [_policy(document) for document in documents if document]
    missing = tuple(action for action in actions if not any(_allows(document, action) for document in known))
    return missing if all(documents) or not missing else None


def trusts(role: Mapping[str, Any], service: str) -> bool:
    """Return whether the trust policy of a role, as in GetRole, names a service."""
    return service in json.dumps(_policy(role.get("AssumeRolePolicyDocument")))


def _managed(reader: Reader, arn: str) -> Any:
    policy = reader.ask("iam:GetPolicy", lambda iam: iam.get_policy(PolicyArn=arn))
    if policy is None:
        return None
    version = policy["Policy"]["DefaultVersionId"]
    found = reader.ask("iam:GetPolicyVersion", lambda iam: iam.get_policy_version(PolicyArn=arn, VersionId=version))
    return found and found["PolicyVersion"]["Document"]


def _policy(document: Any) -> Any:
    """Decode URL-encoded JSON. botocore decodes most policies itself."""
    if not isinstance(document, str):
        return document or {}
    try:
        return json.loads(unquote(document))
    except ValueError:
        return {}


def _allows(document: Any, action: str) -> bool:
    for each in _listed(document.get("Statement")):
        listed: list[str] = _listed(each.get("Action"))
        if each.get("Effect") == "Allow" and (
            "NotAction" in each or any(fnmatch.fnmatchcase(action.lower(), one.lower()) for one in listed)
        ):
            return True
    return False


def _listed(value: Any) -> list[Any]:
    """Make a list: policies may leave it out around a single row."""
    return value if isinstance(value, list) else [value] if value else []  # pyright: ignore[reportUnknownVariableType]
