"""Existing AWS resources that an environment refers to: subnets, security groups and roles, as the account has them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

MISSING = rule("aws.existing.missing")
OTHER_VPC = rule("aws.existing.vpc")
NO_WAY_OUT = rule("aws.existing.egress")
CLOSED_GROUP = rule("aws.existing.security-group")
NO_ADDRESS = rule("aws.existing.addresses")
NOT_OFFERED = rule("aws.existing.zone-offer")
ROLE_TRUST = rule("aws.existing.role-trust")
ROLE_ACTIONS = rule("aws.existing.role-actions")

HTTPS, NFS = 443, 2049


@dataclass(frozen=True, slots=True)
class SubnetFacts:
    """A subnet as described by EC2. `default_route` is the target of its default route, "" for none; `endpoints` are
    the services with a VPC endpoint reachable from there, by the end of their names."""

    vpc: str
    zone: str
    free_addresses: int
    public_addresses: bool
    default_route: str
    endpoints: frozenset[str]


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A security group: its VPC, and the TCP ports that its egress rules allow, as ranges."""

    vpc: str
    egress: tuple[range, ...]


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """An IAM role. `trusted` says whether the service may assume it, `lacking` lists the required actions that no
    policy of the role allows; it is also empty if the policies may not be read."""

    exists: bool
    trusted: bool = True
    lacking: tuple[str, ...] = ()


def vpc(field: str, wanted: str, known: Collection[str]) -> list[Finding]:
    if wanted in known:
        return []
    return [MISSING.finding(field, f'is "{wanted}", which is not there', _WHERE)]


_WHERE = "check the id, the region, and whose credentials these are"


def subnets(
    fields: Mapping[str, str], known: Mapping[str, SubnetFacts], vpc_id: str | None, services: Sequence[str]
) -> list[Finding]:
    """Check `fields` by subnet id. `services`: what instances reach (`ecr.api`). `vpc_id` None: that of the first."""
    found: list[Finding] = []
    for subnet, field in fields.items():
        facts = known.get(subnet)
        if facts is None:
            found.append(MISSING.finding(field, f'is "{subnet}", which is not there', _WHERE))
            continue
        vpc_id = vpc_id or facts.vpc
        if facts.vpc != vpc_id:
            found.append(OTHER_VPC.finding(field, f'is "{subnet}" of {facts.vpc}', f"name subnets of {vpc_id}"))
        if facts.free_addresses < 1:
            fix = "use a larger subnet, or delete network interfaces that nothing uses"
            found.append(NO_ADDRESS.finding(field, f'is "{subnet}", which has no free address', fix))
        found += _way_out(field, subnet, facts, services)
    return found


def _way_out(field: str, subnet: str, facts: SubnetFacts, services: Sequence[str]) -> list[Finding]:
    gateway = facts.default_route.startswith("igw-")
    if facts.default_route and (not gateway or facts.public_addresses):
        return []
    missing = [service for service in services if service not in facts.endpoints]
    if not missing:
        return []
    why = (
        f"whose default route is {facts.default_route}, and instances there get no public address"
        if gateway
        else "which has no default route"
    )
    message = f'is "{subnet}", {why}; no VPC endpoint leads to {", ".join(missing)}'
    return [NO_WAY_OUT.finding(field, message, "add a NAT gateway or these endpoints, or use another subnet")]


def groups(
    fields: Mapping[str, str], known: Mapping[str, GroupFacts], vpc_id: str | None, ports: Mapping[int, str]
) -> list[Finding]:
    """Check groups, `fields` by id. `ports`: TCP ports that one of them has to allow outbound, with the purpose."""
    found: list[Finding] = []
    for group, field in fields.items():
        facts = known.get(group)
        if facts is None:
            found.append(MISSING.finding(field, f'is "{group}", which is not there', _WHERE))
        elif vpc_id and facts.vpc != vpc_id:
            found.append(OTHER_VPC.finding(field, f'is "{group}" of {facts.vpc}', f"name groups of {vpc_id}"))
    there = [known[group] for group in fields if group in known]
    for port, purpose in ports.items() if there else ():
        if not any(port in opening for facts in there for opening in facts.egress):
            message = f"is {', '.join(fields)}, and none lets out TCP port {port}, which {purpose} needs"
            fix = f"allow outgoing TCP {port} in one of the groups"
            found.append(CLOSED_GROUP.finding(next(iter(fields.values())), message, fix))
    return found


def offers(zones: Collection[str], offered: Collection[str]) -> list[Finding]:
    if set(zones) & set(offered):
        return []
    fix = f"use subnets in {', '.join(sorted(offered))}" if offered else "use other instance types, or another region"
    message = f"are not offered in {', '.join(sorted(zones))}, where the subnets are"
    return [NOT_OFFERED.finding("instance_types", message, fix)]


def role(field: str, name: str, facts: RoleFacts, service: str) -> list[Finding]:
    if not facts.exists:
        return [MISSING.finding(field, f'is "{name}", which is not there', "check the name and the account")]
    found: list[Finding] = []
    if not facts.trusted:
        message = f'is "{name}", whose trust policy does not name {service}'
        found.append(ROLE_TRUST.finding(field, message, f"let {service} assume it, or leave it out"))
    if facts.lacking:
        message = f'is "{name}", and no policy of it allows {", ".join(facts.lacking)}'
        found.append(ROLE_ACTIONS.finding(field, message, "attach a policy that does, or leave it out"))
    return found
