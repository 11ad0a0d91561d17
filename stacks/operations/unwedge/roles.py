"""The roles that a compute environment names: missing ones, and stand-ins for the duration of its deletion. Batch
deletes an environment with the environment's own roles, so one whose role is gone turns INVALID and stays. Sources:
https://github.com/hashicorp/terraform-provider-aws/issues/8549,
https://github.com/hashicorp/terraform-provider-aws/pull/16417"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structure, structures
from accel.diagnostics.errors import CloudRefused

Kind = Literal["service role", "Spot Fleet role", "instance profile"]
State = Literal["there", "gone", "without a role", "made by unwedge", "not known"]

TAG = "accel:unwedge"
"""Tag on stand-ins: the environment for which they were created."""
PROFILE_TAG = "accel:unwedge-profile"
LINKED = "/aws-service-role/"
GONE = ("NoSuchEntity",)
THERE = ("EntityAlreadyExists",)

NEEDS: Mapping[Kind, tuple[str, str]] = {
    "service role": ("batch.amazonaws.com", "service-role/AWSBatchServiceRole"),
    "Spot Fleet role": ("spotfleet.amazonaws.com", "service-role/AmazonEC2SpotFleetTaggingRole"),
    "instance profile": ("ec2.amazonaws.com", "service-role/AmazonEC2ContainerServiceforEC2Role"),
}
"""The service that assumes the role, and AWS's policy for it. Sources:
https://docs.aws.amazon.com/batch/latest/userguide/service_IAM_role.html,
https://docs.aws.amazon.com/batch/latest/userguide/spot_fleet_IAM_role.html,
https://docs.aws.amazon.com/batch/latest/userguide/instance_IAM_role.html"""


@dataclass(frozen=True)
class EnvironmentRole:
    """A role or instance profile that the environment names, and its condition."""

    kind: Kind
    name: str
    path: str
    state: State
    why: str = ""
    """Reason for `not known`."""

    @property
    def missing(self) -> bool:
        return self.state in ("gone", "without a role")

    @property
    def linked(self) -> bool:
        """Return whether it is AWS's own role of the account, which stays."""
        return self.path.startswith(LINKED)


def environment_roles(iam: Any, environment: Mapping[str, Any]) -> list[EnvironmentRole]:
    resources = structure(environment, "computeResources")
    given: dict[Kind, str | None] = {
        "service role": environment.get("serviceRole"),
        "Spot Fleet role": resources.get("spotIamFleetRole"),
        "instance profile": resources.get("instanceRole"),
    }
    found: list[EnvironmentRole] = []
    for kind, arn in given.items():
        if arn:
            name, path = _parts(arn)
            found.append(EnvironmentRole(kind, name, path, *_state(iam, kind, name)))
    return found


def make(iam: Any, role: EnvironmentRole, environment: str, partition: str, boundary: str | None = None) -> None:
    """Create a stand-in of the same name; leave what exists unchanged. `boundary`: ARN of the policy that limits it."""
    if role.linked:
        with asking("CreateServiceLinkedRole batch.amazonaws.com"):
            # IAM answers InvalidInput if it exists already.
            _unless(
                ["InvalidInput", *THERE], lambda: iam.create_service_linked_role(AWSServiceName="batch.amazonaws.com")
            )
        return
    service, policy = NEEDS[role.kind]
    is_profile = role.kind == "instance profile"
    name = _stand_in(role.name) if is_profile else role.name
    tags = [{"Key": TAG, "Value": environment}]
    limited = {"PermissionsBoundary": boundary} if boundary else {}
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    with asking(f"CreateRole {name}"):
        _unless(
            THERE,
            lambda: iam.create_role(
                RoleName=name,
                Path="/" if is_profile else role.path,
                Description=_mark(environment),
                AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
                Tags=[*tags, {"Key": PROFILE_TAG, "Value": role.name}] if is_profile else tags,
                **limited,
            ),
        )
        iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:{partition}:iam::aws:policy/{policy}")
    if is_profile:
        with asking(f"CreateInstanceProfile {role.name}"):
            if role.state == "gone":
                given = {"InstanceProfileName": role.name, "Path": role.path, "Tags": tags}
                _unless(THERE, lambda: iam.create_instance_profile(**given))
            # LimitExceeded: a profile holds one role, and an earlier run has added it.
            added = {"InstanceProfileName": role.name, "RoleName": name}
            _unless(["LimitExceeded"], lambda: iam.add_role_to_instance_profile(**added))


def stand_ins(iam: Any, environment: str) -> list[str]:
    """Return the names of the roles created for an environment, by their description: listings show no tags."""
    with asking("ListRoles"):
        pages = iam.get_paginator("list_roles").paginate(PaginationConfig={"PageSize": 1000})
        return [
            role["RoleName"]
            for page in pages
            for role in page["Roles"]
            if role.get("Description") == _mark(environment)
        ]


def remove(iam: Any, role: str) -> None:
    """Remove a role that make() has created, and its instance profile if that was created too."""
    with asking(f"DeleteRole {role}"):
        tags = {tag["Key"]: tag["Value"] for tag in iam.list_role_tags(RoleName=role)["Tags"]}
        profiles = iam.list_instance_profiles_for_role(RoleName=role)["InstanceProfiles"]
        for profile in profiles:
            iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=role)
        profile = tags.get(PROFILE_TAG)
        if profile and (found := _profile(iam, profile)) and _whose(found)[0] == "made by unwedge":
            iam.delete_instance_profile(InstanceProfileName=profile)
        for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
        iam.delete_role(RoleName=role)


def _state(iam: Any, kind: Kind, name: str) -> tuple[State, str]:
    try:
        if kind != "instance profile":
            with asking(f"GetRole {name}"):
                role = _unless(GONE, lambda: iam.get_role(RoleName=name)["Role"])
            return ("gone", "") if role is None else _whose(role)
        with asking(f"GetInstanceProfile {name}"):
            profile = _profile(iam, name)
    except CloudRefused as refused:
        return "not known", refused.message
    if profile is None:
        return "gone", ""
    return _whose(profile) if profile["Roles"] else ("without a role", "")


def _profile(iam: Any, name: str) -> dict[str, Any] | None:
    return _unless(GONE, lambda: iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"])


def _whose(found: Mapping[str, Any]) -> tuple[State, str]:
    keys = {tag["Key"] for tag in structures(found, "Tags")}
    return ("made by unwedge" if TAG in keys else "there"), ""


def _unless(codes: Sequence[str], call: Callable[[], Any]) -> Any:
    """Return the result of the call; None where IAM answers with one of these errors."""
    from botocore.exceptions import ClientError

    try:
        return call()
    except ClientError as error:
        answer: Any = error.response
        if structure(answer, "Error").get("Code") not in codes:
            raise
        return None


def _mark(environment: str) -> str:
    return f"accel unwedge: {environment}"


def _stand_in(profile: str) -> str:
    return f"{profile[:56]}-unwedge"  # IAM stops at 64


def _parts(arn: str) -> tuple[str, str]:
    """Return name and path of a role or profile; a bare name has the path /."""
    path, _, name = arn.partition("/")[2].rpartition("/") if arn.startswith("arn:") else ("", "", arn)
    return name, f"/{path}/" if path else "/"
