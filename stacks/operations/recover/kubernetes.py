"""Looking in a cluster for what a killed run may have made: by kind, namespace and name."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel.clouds.google.rest import entries, mapping, signed
from accel.clouds.kubernetes.client import Api
from accel.diagnostics.errors import NotFound

from .lookup import Candidate, NotSought, moment
from .pending import Json, Pending


@dataclass
class Kubernetes:
    """The clusters that the state's providers name, with this shell's Google credentials."""

    provider: Callable[[Pending], Json]
    _apis: dict[str, Api] = field(default_factory=dict[str, Api])

    def find(self, operation: Pending) -> Sequence[Candidate]:
        """Raises NotSought, and what the API raises."""
        api, inputs = self._api(operation), operation.inputs
        version, kind = str(inputs.get("apiVersion") or ""), str(inputs.get("kind") or "")
        meta = mapping(inputs.get("metadata")) or {}
        name, namespace = meta.get("name"), meta.get("namespace")
        if not (version and kind and isinstance(name, str)):
            raise NotSought("its kind or its name is not in the state")
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        try:
            known = [mapping(each) or {} for each in entries(api.get(root).get("resources"))]
            own = [each for each in known if "/" not in str(each.get("name"))]
            served = next((each for each in own if each.get("kind") == kind), None)
            if served is None:
                return []
            inside = f"/namespaces/{namespace or 'default'}" if served.get("namespaced") else ""
            found = mapping(api.get(f"{root}{inside}/{served['name']}/{name}").get("metadata")) or {}
        except NotFound:
            return []
        id = f"{namespace or 'default'}/{name}" if served.get("namespaced") else name
        state = "deleting" if found.get("deletionTimestamp") else ""
        why = "its name was made up for it" if operation.made_up else ""
        return [Candidate(id, state, why, moment(found.get("creationTimestamp")))]

    def _api(self, operation: Pending) -> Api:
        given = self.provider(operation).get("kubeconfig")
        if not isinstance(given, str):
            raise NotSought("its provider's kubeconfig is not in the state, or is a secret")
        if given not in self._apis:
            self._apis[given] = _api(given)
        return self._apis[given]


def _api(kubeconfig: str) -> Api:
    """The server of a kubeconfig as GKE's are. Raises NotSought for one of another form."""
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
    """That of the credentials that Google's APIs are called with."""
    # google-auth writes the name small.
    headers = {name.title(): value for name, value in signed().items()}
    return headers["Authorization"].removeprefix("Bearer ")
