"""Steps of tables/storage.yaml that one call does not express."""

from typing import Any

from botocore.exceptions import ClientError

from ..resource import State
from .cloud import Cloud


def read_logs(cloud: Cloud, state: State, old: State) -> State | None:
    listed = cloud.call("describe_log_groups", logGroupNamePrefix=state["id"])["logGroups"]
    found = next((group for group in listed if group["logGroupName"] == state["id"]), None)
    if found is None:
        return None
    arn = found["arn"].removesuffix(":*")  # terraform-provider-aws trims it like this
    return {**found, "arn": arn, **cloud.call("list_tags_for_resource", resourceArn=arn)}


def retain_logs(cloud: Cloud, new: State, old: State) -> None:
    if new.get("retentionInDays"):
        cloud.call("put_retention_policy", logGroupName=new["id"], retentionInDays=new["retentionInDays"])
    elif old:
        cloud.call("delete_retention_policy", logGroupName=new["id"])


def delete_logs(cloud: Cloud, state: State, old: State) -> None:
    if not state.get("skipDestroy"):
        cloud.call("delete_log_group", logGroupName=state["id"])


def read_repository(cloud: Cloud, state: State, old: State) -> State:
    found = cloud.call("describe_repositories", repositoryNames=[state["id"]])["repositories"][0]
    return {**found, **cloud.call("list_tags_for_resource", resourceArn=found["repositoryArn"])}


def _keys(**named: str | None) -> list[State]:
    return [{"AttributeName": name, "KeyType": kind} for kind, name in named.items() if name]


def _capacity(entry: State) -> State:
    units = {"ReadCapacityUnits": entry.get("readCapacity"), "WriteCapacityUnits": entry.get("writeCapacity")}
    return {"ProvisionedThroughput": units} if entry.get("readCapacity") else {}


def create_table(cloud: Cloud, state: State, old: State) -> State:
    more: State = _capacity(state)
    if state.get("globalSecondaryIndexes"):
        more["GlobalSecondaryIndexes"] = [
            {
                "IndexName": entry["name"],
                "KeySchema": _keys(HASH=entry.get("hashKey"), RANGE=entry.get("rangeKey"))
                + entry.get("keySchemas", []),
                "Projection": {"ProjectionType": entry["projectionType"]},
                **_capacity(entry),
            }
            for entry in state["globalSecondaryIndexes"]
        ]
    if state.get("streamEnabled"):
        more["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": state["streamViewType"]}
    if wanted := state.get("serverSideEncryption"):
        kms = {"SSEType": "KMS", "KMSMasterKeyId": wanted["kmsKeyArn"]} if wanted.get("kmsKeyArn") else {}
        more["SSESpecification"] = {"Enabled": wanted["enabled"], **kms}
    return cloud.call(
        "create_table",
        TableName=state["name"],
        KeySchema=_keys(HASH=state["hashKey"], RANGE=state.get("rangeKey")),
        AttributeDefinitions=[{"AttributeName": a["name"], "AttributeType": a["type"]} for a in state["attributes"]],
        BillingMode=state["billingMode"],
        DeletionProtectionEnabled=state.get("deletionProtectionEnabled", False),
        Tags=state.get("tagsAll") or {},
        **more,
    )


def update_table(cloud: Cloud, new: State, old: State) -> None:
    sent: State = {"BillingMode": new["billingMode"]}
    if new["billingMode"] == "PROVISIONED":
        sent |= _capacity(new)
    protected = new.get("deletionProtectionEnabled", False)
    if protected != old.get("deletionProtectionEnabled", False):
        sent["DeletionProtectionEnabled"] = protected
    cloud.call("update_table", TableName=new["id"], **sent)


def expire_items(cloud: Cloud, new: State, old: State) -> None:
    wanted, before = new.get("ttl") or {}, old.get("ttl") or {}
    spec = {"AttributeName": wanted.get("attributeName") or before.get("attributeName")}
    if bool(wanted.get("enabled")) != bool(before.get("enabled")):
        spec["Enabled"] = bool(wanted.get("enabled"))
        cloud.call("update_time_to_live", TableName=new["id"], TimeToLiveSpecification=spec)


def back_up_table(cloud: Cloud, new: State, old: State) -> None:
    spec = {"PointInTimeRecoveryEnabled": (new.get("pointInTimeRecovery") or {}).get("enabled", False)}
    cloud.call("update_continuous_backups", TableName=new["id"], PointInTimeRecoverySpecification=spec)


def read_table(cloud: Cloud, state: State, old: State) -> State:
    table = state["id"]
    found = cloud.call("describe_table", TableName=table)["Table"]
    keys = {key["KeyType"]: key["AttributeName"] for key in found["KeySchema"]}
    ttl = cloud.call("describe_time_to_live", TableName=table)["TimeToLiveDescription"]
    backups = cloud.call("describe_continuous_backups", TableName=table)["ContinuousBackupsDescription"]
    recovery = backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
    tags = cloud.call("list_tags_of_resource", ResourceArn=found["TableArn"])["Tags"]
    return {
        **{name: found.get(name) for name in ("TableName", "TableArn", "TableStatus", "LatestStreamArn")},
        **({"rangeKey": keys["RANGE"]} if "RANGE" in keys else {}),
        "hashKey": keys["HASH"],
        "attributes": [{"name": a["AttributeName"], "type": a["AttributeType"]} for a in found["AttributeDefinitions"]],
        "billingMode": found.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
        "deletionProtectionEnabled": found.get("DeletionProtectionEnabled", False),
        "ttl": {
            "attributeName": ttl.get("AttributeName", ""),
            "enabled": ttl["TimeToLiveStatus"] == "ENABLED",
        },
        "pointInTimeRecovery": {"enabled": recovery == "ENABLED"},
        "Tags": tags,
    }


def put_parameter(cloud: Cloud, new: State, old: State) -> State:
    names = ("name", "type", "description", "allowedPattern", "dataType", "keyId", "tier")
    sent = {name: new[name] for name in names if name in new}
    value = new["insecureValue"] if "insecureValue" in new else new["value"]
    again = {"Overwrite": True} if old or new.get("overwrite") else {"Tags": new.get("tagsAll") or {}}
    return cloud.call("put_parameter", **sent, Value=value, **again)


def read_parameter(cloud: Cloud, state: State, old: State) -> State:
    name = state["id"]
    found = cloud.call("get_parameter", Name=name, WithDecryption=True)["Parameter"]
    filters = [{"Key": "Name", "Option": "Equals", "Values": [name]}]
    about = cloud.call("describe_parameters", ParameterFilters=filters)["Parameters"]
    tags = cloud.call("list_tags_for_resource", ResourceType="Parameter", ResourceId=name)["TagList"]
    return {**(about[0] if about else {}), **found, "InsecureValue": found["Value"], "Tags": tags}


def delete_secret(cloud: Cloud, state: State, old: State) -> None:
    days = state.get("recoveryWindowInDays", 30)
    how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
    cloud.call("delete_secret", SecretId=state["id"], **how)


def create_bucket(cloud: Cloud, state: State, old: State) -> None:
    more: dict[str, Any] = {"ObjectLockEnabledForBucket": True} if state.get("objectLockEnabled") else {}
    if cloud.region != "us-east-1":  # S3 refuses the constraint of the one region that has none
        more["CreateBucketConfiguration"] = {"LocationConstraint": cloud.region}
    cloud.call("create_bucket", Bucket=state["bucket"], **more)


def read_bucket(cloud: Cloud, state: State, old: State) -> State:
    cloud.call("head_bucket", Bucket=state["id"])
    try:
        return {"Bucket": state["id"], **cloud.call("get_bucket_tagging", Bucket=state["id"])}
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "NoSuchTagSet":
            raise
        return {"Bucket": state["id"]}


def delete_bucket(cloud: Cloud, state: State, old: State) -> None:
    for page in cloud.pages("list_object_versions", Bucket=state["id"]) if state.get("forceDestroy") else ():
        for entry in (*page.get("Versions", []), *page.get("DeleteMarkers", [])):
            cloud.call("delete_object", Bucket=state["id"], Key=entry["Key"], VersionId=entry["VersionId"])
    cloud.call("delete_bucket", Bucket=state["id"])
