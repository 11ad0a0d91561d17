"""Permissions of a service account in Cloud Storage: its roles in the project and on the bucket, with their conditions.
A machine's account that this cloud has created calls under its own e-mail, and has what it was granted; the user's
token, and foreign accounts, may do everything. Other APIs do not check."""

import ast
import re
from collections.abc import Iterator
from typing import Any

from accel.catalog.gcp_roles import roles

from . import PROJECT
from .errors import ApiError
from .permissions import of_method
from .world import Call, World

_SIGNS = {"&&": " and ", "||": " or ", "!": " not "}
_TOKEN = re.compile(r'"[^"]*"|&&|\|\||!(?!=)')
_TESTS = {"startsWith": str.startswith, "endsWith": str.endswith}

Need = tuple[str, str, str]
"""Permission, bucket, and an object's name, or "" for the bucket itself."""


def needs(call: Call) -> Iterator[Need]:
    """Yield what a call needs before it is carried out. An upload is checked once its object's name is known, and so is
    the object that a copy creates; a list, whatever its prefix, as the bucket. Sources:
    https://cloud.google.com/storage/docs/access-control/iam-json, https://github.com/lanes-sh/link/pull/100 (list)"""
    path, bucket = call.path, call.path.get("bucket", "")
    match call.method.id:
        case "storage.objects.compose":
            for each in call.body.get("sourceObjects", []):
                yield "storage.objects.get", path["destinationBucket"], each["name"]
        case "storage.objects.rewrite":
            yield "storage.objects.get", path["sourceBucket"], path["sourceObject"]
        case method if method.startswith(("storage.objects.", "storage.buckets.")):
            for permission in of_method(method):
                yield permission, bucket, path.get("object", "")
        case _:
            return


def require(call: Call, permission: str, bucket: str, name: str) -> None:
    """Raise ApiError for what the caller's account lacks. Wording: https://github.com/apache/pinot/pull/11655 (bucket),
    https://github.com/spaceml-org/STARCOP/issues/6 (object)"""
    if not call.account or is_granted(call.world, call.account, permission, bucket, name):
        return
    what = "object" if name else "bucket"
    text = f"{call.account} does not have {permission} access to the Google Cloud Storage {what}."
    text += f" Permission '{permission}' denied on resource (or it may not exist)."
    raise ApiError(403, text, "forbidden")


def is_granted(world: World, email: str, permission: str, bucket: str, name: str) -> bool:
    resource, kind = f"projects/_/buckets/{bucket}", "storage.googleapis.com/Bucket"
    if name:
        resource, kind = f"{resource}/objects/{name}", "storage.googleapis.com/Object"
    policies = [f"cloudresourcemanager/projects/{PROJECT}", f"storage/b/{bucket}"]
    return any(
        f"serviceAccount:{email}" in binding["members"]
        and permission in _permissions(world, binding["role"])
        and holds((binding.get("condition") or {}).get("expression", ""), kind, resource)
        for policy in policies
        for binding in world.policies.get(policy, {}).get("bindings", [])
    )


def _permissions(world: World, role: str) -> frozenset[str]:
    """Return the permissions of a role of the project's own, or of Google's as far as the catalogue names them."""
    if own := world.items.get(f"iam/{role}"):
        return frozenset(own.get("includedPermissions", []))
    return next((each.permissions for each in roles() if each.name == role), frozenset())


def holds(expression: str, kind: str, name: str) -> bool:
    """Return whether a condition holds for a resource; an empty one always does. Reads the part of CEL that conditions
    on names use. Source: https://docs.cloud.google.com/iam/docs/conditions-attribute-reference"""
    if not expression:
        return True
    service = kind.partition("/")[0]
    values = {"resource.type": kind, "resource.name": name, "resource.service": service}

    def value(node: ast.expr) -> Any:
        match node:
            case ast.BoolOp(op=ast.And()):
                return all(value(each) for each in node.values)
            case ast.BoolOp():
                return any(value(each) for each in node.values)
            case ast.UnaryOp(op=ast.Not()):
                return not value(node.operand)
            case ast.Compare(ops=[ast.Eq()], comparators=[other]):
                return value(node.left) == value(other)
            case ast.Compare(ops=[ast.NotEq()], comparators=[other]):
                return value(node.left) != value(other)
            case ast.Call(func=ast.Attribute(value=of, attr=test), args=[argument]) if test in _TESTS:
                return _TESTS[test](value(of), value(argument))
            case ast.Constant(value=str()):
                return node.value
            case ast.Attribute() if (named := ast.unparse(node)) in values:
                return values[named]
            case _:
                raise ApiError(400, f"the sandbox knows no condition {ast.unparse(node)}")

    python = _TOKEN.sub(lambda found: _SIGNS.get(found[0], found[0]), expression)
    return bool(value(ast.parse(python.strip(), mode="eval").body))
