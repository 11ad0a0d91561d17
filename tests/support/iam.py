"""What IAM would say of a request under a few policies: as much of its evaluation as those of this project use."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from accel.contract import claims

STACK_TAG = "accel:job-stack"
SERVICES = {"service-quotas": "servicequotas"}


@dataclass(frozen=True)
class Ask:
    """One action on one resource; `context` holds the condition keys that the request brings."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict[str, str])


def allows(documents: Iterable[Mapping[str, Any]], ask: Ask) -> bool:
    """Whether any statement allows it. None of ours denies.
    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html"""
    statements = [one for document in documents for one in document["Statement"]]
    assert {one["Effect"] for one in statements} == {"Allow"}
    return any(
        ask.action in _listed(one["Action"])
        and any(_matches(pattern, ask.resource) for pattern in _listed(one["Resource"]))
        and all(_holds(kind, keys, ask.context) for kind, keys in one.get("Condition", {}).items())
        for one in statements
    )


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _matches(pattern: str, resource: str) -> bool:
    signs = {"*": ".*", "?": "."}
    return re.fullmatch("".join(signs.get(each, re.escape(each)) for each in pattern), resource) is not None


def _holds(kind: str, keys: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    """Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    and .../reference_policies_condition-single-vs-multi-valued-context-keys.html of `ForAllValues`, which holds where
    the request does not bring the key at all. A key has one value here."""
    plain = kind.removeprefix("ForAllValues:").removesuffix("IfExists")

    def holds(key: str, wanted: Any) -> bool:
        if key not in context and plain != "Null" and kind != plain:
            return True
        match plain:
            case "StringEquals" | "Bool":
                return context.get(key) in _listed(wanted)
            case "StringNotLike":
                return not any(_matches(each, context.get(key, "")) for each in _listed(wanted))
            case "Null":
                return (key not in context) == (wanted == "true")
            case _:
                raise AssertionError(f"no condition {kind} here")

    return all(holds(key, wanted) for key, wanted in keys.items())


def asked(
    service: str, operation: str, given: Mapping[str, Any], region: str, account: str, stack: str = ""
) -> list[Ask]:
    """What AWS asks IAM for one request of ours. `stack`: whose mark the jobs carry that it is about."""
    action = f"{SERVICES.get(service, service)}:{operation}"

    def arn(kind: str) -> str:
        return f"arn:aws:{service}:{region}:{account}:{kind}"

    match action:
        case "batch:SubmitJob":
            definition = str(given["jobDefinition"])
            named = definition if definition.startswith("arn:") else arn(f"job-definition/{definition}")
            resources = [given["jobQueue"], named, arn("job/new")]
            tags = {f"aws:RequestTag/{name}": value for name, value in given["tags"].items()}
            return [*(Ask(action, each, tags) for each in resources), Ask("batch:TagResource", arn("job/new"), tags)]
        case "batch:RegisterJobDefinition":
            own, container = arn(f"job-definition/{given['jobDefinitionName']}"), given["containerProperties"]
            passed = {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
            roles = [container["jobRoleArn"], container["executionRoleArn"]]
            return [
                Ask(action, own),
                Ask("batch:TagResource", f"{own}:1"),
                *(Ask("iam:PassRole", role, passed) for role in roles),
            ]
        case "batch:TerminateJob":
            tags = {} if ":" in given["jobId"] else {f"aws:ResourceTag/{STACK_TAG}": stack}
            return [Ask(action, arn(f"job/{given['jobId']}"), tags)]
        case "batch:GetJobQueueSnapshot":
            return [Ask(action, given["jobQueue"])]
        case "logs:GetLogEvents":
            return [Ask(action, arn(f"log-group:{given['logGroupName']}:log-stream:{given['logStreamName']}"))]
        case "logs:FilterLogEvents":
            return [Ask(action, arn(f"log-group:{given['logGroupName']}"))]
        case "ssm:GetParametersByPath":
            return [Ask(action, arn(f"parameter{given['Path']}"))]
        case _ if service == "dynamodb":
            row = given.get("Key") or given.get("Item") or {}
            keys = {"dynamodb:LeadingKeys": row[claims.KEY]["S"]} if claims.KEY in row else {}
            return [Ask(action, arn(f"table/{given['TableName']}"), keys)]
        case _:
            return [Ask(action, "*")]
