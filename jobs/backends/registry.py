"""Which backend serves a target, and which serves a job that exists. SDKs are imported inside the case."""

from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import KINDS, AnyTarget, AwsBatchTarget, LocalTarget
from accel.diagnostics.errors import BadInput
from accel.diagnostics.messages import did_you_mean, name_shown

from .base import Backend, JobRef


def of_target(name: str, target: AnyTarget) -> Backend:
    """The backend that runs jobs on the target."""
    match target:
        case AwsBatchTarget():
            from .aws_batch import AwsBatchBackend

            return AwsBatchBackend(name, target)
        case GkeTarget():
            from .gke import GkeBackend

            return GkeBackend(name, target)
        case TpuVmTarget():
            from .vm.tpu import TpuVmBackend

            return TpuVmBackend(name, target)
        case GceTarget():
            from .vm.gpu import GceBackend

            return GceBackend(name, target)
        case GoogleBatchTarget():
            from .google_batch import GoogleBatchBackend

            return GoogleBatchBackend(name, target)
        case VertexTarget():
            from .vertex import VertexBackend

            return VertexBackend(name, target)
        case LocalTarget():
            from .local import LocalBackend

            return LocalBackend(name, target)


def of_ref(ref: JobRef) -> Backend:
    """The backend that sees the job, for status, cancel and logs: a reference needs no target.

    Raises BadInput for a kind that this version does not know.
    """
    match ref.kind:
        case "aws-batch":
            from .aws_batch import AwsBatchBackend

            return AwsBatchBackend.of_region(ref.scope)
        case "gke":
            from .gke import GkeBackend

            return GkeBackend.of_scope(ref.scope)
        case "tpu-vm":
            from .vm.tpu import TpuVmBackend

            return TpuVmBackend.of_scope(ref.scope)
        case "gce":
            from .vm.gpu import GceBackend

            return GceBackend.of_scope(ref.scope)
        case "google-batch":
            from .google_batch import GoogleBatchBackend

            return GoogleBatchBackend.of_scope(ref.scope)
        case "vertex":
            from .vertex import VertexBackend

            return VertexBackend.of_scope(ref.scope)
        case "local":
            from .local import LocalBackend

            return LocalBackend.anywhere()
        case kind:
            raise BadInput(f"job reference {name_shown(str(ref))}: unknown kind{did_you_mean(kind, KINDS)}")
