"""First state of the sandbox's cluster: custom resources, and the webhooks of JobSet and Kueue.

They have the names of an ordinary installation, so a new installation of either changes what is there instead of adding
a second one. Sources: config/default of https://github.com/kubernetes-sigs/jobset and
https://github.com/kubernetes-sigs/kueue, and the patches that it combines.
"""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .certificates import Certificates
from .client import Cluster, Object, Refusal

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "jobset-system", "kueue-system")
"""Namespaces that exist before a user has created one."""

KEYS = "keys"
CONTROLLERS = ("jobset", "kueue")
SECRET = "kueue-webhook-server-cert"
_WEBHOOKS = {
    "jobset": ("mjobset.kb.io", "mpod.kb.io", "vjobset.kb.io", "vpod.kb.io"),
    # Of the kinds that exist here: each additional webhook is a call for each created object.
    "kueue": (
        *("mjob.kb.io", "mjobset.kb.io", "mclusterqueue.kb.io", "mresourceflavor.kb.io", "mworkload.kb.io"),
        *("vjob.kb.io", "vjobset.kb.io", "vclusterqueue.kb.io", "vcohort.kb.io", "vresourceflavor.kb.io"),
        "vworkload.kb.io",
    ),
}
_OF_JOBSET = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
_SELECTORS = {("jobset", name): {"objectSelector": _OF_JOBSET} for name in ("mpod.kb.io", "vpod.kb.io")}
_SERVED_S = 30


def service(controller: str) -> tuple[str, str]:
    """Return namespace and name of the Service of a controller's webhooks."""
    return f"{controller}-system", f"{controller}-webhook-service"


def apply(cluster: Cluster) -> None:
    """Bring the cluster to its first state: create what is missing, and correct what differs. May be repeated. The
    cluster's folder holds `manifests` (see sandbox.toolchain) and the keys."""
    kinds: list[Object] = []
    for body in objects(cluster.folder / "manifests", Certificates(cluster.folder / KEYS)):
        cluster.apply(cluster.path(body["apiVersion"], body["kind"], *_place(body)), body)
        if body["kind"] == "CustomResourceDefinition":
            kinds.append(body["spec"])
    give_up = time.monotonic() + _SERVED_S
    for spec in kinds:
        version = f"{spec['group']}/{spec['versions'][0]['name']}"
        while not _served(cluster, version, spec["names"]["kind"]):
            if time.monotonic() > give_up:
                raise Refusal(0, "Timeout", f"{version} {spec['names']['kind']} is not served after {_SERVED_S} s")
            time.sleep(0.05)


def _served(cluster: Cluster, api_version: str, kind: str) -> bool:
    try:
        cluster.get(cluster.path(api_version, kind), limit=1)
    except Refusal as refusal:
        if refusal.status == 404:
            return False
        raise
    return True


def objects(manifests: Path, certificates: Certificates) -> Iterator[Object]:
    """Yield every object of the first state, in the order in which they can be created."""
    for path in sorted((manifests / "crd").glob("*.yaml")):
        yield from _documents(path)
    for controller in CONTROLLERS:
        namespace, name = service(controller)
        yield _object("v1", "Namespace", namespace)
        spec = {"ports": [{"port": 443, "protocol": "TCP", "targetPort": 9443}]}
        yield {**_object("v1", "Service", name, namespace), "spec": spec}
    yield {**_object("v1", "Secret", SECRET, "kueue-system"), "data": secret(certificates)}
    for controller in CONTROLLERS:
        for body in _documents(manifests / "webhooks" / f"{controller}.yaml"):
            yield _webhooks(controller, body, certificates)


def secret(certificates: Certificates) -> dict[str, str]:
    """Return the data of the Secret in which Kueue keeps the keys of its webhooks."""
    return {name: _base64(certificates.folder / name) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")}


def ca_bundle(certificates: Certificates) -> str:
    return _base64(certificates.ca)


def _webhooks(controller: str, body: Object, certificates: Certificates) -> Object:
    """Return a webhook configuration as kustomize would render its template."""
    namespace, name = service(controller)
    kept = [each for each in body["webhooks"] if each["name"] in _WEBHOOKS[controller]]
    for each in kept:
        each["clientConfig"]["service"].update(name=name, namespace=namespace)
        each["clientConfig"]["caBundle"] = ca_bundle(certificates)
        each.update(_SELECTORS.get((controller, each["name"]), {}))
    return {**_object(body["apiVersion"], body["kind"], f"{controller}-{body['metadata']['name']}"), "webhooks": kept}


def _documents(path: Path) -> Iterator[Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return (body for body in yaml.load_all(path.read_text(), loader) if body)


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _place(body: Object) -> tuple[str, str | None]:
    return body["metadata"]["name"], body["metadata"].get("namespace")


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
