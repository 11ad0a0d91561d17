"""Names that Kubernetes accepts."""

import re

from accel.diagnostics.findings import Finding, Rule
from accel.rules.table import rule

LABEL = rule("kubernetes.name.label")
SUBDOMAIN = rule("kubernetes.name.object")
CONFIG_KEY = rule("kubernetes.name.config-key")

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
    return _check(CONFIG_KEY, _CONFIG_KEY, name, field, "letters, digits, -, _ and .")


def _check(broken: Rule, pattern: re.Pattern[str], name: str, field: str, takes: str) -> list[Finding]:
    most = _MOST[broken]
    if len(name) > most:
        return [broken.finding(field, f"has {len(name)} characters, of which Kubernetes takes {most}", "shorten it")]
    if pattern.fullmatch(name):
        return []
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "a name"
    return [broken.finding(field, f'is "{name}"; Kubernetes takes {takes}', f"write {better}")]
