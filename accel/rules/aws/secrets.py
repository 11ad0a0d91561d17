"""Sources of container variables on AWS: secrets of Secrets Manager, parameters of Systems Manager."""

import re
from collections.abc import Mapping

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

REFERENCE = rule("aws.secrets.reference")

SECRETS, PARAMETERS = "secretsmanager:GetSecretValue", "ssm:GetParameters"
"""Calls with which the ECS agent reads them. Source:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_execution_IAM_role.html"""

_PARTS = {"secretsmanager": (7, 10), "ssm": (6, 7)}
"""Number of parts in a reference: to a whole secret or parameter, and to a part or version of it."""
_SUFFIX = re.compile(r"-[A-Za-z0-9]{6}")
ANY_SUFFIX = "-??????"
"""Wildcard for the characters that Secrets Manager appends to a name to make the ARN. Source:
https://docs.aws.amazon.com/secretsmanager/latest/userguide/auth-and-access_iam-policies.html"""


def references(by_field: Mapping[str, str]) -> list[Finding]:
    """Check references by field; one that is not an ARN is the name of a parameter."""
    found: list[Finding] = []
    for field, value in by_field.items():
        if not value.startswith("arn:"):
            continue
        parts = value.split(":")
        if parts[2] not in _PARTS:
            message, fix = f'is "{value}", which is neither a secret nor a parameter', "write the ARN of one of them"
            found.append(REFERENCE.finding(field, message, fix))
        elif len(parts) not in _PARTS[parts[2]]:
            message = f'is "{value}", whose end is no :<JSON key>:<stage>:<version>'
            fix = f"write {':'.join(parts[:7])}:<JSON key>::, with all three colons"
            found.append(REFERENCE.finding(field, message, fix))
    return found


def readable(arn: str) -> tuple[str, str]:
    """Return the action that reads it, and the ARN that IAM checks, which is never a part of a secret."""
    parts = arn.split(":")
    if parts[2] != "secretsmanager":
        return PARAMETERS, ":".join(parts[:6])
    own = ":".join(parts[:7])
    return SECRETS, own if _SUFFIX.fullmatch(own[-7:]) else f"{own}{ANY_SUFFIX}"
