"""Projects, their services, service accounts, buckets, file servers, repositories and secrets."""

import base64
import hashlib
import re
import secrets

from accel.catalog.gcp_permissions import gcp_permissions

from . import PROJECT, PROJECT_NUMBER, storage_access
from .errors import ApiError
from .world import Call, Collection, Json, stamp


def _account_made(call: Call, key: str, item: Json) -> None:
    account, project = call.body["accountId"], call.path["projectsId"]
    if not re.fullmatch(r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])", account):
        # Limits: https://cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts/create.
        raise ApiError(400, f'The account ID "{account}" does not have a length between 6 and 30.')
    email = f"{account}@{project}.iam.gserviceaccount.com"
    item |= {
        "name": f"projects/{project}/serviceAccounts/{email}",
        "projectId": project,
        "uniqueId": str(call.world.number()),
        "email": email,
        "etag": "MDEwMjE5MjA=",
        "oauth2ClientId": str(call.world.number()),
        "__key": f"projects/{project}/serviceAccounts/{email}",
    }


def _role_made(call: Call, key: str, item: Json) -> None:
    """Check a custom role. A project's role may not have permissions that exist for organizations only. Wording:
    https://github.com/terraform-google-modules/terraform-google-iam/issues/158"""
    for permission in item.get("includedPermissions", []):
        if permission not in gcp_permissions() or permission == "resourcemanager.projects.list":
            raise ApiError(400, f"Permission {permission} is not valid.")


def _role_changed(call: Call, item: Json, news: Json) -> None:
    _role_made(call, call.key, news)


def _bucket_made(call: Call, key: str, item: Json) -> None:
    name = item["name"]
    if not re.fullmatch(r"[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]", name) or name.startswith("goog"):
        # Rules: https://cloud.google.com/storage/docs/buckets#naming.
        raise ApiError(400, f"Invalid bucket name: '{name}'", "invalid")
    if call.query.get("project") is None:
        raise ApiError(400, "Required parameter: project", "required")
    item |= {
        "kind": "storage#bucket",
        "id": name,
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
        "projectNumber": PROJECT_NUMBER,
        "location": item.get("location", "US").upper(),
        "metageneration": "1",
        "timeCreated": stamp(),
        "updated": stamp(),
        "etag": "CAE=",
    }
    rules = item.setdefault("iamConfiguration", {})
    rules.setdefault("uniformBucketLevelAccess", {"enabled": False})
    rules.setdefault("publicAccessPrevention", "inherited")


def _bucket_leaving(call: Call, key: str) -> None:
    if call.world.below("storage", f"{key}/o"):
        raise ApiError(409, "The bucket you tried to delete is not empty.", "conflict")


def store_object(call: Call, about: Json, data: bytes, kind: str) -> Json:
    bucket = call.path["bucket"]
    if call.find(f"b/{bucket}") is None:
        raise ApiError(404, "The specified bucket does not exist.")
    name = about.get("name") or call.query.get("name")
    if not name:
        raise ApiError(400, "Required", "required")
    key = f"b/{bucket}/o/{_escaped(name)}"
    before = call.find(key) or {}
    for permission in ("storage.objects.create", *(["storage.objects.delete"] if before else [])):
        storage_access.require(call, permission, bucket, name)
    wanted = call.query.get("ifGenerationMatch")
    if wanted is not None and wanted != before.get("generation", "0"):
        raise ApiError(412, "At least one of the pre-conditions you specified did not hold.", "conditionNotMet")
    generation = str(call.world.number())
    item = {
        **about,
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{generation}",
        "name": name,
        "bucket": bucket,
        "generation": generation,
        "metageneration": "1",
        "contentType": about.get("contentType") or kind,
        "size": str(len(data)),
        "md5Hash": base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode(),
        "storageClass": about.get("storageClass", "STANDARD"),
        "timeCreated": stamp(),
        "updated": stamp(),
        "etag": secrets.token_urlsafe(6),
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{bucket}/o/{_escaped(name)}",
        "mediaLink": f"https://storage.googleapis.com/download/storage/v1/b/{bucket}/o/{_escaped(name)}?alt=media",
    }
    call.world.items[f"storage/{key}"] = item
    call.world.media[f"storage/{key}"] = data
    return item


def compose(call: Call, collection: Collection) -> Json:
    """Compose one object of up to 32 others, in their order; it has no MD5. Source:
    https://docs.cloud.google.com/storage/docs/composite-objects"""
    bucket, name = call.path["destinationBucket"], call.path["destinationObject"]
    sources = [each["name"] for each in call.body.get("sourceObjects", [])]
    if not 1 <= len(sources) <= 32:  # the words of this refusal are the sandbox's own
        raise ApiError(400, "The number of source components provided must be between 1 and 32.", "invalid")
    keys = [f"storage/b/{bucket}/o/{_escaped(source)}" for source in sources]
    missing = [source for source, key in zip(sources, keys, strict=True) if key not in call.world.media]
    if missing:
        raise ApiError(404, f"No such object: {bucket}/{missing[0]}", "notFound")
    data = b"".join(call.world.media[key] for key in keys)
    about = {"name": name, "componentCount": len(sources)}
    item = store_object(_into(call, bucket), about, data, "application/octet-stream")
    del item["md5Hash"]
    return item


def rewritten(call: Call, collection: Collection) -> Json:
    """Copy an object, in one call. Source: https://docs.cloud.google.com/storage/docs/json_api/v1/objects/rewrite"""
    source = f"b/{call.path['sourceBucket']}/o/{_escaped(call.path['sourceObject'])}"
    found = call.find(source)
    if found is None:
        raise ApiError(404, f"No such object: {call.path['sourceBucket']}/{call.path['sourceObject']}", "notFound")
    kept = {name: found[name] for name in ("contentType", "storageClass", "metadata") if name in found}
    about = {**kept, **call.body, "name": call.path["destinationObject"]}
    data = call.world.media[f"storage/{source}"]
    made = store_object(_into(call, call.path["destinationBucket"]), about, data, found["contentType"])
    sizes = {"totalBytesRewritten": made["size"], "objectSize": made["size"]}
    return {"kind": "storage#rewriteResponse", **sizes, "done": True, "resource": made}


def _into(call: Call, bucket: str) -> Call:
    return Call(**{**vars(call), "path": {**call.path, "bucket": bucket}})


class Media(bytes):
    """Bytes of an object; `generation` is for the header of the answer."""

    generation = ""


def download(call: Call, item: Json) -> Media:
    media = Media(call.world.media[f"storage/{call.key}"])
    media.generation = item["generation"]
    return media


def _object_leaving(call: Call, key: str) -> None:
    wanted, item = call.query.get("ifGenerationMatch"), call.find(key) or {}
    if wanted not in (None, item.get("generation")):
        raise ApiError(412, "At least one of the pre-conditions you specified did not hold.", "conditionNotMet")


def _globbed(pattern: str) -> re.Pattern[str]:
    """Return a pattern for the names that a glob matches: * stays within a folder, ** crosses folders. Source:
    https://docs.cloud.google.com/storage/docs/json_api/v1/objects/list#list-objects-and-prefixes-using-glob"""
    parts = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(parts.get(each) or re.escape(each) for each in re.findall(r"\*\*|.", pattern)))


def _escaped(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def objects(call: Call, collection: Collection) -> Json:
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    found = [item for item in call.world.below("storage", call.key) if item["name"].startswith(prefix)]
    if glob := call.query.get("matchGlob"):
        wanted = _globbed(glob)
        found = [item for item in found if wanted.fullmatch(item["name"])]
    folders: dict[str, None] = {}
    kept: list[Json] = []
    for item in found:
        head, cut, _ = item["name"][len(prefix) :].partition(delimiter) if delimiter else (item["name"], "", "")
        if cut:
            folders[f"{prefix}{head}{cut}"] = None
        else:
            kept.append(item)
    size, start = int(call.query.get("maxResults") or 1000), int(call.query.get("pageToken") or 0)
    answer: Json = {"kind": "storage#objects", "items": kept[start : start + size], "prefixes": list(folders)}
    return answer | ({"nextPageToken": str(start + size)} if start + size < len(kept) else {})


def _instance_made(call: Call, key: str, item: Json) -> None:
    for required in ("tier", "fileShares", "networks"):
        if not item.get(required):
            raise ApiError(400, f"Required field '{required}' not specified")
    for network in item["networks"]:
        name = network.get("network", "default")
        path = name if "/" in name else f"projects/{call.path['projectsId']}/global/networks/{name}"
        if f"compute/{path}" not in call.world.items:
            raise ApiError(400, f"network '{name}' does not exist.")
        network["ipAddresses"] = [f"10.255.{call.world.number() % 250}.2"]
        network.setdefault("reservedIpRange", f"{network['ipAddresses'][0].rpartition('.')[0]}.0/29")
    item |= {"createTime": stamp(), "etag": secrets.token_urlsafe(6)}


def project(call: Call) -> Json:
    if call.document.name.endswith(".v3"):
        about: Json = {"name": f"projects/{PROJECT_NUMBER}", "projectId": PROJECT, "displayName": PROJECT}
        return {**about, "state": "ACTIVE", "createTime": "2026-01-01T00:00:00Z", "etag": "W/sandbox"}
    about = {"projectId": PROJECT, "projectNumber": PROJECT_NUMBER, "name": PROJECT}
    return {**about, "lifecycleState": "ACTIVE", "createTime": "2026-01-01T00:00:00Z"}


def _projects(call: Call) -> list[Json]:
    return [{**project(call), "name": call.key.rpartition("/")[2]}]


COLLECTIONS = (
    Collection(
        id="iam.projects.serviceAccounts", schema="ServiceAccount", wrap="serviceAccount", name="accountId",
        made=_account_made, exists="Service account {id} already exists within project projects/" + PROJECT + ".",
        missing="Service account {key} does not exist.",
    ),
    Collection(
        id="iam.projects.roles", schema="Role", wrap="role", name="roleId", full_name=True,
        exists="A role named {id} in projects/" + PROJECT + " already exists.",
        missing="The role named {key} was not found.", made=_role_made, changed=_role_changed,
    ),
    Collection(
        id="storage.buckets", schema="Bucket", made=_bucket_made, leaving=_bucket_leaving,
        defaults={"storageClass": "STANDARD"}, missing="The specified bucket does not exist.",
        exists="Your previous request to create the named bucket succeeded and you already own it.",
    ),
    Collection(id="storage.objects", schema="Object", leaving=_object_leaving, missing="No such object: {key}"),
    Collection(
        id="file.projects.locations.instances", schema="Instance", name="?instanceId", style="longrunning",
        kind="INSTANCE", full_name=True, state=("state", "CREATING", "READY", "DELETING"), made=_instance_made,
    ),
    Collection(id="file.projects.locations.operations", schema="Operation"),
    Collection(
        id="artifactregistry.projects.locations.repositories", schema="Repository", name="?repositoryId",
        style="longrunning", kind="REPOSITORY", full_name=True,
    ),
    Collection(id="artifactregistry.projects.locations.operations", schema="Operation"),
    Collection(
        id="secretmanager.projects.secrets", schema="Secret", name="?secretId", full_name=True,
        missing="Secret [{key}] not found.", exists="Secret [{key}] already exists.",
    ),
    Collection(id="cloudresourcemanager.projects", schema="Project", listed=_projects),
)  # fmt: skip
