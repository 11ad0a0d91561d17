"""Provider SDKs, imported on first use: each takes a quarter of a second or more, which a stack without that cloud need
not pay; and of their packages, those of the modules that are used. Modules that use one leave their annotations
unevaluated."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _Later:
    """A stand-in for a module, or for one that it has."""

    def __init__(self, name: str, *inner: str) -> None:
        self._name, self._inner = name, inner

    def __getattr__(self, attribute: str) -> Any:
        found: Any = import_module(self._name)
        for name in (*self._inner, attribute):
            found = _by_module(getattr(found, name))
        return found


class _Package(ModuleType):
    """A package of an SDK that imports the module with a class when the class is asked for. Its own `__init__` would
    import them all, some hundred, for half of the time that a preview spends on imports."""

    def __getattr__(self, name: str) -> Any:
        for module in (name, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(), "_inputs"):
            if Path(self.__path__[0], f"{module}.py").exists():
                imported = import_module(f"{self.__name__}.{module}")
                found = getattr(imported, name, imported if module == name else None)
                if found is not None:
                    setattr(self, name, found)
                    return found
        self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]
        self.__spec__.loader.exec_module(self)  # pyright: ignore[reportOptionalMemberAccess]
        return getattr(self, name)


def _by_module(found: Any) -> Any:
    """Make a package that an SDK has, and has not yet imported, import by module."""
    if isinstance(found, ModuleType) and type(found) not in (ModuleType, _Package):
        found.__class__ = _Package
    return found


if TYPE_CHECKING:
    import pulumi_aws as aws
    import pulumi_gcp as gcp
    from pulumi_kubernetes import apiextensions, apps, batch, networking, rbac, storage
    from pulumi_kubernetes.core import v1 as core
    from pulumi_kubernetes.meta import v1 as meta
else:
    aws, gcp = _Later("pulumi_aws"), _Later("pulumi_gcp")
    core, meta = _Later("pulumi_kubernetes.core", "v1"), _Later("pulumi_kubernetes.meta", "v1")
    apiextensions, apps, batch, networking, rbac, storage = (
        _Later(f"pulumi_kubernetes.{group}")
        for group in ("apiextensions", "apps", "batch", "networking", "rbac", "storage")
    )

__all__ = ["apiextensions", "apps", "aws", "batch", "core", "gcp", "meta", "networking", "rbac", "storage"]
