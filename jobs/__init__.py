"""Submit workloads to the targets that a stack created, and to this machine.

docs/python.md describes the public names. They load on first use, so that the command starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel.diagnostics import errors

    from . import aio
    from .api import get, list_targets, ls, submit, submit_many, wait
    from .backends.base import Explanation, JobRef, LogLine, Phase, Status
    from .handle import Run
    from .model.fields import Accelerator, Mount
    from .model.job import Job
    from .model.sweep import Sweep

__all__ = [
    "Accelerator",
    "Explanation",
    "Job",
    "JobRef",
    "LogLine",
    "Mount",
    "Phase",
    "Run",
    "Status",
    "Sweep",
    "aio",
    "errors",
    "get",
    "list_targets",
    "ls",
    "submit",
    "submit_many",
    "wait",
]

_MODULES = {
    "api": ("get", "list_targets", "ls", "submit", "submit_many", "wait"),
    "backends.base": ("Explanation", "JobRef", "LogLine", "Phase", "Status"),
    "handle": ("Run",),
    "model.fields": ("Accelerator", "Mount"),
    "model.job": ("Job",),
    "model.sweep": ("Sweep",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # a module __getattr__ that type checkers see would make every name valid

    def __getattr__(name: str) -> Any:
        if name == "aio":
            return import_module(".aio", __name__)
        if name == "errors":
            return import_module("accel.diagnostics.errors")
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
