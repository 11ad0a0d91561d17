"""Policies on the identities of machines and people, and on their permissions."""

import re
from collections.abc import Iterable, Iterator

from ..guard import ResourcePolicy, Settings, texts
from ..resource import Resource, View

_POLICIES = (
    "aws:iam/policy:Policy",
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/userPolicy:UserPolicy",
    "aws:iam/groupPolicy:GroupPolicy",
)
_ATTACHMENTS = (
    "aws:iam/policyAttachment:PolicyAttachment",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
)
_ROLE = "aws:iam/role:Role"

ANY_RESOURCE = ("*:Describe*", "*:List*", "ecr:GetAuthorizationToken", "servicequotas:Get*", "sts:GetCallerIdentity")
"""Actions that read no data, and for most of which AWS takes no resource. Source:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_batch.html"""
HELD_BY = {"cloudwatch:putmetricdata": "cloudwatch:namespace"}
"""Actions for which AWS takes no resource, and the condition that restricts them instead. Source:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html"""

_ALL_ACTIONS = re.compile(r"([\w-]+:)?[*?]*\*[*?]*")
_ALL_RESOURCES = re.compile(r"(arn:[a-z-]*)?[*?:]*\*[*?:]*")
_FULL_ACCESS = re.compile(r"arn:[a-z-]+:iam::aws:policy/(AdministratorAccess|PowerUserAccess|IAMFullAccess)")


def _allowing(document: View) -> list[View]:
    return [each for each in document.each("Statement") if each.text("Effect") == "Allow"]


def _allowed(resource: Resource) -> list[View]:
    view = resource.view
    documents = [view.document("policy")] if resource.type in _POLICIES else []
    if resource.type == _ROLE:
        documents += [inline.document("policy") for inline in view.each("inlinePolicies")]
    return [statement for document in documents for statement in _allowing(document)]


def _matches(action: str, patterns: Iterable[str]) -> bool:
    """Return whether IAM would match the action with one of the patterns."""
    texts = (re.escape(each).replace(r"\*", ".*").replace(r"\?", ".") for each in patterns)
    return any(re.fullmatch(text, action, re.IGNORECASE) for text in texts)


def _conditions(statement: View) -> dict[str, list[str]]:
    """Return the values that the statement's conditions require, by key in lower case."""
    operators = statement.inside("Condition")
    found: dict[str, list[str]] = {}
    for operator in operators.values:
        if "Not" not in operator and ("Equals" in operator or "Like" in operator):
            keys = operators.inside(operator)
            found |= {key.lower(): keys.texts(key) for key in keys.values}
    return found


def _wildcards(resource: Resource, settings: Settings) -> Iterator[str]:
    for path in ("managedPolicyArns", "policyArn"):
        for arn in resource.view.texts(path):
            if _FULL_ACCESS.fullmatch(arn):
                yield f"{path} has {arn}"
    for statement in _allowed(resource):
        for field in ("NotAction", "NotResource"):
            if statement.at(field) is not None:
                yield f"{statement.path(field)} allows all but what it names"
        actions = statement.texts("Action")
        yield from (f"{statement.path('Action')} has {each}" for each in actions if _ALL_ACTIONS.fullmatch(each))
        if any(_ALL_RESOURCES.fullmatch(each) for each in statement.texts("Resource")):
            held = _conditions(statement)
            more = [
                each
                for each in actions
                if not _matches(each, settings["any_resource"]) and HELD_BY.get(each.lower()) not in held
            ]
            if more:
                yield f'{statement.path("Resource")} is "*" for {", ".join(more)}'


WILDCARDS = ResourcePolicy(
    id="no-wildcard-iam",
    severity="critical",
    summary="IAM policies name their actions, and the resources of what does not only look",
    fix="name the actions and the ARNs",
    source="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
    also=(
        "CKV_AWS_62",
        "CKV_AWS_63",
        "CKV_AWS_274",
        "CKV_AWS_287",
        "CKV_AWS_288",
        "CKV_AWS_289",
        "CKV_AWS_290",
        "CKV_AWS_355",
    ),
    settings={"any_resource": texts(ANY_RESOURCE, "actions, * for any text, that may be allowed on every resource")},
    types=(*_POLICIES, *_ATTACHMENTS, _ROLE),
    check=_wildcards,
)

_ROLE_ARN = re.compile(r"arn:[a-z-]+:iam::\d{12}:role/[^*?]+")
_SERVICE = "iam:passedtoservice"


def _pass_role(resource: Resource, _: Settings) -> Iterator[str]:
    for statement in _allowed(resource):
        if not _matches("iam:PassRole", statement.texts("Action")):
            continue
        for arn in statement.texts("Resource"):
            if not _ROLE_ARN.fullmatch(arn):
                yield f"{statement.path('Resource')} lets {arn} be passed"
        services = _conditions(statement).get(_SERVICE, [])
        if not services or "*" in services:
            yield f"{statement.path('Condition')} names no service that the role is passed to (iam:PassedToService)"


PASS_ROLE = ResourcePolicy(
    id="pass-role-by-arn",
    severity="critical",
    summary="Roles that may be passed on are named by their ARNs, with the service that they are for",
    fix="name the ARN of each role, and the service under iam:PassedToService",
    source="https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html",
    also=("CKV_AWS_286",),
    types=(*_POLICIES, _ROLE),
    check=_pass_role,
)


def _open_trust(resource: Resource, _: Settings) -> Iterator[str]:
    for statement in _allowing(resource.view.document("assumeRolePolicy")):
        principal = statement.at("Principal")
        named = statement.texts("Principal") if isinstance(principal, str) else statement.texts("Principal.AWS")
        if "*" in named and not _conditions(statement):
            yield f"{statement.path('Principal')} is *, without a condition: every account may take the role"


OPEN_TRUST = ResourcePolicy(
    id="no-open-trust",
    severity="critical",
    summary="Roles can be taken by whom they name, and not by everybody",
    fix="name the service, the account or the role that may take it",
    source="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html",
    also=("CKV_AWS_60", "CKV_AWS_61"),
    types=(_ROLE,),
    check=_open_trust,
)

_BASIC = ("roles/owner", "roles/editor")


def _basic_roles(resource: Resource, _: Settings) -> Iterator[str]:
    role = resource.view.text("role")
    if role in _BASIC:
        yield f"role is {role}"


BASIC_ROLES = ResourcePolicy(
    id="no-basic-roles",
    severity="critical",
    summary="Nobody is given the owner's or the editor's role of a project, folder or organization",
    fix="give the roles of the services that are used",
    source="https://docs.cloud.google.com/iam/docs/roles-overview#basic",
    also=("CKV_GCP_117",),
    types=tuple(
        f"gcp:{scope}/iAM{kind}:IAM{kind}"
        for scope in ("projects", "folder", "organizations")
        for kind in ("Member", "Binding")
    ),
    check=_basic_roles,
)

_DEFAULT_ACCOUNT = re.compile(r"default|\d+-compute@developer\.gserviceaccount\.com")
_ACCOUNT_AT = {
    "gcp:container/nodePool:NodePool": "nodeConfig.serviceAccount",
    "gcp:compute/instance:Instance": "serviceAccount.email",
    "gcp:compute/instanceTemplate:InstanceTemplate": "serviceAccount.email",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": "serviceAccount.email",
    "gcp:tpu/v2Vm:V2Vm": "serviceAccount.email",
}


def _default_account(resource: Resource, _: Settings) -> Iterator[str]:
    path = _ACCOUNT_AT[resource.type]
    account = resource.view.text(path)
    if not account:
        yield f"{path} is not set, and Google takes the project's default account"
    elif _DEFAULT_ACCOUNT.fullmatch(account):
        yield f"{path} is {account}, the project's default account"


DEFAULT_ACCOUNT = ResourcePolicy(
    id="no-default-service-account",
    severity="high",
    summary="Google machines run as an account of their own",
    fix="name a service account that has only the roles that the machines need",
    source="https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account",
    also=("CKV_GCP_30", "CKV_GCP_31"),
    types=tuple(_ACCOUNT_AT),
    check=_default_account,
)

POLICIES = (WILDCARDS, PASS_ROLE, OPEN_TRUST, BASIC_ROLES, DEFAULT_ACCOUNT)
