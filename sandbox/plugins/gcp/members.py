"""One member of one role of a policy: read, changed and written back."""

from typing import Any

from ..resource import State
from .life import Kind, formatted
from .rest import Google, GoogleError, Json

_RETRIES = 8


def _policy_of(kind: Kind, state: State) -> tuple[str, str, str]:
    """API, and the paths of reading and writing a policy."""
    at = formatted(kind.path, state)
    return (kind.api, f"{at}/iam", f"{at}/iam") if kind.api == "storage" else (
        kind.api, f"{at}:getIamPolicy", f"{at}:setIamPolicy",
    )  # fmt: skip


def _policy(google: Google, kind: Kind, state: State) -> Json:
    api, reading, _ = _policy_of(kind, state)
    wanted = {"options": {"requestedPolicyVersion": 3}}
    if api == "storage":
        return google.call("GET", api, reading, optionsRequestedPolicyVersion=3)
    if api == "cloudresourcemanager":
        return google.call("POST", api, reading, wanted)
    return google.call("POST" if api == "iam" else "GET", api, reading, **{"options.requestedPolicyVersion": 3})


def _is_ours(binding: Json, state: State) -> bool:
    return binding["role"] == state["role"] and binding.get("condition") == (state.get("condition") or None)


def _edit(google: Google, kind: Kind, state: State, add: bool) -> Json:
    """Read, change and write; again where another was faster."""
    for attempt in range(_RETRIES):
        policy = _policy(google, kind, state)
        bindings = policy.get("bindings", [])
        ours = next((binding for binding in bindings if _is_ours(binding, state)), None)
        members = {*(ours or {}).get("members", [])}
        if (state["member"] in members) == add:
            return policy
        members ^= {state["member"]}
        condition = {"condition": state["condition"]} if state.get("condition") else {}
        changed = {"role": state["role"], "members": sorted(members), **condition}
        policy["bindings"] = [b for b in bindings if b is not ours] + ([changed] if members else [])
        policy["version"] = 3 if any("condition" in b for b in policy["bindings"]) else policy.get("version", 1)
        api, _, writing = _policy_of(kind, state)
        sent = policy if api == "storage" else {"policy": policy}
        try:
            return google.call("PUT" if api == "storage" else "POST", api, writing, sent)
        except GoogleError as error:
            if error.code != 409 or attempt == _RETRIES - 1:
                raise
    raise AssertionError("unreachable")


def create_member(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    with google.editing:
        policy = _edit(google, kind, inputs, True)
    titled = f"/{inputs['condition']['title']}" if inputs.get("condition") else ""
    return formatted(kind.id, inputs) + titled, {**inputs, "etag": policy["etag"]}


def read_member(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    state = inputs or outs
    try:
        policy = _policy(google, kind, state)
    except GoogleError as error:
        if error.code == 404:
            return None
        raise
    held = any(_is_ours(b, state) and state["member"] in b["members"] for b in policy.get("bindings", []))
    return (inputs, {**outs, **inputs, "etag": policy["etag"]}) if held else None


def delete_member(google: Google, kind: Kind, id: str, outs: State) -> None:
    try:
        with google.editing:
            _edit(google, kind, outs, False)
    except GoogleError as error:
        if error.code != 404:
            raise
