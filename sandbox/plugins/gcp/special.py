"""Types that are more, or less, than one resource of a collection.

Topics, fields of Firestore, TensorBoards, budgets, channels and functions are as the provider creates them: its
resource_pubsub_topic.go, resource_firestore_field.go, resource_vertex_ai_tensorboard.go, resource_billing_budget.go,
resource_monitoring_notification_channel.go and resource_cloudfunctions2_function.go.
"""

import io
import zipfile
from typing import Any
from urllib.parse import quote

from ..mapping import UnmappedName
from ..resource import State
from . import groups, machines
from .life import Kind, Own, address, body, finish, format_template, observed_state, outputs
from .rest import Google, GoogleError, Json


def create_named_resource(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """Create a resource that gets its name from the service."""
    made = google.call("POST", kind.api, format_template(kind.path, inputs), _body(kind, inputs))
    return finish(google, kind, {**inputs, "name": made["name"]})


def finish_named_resource(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    found = google.get(kind.api, state["name"]) or {}
    return found.get("name", state["name"]), observed_state(
        kind, {**state, "id": state["name"]}, state, _pulumis(found)
    )[1]


def read_named_resource(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    found = google.get(kind.api, id)
    return (
        None if found is None else observed_state(kind, {**outs, **inputs, "id": id}, inputs or outs, _pulumis(found))
    )


def update_named_resource(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    whole, before = _body(kind, state), _body(kind, olds)
    keys = sorted(key for key in whole.keys() | before.keys() if whole.get(key) != before.get(key))
    if keys:
        sent = {key: whole.get(key) for key in keys}
        google.call("PATCH", kind.api, state["name"], sent, updateMask=",".join(keys))


def delete_named_resource(google: Google, kind: Kind, id: str, outs: State) -> None:
    if google.get(kind.api, id) is not None:
        google.call("DELETE", kind.api, id)


def _body(kind: Kind, state: State) -> Json:
    """Return the body of a budget, where a label has a list of its one value."""
    made = body(kind, state)
    kept = made.get("budgetFilter", {})
    if "labels" in kept:
        made["budgetFilter"] = {**kept, "labels": {name: [value] for name, value in kept["labels"].items()}}
    return made


def _pulumis(found: Json) -> Json:
    kept = found.get("budgetFilter", {})
    if "labels" in kept:
        plain = {name: value[0] for name, value in kept["labels"].items()}
        return {**found, "budgetFilter": {**kept, "labels": plain}}
    return found


def create_schedule(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """Create a schedule, whose body contains the whole name."""
    sent = {**body(kind, inputs), "name": format_template(kind.id, inputs)}
    google.done(kind.api, "POST", format_template(kind.path, inputs), sent, doing=f"to create {kind.title}")
    return finish(google, kind, inputs)


def create_function(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    sent = {**body(kind, inputs), "name": address(kind, inputs)}
    google.done(
        kind.api,
        "POST",
        format_template(kind.path, inputs),
        sent,
        doing=f"to create {kind.title}",
        functionId=inputs["name"],
    )
    return finish(google, kind, inputs)


_RETRIES = 8


def _policy_of(kind: Kind, state: State) -> tuple[str, str, str]:
    """Return the API, and the paths for reading and writing a policy."""
    at = format_template(kind.path, state)
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
    """Read, change and write a policy; repeat where another client was faster."""
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
    return format_template(kind.id, inputs) + titled, {**inputs, "etag": policy["etag"]}


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


def create_topic(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    google.call("PUT", kind.api, address(kind, inputs), body(kind, inputs))
    return finish(google, kind, inputs)


def create_field(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """Create the settings of a field: every field exists already."""
    google.done(kind.api, "PATCH", address(kind, inputs), body(kind, inputs), doing=f"to create {kind.title}")
    return finish(google, kind, inputs)


def read_field(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    state = {**outs, **inputs}
    found = google.get(kind.api, address(kind, state))
    if found is None or not found.keys() & {"ttlConfig", "indexConfig"}:
        return None
    return observed_state(kind, {**state, "id": id}, inputs, found)


def delete_field(google: Google, kind: Kind, id: str, outs: State) -> None:
    at = address(kind, outs)
    if google.get(kind.api, at) is not None:
        google.done(kind.api, "PATCH", at, {}, doing="Deleting Field", updateMask="indexConfig,ttlConfig")


def create_tensorboard(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """Create a TensorBoard, whose name is a number that the service generates."""
    ended = google.done(
        kind.api, "POST", format_template(kind.path, inputs), body(kind, inputs), doing=f"to create {kind.title}"
    )
    return finish(google, kind, {**inputs, "name": ended["response"]["name"]})


def _router(google: Google, state: State) -> tuple[str, Json | None]:
    name = str(state["router"]).rpartition("/")[2]
    at = f"projects/{state['project']}/regions/{state['region']}/routers/{name}"
    return at, google.get("compute", at)


def _set_nat(google: Google, state: State, nat: Json | None, doing: str) -> None:
    with google.editing:
        at, router = _router(google, state)
        if router is None:
            if nat is None:
                return
            raise GoogleError(404, f"The resource '{at}' was not found", "notFound")
        rest = [each for each in router.get("nats", []) if each["name"] != state["name"]]
        google.done("compute", "PATCH", at, {"nats": [*rest, nat] if nat else rest}, doing=doing)


def create_nat(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    at, router = _router(google, inputs)
    if router and any(each["name"] == inputs["name"] for each in router.get("nats", [])):
        raise GoogleError(409, f"The resource '{at}/{inputs['name']}' already exists", "alreadyExists")
    _set_nat(google, inputs, body(kind, inputs), "Creating RouterNat")
    return finish_nat(google, kind, inputs)


def finish_nat(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    id = format_template(kind.id, {**state, "router": str(state["router"]).rpartition("/")[2]})
    return id, outputs(kind, {**state, "id": id}, {})


def read_nat(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    state = {**dict(zip(("project", "region", "router", "name"), id.split("/"), strict=True)), **inputs}
    _, router = _router(google, state)
    found = next((nat for nat in (router or {}).get("nats", []) if nat["name"] == state["name"]), None)
    return observed_state(kind, {**state, "id": id}, inputs or state, found) if found else None


def update_nat(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    _set_nat(google, state, body(kind, state), "Updating RouterNat")


def delete_nat(google: Google, kind: Kind, id: str, outs: State) -> None:
    _set_nat(google, outs, None, "Deleting RouterNat")


def create_service(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    google.done("serviceusage", "POST", f"{address(kind, inputs)}:enable", {}, doing="enabling services")
    _read_project(google, inputs)
    return finish_service(google, kind, inputs)


def _read_project(google: Google, state: State) -> None:
    """Read the project, which may be gone, as the provider does with every read of a service. Source:
    google/services/resourcemanager/resource_google_project_service.go of hashicorp/terraform-provider-google."""
    google.call("GET", "cloudresourcemanager", f"projects/{state['project']}")


def finish_service(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    return format_template(kind.id, state), outputs(kind, {**state, "id": format_template(kind.id, state)}, {})


def read_service(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    state = inputs or dict(zip(("project", "service"), id.split("/"), strict=True))
    _read_project(google, state)
    found = google.get("serviceusage", address(kind, state)) or {}
    return (state, {**outs, **state, "id": id}) if found.get("state") == "ENABLED" else None


def keep_service(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    """Do nothing: the changed properties only say how a service is deleted."""


def delete_service(google: Google, kind: Kind, id: str, outs: State) -> None:
    if outs.get("disableOnDestroy"):
        sent = {"disableDependentServices": bool(outs.get("disableDependentServices"))}
        google.done("serviceusage", "POST", f"{address(kind, outs)}:disable", sent, doing="disabling services")


def create_account(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    rest = {name: inputs[name] for name in ("displayName", "description") if name in inputs}
    sent = {"accountId": inputs["accountId"], "serviceAccount": rest}
    google.call("POST", "iam", format_template(kind.path, inputs), sent)
    return finish(google, kind, _emailed(inputs))


def _emailed(inputs: State) -> State:
    return {**inputs, "email": f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"}


def read_account(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    found = google.get("iam", id)
    if found is None:
        return None
    known = inputs or {"accountId": found["email"].partition("@")[0], "project": found["projectId"]}
    return observed_state(kind, {**known, "id": id}, known, found)


def create_role(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    google.call(
        "POST", "iam", format_template(kind.path, inputs), {"roleId": inputs["roleId"], "role": body(kind, inputs)}
    )
    return finish(google, kind, inputs)


def update_disk(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    at = address(kind, state)
    if "size" in changed:
        google.done("compute", "POST", f"{at}/resize", {"sizeGb": state["size"]}, doing="Updating Disk")
    if kind.labels in changed:
        relabel(google, kind, state, olds, changed)
    if rest := changed - {"size", kind.labels}:
        raise UnmappedName(f"a change of {', '.join(sorted(rest))} is not mapped for a disk")


def relabel(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    """Change the labels of a resource whose other properties do not change."""
    machines.relabel(google, kind, state)


def resize_reservation(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    if rest := changed - {"specificReservation"}:
        raise UnmappedName(f"a change of {', '.join(sorted(rest))} is not mapped for a reservation")
    sent = {"specificSkuCount": str(state["specificReservation"]["count"])}
    google.done("compute", "POST", f"{address(kind, state)}/resize", sent, doing="Updating Reservation")


def delete_bucket(google: Google, kind: Kind, id: str, outs: State) -> None:
    at = address(kind, outs)
    found = (google.get("storage", f"{at}/o") or {}).get("items", [])
    if found and not outs.get("forceDestroy"):
        # The provider's resource_storage_bucket.go.
        raise UnmappedName(
            f"Error trying to delete bucket {outs['name']} containing objects without `force_destroy` set to true"
        )
    for item in found:
        google.call("DELETE", "storage", f"{at}/o/{_quoted(item['name'])}")
    if google.get("storage", at) is not None:
        google.call("DELETE", "storage", at)


def _quoted(name: str) -> str:
    return quote(name, safe="")


def create_object(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    data = inputs["content"] if "content" in inputs else _packed(inputs["source"])
    google.call("POST", "upload", f"b/{inputs['bucket']}/o", data, uploadType="media", name=inputs["name"])
    if patch := body(kind, {n: v for n, v in inputs.items() if n != "name"}):
        google.call("PATCH", "storage", f"b/{inputs['bucket']}/o/{_quoted(inputs['name'])}", patch)
    return finish_object(google, kind, inputs)


def _packed(source: Json) -> bytes:
    if "assets" not in source:
        raise UnmappedName("property source is not mapped: the sandbox takes content, and archives of text assets")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, asset in sorted(source["assets"].items()):
            archive.writestr(zipfile.ZipInfo(path), asset["text"])
    return packed.getvalue()


def finish_object(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    found = google.get("storage", f"b/{state['bucket']}/o/{_quoted(state['name'])}") or {}
    id = format_template(kind.id, state)
    return id, outputs(kind, {**state, "id": id}, found)


def read_object(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    state = {**outs, **inputs}
    found = google.get("storage", f"b/{state['bucket']}/o/{_quoted(state['name'])}")
    if found is None:
        return None
    now, made = observed_state(kind, {**state, "id": id}, inputs, found)
    if outs.get("md5hash") not in (None, found["md5Hash"]):
        now["detectMd5hash"] = found["md5Hash"]  # another client wrote it
    return now, made


def update_object(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    create_object(google, kind, {name: value for name, value in state.items() if name != "id"})


def delete_object(google: Google, kind: Kind, id: str, outs: State) -> None:
    at = f"b/{outs['bucket']}/o/{_quoted(outs['name'])}"
    if google.get("storage", at) is not None:
        google.call("DELETE", "storage", at)


_NAMED = Own(
    create=create_named_resource,
    read=read_named_resource,
    update=update_named_resource,
    delete=delete_named_resource,
    finish=finish_named_resource,
)
ACTS = {
    "cluster": Own(create=groups.create_cluster, update=groups.update_cluster, delete=groups.delete_cluster),
    "pool": Own(create=groups.create_pool, read=groups.read_pool, update=groups.update_pool, finish=groups.finish_pool),
    "nat": Own(create=create_nat, read=read_nat, update=update_nat, delete=delete_nat, finish=finish_nat),
    "member": Own(create=create_member, read=read_member, delete=delete_member),
    "service": Own(
        create=create_service, read=read_service, update=keep_service, delete=delete_service, finish=finish_service
    ),
    "account": Own(create=create_account, read=read_account),
    "role": Own(create=create_role),
    "disk": Own(update=update_disk),
    "instance": Own(
        create=machines.create_instance,
        read=machines.read_instance,
        update=machines.update_instance,
        delete=machines.delete_instance,
        finish=machines.finish_instance,
    ),
    "template": Own(create=groups.create_template, read=groups.read_template, finish=groups.finish_template),
    "group": Own(create=groups.create_group, update=groups.update_group),
    "commitment": Own(delete=groups.keep_commitment),
    "attached": Own(
        create=groups.create_attached_disk,
        read=groups.read_attached_disk,
        delete=groups.delete_attached_disk,
        finish=groups.finish_attached_disk,
    ),
    "labels": Own(update=relabel),
    "topic": Own(create=create_topic),
    "field": Own(create=create_field, read=read_field, delete=delete_field),
    "tensorboard": Own(create=create_tensorboard),
    "budget": _NAMED,
    "channel": _NAMED,
    "function": Own(create=create_function),
    "schedule": Own(create=create_schedule),
    "reservation": Own(update=resize_reservation),
    "bucket": Own(delete=delete_bucket),
    "object": Own(
        create=create_object, read=read_object, update=update_object, delete=delete_object, finish=finish_object
    ),
}
