"""Whether a role allows a request: its own and its attached policies, by actions and resources.

Not done: conditions, which are taken as met, boundaries, and policies of the resource and of the organisation. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

import json
import re
from typing import Any


def denied(iam: Any, role_arn: str, action: str, resource: str) -> str | None:
    """Return what AWS answers where the role does not allow it; None where it does, and where there is no such role."""
    from moto.iam.exceptions import NotFoundException

    try:
        role = iam.get_role_by_arn(role_arn)
    except NotFoundException:
        return None
    documents = [*role.policies.values(), *(policy.document for policy in role.managed_policies.values())]
    effects = {
        statement["Effect"]
        for document in documents
        for statement in _listed(json.loads(document)["Statement"])
        if matches(statement.get("Action", []), action, re.IGNORECASE)
        and matches(statement.get("Resource", []), resource)
    }
    if effects == {"Allow"}:
        return None
    why = "with an explicit deny" if effects else f"because no identity-based policy allows the {action} action"
    user = role_arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")
    return f"AccessDeniedException: User: {user} is not authorized to perform: {action} on resource: {resource} {why}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def matches(patterns: Any, text: str, flags: int = 0) -> bool:
    """Whether a text is one of a policy's patterns, of which there may be one or a list."""
    signs = {"*": ".*", "?": "."}
    return any(
        re.fullmatch("".join(signs.get(each, re.escape(each)) for each in str(pattern)), text, flags)
        for pattern in _listed(patterns)
    )
