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


FUNCTIONS: dict[str, Callable[[Google, State, State], State]] = {
    "gcp:organizations/getProject:getProject": _project,
    "gcp:organizations/getClientConfig:getClientConfig": _client,
    "gcp:container/getEngineVersions:getEngineVersions": _versions,
}
