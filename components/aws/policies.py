"""IAM policy documents as plain values."""

from collections.abc import Mapping
from typing import Any

import pulumi

Statement = Mapping[str, Any]


def document(*statements: Statement) -> pulumi.Output[str]:
    """Return a policy document; the statements may hold outputs."""
    return pulumi.Output.json_dumps({"Version": "2012-10-17", "Statement": [dict(one) for one in statements]})


def allow(actions: list[str], resources: Any, **rest: Any) -> Statement:
    return {"Effect": "Allow", "Action": actions, "Resource": resources, **rest}


def trust_policy(service: str, condition: Any = None) -> pulumi.Output[str]:
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": service},
    }
    if condition is not None:
        statement["Condition"] = condition
    return document(statement)
