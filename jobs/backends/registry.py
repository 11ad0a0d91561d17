"""Lookup of the backend that serves a target or an existing job."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from accel.contract.targets import KINDS, AnyTarget
from accel.diagnostics.errors import BadInput
from accel.diagnostics.messages import did_you_mean, printable_name

from .base import Backend, JobRef, PlatformBackend

_CLASSES: Mapping[str, tuple[str, str]] = {
    "aws-batch": ("aws_batch", "AwsBatchBackend"),
    "gke": ("gke", "GkeBackend"),
    "tpu-vm": ("vm.tpu", "TpuVmBackend"),
    "gce": ("vm.gpu", "GceBackend"),
    "google-batch": ("google_batch", "GoogleBatchBackend"),
    "vertex": ("vertex", "VertexBackend"),
    "local": ("local", "LocalBackend"),
}
"""Package and class by kind of target. A package and its SDK are loaded when one of its jobs is used."""


def of_target(name: str, target: AnyTarget) -> Backend:
    return backend_class(target.kind)(name, target)


def of_ref(ref: JobRef) -> Backend:
    """Return a backend for status, cancel and logs, which need no target. Raise BadInput for an unknown kind."""
    if ref.kind not in KINDS:
        raise BadInput(f"job reference {printable_name(str(ref))}: unknown kind{did_you_mean(ref.kind, KINDS)}")
    return backend_class(ref.kind).of_scope(ref.scope)


def platform_module(kind: str, name: str) -> ModuleType:
    """Return one module of the package for a kind of target, such as `labels` of `gke`, without loading the backend."""
    folder = _CLASSES[kind][0].partition(".")[0]
    return import_module(f".{folder}.{name}", __package__)


@cache
def backend_class(kind: str) -> type[PlatformBackend[Any, Any, Any]]:
    """Raise KeyError for an unknown kind."""
    package, name = _CLASSES[kind]
    return getattr(import_module(f".{package}", __package__), name)
