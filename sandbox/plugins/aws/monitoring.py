"""Steps of tables/monitoring.yaml that one call does not express."""

import io
import json
import zipfile
from typing import Any

from ..mapping import plain
from ..resource import State
from .cloud import Cloud

_TRANSFORMATION = {"metricName": "name", "metricNamespace": "namespace", "metricValue": "value"}


def read_rule(cloud: Cloud, state: State, old: State) -> State:
    found = cloud.call("describe_rule", Name=state["id"])
    return {**found, **cloud.call("list_tags_for_resource", ResourceARN=found["Arn"])}


def read_target(cloud: Cloud, state: State, old: State) -> State | None:
    targets = cloud.call("list_targets_by_rule", Rule=state["rule"])["Targets"]
    return next((target for target in targets if target["Id"] == state["targetId"]), None)


def put_alarm(cloud: Cloud, new: State, old: State) -> None:
    sent = {name: value for name, value in new.items() if cloud.spelling("put_metric_alarm", name)}
    sent.pop("tags", None)  # accepted for a new alarm only; tag_resource sets them
    if "dimensions" in new:
        sent["dimensions"] = [{"Name": name, "Value": value} for name, value in new["dimensions"].items()]
    cloud.call("put_metric_alarm", **sent)


def read_alarm(cloud: Cloud, state: State, old: State) -> State | None:
    alarms = cloud.call("describe_alarms", AlarmNames=[state["id"]])["MetricAlarms"]
    if not alarms:
        return None
    (found,) = alarms
    dimensions = {one["Name"]: one["Value"] for one in found.get("Dimensions", [])}
    tags = cloud.call("list_tags_for_resource", ResourceARN=found["AlarmArn"])["Tags"]
    return {**found, "Threshold": plain(found.get("Threshold")), "Dimensions": dimensions, "Tags": tags}


def put_filter(cloud: Cloud, new: State, old: State) -> None:
    if old:
        # On AWS a put replaces; moto would keep both.
        cloud.call("delete_metric_filter", filterName=old["name"], logGroupName=old["logGroupName"])
    given = new["metricTransformation"]
    sent: dict[str, Any] = {api: given[name] for api, name in _TRANSFORMATION.items()}
    sent |= {name: given[name] for name in ("dimensions", "unit", "defaultValue") if name in given}
    cloud.call(
        "put_metric_filter",
        filterName=new["name"],
        filterPattern=new["pattern"],
        logGroupName=new["logGroupName"],
        metricTransformations=[sent],
    )


def read_filter(cloud: Cloud, state: State, old: State) -> State | None:
    group = {"logGroupName": state["logGroupName"]} if "logGroupName" in state else {}
    listed = cloud.call("describe_metric_filters", filterNamePrefix=state["id"], **group)["metricFilters"]
    found = next((one for one in listed if one["filterName"] == state["id"]), None)
    if found is None:
        return None
    (sent,) = found["metricTransformations"]
    return {
        "name": found["filterName"],
        "pattern": found["filterPattern"],
        "logGroupName": found["logGroupName"],
        "metricTransformation": {_TRANSFORMATION.get(name, name): value for name, value in sent.items()},
    }


def read_log_policy(cloud: Cloud, state: State, old: State) -> State | None:
    of = {"resourceArn": state["id"], "policyScope": "RESOURCE"} if state["id"].startswith("arn:") else {}
    listed = cloud.call("describe_resource_policies", **of)["resourcePolicies"]
    return next((policy for policy in listed if state["id"] in (policy.get("policyName"), *of.values())), None)


def _log_policy(cloud: Cloud, state: State) -> State:
    """Return the parameters that identify a policy; one of a log group has its last revision."""
    if not state["id"].startswith("arn:"):
        return {"policyName": state["id"]}
    found = read_log_policy(cloud, state, {}) or {}
    return {"resourceArn": state["id"], "expectedRevisionId": found.get("revisionId")}


def update_log_policy(cloud: Cloud, new: State, old: State) -> None:
    cloud.call("put_resource_policy", policyDocument=new["policyDocument"], **_log_policy(cloud, new))


def delete_log_policy(cloud: Cloud, state: State, old: State) -> None:
    cloud.call("delete_resource_policy", **_log_policy(cloud, state))


_ATTRIBUTES = {"displayName": "DisplayName", "kmsMasterKeyId": "KmsMasterKeyId"}


def create_topic(cloud: Cloud, state: State, old: State) -> State:
    attributes = {api: state[name] for name, api in _ATTRIBUTES.items() if name in state}
    return cloud.call("create_topic", Name=state["name"], Attributes=attributes)


def read_topic(cloud: Cloud, state: State, old: State) -> State:
    found = cloud.call("get_topic_attributes", TopicArn=state["id"])["Attributes"]
    tags = cloud.call("list_tags_for_resource", ResourceArn=state["id"])["Tags"]
    return {**found, "Name": state["id"].rpartition(":")[2], "Tags": tags}


def update_topic(cloud: Cloud, new: State, old: State) -> None:
    for name, api in _ATTRIBUTES.items():
        if new.get(name) != old.get(name):
            value = new.get(name, "")
            cloud.call("set_topic_attributes", TopicArn=new["id"], AttributeName=api, AttributeValue=value)


def default_policy(cloud: Cloud, state: State, old: State) -> None:
    """Restore SNS's policy for a new topic: its own account alone."""
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["SNS:Subscribe", "SNS:Publish"],
        "Resource": state["arn"],
        "Condition": {"StringEquals": {"AWS:SourceOwner": cloud.account.number}},
    }
    document = json.dumps({"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]})
    cloud.call("set_topic_attributes", TopicArn=state["arn"], AttributeName="Policy", AttributeValue=document)


def raw_delivery(cloud: Cloud, new: State, old: State) -> None:
    value = "true" if new["rawMessageDelivery"] else "false"
    call = {"SubscriptionArn": new["id"], "AttributeName": "RawMessageDelivery", "AttributeValue": value}
    cloud.call("set_subscription_attributes", **call)


_FUNCTION = ("description", "handler", "role", "runtime", "timeout", "memorySize", "environment", "loggingConfig")


def _zipped(code: State) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, asset in sorted(code["assets"].items()):
            archive.writestr(zipfile.ZipInfo(path), asset["text"])
    return packed.getvalue()


def create_function(cloud: Cloud, new: State, old: State) -> State:
    sent = {name: new[name] for name in (*_FUNCTION, "tags") if name in new}
    made = cloud.call("create_function", FunctionName=new["name"], Code={"ZipFile": _zipped(new["code"])}, **sent)
    limit_runs(cloud, new, old)
    return made


def update_code(cloud: Cloud, new: State, old: State) -> None:
    cloud.call("update_function_code", FunctionName=new["name"], ZipFile=_zipped(new["code"]))


def update_function(cloud: Cloud, new: State, old: State) -> None:
    sent = {name: new[name] for name in _FUNCTION if name in new}
    cloud.call("update_function_configuration", FunctionName=new["name"], **sent)


def limit_runs(cloud: Cloud, new: State, old: State) -> None:
    runs = new.get("reservedConcurrentExecutions", -1)
    if runs >= 0:
        call = {"FunctionName": new["name"], "ReservedConcurrentExecutions": runs}
        cloud.call("put_function_concurrency", **call)
    elif old.get("reservedConcurrentExecutions", -1) >= 0:
        cloud.call("delete_function_concurrency", FunctionName=new["name"])


def add_permission(cloud: Cloud, new: State, old: State) -> None:
    allowed = {"Action": new["action"], "Principal": new["principal"]}
    source = {"SourceArn": new["sourceArn"]} if "sourceArn" in new else {}
    cloud.call("add_permission", FunctionName=new["function"], StatementId=new["statementId"], **allowed, **source)


def read_permission(cloud: Cloud, state: State, old: State) -> State | None:
    policy = json.loads(cloud.call("get_policy", FunctionName=state["function"])["Policy"])
    return next(({"StatementId": one["Sid"]} for one in policy["Statement"] if one["Sid"] == state["id"]), None)
