"""Kubernetes objects for which the provider's SDK has no class with all of their fields."""

from importlib.metadata import version
from typing import Any, cast

import pulumi

Document = dict[str, Any]
"""An object as in YAML, with names in Kubernetes' own spelling."""


_DASHED = {
    f"x-kubernetes-{name}": f"x_kubernetes_{name.replace('-', '_')}"
    for name in ("embedded-resource", "int-or-string", "list-map-keys", "list-type", "map-type",
                 "preserve-unknown-fields", "validations")
}  # fmt: skip
"""Names in definitions that the provider spells differently when it reads them back: with Kubernetes' own spelling,
every refresh finds a difference. https://github.com/pulumi/pulumi-kubernetes (provider.go, underscoreToDashMap)"""


def token(document: Document) -> str:
    """Return Pulumi's type of an object; the same as that of its typed class, if there is one."""
    api = document["apiVersion"]
    return f"kubernetes:{api if '/' in api else f'core/{api}'}:{document['kind']}"


def register(name: str, document: Document, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Register an object as it is written. As for a typed class, the provider's version is that of the SDK."""
    return pulumi.CustomResource(token(document), name, _spelt(document), _versioned(opts))


def _spelt(value: Any) -> Any:
    if isinstance(value, list):
        return [_spelt(inner) for inner in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_DASHED.get(key, key): _spelt(inner) for key, inner in cast(Document, value).items()}
    return value


def _versioned(opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    opts.version = version("pulumi-kubernetes")
    return opts
