"""Kubernetes objects as Pulumi's inputs and outputs: names, observed fields, and fields that may not change."""

import base64
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from ..mapping import UNKNOWN, has_unknown

State = dict[str, Any]
PREFIX = "pulumi.com/"
READ_ONLY = ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
             "resourceVersion", "selfLink", "uid")  # fmt: skip
# pulumi sdk/python/lib/pulumi/runtime/rpc.py: the mark of a wrapped value, and that of a secret among those
_SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
# Names that Pulumi's SDKs cannot spell (pulumi-kubernetes, provider.go, underscoreToDashMap).
_DASHED = {
    f"x_kubernetes_{name.replace('-', '_')}": f"x-kubernetes-{name}"
    for name in ("embedded-resource", "int-or-string", "list-map-keys", "list-type", "map-type",
                 "preserve-unknown-fields", "validations")
}  # fmt: skip
_UNITS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_VOLUME = (
    *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker"),
    *("gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk"),
    *("portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
)
# Fields that replace an object (pulumi-kubernetes, provider/pkg/provider/diff.go); metadata.name and .namespace always
# do.
_REPLACES = {
    "apps/DaemonSet": ("spec.selector",),
    "apps/Deployment": ("spec.selector",),
    "apps/StatefulSet": tuple(
        f"spec.{name}"
        for name in ("podManagementPolicy", "revisionHistoryLimit", "selector", "serviceName", "volumeClaimTemplates")
    ),
    "batch/Job": ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    "rbac.authorization.k8s.io/ClusterRoleBinding": ("roleRef",),
    "rbac.authorization.k8s.io/RoleBinding": ("roleRef",),
    "storage.k8s.io/StorageClass": ("parameters", "provisioner"),
    "/ConfigMap": ("binaryData", "data"),
    "/Secret": ("type", "stringData", "data"),
    "/PersistentVolume": tuple(f"spec.{name}" for name in _VOLUME),
    "/PersistentVolumeClaim": tuple(
        f"spec.{name}" for name in ("accessModes", "selector", "storageClassName", "volumeName")
    ),
    "/Pod": ("spec",),  # the provider allows changes of tolerations and a few more
    "/ResourceQuota": ("spec.scopes",),
    "/Service": ("spec.clusterIP",),
}
_MUTABLE = {"/ConfigMap": "enableConfigMapMutable", "/Secret": "enableSecretMutable"}


def kind_of(token: str) -> tuple[str, str]:
    """Return apiVersion and kind of `kubernetes:<group>/<version>:<Kind>`."""
    _, version, kind = token.split(":")
    return version.removeprefix("core/"), kind


def about(state: Mapping[str, Any]) -> State:
    """Return its metadata, {} where that is absent or not known yet."""
    found = state.get("metadata")
    return found if isinstance(found, dict) else {}


def annotation(state: Mapping[str, Any], name: str) -> str:
    found = about(state).get("annotations")
    return str(found.get(PREFIX + name, "")) if isinstance(found, dict) else ""


def id_of(state: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (about(state).get("namespace"), about(state)["name"])))


def with_generated_name(inputs: State, olds: State, name: str, seed: str) -> State:
    """Return the inputs with a name, the old automatic one or `<name>-<8 hex>`, and the mark that it is automatic."""
    if inputs.get("metadata") == UNKNOWN or about(inputs).get("name"):
        return inputs
    known = about(olds).get("name") if annotation(olds, "autonamed") == "true" else None
    metadata: State = {**about(inputs), "name": known or f"{name}-{seed[:8]}"}
    if metadata.get("annotations") != UNKNOWN:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), f"{PREFIX}autonamed": "true"}
    return {**inputs, "metadata": metadata}


def to_api(value: Any) -> Any:
    return _renamed(value, _DASHED)


def from_api(live: State) -> State:
    """Return the outputs of a live object. The content of a Secret is secret in the state, too."""
    found = _renamed(live, {dashed: name for name, dashed in _DASHED.items()})
    return hide_secret({key: value for key, value in found.items() if key != "managedFields"})


def hide_secret(state: State) -> State:
    if state.get("kind") != "Secret" or state.get("apiVersion") != "v1":
        return state
    return {
        key: {**_SECRET, "value": value} if key in ("data", "stringData") else value for key, value in state.items()
    }


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
        case list():
            return [_renamed(item, names) for item in value]
        case _:
            return value


def import_inputs(live: State) -> State:
    """Return the inputs of an object that Pulumi did not create: all but what only the server writes."""
    metadata = {key: value for key, value in about(live).items() if key not in READ_ONLY}
    return {**{key: value for key, value in live.items() if key != "status"}, "metadata": metadata}


def observe(known: Any, live: Any, path: str = "") -> Any:
    """Return what the server now has of the fields in `known`, which keep their spelling where they mean the same."""
    match known, live:
        case dict(), dict():
            if known.get("kind") == "Secret" and "stringData" in known and not path:
                live = {**live, "stringData": _decoded(live.get("data") or {})}
            kept = {key: item for key, item in known.items() if key in live or item in ({}, [], "", 0)}
            return {
                key: observe(item, live[key], f"{path}.{key}") if key in live else item for key, item in kept.items()
            }
        case list(), list():
            return [observe(a, b, path) for a, b in zip(known, live, strict=False)]
        case _:
            return known if alike(known, live, path) else live


def _decoded(data: Mapping[str, str]) -> State:
    return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}


def alike(a: Any, b: Any, path: str) -> bool:
    """Return whether two values are equal, or two spellings of one quantity: the server writes 1024Mi as 1Gi."""
    if a == b or path.lstrip(".").partition(".")[0] in ("metadata", "data", "stringData"):
        return a == b
    one, other = _quantity(a), _quantity(b)
    return one is not None and one == other


def _quantity(value: Any) -> Decimal | None:
    found = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?\d+)?)([KMGTPE]i|[numkMGTPE])?", str(value))
    if found is None or isinstance(value, bool):
        return None
    try:
        number = Decimal(found[1])
    except InvalidOperation:
        return None
    unit = found[2] or ""
    return number * (2 ** _BINARY[unit] if unit in _BINARY else Decimal(10) ** _UNITS.get(unit, 0))


def changes(old: Any, new: Any, path: str = "", bare: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (path as Pulumi writes it, "ADD" | "UPDATE" | "DELETE", path without indices) for each difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            at = f'{path}["{key}"]' if re.search(r'[."\[\]]', key) else f"{path}.{key}" if path else key
            yield from _changed(old, new, key, at, f"{bare}.{key}" if bare else key)
    elif isinstance(old, list) and isinstance(new, list):
        before, after = dict(enumerate(old)), dict(enumerate(new))
        for index in range(max(len(old), len(new))):
            yield from _changed(before, after, index, f"{path}[{index}]", bare)
    elif not alike(old, new, bare):
        yield path, "UPDATE", bare


def _changed(old: Any, new: Any, key: Any, path: str, bare: str) -> Iterator[tuple[str, str, str]]:
    if key in old and key in new:
        yield from changes(old[key], new[key], path, bare)
    else:
        yield path, "DELETE" if key in old else "ADD", bare


def difference(olds: State, news: State, settings: State) -> tuple[dict[str, str], set[str], bool]:
    """Return (path: kind of change; the paths that force a replacement; whether the old object has to go first)."""
    old, new = _placed(olds), _placed(news)
    group = str(new.get("apiVersion", "")).rpartition("/")[0]
    kind = f"{group}/{new.get('kind')}"
    rules = {"metadata.name", "metadata.namespace", "kind", *_REPLACES.get(kind, ())}
    if settings.get(_MUTABLE.get(kind, "")) and not new.get("immutable"):
        rules -= {"binaryData", "data", "stringData"}
    found = {path: (how, bare) for path, how, bare in changes(old, new)}
    forcing = {path for path, (_, bare) in found.items() if any(_touches(bare, rule, old, new) for rule in rules)}
    mine = annotation(news, "autonamed") != "true"
    stays = all(about(old).get(key) == about(new).get(key) for key in ("name", "namespace"))
    return {path: how for path, (how, _) in found.items()}, forcing, bool(forcing) and mine and stays


def _placed(state: State) -> State:
    """Return the state without the namespace `default`: leaving it out means the same."""
    metadata = state.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace") != "default":
        return state
    return {**state, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}


def _touches(bare: str, rule: str, *sides: State) -> bool:
    if f"{bare}.".startswith(f"{rule}."):
        return True
    # A block that came or went whole, with the field in it.
    return rule.startswith(f"{bare}.") and any(_reaches(side, rule.split(".")) for side in sides)


def _reaches(value: Any, path: list[str]) -> bool:
    if isinstance(value, list):
        return any(_reaches(item, path) for item in value)
    if not path:
        return True
    if has_unknown(value) and not isinstance(value, dict):
        return True
    return isinstance(value, dict) and path[0] in value and _reaches(value[path[0]], path[1:])
