"""Limits of a newly opened AWS account: a row a limit, refused in AWS's words where they are known. `used` is what a
request would bring the account to. The row refuses it above its default, or above what the control API grants
(service_quotas.py). The quotas of machines are those of accel/catalog/data/quotas.csv."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from .limits import Answer, Refusal, refusal_answer

_VPC = "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html"
_ENDPOINTS = "https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-limits-endpoints.html"
_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
_BATCH = "https://docs.aws.amazon.com/batch/latest/userguide/service_limits.html"
# NAT gateways and addresses: https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html
_MANY = "The maximum number of {} has been reached."

Given = Mapping[str, Any]


class Limit(NamedTuple):
    """One limit. `code` is that of Service Quotas; where none is known, it is ours (`batch/...`, `iam/...`).
    `operations` maps each operation that the limit holds for to the parameter that it looks at."""

    service: str
    code: str
    name: str
    default: int
    source: str
    operations: Mapping[str, str]
    used: Callable[[Any, Given, str], int]
    error: str
    text: str


def _zone(backend: Any, given: Given, parameter: str) -> int:
    zones = {subnet.id: zone for zone, subnets in backend.subnets.items() for subnet in subnets.values()}
    existing = [each for each in backend.nat_gateways.values() if each.state not in ("deleted", "failed")]
    return 1 + sum(zones.get(each.subnet_id) == zones.get(given.get(parameter, "")) for each in existing)


def _endpoints(backend: Any, given: Given, kind: str, vpc: str | None) -> int:
    if (given.get("VpcEndpointType") or "Gateway") != kind:
        return 0
    existing = [each for each in backend.vpc_end_points.values() if each.state != "deleted"]
    return 1 + sum((each.vpc_endpoint_type or "Gateway") == kind and vpc in (None, each.vpc_id) for each in existing)


def _size(text: str) -> int:
    """Count characters as IAM does: without white space."""
    return len("".join(text.split()))


def _role(backend: Any, given: Given) -> Any:
    return next((each for each in backend.roles.values() if each.name == given.get("RoleName")), None)


def _inline(backend: Any, given: Given, parameter: str) -> int:
    role = _role(backend, given)
    others = role.policies.items() if role else ()
    return _size(given[parameter]) + sum(_size(text) for name, text in others if name != given.get("PolicyName"))


def _attached(backend: Any, given: Given, parameter: str) -> int:
    role = _role(backend, given)
    return len({*(role.managed_policies if role else ()), given[parameter]})


def _document(backend: Any, given: Given, parameter: str) -> int:
    return _size(given.get(parameter, ""))


# fmt: off
LIMITS = (
    Limit("vpc", "L-F678F1CE", "VPCs per Region", 5, _VPC, {"CreateVpc": ""},
          lambda backend, given, _: len(backend.vpcs) + 1, "VpcLimitExceeded", _MANY.format("VPCs")),
    Limit("vpc", "L-A4707A72", "Internet gateways per Region", 5, _VPC, {"CreateInternetGateway": ""},
          lambda backend, given, _: len(backend.internet_gateways) + 1,
          "InternetGatewayLimitExceeded", _MANY.format("internet gateways")),
    Limit("vpc", "L-407747CB", "Subnets per VPC", 200, _VPC, {"CreateSubnet": "VpcId"},
          lambda backend, given, vpc: 1 + sum(
              each.vpc_id == given.get(vpc) for zone in backend.subnets.values() for each in zone.values()),
          "SubnetLimitExceeded", _MANY.format("subnets")),
    Limit("ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", 5, _VPC, {"AllocateAddress": ""},
          lambda backend, given, _: len(backend.addresses) + 1, "AddressLimitExceeded", _MANY.format("addresses")),
    Limit("vpc", "L-FE5A380F", "NAT gateways per Availability Zone", 5, _VPC, {"CreateNatGateway": "SubnetId"},
          _zone, "NatGatewayLimitExceeded", "Performing this operation would exceed the limit of {} NAT gateways"),
    Limit("vpc", "L-29B6F2EB", "Interface VPC endpoints per VPC", 50, _ENDPOINTS, {"CreateVpcEndpoint": "VpcId"},
          lambda backend, given, vpc: _endpoints(backend, given, "Interface", given.get(vpc)),
          "VpcEndpointLimitExceeded", _MANY.format("VPC endpoints")),
    Limit("vpc", "L-1B52E74A", "Gateway VPC endpoints per Region", 20, _ENDPOINTS, {"CreateVpcEndpoint": "VpcId"},
          lambda backend, given, _: _endpoints(backend, given, "Gateway", None),
          "VpcEndpointLimitExceeded", _MANY.format("VPC endpoints")),
    # IAM. Words: reports of all four in public repositories; the code is the model's LimitExceeded, with status 409.
    Limit("iam", "iam/policy-size", "Characters of a managed policy", 6144, _IAM,
          dict.fromkeys(("CreatePolicy", "CreatePolicyVersion"), "PolicyDocument"),
          _document, "LimitExceeded", "Cannot exceed quota for PolicySize: {}"),
    Limit("iam", "iam/role-policies-size", "Characters of all inline policies of a role", 10240, _IAM,
          {"PutRolePolicy": "PolicyDocument"},
          _inline, "LimitExceeded", "Maximum policy size of {} bytes exceeded for role {RoleName}"),
    Limit("iam", "iam/trust-policy-size", "Characters of a role's trust policy", 2048, _IAM,
          {"CreateRole": "AssumeRolePolicyDocument", "UpdateAssumeRolePolicy": "PolicyDocument"},
          _document, "LimitExceeded", "Cannot exceed quota for ACLSizePerRole: {}"),
    Limit("iam", "iam/policies-per-role", "Managed policies attached to a role", 10, _IAM,
          {"AttachRolePolicy": "PolicyArn"},
          _attached, "LimitExceeded", "Cannot exceed quota for PoliciesPerRole: {}"),
    # Batch. The figures are AWS's, the words are ours: no report of AWS's answer was found.
    Limit("batch", "batch/environments", "Compute environments", 50, _BATCH, {"CreateComputeEnvironment": ""},
          lambda backend, given, _: len(backend.environments) + 1,
          "ClientException", "The account has reached its limit of {} compute environments."),
    Limit("batch", "batch/queues", "Job queues", 50, _BATCH, {"CreateJobQueue": ""},
          lambda backend, given, _: len(backend.queues) + 1,
          "ClientException", "The account has reached its limit of {} job queues."),
    Limit("batch", "batch/definition-size", "Bytes of a job definition", 24 * 1024, _BATCH,
          {"RegisterJobDefinition": ""}, lambda backend, given, _: len(json.dumps(given).encode()),
          "ClientException", "The job definition is larger than the limit of {} bytes."),
)
# fmt: on
_CALLS = {"vpc": "ec2"}
"""The API that creates what Service Quotas counts under another name."""


def refusal(
    service: str, operation: str, backend: Any, given: Given, granted: Mapping[str, float | None]
) -> Refusal | None:
    for limit in LIMITS:
        if _CALLS.get(limit.service, limit.service) != service or operation not in limit.operations:
            continue
        raised = granted.get(limit.code)
        most = limit.default if raised is None else int(raised)
        if limit.used(backend, given, limit.operations[operation]) > most:
            return Refusal(limit.error, limit.text.format(most, **given))
    return None


def answer(
    service: str, operation: str, region: str, body: bytes, *, account_id: str, granted: Mapping[str, float | None]
) -> Answer | None:
    if service not in ("ec2", "iam"):
        return None
    from moto import backends

    found: Any = backends.get_backend(service)
    given = dict(parse_qsl(body.decode(), keep_blank_values=True))
    own = refusal(service, operation, found[account_id]["aws" if service == "iam" else region], given, granted)
    return own and refusal_answer(service, own)
