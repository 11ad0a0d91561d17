"""Permissions that calls need: recorded, and checked against those of the user's token where a test limits it."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .errors import ApiError
from .world import Call, World

_CREATE = ("create", "insert")


@cache
def table() -> Any:
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


@cache
def of_method(method: str) -> tuple[str, ...]:
    """Return the permissions of a method, whatever its body says."""
    service, *_, resource, last = method.split(".")
    verbs = table()["verbs"].get(last, last).split()
    service, resource = table()["services"].get(service, service), table()["resources"].get(resource, resource)
    plain = " ".join(f"{service}.{resource}.{verb}" for verb in verbs)
    text: str = next((text for named, text in table()["methods"] if fnmatchcase(method, named)), plain)
    return tuple(text.format(verb=verbs[-1]).split())


def _has(body: Any, path: list[str]) -> bool:
    if isinstance(body, list):
        return any(_has(each, path) for each in body)
    if not path:
        return bool(body)
    return isinstance(body, dict) and _has(body.get(path[0]), path[1:])


def of_call(call: Call) -> Iterator[str]:
    yield from of_method(call.method.id)
    if not call.body:
        return
    for named, path, text in table()["bodies"]:
        if fnmatchcase(call.method.id, named) and _has(call.body, path.split(".")):
            yield from text.split()


def require(call: Call) -> None:
    """Record what a call needs. Raises ApiError for what the user's token lacks."""
    needs = dict.fromkeys(of_call(call))
    call.world.needed.update(needs)
    for missing in needs.keys() - call.world.allowed if call.world.allowed is not None else ():
        raise _refusal(call, missing)


def _refusal(call: Call, needed: str) -> ApiError:
    """Return a refusal in the words of each API: https://github.com/hashicorp/terraform-provider-google/issues/4825
    (Compute Engine), https://github.com/hashicorp/terraform-provider-google/issues/10567 (GKE), and of others, with the
    details, https://github.com/2i2c-org/infrastructure/issues/488. Some refusals of Resource Manager and Storage name
    no permission there; all of ours do."""
    resource = call.key
    if call.method.verb in _CREATE and isinstance(call.body.get("name"), str) and call.api == "compute":
        resource = f"{resource}/{call.body['name']}"
    if call.api == "compute":
        return ApiError(403, f"Required '{needed}' permission for '{resource}'", "forbidden")
    if call.api == "container":
        return ApiError(403, f'Required "{needed}" permission(s) for "{resource}".', "forbidden")
    host = call.document.host
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "IAM_PERMISSION_DENIED",
        "domain": host,
        "metadata": {"permission": needed, "resource": resource},
    }
    text = f"Permission '{needed}' denied on resource '//{host}/{resource}' (or it may not exist)."
    return ApiError(403, text, "forbidden", details=[info])


def control(world: World, http: str, request: Any) -> Any:
    """Limit the user's token to a set (POST) or lift the limit (DELETE); return what its calls have needed since."""
    if http != "GET":
        world.allowed = frozenset(request["permissions"]) if http == "POST" else None
        world.needed.clear()
    allowed = None if world.allowed is None else sorted(world.allowed)
    return {"permissions": allowed, "recorded": sorted(world.needed)}
