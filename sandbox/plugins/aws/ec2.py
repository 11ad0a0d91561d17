"""Steps of tables/ec2.yaml that one call does not express."""

import zlib
from collections.abc import Iterator
from typing import Any

from ..resource import State
from .cloud import Cloud

_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
_ENDPOINT_LISTS = ("routeTableIds", "subnetIds", "securityGroupIds")
_SOURCES = {  # of a rule inside a group: IpPermission's list and its entry's key
    "cidrBlocks": ("IpRanges", "CidrIp"),
    "ipv6CidrBlocks": ("Ipv6Ranges", "CidrIpv6"),
    "prefixListIds": ("PrefixListIds", "PrefixListId"),
    "securityGroups": ("UserIdGroupPairs", "GroupId"),
}
_Flat = tuple[str, int, int, str, str]


def read_vpc(cloud: Cloud, state: State, old: State) -> State:
    found = cloud.call("describe_vpcs", VpcIds=[state["id"]])["Vpcs"][0]
    for name in ("EnableDnsSupport", "EnableDnsHostnames"):
        attribute = name[:1].lower() + name[1:]
        found[name] = cloud.call("describe_vpc_attribute", VpcId=state["id"], Attribute=attribute)[name]["Value"]
    for name, op, listed, id in (
        ("Group", "describe_security_groups", "SecurityGroups", "GroupId"),
        ("Table", "describe_route_tables", "RouteTables", "RouteTableId"),
        ("Acl", "describe_network_acls", "NetworkAcls", "NetworkAclId"),
    ):
        default = {
            "Group": ("group-name", "default"),
            "Table": ("association.main", "true"),
            "Acl": ("default", "true"),
        }
        filters = [{"Name": "vpc-id", "Values": [state["id"]]}]
        filters += [{"Name": default[name][0], "Values": [default[name][1]]}]
        found[name] = next((entry[id] for entry in cloud.call(op, Filters=filters)[listed]), None)
    return found


def attach_gateway(cloud: Cloud, new: State, old: State) -> None:
    detach_gateway(cloud, {**old, "id": new["id"]}, {})
    if new.get("vpcId"):
        cloud.call("attach_internet_gateway", InternetGatewayId=new["id"], VpcId=new["vpcId"])


def detach_gateway(cloud: Cloud, state: State, old: State) -> None:
    if state.get("vpcId"):
        cloud.call("detach_internet_gateway", InternetGatewayId=state["id"], VpcId=state["vpcId"])


def sync_routes(cloud: Cloud, new: State, old: State) -> None:
    before, after = old.get("routes", []), new.get("routes", [])
    for route in (r for r in before if r not in after):
        keys = {n: route[n] for n in ("cidrBlock", "ipv6CidrBlock", "destinationPrefixListId") if route.get(n)}
        cloud.call("delete_route", RouteTableId=new["id"], **keys)
    for route in (r for r in after if r not in before):
        cloud.call("create_route", RouteTableId=new["id"], **{n: v for n, v in route.items() if v})


def _route(cloud: Cloud, op: str, state: State) -> None:
    sent = {name: value for name, value in state.items() if name != "state" and cloud.spelling(op, name)}
    cloud.call(op, **sent)


def create_route(cloud: Cloud, state: State, old: State) -> State:
    _route(cloud, "create_route", state)
    to = next(state[name] for name in _DESTINATIONS if state.get(name))
    return {"id": f"r-{state['routeTableId']}{zlib.crc32(to.encode())}"}


def replace_route(cloud: Cloud, new: State, old: State) -> None:
    _route(cloud, "replace_route", new)


def delete_route(cloud: Cloud, state: State, old: State) -> None:
    _route(cloud, "delete_route", state)


def read_route(cloud: Cloud, state: State, old: State) -> State | None:
    table, _, to = state["id"].partition("_")  # an import's id; else the state has both
    table, to = state.get("routeTableId", table), to or next(state[n] for n in _DESTINATIONS if state.get(n))
    (found,) = cloud.call("describe_route_tables", RouteTableIds=[table])["RouteTables"]
    keys = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
    return next((route for route in found["Routes"] if to in map(route.get, keys)), None)


def modify_endpoint(cloud: Cloud, new: State, old: State) -> None:
    sent: State = {n: new[n] for n in ("policy", "privateDnsEnabled", "ipAddressType") if new.get(n) != old.get(n)}
    for name in _ENDPOINT_LISTS:
        before, after = set(old.get(name, [])), set(new.get(name, []))
        api = name[:1].upper() + name[1:]
        sent |= {f"Add{api}": sorted(after - before), f"Remove{api}": sorted(before - after)}
    cloud.call("modify_vpc_endpoint", VpcEndpointId=new["id"], **{k: v for k, v in sent.items() if v != []})
    # moto 5.2.1 leaves out the route that a gateway endpoint has in each of its tables, and later misses it.
    by_name = [{"Name": "prefix-list-name", "Values": [new["serviceName"]]}]
    for prefix in cloud.call("describe_managed_prefix_lists", Filters=by_name)["PrefixLists"]:
        to = {"DestinationPrefixListId": prefix["PrefixListId"]}
        for table in sent["AddRouteTableIds"]:
            cloud.call("create_route", RouteTableId=table, GatewayId=new["id"], **to)
        for table in sent["RemoveRouteTableIds"]:
            cloud.call("delete_route", RouteTableId=table, **to)


def create_flow_log(cloud: Cloud, state: State, old: State) -> State:
    kinds = {
        "vpcId": "VPC",
        "subnetId": "Subnet",
        "eniId": "NetworkInterface",
        "transitGatewayId": "TransitGateway",
    }
    source = next(name for name in kinds if state.get(name))
    sent = {name: value for name, value in state.items() if cloud.spelling("create_flow_logs", name)}
    if state.get("tagsAll"):
        pairs = [{"key": key, "value": value} for key, value in state["tagsAll"].items()]
        sent["tagSpecifications"] = [{"resourceType": "vpc-flow-log", "tags": pairs}]
    return cloud.call("create_flow_logs", ResourceIds=[state[source]], ResourceType=kinds[source], **sent)


def read_association(cloud: Cloud, state: State, old: State) -> State:
    subnet = state["subnetId"]
    filters = [{"Name": "association.subnet-id", "Values": [subnet]}]
    tables = cloud.call("describe_route_tables", Filters=filters)["RouteTables"]
    # The table of one subnet lists the associations of all of its subnets.
    listed = [one for table in tables for one in table["Associations"] if one.get("SubnetId") == subnet]
    return listed[0] if listed else {}


def _template(cloud: Cloud, op: str, state: State, **which: str) -> State:
    about = "name namePrefix description region tags tagsAll id __defaults updateDefaultVersion defaultVersion"
    outputs = {"arn", "latestVersion", *about.split()}
    data = {name: value for name, value in state.items() if name not in outputs}
    more = {"VersionDescription": state["description"]} if state.get("description") else {}
    return cloud.call(op, LaunchTemplateData=data, **which, **more)


def create_template(cloud: Cloud, state: State, old: State) -> State:
    return _template(cloud, "create_launch_template", state, LaunchTemplateName=state["name"])


def read_template(cloud: Cloud, state: State, old: State) -> State:
    id = state["id"]
    templates = cloud.call("describe_launch_templates", LaunchTemplateIds=[id])["LaunchTemplates"]
    if not templates:  # moto 5.2.1 answers this where AWS says InvalidLaunchTemplateId.NotFound
        return {}
    found = templates[0]
    listed = cloud.call("describe_launch_template_versions", LaunchTemplateId=id, Versions=["$Latest"])
    (latest,) = listed["LaunchTemplateVersions"]
    about = {"Description": latest.get("VersionDescription")} if "description" in state else {}
    # moto 5.2.1 lists a template without the tags that CreateTags added.
    tags = cloud.call("describe_tags", Filters=[{"Name": "resource-id", "Values": [id]}])["Tags"]
    return {**latest["LaunchTemplateData"], **found, **about, "Tags": tags}


def revise_template(cloud: Cloud, new: State, old: State) -> None:
    made = _template(cloud, "create_launch_template_version", new, LaunchTemplateId=new["id"])
    number = made["LaunchTemplateVersion"]["VersionNumber"]
    default = number if new.get("updateDefaultVersion") else new.get("defaultVersion")
    if default:
        cloud.call("modify_launch_template", LaunchTemplateId=new["id"], DefaultVersion=str(default))


def _of_rules(rules: list[State], group: str) -> Iterator[_Flat]:
    for rule in rules:
        base = (str(rule["protocol"]), rule.get("fromPort", 0), rule.get("toPort", 0))
        for name in _SOURCES:
            yield from ((*base, name, value) for value in rule.get(name) or [])
        if rule.get("self"):
            yield (*base, "securityGroups", group)


def _of_permissions(permissions: list[dict[str, Any]]) -> Iterator[_Flat]:
    for entry in permissions:
        base = (entry["IpProtocol"], max(entry.get("FromPort", 0), 0), max(entry.get("ToPort", 0), 0))
        for name, (listed, key) in _SOURCES.items():
            yield from ((*base, name, source[key]) for source in entry.get(listed, []))


def _change(cloud: Cloud, verb: str, direction: str, group: str, rules: set[_Flat]) -> None:
    made: list[State] = []
    for protocol, low, high, name, value in sorted(rules):
        ports = {} if protocol == "-1" else {"FromPort": low, "ToPort": high}
        listed, key = _SOURCES[name]
        made.append({"IpProtocol": protocol, **ports, listed: [{key: value}]})
    if made:
        cloud.call(f"{verb}_security_group_{direction}", GroupId=group, IpPermissions=made)


def read_group(cloud: Cloud, state: State, old: State) -> State:
    found = cloud.call("describe_security_groups", GroupIds=[state["id"]])["SecurityGroups"][0]
    for direction, listed in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
        now, known = set(_of_permissions(found[listed])), state.get(direction) or []
        found[f"{direction}Now"] = now
        found[direction] = (
            known
            if now == set(_of_rules(known, state["id"]))
            else [
                {"protocol": protocol, "fromPort": low, "toPort": high, name: [value]}
                for protocol, low, high, name, value in sorted(now)
            ]
        )
    return found


def revoke_default(cloud: Cloud, new: State, old: State) -> None:
    """Revoke the rule that lets everything out, which EC2 adds to a new group, as terraform-provider-aws does."""
    if not old:
        _change(cloud, "revoke", "egress", new["id"], read_group(cloud, new, old)["egressNow"])


def sync_rules(cloud: Cloud, new: State, old: State) -> None:
    found = read_group(cloud, new, old)
    for direction in ("ingress", "egress"):
        if direction in new or not old:
            now, wanted = found[f"{direction}Now"], set(_of_rules(new.get(direction) or [], new["id"]))
            _change(cloud, "revoke", direction, new["id"], now - wanted)
            _change(cloud, "authorize", direction, new["id"], wanted - now)
