"""What the pods of JobSet and Kueue would find mounted and injected, kept so when their installation is made anew."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from . import bootstrap
from .certificates import Certificates
from .client import Cluster, Object, Refusal

_WATCH_S = 600
_AGAIN_S = 0.5
_HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"

_Judge = Callable[[Object, Certificates], Mapping[str, Any] | None]
"""The merge patch that puts an object right; None: it is."""


def tend(cluster: Cluster, stop: threading.Event) -> None:
    """Keep Kueue's Secret and the authority of JobSet's webhooks ours, from threads of its own, until `stop` is set.

    Kueue tells its own webhooks, from its Secret; JobSet, run without rotation of its keys, tells nobody.
    """
    certificates = Certificates(cluster.folder / bootstrap.KEYS)
    watched: dict[str, _Judge] = {
        f"/api/v1/namespaces/kueue-system/secrets/{bootstrap.SECRET}": _secret,
        **{
            f"{_HOOKS.format(kind)}/jobset-{kind}-webhook-configuration": _webhooks
            for kind in ("mutating", "validating")
        },
    }
    for path, judge in watched.items():
        threading.Thread(target=_keep, args=(cluster, path, judge, certificates, stop), daemon=True).start()


def _keep(cluster: Cluster, path: str, judge: _Judge, certificates: Certificates, stop: threading.Event) -> None:
    collection, _, name = path.rpartition("/")
    while not stop.is_set():
        try:
            for event in cluster.watch(collection, fieldSelector=f"metadata.name={name}", timeoutSeconds=_WATCH_S):
                change = judge(event["object"], certificates) if event["type"] != "DELETED" else None
                if change is not None:
                    cluster.patch(path, change)
        except Refusal:  # it has changed or gone meanwhile, or everything ends
            stop.wait(_AGAIN_S)


def _secret(found: Object, certificates: Certificates) -> Mapping[str, Any] | None:
    wanted = bootstrap.secret(certificates)
    return None if found.get("data") == wanted else {"data": wanted}


def _webhooks(found: Object, certificates: Certificates) -> Mapping[str, Any] | None:
    """A merge patch replaces the list, so the object's version goes with it: nobody's change in between is lost."""
    ours, webhooks = bootstrap.ca_bundle(certificates), found.get("webhooks") or []
    if all(each["clientConfig"].get("caBundle") == ours for each in webhooks):
        return None
    told = [{**each, "clientConfig": {**each["clientConfig"], "caBundle": ours}} for each in webhooks]
    return {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "webhooks": told}
