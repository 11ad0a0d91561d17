"""Verbs of every collection: list, get, create, change, delete, and its policies."""

import copy
import re
from functools import partial
from typing import Any

from .errors import ApiError, Failure
from .operations import begin
from .world import Call, Collection, Json, merge_patch

_PAGE = 500


def get(call: Call, collection: Collection) -> Json:
    if collection.listed:
        last = call.key.rpartition("/")[2]
        found = next((item for item in collection.listed(call) if item["name"].rpartition("/")[2] == last), None)
    else:
        found = call.find(call.key)
    if found is None:
        raise missing(collection, call.key)
    return found


def missing(collection: Collection, key: str) -> ApiError:
    return ApiError(404, collection.missing.format(key=key, id=key.rpartition("/")[2]))


def list_page(call: Call, collection: Collection) -> Json:
    items = collection.listed(call) if collection.listed else call.world.below(call.api, call.key)
    kept = [item for item in items if matches(item, call.query.get("filter", ""))]
    size = int(call.query.get("pageSize") or call.query.get("maxResults") or 0)
    start = int(call.query.get("pageToken") or 0)
    end = start + (size if 0 < size < _PAGE else _PAGE)
    answer: Json = {_member(call, collection): kept[start:end]}
    if call.api in ("compute", "storage"):
        answer["kind"] = f"{call.api}#{collection.id.rpartition('.')[2].removesuffix('s')}List"
    return answer | ({"nextPageToken": str(end)} if end < len(kept) else {})


def _member(call: Call, collection: Collection) -> str:
    properties = call.document.schema(call.method.response)["properties"]
    return next(n for n, p in properties.items() if p.get("items", {}).get("$ref") == collection.schema)


_TERM = re.compile(r"\(?\s*([\w.-]+)\s*(!=|=|:|eq|ne)\s*\"?([^\s\")]+)\"?\s*\)?(?:\s+AND\s+|\s+|$)")


def matches(item: Json, text: str) -> bool:
    """Return whether a resource matches simple terms, joined by AND or a space. Clients here use no other filter; any
    other is refused."""
    terms = _TERM.findall(text)
    if text and _TERM.sub("", text).strip():
        raise ApiError(400, f"Invalid value for field 'filter': '{text}'. The sandbox knows terms of FIELD=VALUE only.")
    for path, operator, wanted in terms:
        value: Any = item
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        same = value is not None if wanted == "*" else shown == wanted or shown.rpartition("/")[2] == wanted
        if same == (operator in ("!=", "ne")):
            return False
    return True


def create(call: Call, collection: Collection) -> Json:
    """Create a resource from a body that fits the schema. Returns the operation, or the resource."""
    item: Json = copy.deepcopy(call.body.get(collection.wrap, {}) if collection.wrap else call.body)
    name = call.query.get(collection.name[1:]) if collection.name[0] == "?" else None
    name = name or item.get(collection.name) or call.body.get(collection.name)
    if not name:
        raise ApiError(400, f"Required field '{collection.name.strip('?')}' not specified", "required")
    key = f"{call.key}/{name}"
    for field, value in collection.defaults.items():
        item.setdefault(field, copy.deepcopy(value))
    item["name"] = key if collection.full_name else name
    if call.find(key) is None:  # else nothing may be created beside it
        collection.made(call, key, item)
    key = item.pop("__key", key)
    if call.find(key) is not None:
        raise ApiError(409, collection.exists.format(key=key, id=name), "conflict" if call.api == "storage" else "")
    if collection.state:
        item[collection.state[0]] = collection.state[1]
    call.world.items[f"{call.api}/{key}"] = item

    def end() -> str | Failure:
        why = collection.settled(call, key)
        if collection.state and not why:
            item[collection.state[0]] = collection.state[2]
        return why

    verb = "insert" if collection.style == "compute" else f"CREATE_{collection.kind}"
    failed = partial(collection.failed, call, key)
    return begin(call, collection.style, verb, key, end, failed=failed) or item


def change(call: Call, collection: Collection) -> Json:
    """Change a resource by PATCH, or by PUT, which replaces what it names."""
    item = get(call, collection)
    news: Json = call.body.get(collection.wrap, {}) if collection.wrap and collection.wrap in call.body else call.body
    if mask := call.query.get("updateMask") or (call.body.get("updateMask") if collection.wrap else None):
        fields = [re.sub(r"_(\w)", lambda found: found[1].upper(), part).split(".")[0] for part in mask.split(",")]
        made = {**item, **{name: news.get(name) for name in fields}}
        made = {name: value for name, value in made.items() if value is not None}
    else:
        made = merge_patch(item, news)
    collection.changed(call, item, made)

    def end() -> str:
        item.clear()
        item.update(made)
        return ""

    verb = call.method.verb if collection.style == "compute" else f"UPDATE_{collection.kind}"
    return begin(call, collection.style, verb, call.key, end) or item


def delete(call: Call, collection: Collection) -> Json:
    item = get(call, collection)
    collection.leaving(call, call.key)
    if collection.state and collection.state[3]:
        item[collection.state[0]] = collection.state[3]

    def end() -> str:
        why = collection.gone(call, call.key)
        if not why:
            forget(call, call.key)
        return why

    verb = "delete" if collection.style == "compute" else f"DELETE_{collection.kind}"
    return begin(call, collection.style, verb, call.key, end, collection.ending(call, call.key))


def forget(call: Call, key: str) -> None:
    world, name = call.world, f"{call.api}/{key}"
    for kept in (world.items, world.policies, world.media):
        for each in [each for each in kept if each == name or each.startswith(f"{name}/")]:
            del kept[each]


def get_policy(call: Call, collection: Collection) -> Json:
    get(call, collection)
    return call.world.policies.get(f"{call.api}/{call.key}", {"version": 1, "etag": "ACAB"})


def set_policy(call: Call, collection: Collection) -> Json:
    """Replace a policy, unless it has changed since the client read it. Source:
    https://cloud.google.com/iam/docs/reference/rest/v1/Policy (etag)."""
    before, policy = get_policy(call, collection), copy.deepcopy(call.body.get("policy", call.body))
    if policy.get("etag") not in (None, before["etag"]):
        message = (
            "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff."
        )
        raise ApiError(409, message, "aborted", "ABORTED")
    for member in {member for binding in policy.get("bindings", []) for member in binding.get("members", [])}:
        _known(call, member)
    policy["etag"] = f"Bw{call.world.number():x}="
    policy.setdefault("version", 1)
    policy["bindings"] = [binding for binding in policy.get("bindings", []) if binding.get("members")]
    call.world.policies[f"{call.api}/{call.key}"] = policy
    return policy


def test_permissions(call: Call, collection: Collection) -> Json:
    """Return all requested permissions: the owner of the sandbox's token may do everything."""
    get(call, collection)
    return {"permissions": call.body.get("permissions", [])}


def _known(call: Call, member: str) -> None:
    """Refuse an account of this project, or an identity pool, that does not exist. Sources:
    https://github.com/hashicorp/terraform-provider-google/issues/9969,
    https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/916."""
    kind, _, name = member.partition(":")
    items = call.world.items
    if kind != "serviceAccount":
        return
    if pool := re.fullmatch(r"([^/]+\.svc\.id\.goog)\[[^]]+\]", name):
        if pool[1] not in call.world.identity_pools:
            text = f"Identity Pool does not exist ({pool[1]}). Please check that you specified a valid resource name as"
            raise ApiError(400, f"{text} returned in the `name` attribute in the configuration API.")
    elif found := re.fullmatch(r"[^@]+@([^.]+)\.iam\.gserviceaccount\.com", name):
        own = not re.match(r"service-\d+@|gcp-sa-|gs-project-", name) and not found[1].startswith("gcp-sa-")
        if own and f"iam/projects/{found[1]}/serviceAccounts/{name}" not in items:
            raise ApiError(400, f"Service account {name} does not exist.")
