"""Health of compute environments: Batch checks it after it has answered, and again later."""

from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.iam.exceptions import NotFoundException

from .state import Batch, Document, Environment, short

LINKED_ROLE = "/aws-service-role/"
# https://github.com/hashicorp/terraform-provider-aws/pull/21281
NOT_ASSUMED = (
    "CLIENT_ERROR - User: batch.amazonaws.com is not authorized to perform: sts:AssumeRole on resource: {} "
    "(Service: AWSSecurityTokenService; Status Code: 403; Error Code: AccessDenied)"
)


def _service_role(batch: Batch, document: Document) -> Any:
    """Return None for the service-linked role. Raise NotFoundException for one that IAM lacks."""
    role = document["serviceRole"]
    return None if LINKED_ROLE in role else batch.iam_backend.get_role(short(role))


def paralysis(batch: Batch, environment: Environment) -> str | None:
    """Return what keeps Batch from any operation on the environment, deletion included."""
    if reason := batch.world.invalid.get(environment.name):
        return reason
    try:
        role = _service_role(batch, environment.document)
    except NotFoundException:
        role = None
    else:
        if role is None or "batch.amazonaws.com" in role.assume_role_policy_document:
            return None
    return NOT_ASSUMED.format(environment.document["serviceRole"])


def lacks_policies(batch: Batch, environment: Environment) -> bool:
    """Return whether the service role has no policy at all. The sandbox does not read the policies."""
    role = _service_role(batch, environment.document)
    return role is not None and not (role.managed_policies or role.policies)


def fault(batch: Batch, environment: Environment) -> str | None:
    """Return what keeps the environment from being VALID."""
    if reason := paralysis(batch, environment):
        return reason
    resources = environment.document["computeResources"]
    ec2: Any = batch.ec2_backend
    iam, profile = batch.iam_backend, resources["instanceRole"]
    try:
        get = iam.get_instance_profile_by_arn if profile.startswith("arn:") else iam.get_instance_profile
        get(profile)
    except NotFoundException:
        return f"CLIENT_ERROR - Invalid IamInstanceProfile: {profile}"
    try:
        for subnet in resources["subnets"]:
            ec2.get_subnet(subnet)
        if template := resources.get("launchTemplate"):
            by_id = "launchTemplateId" in template
            get = ec2.get_launch_template if by_id else ec2.get_launch_template_by_name
            found = get(template["launchTemplateId" if by_id else "launchTemplateName"])
            version = template.get("version") or "$Default"
            if version.isdigit() and not 0 < int(version) <= len(found.versions):
                return f"CLIENT_ERROR - Could not find launch template version {version}"
    except EC2ClientError as error:
        return f"CLIENT_ERROR - {error.message}"
    for group in resources.get("securityGroupIds", []):
        if ec2.get_security_group_from_id(group) is None:
            return f"CLIENT_ERROR - The security group '{group}' does not exist"
    return None


def look(batch: Batch, environment: Environment) -> None:
    found = fault(batch, environment)
    environment.document["status"] = "INVALID" if found else "VALID"
    environment.document["statusReason"] = found or "ComputeEnvironment Healthy"


def look_again(batch: Batch) -> None:
    """Turn environments that lost their role, profile or network INVALID, until an update."""
    for environment in batch.environments.values():
        if environment.document["status"] == "VALID":
            look(batch, environment)
