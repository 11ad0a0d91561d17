"""Databases of Firestore, and the rules of fields. Documents are in documents.py."""

import copy
import re
import uuid
from collections.abc import Callable
from typing import Any

from .. import PROJECT, verbs
from ..errors import ApiError
from ..operations import begin
from ..world import Call, Collection, Json, stamp

_DATABASES = "firestore.projects.databases"
_FIELDS = f"{_DATABASES}.collectionGroups.fields"
_NAME = re.compile(r"\(default\)|[a-z](?!.*[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12})[a-z0-9-]{2,61}[a-z0-9]")
"""Pattern of database ids. Source: databaseId of databases.create in the discovery document."""
_DEFAULTS = {
    "concurrencyMode": "PESSIMISTIC",
    "appEngineIntegrationMode": "DISABLED",
    "databaseEdition": "STANDARD",
    "pointInTimeRecoveryEnablement": "POINT_IN_TIME_RECOVERY_DISABLED",
    "deleteProtectionState": "DELETE_PROTECTION_DISABLED",
    "versionRetentionPeriod": "3600s",
    "keyPrefix": "",
}


def _made(call: Call, key: str, item: Json) -> None:
    name = key.rpartition("/")[2]
    if not _NAME.fullmatch(name):
        raise ApiError(400, f"Invalid database id: {name}")  # the sandbox's words, here and below
    for field in ("locationId", "type"):
        if not item.get(field):
            raise ApiError(400, f"Missing required field: {field}")
    now = stamp()
    item |= {"uid": str(uuid.uuid4()), "createTime": now, "updateTime": now, "earliestVersionTime": now}
    item["etag"] = _etag(call)


def _etag(call: Call) -> str:
    return f"IL{call.world.moment():x}=="


def _changed(call: Call, item: Json, news: Json) -> None:
    if news.get("etag", item["etag"]) != item["etag"]:
        raise ApiError(409, "The etag of the database is not the current one.", "aborted", "ABORTED")
    news |= {"updateTime": stamp(), "etag": _etag(call)}


def _delete(call: Call, collection: Collection) -> Json:
    """Delete a database. The deletion's operation outlives it."""
    item = verbs.get(call, collection)
    if item.get("deleteProtectionState") == "DELETE_PROTECTION_ENABLED":
        said = "The database cannot be deleted because it has delete protection enabled."
        raise ApiError(400, said, status="FAILED_PRECONDITION")

    def end() -> str:
        own = f"firestore/{call.key}"
        for each in [each for each in call.world.items if each == own or each.startswith(f"{own}/")]:
            if not each.startswith(f"{own}/operations/"):
                del call.world.items[each]
        return ""

    return begin(call, "longrunning", "delete", call.key, end)


def _databases(call: Call, collection: Collection) -> Json:
    found = call.world.below("firestore", call.key)
    return {"databases": found} if found else {}


def _field(call: Call, collection: Collection) -> Json:
    """Return the rules of a field, by default those of the database."""
    _require(call)
    above = f"{'/'.join(call.key.split('/')[:4])}/collectionGroups/__default__/fields/*"
    default = {"usesAncestorConfig": True, "ancestorField": above}
    return call.find(call.key) or {"name": call.key, "indexConfig": default}


def _set_field(call: Call, collection: Collection) -> Json:
    """Set the rules of a field. Google deletes the documents of a field with a ttlConfig, in the update's mask or in a
    body without a mask, some time after the time in the field. That may take a day, so the sandbox does not. Source:
    https://cloud.google.com/firestore/docs/ttl"""
    found, news = copy.deepcopy(_field(call, collection)), call.body
    mask = call.query.get("updateMask") or ",".join(name for name in news if name != "name")
    for name in mask.split(","):
        field = re.sub(r"_(\w)", lambda part: part[1].upper(), name).partition(".")[0]
        if field in news:
            found[field] = copy.deepcopy(news[field])
        else:
            found.pop(field, None)
    if "ttlConfig" in found:
        found["ttlConfig"] = {**found["ttlConfig"], "state": "CREATING"}
    call.world.items[f"firestore/{call.key}"] = found

    def end() -> str:
        if "ttlConfig" in found:
            found["ttlConfig"]["state"] = "ACTIVE"
        return ""

    return begin(call, "longrunning", "update", call.key, end)


def _fields(call: Call, collection: Collection) -> Json:
    """List the fields with rules of their own. The filter that Google requires for that is ignored."""
    found = call.world.below("firestore", call.key)
    return {"fields": found} if found else {}


def _require(call: Call) -> None:
    if call.find("/".join(call.key.split("/")[:4])) is None:
        raise missing(call.key)


def missing(key: str) -> ApiError:
    """Return the error for a missing database. Wording:
    https://github.com/search?q="to+add+a+Cloud+Datastore+or+Cloud+Firestore+database"."""
    database = key.split("/")[3]
    setup = f"https://console.cloud.google.com/datastore/setup?project={PROJECT}"
    said = f"The database {database} does not exist for project {PROJECT} Please visit {setup} to add a Cloud Datastore"
    return ApiError(404, f"{said} or Cloud Firestore database. ")


COLLECTIONS = (
    # "exists": https://github.com/GoogleCloudPlatform/core-solution-services/issues/6
    Collection(
        id=_DATABASES, schema="GoogleFirestoreAdminV1Database", name="?databaseId", style="longrunning",
        full_name=True, kind="DATABASE", defaults=_DEFAULTS, made=_made, changed=_changed,
        exists="Database already exists. Please use another database_id",
        missing="Project 'projects/accel-sandbox' or database '{id}' does not exist.",
    ),
    Collection(id=_FIELDS, schema="GoogleFirestoreAdminV1Field"),
    Collection(id=f"{_DATABASES}.operations", schema="GoogleLongrunningOperation"),
    Collection(id=f"{_DATABASES}.documents", schema="Document"),
)  # fmt: skip
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_DATABASES}.delete": _delete,
    f"{_DATABASES}.list": _databases,
    f"{_FIELDS}.get": _field,
    f"{_FIELDS}.patch": _set_field,
    f"{_FIELDS}.list": _fields,
}
