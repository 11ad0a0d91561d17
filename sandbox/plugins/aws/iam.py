"""Steps of tables/iam.yaml that one call does not express."""

from ..resource import State
from .cloud import Cloud

_VERSIONS = 5  # that IAM keeps of a policy


def inline_policies(cloud: Cloud, new: State, old: State) -> None:
    before, after = ({p["name"]: p["policy"] for p in s.get("inlinePolicies", []) if p} for s in (old, new))
    for name in before.keys() - after.keys():
        cloud.call("delete_role_policy", RoleName=new["id"], PolicyName=name)
    for name, policy in after.items():
        cloud.call("put_role_policy", RoleName=new["id"], PolicyName=name, PolicyDocument=policy)


def managed_policies(cloud: Cloud, new: State, old: State) -> None:
    before, after = (set(side.get("managedPolicyArns", [])) for side in (old, new))
    for arn in before - after:
        cloud.call("detach_role_policy", RoleName=new["id"], PolicyArn=arn)
    for arn in after - before:
        cloud.call("attach_role_policy", RoleName=new["id"], PolicyArn=arn)


def strip_role(cloud: Cloud, state: State, old: State) -> None:
    """Remove what the stack attached to the role, or everything where forced to, as terraform-provider-aws does."""
    if state.get("forceDetachPolicies"):
        attached = cloud.call("list_attached_role_policies", RoleName=state["id"])["AttachedPolicies"]
        inline = cloud.call("list_role_policies", RoleName=state["id"])["PolicyNames"]
        state["managedPolicyArns"] = [policy["PolicyArn"] for policy in attached]
        state["inlinePolicies"] = [{"name": name, "policy": ""} for name in inline]
    managed_policies(cloud, {"id": state["id"]}, state)
    inline_policies(cloud, {"id": state["id"]}, state)


def fill_profile(cloud: Cloud, new: State, old: State) -> None:
    if old.get("role"):
        empty_profile(cloud, old, {})
    if new.get("role"):
        cloud.call("add_role_to_instance_profile", InstanceProfileName=new["id"], RoleName=new["role"])


def empty_profile(cloud: Cloud, state: State, old: State) -> None:
    if state.get("role"):
        profile, role = state["id"], state["role"]
        cloud.call("remove_role_from_instance_profile", InstanceProfileName=profile, RoleName=role)


def read_attachment(cloud: Cloud, state: State, old: State) -> State | None:
    role, _, arn = state["id"].partition("/")
    role, arn = state.get("role", role), state.get("policyArn", arn)
    listed = cloud.call("list_attached_role_policies", RoleName=role)["AttachedPolicies"]
    return next(({"Role": role, **policy} for policy in listed if policy["PolicyArn"] == arn), None)


def read_policy(cloud: Cloud, state: State, old: State) -> State:
    found = cloud.call("get_policy", PolicyArn=state["id"])["Policy"]
    version = cloud.call("get_policy_version", PolicyArn=state["id"], VersionId=found["DefaultVersionId"])
    return {**found, "PolicyDocument": version["PolicyVersion"]["Document"]}


def revise_policy(cloud: Cloud, new: State, old: State) -> None:
    drop_versions(cloud, new, {}, keep=_VERSIONS - 1)
    cloud.call("create_policy_version", PolicyArn=new["id"], PolicyDocument=new["policy"], SetAsDefault=True)


def drop_versions(cloud: Cloud, state: State, old: State, keep: int = 1) -> None:
    versions = cloud.call("list_policy_versions", PolicyArn=state["id"])["Versions"]
    spare = sorted((v for v in versions if not v["IsDefaultVersion"]), key=lambda v: int(v["VersionId"][1:]))
    for version in spare[: max(0, len(versions) - keep)]:
        cloud.call("delete_policy_version", PolicyArn=state["id"], VersionId=version["VersionId"])
