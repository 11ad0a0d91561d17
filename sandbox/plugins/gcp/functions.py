"""Functions of pulumi-gcp that only read."""

from collections.abc import Callable

from ..resource import State
from .rest import Google


def _project(google: Google, args: State, config: State) -> State:
    id = args.get("projectId") or config.get("project")
    found = google.call("GET", "cloudresourcemanager", f"projects/{id}")
    return {
        "id": f"projects/{found['projectId']}",
        "projectId": found["projectId"],
        "number": found["projectNumber"],
        "name": found["name"],
        "labels": found.get("labels", {}),
    }


def _client(google: Google, args: State, config: State) -> State:
    places = {name: config.get(name, "") for name in ("project", "region", "zone")}
    id = f'projects/"{places["project"]}"/regions/"{places["region"]}"/zones/"{places["zone"]}"'
    return {"id": id, **places, "accessToken": google.token, "defaultLabels": config.get("defaultLabels", {})}


def _versions(google: Google, args: State, config: State) -> State:
    project = args.get("project") or config.get("project")
    place = args.get("location") or config.get("zone") or config.get("region")
    found = google.call("GET", "container", f"projects/{project}/locations/{place}/serverConfig")
    prefix = args.get("versionPrefix", "")
    masters, nodes = (
        [v for v in found[name] if v.startswith(prefix)] for name in ("validMasterVersions", "validNodeVersions")
    )
    channels = {row["channel"]: row["defaultVersion"] for row in found["channels"]}
    return {
        "id": place,
        "project": project,
        "location": place,
        "defaultClusterVersion": found["defaultClusterVersion"],
        "validMasterVersions": masters,
        "validNodeVersions": nodes,
        "latestMasterVersion": masters[0] if masters else "",
        "latestNodeVersion": nodes[0] if nodes else "",
        "releaseChannelDefaultVersion": channels,
    }


def _image(google: Google, args: State, config: State) -> State:
    project = args.get("project") or config.get("project")
    images = f"projects/{project}/global/images"
    at = f"{images}/family/{args['family']}" if args.get("family") else f"{images}/{args.get('name')}"
    found = google.call("GET", "compute", at)
    same = ("name", "family", "selfLink", "status", "creationTimestamp", "description", "labels", "licenses")
    return {
        **{name: found[name] for name in same if name in found},
        "id": f"{images}/{found['name']}",
        "imageId": found["id"],
        "project": project,
        "diskSizeGb": int(found["diskSizeGb"]),
    }


def _zones(google: Google, args: State, config: State) -> State:
    project, region = args.get("project") or config.get("project"), args.get("region") or config.get("region")
    found = google.call("GET", "compute", f"projects/{project}/zones")["items"]
    asked = args.get("status")
    names = [
        row["name"] for row in found
        if row["region"].rpartition("/")[2] == region and asked in (None, row["status"])
    ]  # fmt: skip
    return {"id": f"projects/{project}/regions/{region}", "project": project, "region": region, "names": sorted(names)}


def _billing_account(google: Google, args: State, config: State) -> State:
    account = str(args.get("billingAccount")).rpartition("/")[2]
    found = google.call("GET", "cloudbilling", f"billingAccounts/{account}")
    shown = {"billingAccount": account, "displayName": found["displayName"], "open": found["open"]}
    return {"id": account, **shown, "name": found["name"], "currencyCode": found["currencyCode"], "projectIds": []}


FUNCTIONS: dict[str, Callable[[Google, State, State], State]] = {
    "gcp:organizations/getProject:getProject": _project,
    "gcp:organizations/getClientConfig:getClientConfig": _client,
    "gcp:organizations/getBillingAccount:getBillingAccount": _billing_account,
    "gcp:compute/getImage:getImage": _image,
    "gcp:compute/getZones:getZones": _zones,
    "gcp:container/getEngineVersions:getEngineVersions": _versions,
}
