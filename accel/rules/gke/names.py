"""Names that Kubernetes accepts."""

import re

from accel.diagnostics.findings import Finding, Rule

_NAMES = "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"

LABEL = Rule(
    "kubernetes.name.label",
    "reject",
    "A namespace's name has at most 63 small letters, digits and -, the first and the last a letter or digit",
    f"{_NAMES}#dns-label-names",
)
SUBDOMAIN = Rule(
    "kubernetes.name.object",
    "reject",
    "An object's name has at most 253 small letters, digits, - and ., the first and the last a letter or digit",
    f"{_NAMES}#dns-subdomain-names",
)
CONFIG_KEY = Rule(
    "kubernetes.name.config-key",
    "reject",
    "A key of a ConfigMap has at most 253 letters, digits, -, _ and dots",
    "https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-object",
)

RULES = (LABEL, SUBDOMAIN, CONFIG_KEY)

_END, _WITHIN = "[a-z0-9]", "[a-z0-9-]"
_LABEL = re.compile(rf"{_END}(?:{_WITHIN}*{_END})?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*")
_CONFIG_KEY = re.compile(r"[A-Za-z0-9._-]+")
_MOST = {LABEL: 63, SUBDOMAIN: 253, CONFIG_KEY: 253}


def label(name: str, field: str = "name") -> list[Finding]:
    """Check the name of a namespace, a Service or a node pool."""
    return _check(LABEL, _LABEL, name, field, "small letters, digits and -, beginning and ending with none of -")


def subdomain(name: str, field: str = "name") -> list[Finding]:
    """Check the name of most other objects: queues, claims, ConfigMaps, service accounts."""
    return _check(
        SUBDOMAIN, _SUBDOMAIN, name, field, "small letters, digits, - and ., beginning with a letter or digit"
    )


def config_key(name: str, field: str = "key") -> list[Finding]:
    """Check a key of a ConfigMap's data."""
    return _check(CONFIG_KEY, _CONFIG_KEY, name, field, "letters, digits, -, _ and .")


def _check(rule: Rule, pattern: re.Pattern[str], name: str, field: str, takes: str) -> list[Finding]:
    most = _MOST[rule]
    if len(name) > most:
        return [rule.finding(field, f"has {len(name)} characters, of which Kubernetes takes {most}", "shorten it")]
    if pattern.fullmatch(name):
        return []
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "a name"
    return [rule.finding(field, f'is "{name}"; Kubernetes takes {takes}', f"write {better}")]
