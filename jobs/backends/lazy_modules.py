"""Modules that are imported when the first of their names is used: rendering a request for `submit --dry-run` needs few
of a backend's modules."""

from importlib import import_module
from typing import Any


class LazyModule:
    """A submodule of a package; its names are those of the module."""

    def __init__(self, package: str, name: str) -> None:
        self._path = f"{package}.{name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._path), name)


def lazy_modules(package: str, *names: str) -> tuple[LazyModule, ...]:
    return tuple(LazyModule(package, name) for name in names)
