"""Checks whether a pod fits a node, by the scheduler's rules for resources, selectors, affinity and taints.

The texts are those of the scheduler's plugins, which the autoscaler repeats:
https://github.com/kubernetes/kubernetes/tree/v1.34.4/pkg/scheduler/framework/plugins. Affinity between pods, spreading,
host ports and volumes are ignored: the scheduler here is the real one, and only asks for one node more.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from .client import Object

AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_SUFFIXES = {
    "m": 0.001, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
}  # fmt: skip

Amounts = dict[str, float]


def quantity(text: str | int | float) -> float:
    """Return a Kubernetes quantity as a number: "500m" is 0.5, "1Gi" is 1073741824."""
    text = str(text)
    number = text.rstrip("kKMGTPim")
    if number[-1:] in ("e", "E") or text[len(number) :] not in _SUFFIXES:
        return float(text)
    return round(float(number) * _SUFFIXES[text[len(number) :]], 6)


def amounts(resources: Mapping[str, Any]) -> Amounts:
    return {name: quantity(value) for name, value in resources.items()}


def requests(spec: Mapping[str, Any]) -> Amounts:
    """Return what a pod requests: its containers together, or an init container that requests more; one pod."""
    total: Amounts = {"pods": 1}
    for container in spec.get("containers", []):
        for name, value in _asked(container).items():
            total[name] = total.get(name, 0) + value
    for container in spec.get("initContainers") or []:
        for name, value in _asked(container).items():
            total[name] = max(total.get(name, 0), value)
    return total


def _asked(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    return amounts((resources.get("limits") or {}) | (resources.get("requests") or {}))


def take(free: Amounts, wanted: Amounts) -> None:
    for name, value in wanted.items():
        free[name] = free.get(name, 0) - value


def obstacles(spec: Mapping[str, Any], node: Object, free: Amounts) -> list[str]:
    """Return why a pod does not fit a node; an empty list if it does."""
    found = [] if matches(spec, node) else [AFFINITY]
    for taint in node["spec"].get("taints") or []:
        if taint["effect"] != "PreferNoSchedule" and not is_tolerated(taint, spec.get("tolerations") or []):
            found.append(f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}")
            break
    if found:
        return found
    short = [name for name, value in requests(spec).items() if value > free.get(name, 0) + 1e-6]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


def is_tolerated(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    for each in tolerations:
        if each.get("effect") and each["effect"] != taint["effect"]:
            continue
        if each.get("key") and each["key"] != taint["key"]:
            continue
        if each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""):
            return True
    return False


def matches(spec: Mapping[str, Any], node: Object) -> bool:
    """Return whether a node fulfils nodeSelector and the required node affinity."""
    labels = node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    name = {"metadata.name": node["metadata"]["name"]}
    return any(
        all(_holds(labels, each) for each in term.get("matchExpressions") or [])
        and all(_holds(name, each) for each in term.get("matchFields") or [])
        for term in required["nodeSelectorTerms"]
        if term.get("matchExpressions") or term.get("matchFields")
    )


def _holds(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.isdigit() and int(value) > int(values[0])
        case "Lt":
            return value is not None and value.isdigit() and int(value) < int(values[0])
        case other:
            raise ValueError(f"unknown operator of a node affinity: {other}")
