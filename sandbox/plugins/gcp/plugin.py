"""pulumi-gcp as the engine sees it: table.yaml and functions that only read, errors in one line."""

import ipaddress
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from ..mapping import UnmappedName, has_unknown
from ..planning import TablePlugin
from ..resource import Autoname, State
from ..server import PartialCreation, ProviderError, one_line
from . import life
from .life import InitFailure, Kind
from .rest import Google, GoogleError, OperationError
from .special import ACTS


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


_NONE: frozenset[str] = frozenset()
_WORDS = ("replace", "computed", "own", "moving", "apart", "unread")


def shrunk_range(old: State, new: State) -> frozenset[str]:
    """Return ipCidrRange unless its change expands the range, by IsShrinkageIpCidr of the provider's subnetwork. Only
    an expansion happens in place."""
    before, after = str(old.get("ipCidrRange", "")), str(new.get("ipCidrRange", ""))
    try:
        grown = ipaddress.ip_network(before).subnet_of(ipaddress.ip_network(after))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return _NONE
    return _NONE if grown else frozenset({"ipCidrRange"})


def shrunk_size(old: State, new: State) -> frozenset[str]:
    before, after = old.get("size"), new.get("size")
    smaller = isinstance(before, int) and isinstance(after, int) and after < before
    return frozenset({"size"}) if smaller else _NONE


def interfaces(old: State, new: State) -> frozenset[str]:
    before, after = (len(side.get("networkInterfaces", [])) for side in (old, new))
    return frozenset({"networkInterfaces"}) if before != after else _NONE


_RULES = {"shrunk_range": shrunk_range, "shrunk_size": shrunk_size, "interfaces": interfaces}


def _kind_of_row(row: State) -> Kind:
    made: dict[str, Any] = {**row, "places": tuple(row.get("places", "project").split())}
    made |= {name: frozenset(row[name].split()) for name in _WORDS if name in row}
    for name, known in (("acts", ACTS), ("replace_if", _RULES)):
        if name in row:
            made[name] = known[row[name]]
    if "autoname" in row:
        made["autoname"] = Autoname(**row["autoname"])
    return Kind(**made)


def load() -> dict[str, Kind]:
    table = Path(__file__).with_name("table.yaml").read_text()
    rows: dict[str, State] = yaml.load(table, Loader=yaml.CSafeLoader)
    return {token: _kind_of_row(row) for token, row in rows.items()}


KINDS: dict[str, Kind] = load()
_SETTINGS = {
    *("project", "region", "zone", "defaultLabels", "addPulumiAttributionLabel", "userProjectOverride"),
    *("billingProject", "pulumiAttributionLabelAdditionStrategy", "version", "disableGooglePartnerName"),
}
_ERRORS = (GoogleError, OperationError, UnmappedName)


class GcpPlugin(TablePlugin[Kind, Callable[[Google, State, State], State]]):
    """Provider, over the Google of one sandbox: `google_url` of DIR/google.json, `home` with its token."""

    def __init__(self, google_url: str, home: Path) -> None:
        super().__init__("gcp", KINDS, FUNCTIONS)
        self.version = version("pulumi_gcp")
        self.google = Google(google_url, home)

    def check_config(self, news: State) -> list[tuple[str, str]]:
        return self.unknown_settings(news.keys() - _SETTINGS)

    def check(self, type: str, name: str, olds: State, news: State, config: State, seed: str) -> State:
        made, wrong = life.check_inputs(self.kind(type), name, olds, news, config, seed)
        if wrong:
            raise ProviderError(wrong)
        return made

    def _create(self, kind: Kind, inputs: State) -> tuple[str, State]:
        try:
            return life.create(self.google, kind, inputs)
        except InitFailure as error:
            raise PartialCreation(error.id, error.outputs, inputs, one_line(str(error))) from error
        except _ERRORS as error:
            raise ProviderError(f"Error creating {kind.title}: {one_line(str(error))}") from error

    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any:
        kind = self.kind(type)
        try:
            return life.read(self.google, kind, id, inputs, outputs)
        except _ERRORS as error:
            raise ProviderError(f"Error when reading or editing {kind.title} {id}: {one_line(str(error))}") from error

    def _update(self, kind: Kind, id: str, outputs: State, olds: State, news: State) -> State:
        try:
            return life.update(self.google, kind, id, outputs, olds, news)
        except _ERRORS as error:
            raise ProviderError(f"Error updating {kind.title} {id}: {one_line(str(error))}") from error

    def delete(self, type: str, id: str, outputs: State) -> None:
        kind = self.kind(type)
        try:
            life.delete(self.google, kind, id, outputs)
        except _ERRORS as error:
            raise ProviderError(one_line(str(error))) from error

    def invoke(self, token: str, args: State, config: State) -> State:
        function = self.function(token)
        if has_unknown(args):
            return {}
        try:
            return {**args, **function(self.google, args, config)}
        except _ERRORS as error:
            raise ProviderError(f"invoking {token}: {one_line(str(error))}") from error
