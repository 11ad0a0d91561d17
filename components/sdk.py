"""Provider SDKs, imported on first use: each takes a quarter of a second or more, which a stack without that cloud need
not pay. Modules that use one leave their annotations unevaluated."""

from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Later:
    """A stand-in for a module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


if TYPE_CHECKING:
    import pulumi_aws as aws
    import pulumi_gcp as gcp
    from pulumi_kubernetes import apiextensions, apps, batch, networking, rbac, storage
    from pulumi_kubernetes.core import v1 as core
    from pulumi_kubernetes.meta import v1 as meta
else:
    aws, gcp = _Later("pulumi_aws"), _Later("pulumi_gcp")
    core, meta = _Later("pulumi_kubernetes.core.v1"), _Later("pulumi_kubernetes.meta.v1")
    apiextensions, apps, batch, networking, rbac, storage = (
        _Later(f"pulumi_kubernetes.{group}")
        for group in ("apiextensions", "apps", "batch", "networking", "rbac", "storage")
    )

__all__ = ["apiextensions", "apps", "aws", "batch", "core", "gcp", "meta", "networking", "rbac", "storage"]
