"""Labels and taints of GKE nodes, and pool names."""

import re
from collections.abc import Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

POOL_NAME = rule("gke.pool.name")
KEY = rule("gke.label.key")
VALUE = rule("gke.label.value")
KUBELET = rule("gke.label.kubelet")
SYSTEM = rule("gke.label.system")
SIZE = rule("gke.label.size")
TAINT_TWICE = rule("gke.taint.twice")
TAINT_OWN = rule("gke.taint.own")

KEY_MOST = 32
"""Maximum characters of a pool's key, so that the name stays within 40 with - and 7 random ones."""
SIZE_MOST = 1024
ACCELERATOR_TAINTS = ("nvidia.com/gpu", "google.com/tpu")

_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_PART = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_KUBELET = ("kubernetes.io", "k8s.io")
_SYSTEM = ("cloud.google.com", "gke.io", "gke.networks.io")


def pool_name(key: str, field: str = "pools") -> list[Finding]:
    if len(key) > KEY_MOST:
        message = f'"{key}" has {len(key)} characters, of which a pool\'s name leaves {KEY_MOST}'
        return [POOL_NAME.finding(field, message, "shorten it")]
    if not _NAME.fullmatch(key):
        fix = "write lower case letters, digits and -, a letter first and no - last"
        return [POOL_NAME.finding(field, f'"{key}" is no name of a node pool', fix)]
    return []


def labels(given: Mapping[str, str], field: str = "labels") -> list[Finding]:
    found = [each for key, value in given.items() for each in _pair(f"{field}.{key}", key, value)]
    size = sum(len(key) + len(value) for key, value in given.items())
    if size > SIZE_MOST:
        found.append(SIZE.finding(field, f"have {size} characters, more than {SIZE_MOST}", "leave some out"))
    return found


def taints(given: Sequence[tuple[str, str, str]], field: str = "taints") -> list[Finding]:
    found: list[Finding] = []
    seen: set[tuple[str, str]] = set()
    for index, (key, value, effect) in enumerate(given):
        at = f"{field}[{index}]"
        if key in ACCELERATOR_TAINTS:
            message = f"is {key}, which GKE sets itself"
            fix = "leave it out; it is only needed where no other pool is in the cluster"
            found.append(TAINT_OWN.finding(at, message, fix))
        else:
            found += _pair(at, key, value)
        if (key, effect) in seen:
            message = f"is a second {key} with {effect}"
            found.append(TAINT_TWICE.finding(at, message, "keep one of the two"))
        seen.add((key, effect))
    return found


def _pair(field: str, key: str, value: str) -> list[Finding]:
    domain, slash, name = key.rpartition("/")
    if not _PART.fullmatch(name) or (slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain))):
        return [KEY.finding(field, f'has the key "{key}"', "write it as team, or as company.com/team")]
    if _within(domain, _KUBELET):
        return [KUBELET.finding(field, f"has the key {key}, which is reserved", f"write it as company.com/{name}")]
    found: list[Finding] = []
    if _within(domain, _SYSTEM):
        message = f"has the key {key}, which GKE may set, remove or read"
        found.append(SYSTEM.finding(field, message, "use a domain of your own unless GKE's pages ask for it"))
    if value and not _PART.fullmatch(value):
        fix = "write at most 63 letters, digits, -, _ and ., a letter or digit first and last"
        found.append(VALUE.finding(field, f'has the value "{value}"', fix))
    return found


def _within(domain: str, reserved: Sequence[str]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in reserved)
