"""The IAM roles of a compute environment."""

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

SERVICE_ROLE = rule("aws.roles.custom-service-role")
NOT_A_PROFILE = rule("aws.roles.not-an-instance-profile")
FLEET_ROLE_MISSING = rule("aws.roles.spot-fleet-missing")
FLEET_ROLE_UNUSED = rule("aws.roles.spot-fleet-unused")
FLEET_ROLE_UNTAGGED = rule("aws.roles.spot-fleet-cannot-tag")

SERVICE_LINKED_ROLE = "AWSServiceRoleForBatch"


def roles(
    *,
    kind: str,
    allocation_strategy: str,
    instance_profile: str | None = None,
    service_role: str | None = None,
    spot_fleet_role: str | None = None,
) -> list[Finding]:
    """Check names or ARNs. None is "not given" or "not known yet", for the fleet role always "not given"."""
    found: list[Finding] = []
    if instance_profile and ":role/" in instance_profile:
        profile = instance_profile.replace(":role/", ":instance-profile/")
        message = f'is "{instance_profile}", the ARN of a role'
        fix = f"write the instance profile that holds the role, usually {profile}"
        found.append(NOT_A_PROFILE.finding("instance_profile", message, fix))
    if service_role and service_role.rpartition("/")[2] != SERVICE_LINKED_ROLE:
        message = f'is "{service_role}"; with it, AWS makes no infrastructure update in place'
        fix = f"leave it out, so that AWS uses {SERVICE_LINKED_ROLE}"
        found.append(SERVICE_ROLE.finding("service_role", message, fix))
    return found + _fleet_role(kind, allocation_strategy, spot_fleet_role)


def _fleet_role(kind: str, allocation_strategy: str, role: str | None) -> list[Finding]:
    field, used = "spot_fleet_role", kind == "SPOT" and allocation_strategy == "BEST_FIT"
    if not role:
        fix = "give a role with AmazonEC2SpotFleetTaggingRole, or use SPOT_PRICE_CAPACITY_OPTIMIZED"
        return [FLEET_ROLE_MISSING.finding(field, "is missing, and SPOT with BEST_FIT needs it", fix)] if used else []
    found: list[Finding] = []
    if not used:
        message = f'is "{role}", which {kind} with {allocation_strategy} does not use'
        found.append(FLEET_ROLE_UNUSED.finding(field, message, "leave it out"))
    if role.rpartition("/")[2] == "AmazonEC2SpotFleetRole":
        message = f'is "{role}", whose policy cannot tag the instances'
        fix = "use a role with the policy AmazonEC2SpotFleetTaggingRole"
        found.append(FLEET_ROLE_UNTAGGED.finding(field, message, fix))
    return found
