"""The way from a request to its answer: API and method, caller, project, then the method's verb."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from . import (
    PROJECT,
    PROJECT_NUMBER,
    account_token,
    accounts,
    billing,
    capacity,
    container,
    functions,
    logging,
    permissions,
    pubsub,
    quotas,
    scheduler,
    scope_token,
    secret_versions,
    services,
    storage_access,
    verbs,
)
from .batch import api as batch
from .compute import api as compute
from .compute import groups, images, instance_life, instances, oslogin
from .discovery import Document, Method, check, document
from .errors import ApiError, invalid
from .faults import Plan
from .firestore import databases, documents
from .operations import begin, once
from .tpu import api as tpu
from .vertex import api as vertex
from .world import Call, Collection, Json, World, by_id

DOCUMENTS = (
    *("container.v1", "compute.v1", "iam.v1", "cloudresourcemanager.v1", "cloudresourcemanager.v3"),
    *("serviceusage.v1", "storage.v1", "file.v1", "artifactregistry.v1", "secretmanager.v1"),
    *("tpu.v2", "logging.v2", "oslogin.v1", "batch.v1", "pubsub.v1"),
    *("aiplatform.v1", "firestore.v1"),
    *("billingbudgets.v1", "cloudbilling.v1", "monitoring.v3", "cloudfunctions.v2", "run.v2"),
    "cloudscheduler.v1",
)
_MODULES = (
    *(accounts, services, compute, container, tpu, logging, oslogin),
    *(instances, groups, images, capacity, quotas),
    *(batch, pubsub, secret_versions, vertex, databases),
    *(billing, functions, scheduler),
)
COLLECTIONS: dict[str, Collection] = {row.id: row for module in _MODULES for row in module.COLLECTIONS}
CHANGES: dict[str, Callable[[Call, Json], Json]] = {
    **compute.CHANGES,
    **container.CHANGES,
    **instances.CHANGES,
    **capacity.CHANGES,
}
_VERBS = {
    "get": verbs.get,
    "list": verbs.list_page,
    "create": verbs.create,
    "insert": verbs.create,
    "patch": verbs.change,
    "update": verbs.change,
    "delete": verbs.delete,
    "wait": verbs.get,
    "getIamPolicy": verbs.get_policy,
    "setIamPolicy": verbs.set_policy,
    "testIamPermissions": verbs.test_permissions,
}
_POLICIES = {"getIamPolicy", "setIamPolicy"}
PREEMPT: dict[str, Callable[[World, str], None]] = {
    "tpu": tpu.preempt,
    "compute": instance_life.preempt,
    "batch": batch.preempt,
    "aiplatform": vertex.preempt,
}


class Methods:
    """Methods that are served, by the path below the host."""

    def __init__(self) -> None:
        self.documents = [document(name) for name in DOCUMENTS]

    def method(self, http: str, target: str) -> tuple[Document, Method, str]:
        """Return document and method of `/<host>/<path>`, and that path; the host may be left out."""
        first, _, rest = target.lstrip("/").partition("/")
        first = re.sub(r"^[a-z]+-[a-z]+\d+-(?=aiplatform\.)", "", first)  # a region has a host of its own
        of_host = [row for row in self.documents if row.host == first]
        path = rest if of_host or "." in first else target.lstrip("/")
        for row in of_host or self.documents:
            if found := row.find(http, path):
                return row, found, path
        raise ApiError(404, f"The requested URL /{path} was not found on this server.")


def answer(world: World, found: Methods, http: str, target: str, query: str, body: bytes, headers: Any) -> Any:
    """Return JSON, or an object's bytes. Raise ApiError."""
    account = authorize(world, headers.get("Authorization"))
    upload = target.partition("/upload/")[0] + "/" + target.partition("/upload/")[2] if "/upload/" in target else ""
    target = target.replace("/download/storage/", "/storage/")
    row, method, path = found.method(http, upload or target)
    pairs = parse_qsl(query, keep_blank_values=True)
    asked = dict(pairs)
    for name in asked:
        if name.endswith(".fieldPaths"):  # each comes as a parameter of its own
            asked[name] = ",".join(value for other, value in pairs if other == name)
    known = method.query | row.common | ({"uploadType", "upload_id"} if upload else set[str]())
    if unknown := [(name, _unbound(name)) for name in asked if name not in known]:
        raise invalid(unknown)
    with world.lock:
        world.tick()
        plan = next((plan for plan in world.plans if plan.take(method.id)), None)
        if plan and plan.code and not plan.after:
            raise plan.refusal()
        key, values = method.key_of(path)
        call = _call(world, row, method, by_id(key), values, asked, target, plan, account)
        if not images.public(call, values.get("project", "")):
            services.require(world, row.host, row.title)
        _project(call)
        call = call if upload else _with_body(call, body)
        users = headers.get("Authorization") == f"Bearer {world.token}"
        if users and not images.public(call, values.get("project", "")):
            permissions.require(call)
        for need in () if upload else storage_access.needs(call):
            storage_access.require(call, *need)
        made = _upload(call, body, headers) if upload else once(call, _answered)
        if plan and plan.code:
            raise plan.refusal()
        # A copy: the answer is sent after the lock is released.
        return made if isinstance(made, bytes) else json.loads(json.dumps(made))


def _unbound(name: str) -> str:
    text = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
    return f"{text} Field '{name}' could not be found in request message."


def authorize(world: World, header: str | None) -> str:
    """Return the e-mail of the service account that calls, or "" for the user. Raises ApiError."""
    if header in (f"Bearer {world.token}", f"Bearer {scope_token(world.token, '')}"):
        return ""
    for email in world.accounts() if header else ():
        if header == f"Bearer {account_token(world.token, email)}":
            return email
    what = "Request is missing required authentication credential."
    if header:
        what = "Request had invalid authentication credentials."
    more = "Expected OAuth 2 access token, login cookie or other valid authentication credential."
    see = "See https://developers.google.com/identity/sign-in/web/devconsole-project."
    raise ApiError(401, f"{what} {more} {see}")


def _call(
    world: World, row: Document, method: Method, key: str, path: Any, query: Any, url: str, plan: Plan | None, by: str
) -> Call:
    return Call(world, method.id.partition(".")[0], row, method, key, path, query, {}, url, plan, by)


def _with_body(call: Call, body: bytes) -> Call:
    try:
        read: Any = json.loads(body) if body.strip() else {}
    except ValueError as error:
        raise ApiError(400, f"Invalid JSON payload received. {error}", "parseError") from None
    if read and not call.method.request:
        raise ApiError(400, f"{call.method.id} takes no body", "badRequest")
    if call.method.request:
        check(call.document, call.method.request, read)
    return Call(**{**vars(call), "body": read})


def _project(call: Call) -> None:
    """Refuse a project that is not the sandbox's, in the words of the called API."""
    names = {"project": call.path.get("project"), "projectsId": call.path.get("projectsId")}
    names |= {name: call.path.get(name) for name in ("projectId", "resource") if call.api == "cloudresourcemanager"}
    if call.api == "storage":
        names["query"] = call.query.get("project")
    if call.api == "serviceusage":
        names["v1Id1"] = call.path.get("v1Id1")
    for given in names.values():
        if given in (None, PROJECT, PROJECT_NUMBER, "-") or images.public(call, given):
            continue
        if call.api == "compute":
            raise ApiError(404, f"The resource 'projects/{given}' was not found")
        if call.api == "storage":
            raise ApiError(400, f"Unknown project id: {given}", "invalid")
        if call.api in ("cloudresourcemanager", "iam"):
            raise ApiError(403, "The caller does not have permission")
        raise ApiError(403, f"Permission denied on resource project {given}.")


def _answered(call: Call) -> Any:
    method = call.method
    if method.id == "container.projects.locations.getServerConfig":
        return container.server_config(call)
    collection = COLLECTIONS.get(method.collection)
    if collection is None or (method.verb not in _VERBS and method.id not in (*CHANGES, *_OWN)):
        raise ApiError(501, f"the sandbox does not serve {method.id}")
    if method.id in _OWN:
        return _OWN[method.id](call, collection)
    if method.id in CHANGES:
        return _changed(call, collection)
    made = _VERBS[method.verb](call, collection)
    if collection.schema == "Cluster" and method.verb in ("get", "list"):
        return (
            container.with_node_pools(call, made)
            if method.verb == "get"
            else {"clusters": [container.with_node_pools(call, item) for item in made["clusters"]]}
        )
    return made


def _changed(call: Call, collection: Collection) -> Json:
    """Set what CHANGES returns for the method, as an operation of its collection's style."""
    item = verbs.get(call, collection)
    news = CHANGES[call.method.id](call, item)
    verb = call.method.verb if collection.style == "compute" else _TYPES.get(call.method.verb, "UPDATE_CLUSTER")

    def end() -> str:
        item.update(news)
        return ""

    return begin(call, collection.style, verb, call.key, end)


_TYPES = {
    "setSize": "SET_NODE_POOL_SIZE",
    "setManagement": "SET_NODE_POOL_MANAGEMENT",
    "setResourceLabels": "UPDATE_CLUSTER",
}


def _media(call: Call, collection: Collection) -> Any:
    found = verbs.get(call, collection)
    return accounts.download(call, found) if call.query.get("alt") == "media" else found


_OWN: dict[str, Callable[[Call, Collection], Any]] = {
    "storage.objects.list": accounts.objects,
    "storage.objects.get": _media,
    "storage.objects.compose": accounts.compose,
    "storage.objects.rewrite": accounts.rewritten,
    **services.OWN,
    **tpu.OWN,
    **logging.OWN,
    **oslogin.OWN,
    **instances.OWN,
    **groups.OWN,
    **images.OWN,
    **quotas.OWN,
    **batch.OWN,
    **pubsub.OWN,
    **secret_versions.OWN,
    **vertex.OWN,
    **databases.OWN,
    **documents.OWN,
    **billing.OWN,
    **scheduler.OWN,
}


def _upload(call: Call, body: bytes, headers: Any) -> Json:
    """Store one object: its bytes alone, or metadata and bytes in two parts. Source:
    https://cloud.google.com/storage/docs/uploads-downloads."""
    kind = headers.get("Content-Type") or "application/octet-stream"
    if call.query.get("uploadType") == "media":
        return accounts.store_object(call, {}, body, kind)
    if call.query.get("uploadType") != "multipart":
        raise ApiError(501, f"the sandbox does not serve uploadType={call.query.get('uploadType')}")
    boundary = kind.partition("boundary=")[2].strip('"').encode()
    first, second = (part.strip(b"\r\n").partition(b"\r\n\r\n") for part in body.split(b"--" + boundary)[1:3])
    about = json.loads(first[2])
    check(call.document, "Object", about)
    lines = [line.partition(b":") for line in second[0].split(b"\r\n")]
    named = next((value for name, _, value in lines if name.lower() == b"content-type"), b"")
    return accounts.store_object(call, about, second[2], named.decode().strip() or "application/octet-stream")
