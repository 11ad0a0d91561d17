"""Which backend serves a target, and which serves a job that exists. SDKs are imported inside the case."""

from importlib import import_module
from types import ModuleType
from typing import Any

from accel.contract.targets import KINDS, AnyTarget
from accel.diagnostics.errors import BadInput
from accel.diagnostics.messages import did_you_mean, name_shown

from .base import Backend, JobRef, PlatformBackend


def of_target(name: str, target: AnyTarget) -> Backend:
    """Return the backend that runs jobs on the target."""
    return backend_class(target.kind)(name, target)


def of_ref(ref: JobRef) -> Backend:
    """Return the backend that sees the job, for status, cancel and logs: a reference needs no target.

    Raise BadInput for a kind that this version does not know.
    """
    if ref.kind not in KINDS:
        raise BadInput(f"job reference {name_shown(str(ref))}: unknown kind{did_you_mean(ref.kind, KINDS)}")
    return backend_class(ref.kind).of_scope(ref.scope)


def platform_module(kind: str, name: str) -> ModuleType:
    """Return a module of the folder of a kind of targets, such as `labels` of `gke`, so that others load no backend."""
    folder = "vm" if kind in ("tpu-vm", "gce") else kind.replace("-", "_")
    return import_module(f".{folder}.{name}", __package__)


def backend_class(kind: str) -> type[PlatformBackend[Any, Any, Any]]:
    """Return the class of a kind of targets. Raise KeyError for an unknown kind."""
    match kind:
        case "aws-batch":
            from .aws_batch import AwsBatchBackend

            return AwsBatchBackend
        case "gke":
            from .gke import GkeBackend

            return GkeBackend
        case "tpu-vm":
            from .vm.tpu import TpuVmBackend

            return TpuVmBackend
        case "gce":
            from .vm.gpu import GceBackend

            return GceBackend
        case "google-batch":
            from .google_batch import GoogleBatchBackend

            return GoogleBatchBackend
        case "vertex":
            from .vertex import VertexBackend

            return VertexBackend
        case "local":
            from .local import LocalBackend

            return LocalBackend
        case _:
            raise KeyError(kind)
