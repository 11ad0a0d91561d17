"""Environment and command of a container, as the kubelet puts them together from a pod.

The pods of a job are processes of this machine, and nothing here answers for names like `train-0.train`. So a name
below a headless Service of the pod's namespace is replaced by an address of this machine wherever it stands in a value
or an argument (`train-0.train.team.svc.cluster.local:29500` too): a program that gets its peers from there finds them,
one that constructs their names does not. https://kubernetes.io/docs/concepts/services-networking/dns-pod-service
"""

import base64
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox import loopback

from .client import Object
from .fit import quantity

_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z_.][\w.-]*)\))")

Read = Callable[[str, str], Object | None]
"""Function that returns the object of a kind (`configmaps`, `secrets`) and name in the pod's namespace, or None."""


class ConfigError(Exception):
    """Reason why the kubelet cannot create the container yet (CreateContainerConfigError)."""


def environment(pod: Object, container: Mapping[str, Any], read: Read) -> dict[str, str]:
    """Return the variables of a container. Raises ConfigError for a missing Secret, ConfigMap or key."""
    found: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        for kind, field in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
            if field in source:
                data = _data(pod, kind, source[field], read)
                found |= {f"{source.get('prefix', '')}{name}": value for name, value in data.items()}
    for each in container.get("env") or []:
        if "valueFrom" not in each:
            found[each["name"]] = expand(each.get("value", ""), found)
        elif (value := _value(pod, container, each["valueFrom"], read)) is not None:
            found[each["name"]] = value
    return {"HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"]} | found


def command(container: Mapping[str, Any], variables: Mapping[str, str]) -> list[str]:
    """Return the command. An image's own command is not known here, so a container must have one."""
    return [expand(each, variables) for each in [*(container.get("command") or []), *(container.get("args") or [])]]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` where NAME is known, and `$$` by `$`.
    https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables"""
    return _REFERENCE.sub(lambda m: "$" if m[1] == "$" else variables.get(m[2], m[0]), text)


def local(texts: Iterable[str], services: Iterable[Object], namespace: str) -> list[str]:
    """Replace the names of pods of headless Services by addresses of this machine, one for each name."""
    headless = (each["metadata"] for each in services if each["spec"].get("clusterIP") == "None")
    uids = {each["name"]: each["uid"] for each in headless}
    if not uids:
        return list(texts)
    rest = rf"(?:\.{re.escape(namespace)}(?:\.svc(?:\.cluster\.local)?)?)?"
    name = re.compile(rf"(?<![\w.-])([a-z0-9][a-z0-9-]*)\.({'|'.join(map(re.escape, uids))}){rest}(?![\w.-])")
    return [name.sub(lambda m: loopback.address(uids[m[2]], m[1]), text) for text in texts]


def _value(pod: Object, container: Mapping[str, Any], source: Mapping[str, Any], read: Read) -> str | None:
    """Return the value of an environment variable's source, or None for a missing optional one."""
    for kind, field in (("configmaps", "configMapKeyRef"), ("secrets", "secretKeyRef")):
        if reference := source.get(field):
            data = _data(pod, kind, reference, read)
            if reference["key"] in data or reference.get("optional"):
                return data.get(reference["key"])
            place = f"{pod['metadata']['namespace']}/{reference['name']}"
            raise ConfigError(f"couldn't find key {reference['key']} in {_KINDS[kind]} {place}")
    if "resourceFieldRef" in source:
        return _resource(container, source["resourceFieldRef"])
    return _field(pod, source["fieldRef"]["fieldPath"])


_KINDS = {"configmaps": "ConfigMap", "secrets": "Secret"}


def _data(pod: Object, kind: str, reference: Mapping[str, Any], read: Read) -> dict[str, str]:
    found = read(kind, reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f'{kind.removesuffix("s")} "{reference["name"]}" not found')
    data: dict[str, str] = found.get("data") or {}
    if kind == "secrets":
        return {name: base64.b64decode(value).decode(errors="replace") for name, value in data.items()}
    return data


def _field(pod: Object, path: str) -> str:
    """Return a field of the downward API: https://kubernetes.io/docs/concepts/workloads/pods/downward-api"""
    metadata, spec = pod["metadata"], pod["spec"]
    if entry := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return (metadata.get(entry[1]) or {}).get(entry[2], "")
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec["nodeName"],
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        **dict.fromkeys(("status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"), loopback.LOCAL),
    }
    if path not in known:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return known[path]


def _resource(container: Mapping[str, Any], reference: Mapping[str, Any]) -> str:
    """Return a container's own request or limit, in whole divisors, rounded up; 0 where it has none."""
    kind, _, name = reference["resource"].partition(".")
    asked = (container.get("resources") or {}).get(kind) or {}
    divisor = quantity(reference.get("divisor") or "1") or 1
    return str(math.ceil(round(quantity(asked.get(name, "0")) / divisor, 6)))
