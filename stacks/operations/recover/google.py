"""Search on Google Cloud and in its clusters for what a killed run may have created: by google.yaml, or by name."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from string import Template
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import auth_headers, path_segment
from accel.clouds.kubernetes.client import Api
from accel.diagnostics.errors import NotFound
from accel.json_values import entries, object_at

from .lookup import GONE, Candidate, MadeAgain, NotSought, parse_cloud_time, proof
from .pending import Json, Pending, setting


@dataclass(frozen=True)
class Row:
    """A row of google.yaml, whose head explains each field."""

    api: str = ""
    under: str = ""
    path: str = ""
    id: str = ""
    state: str = "state"
    labels: str = ""
    found: str = ""
    at: str = ""
    """The property that begins the host, if the API has one per region."""
    part: bool = False
    over: bool = False
    again: bool = False

    @property
    def within(self) -> frozenset[str]:
        return frozenset(re.findall(r"\{(\w+)\}", self.path))


@cache
def rows() -> dict[str, Row]:
    import yaml

    table = yaml.safe_load(Path(__file__).with_name("google.yaml").read_text())
    return {token: Row(**row) for token, row in table.items()}


@dataclass(frozen=True)
class GoogleCloud:
    """Google Cloud with this shell's credentials."""

    provider: Callable[[Pending], Json]

    @cached_property
    def _google(self) -> Google:
        return Google()

    def find(self, operation: Pending) -> Sequence[Candidate]:
        """Raise NotSought, MadeAgain, and what the API raises."""
        import jmespath

        row = rows().get(operation.type)
        if row is None:
            raise NotSought(f"no row of google.yaml says how to look for {operation.type}")
        if row.again:
            raise MadeAgain
        settings, inputs = self.provider(operation), self._inputs(operation)
        api = f"{_value(inputs, row.at)}-{row.api}" if row.at else row.api
        try:
            answer = self._google.get(api, "/".join(filter(None, (row.under, _path(row.path, inputs, quoted=True)))))
        except NotFound:
            return []
        item: Any = jmespath.search(Template(row.found).safe_substitute(inputs), answer) if row.found else answer
        state = str(jmespath.search(row.state, item) or "") if isinstance(item, dict) else ""
        if item is None or state.lower() in GONE:
            return []
        seen: Json | None = (answer.get(row.labels) or {}) if row.labels else None
        why, _ = proof(operation, row.part, row.over, row.within, _labels(inputs, settings, row.labels), seen)
        made = parse_cloud_time(
            answer.get("creationTimestamp") or answer.get("createTime") or answer.get("timeCreated")
        )
        id = _path(row.id or row.path, inputs)
        return [Candidate(id, state, why, None if row.found else made, row.part, row.over)]

    def names(self, operation: Pending) -> Sequence[str]:
        """Return the names of all resources of its kind in its project and place."""
        row = rows().get(operation.type, Row())
        folder, slash, last = row.path.rpartition("/")
        if last != f"{{{operation.naming}}}" or not slash or row.at:
            raise NotSought(f"no row of google.yaml says how {operation.type} are listed")
        inputs = self._inputs(operation)
        member = "items" if row.api in ("compute", "storage") else folder.rpartition("/")[2]
        query = {"project": inputs.get("project")} if folder == "b" else {}
        path = "/".join(filter(None, (row.under, _path(folder, inputs, quoted=True))))
        return [str(each.get("name")).rpartition("/")[2] for each in self._google.pages(row.api, path, member, **query)]

    def _inputs(self, operation: Pending) -> Json:
        """Return the inputs with the places of its provider, and its cluster by its full name."""
        settings = self.provider(operation)
        places = {name: settings[name] for name in ("project", "region", "zone") if name in settings}
        inputs: Json = {**places, **operation.inputs}
        cluster = str(inputs.get("cluster") or "")
        if cluster and not cluster.startswith("projects/"):
            place = f"projects/{inputs.get('project')}/locations/{inputs.get('location')}"
            inputs["cluster"] = f"{place}/clusters/{cluster}"
        return inputs


def _path(template: str, inputs: Mapping[str, Any], quoted: bool = False) -> str:
    def value(found: re.Match[str]) -> str:
        text = _value(inputs, found[1])
        return path_segment(text) if quoted and found[1] != "cluster" else text

    return re.sub(r"\{(\w+)\}", value, template)


def _value(inputs: Mapping[str, Any], name: str) -> str:
    given = inputs.get(name)
    if not isinstance(given, str):
        raise NotSought(f"its {name} is not in the state")
    return given.rpartition("/")[2] if name in ("region", "zone", "router") else given


def _labels(inputs: Json, settings: Json, name: str) -> dict[str, str]:
    return {**setting(settings, "defaultLabels"), **(inputs.get(name) or {})} if name else {}


@dataclass
class Kubernetes:
    """The clusters that the state's providers name, with this shell's Google credentials."""

    provider: Callable[[Pending], Json]
    _apis: dict[str, Api] = field(default_factory=dict[str, Api])

    def find(self, operation: Pending) -> Sequence[Candidate]:
        """Raise NotSought, and what the API raises."""
        api, inputs = self._api(operation), operation.inputs
        version, kind = str(inputs.get("apiVersion") or ""), str(inputs.get("kind") or "")
        meta = object_at(inputs, "metadata")
        name, namespace = meta.get("name"), meta.get("namespace")
        if not (version and kind and isinstance(name, str)):
            raise NotSought("its kind or its name is not in the state")
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        try:
            known = [object_at(each) for each in entries(api.get(root).get("resources"))]
            own = [each for each in known if "/" not in str(each.get("name"))]
            served = next((each for each in own if each.get("kind") == kind), None)
            if served is None:
                return []
            inside = f"/namespaces/{namespace or 'default'}" if served.get("namespaced") else ""
            found = object_at(api.get(f"{root}{inside}/{served['name']}/{name}"), "metadata")
        except NotFound:
            return []
        id = f"{namespace or 'default'}/{name}" if served.get("namespaced") else name
        state = "deleting" if found.get("deletionTimestamp") else ""
        why = "its name was made up for it" if operation.made_up else ""
        return [Candidate(id, state, why, parse_cloud_time(found.get("creationTimestamp")))]

    def _api(self, operation: Pending) -> Api:
        given = self.provider(operation).get("kubeconfig")
        if not isinstance(given, str):
            raise NotSought("its provider's kubeconfig is not in the state, or is a secret")
        if given not in self._apis:
            self._apis[given] = _api(given)
        return self._apis[given]


def _api(kubeconfig: str) -> Api:
    """Raise NotSought for a kubeconfig of another form than GKE's."""
    import yaml

    try:
        config: Any = yaml.safe_load(kubeconfig)
        now = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
        cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == now["cluster"])
        user = next(each["user"] for each in config["users"] if each["name"] == now["user"])
        plugin = user["exec"]["command"].rpartition("/")[2]
        pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        server = cluster["server"].removeprefix("https://")
    except (yaml.YAMLError, KeyError, TypeError, ValueError, StopIteration):
        raise NotSought("its provider's kubeconfig is none of GKE's") from None
    if plugin != "gke-gcloud-auth-plugin":
        raise NotSought(f"its provider signs in by {plugin}, and this looks with Google's credentials")
    return Api(server, pem, token)


def token() -> str:
    # google-auth writes the name in lower case.
    headers = {name.title(): value for name, value in auth_headers().items()}
    return headers["Authorization"].removeprefix("Bearer ")
