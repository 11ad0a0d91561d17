"""Jobs on TPU slices that are created for them, by queued resources of the Cloud TPU API."""

from accel.contract.google_vms import TpuVmTarget
from accel.diagnostics.collector import Diagnostics

from ....model.job import Job
from ...base import QuotaAnswer
from ..backend import VmBackend
from ..cloud_messages import ReportingMachines
from .request import KIND, render

__all__ = ["KIND", "TpuVmBackend"]


class TpuVmBackend(VmBackend[TpuVmTarget]):
    """Backend for TPU slices. References are `tpu-vm:<bucket>/<name>`."""

    KIND = KIND
    NO_TARGET = "a bucket alone does not say where TPUs are"

    _render = staticmethod(render)

    def quota(self, job: Job) -> QuotaAnswer:
        """Return an empty answer for TPUs of a reservation, which need no quota. Source:
        https://docs.cloud.google.com/kubernetes-engine/docs/troubleshooting/tpus"""
        from ..quota import check, tpus
        from .slices import choose

        _, target = self._needed("render")
        choice = choose(job, target, Diagnostics())
        if choice is None or choice.reservation:
            return QuotaAnswer()
        chips, generation = choice.slices * choice.slice.chips, choice.slice.generation
        kind = choice.slice.name if choice.slices == 1 else f"{choice.slices} x {choice.slice.name}"
        wanted = tpus(choice.zones, kind, generation.accelerator, chips, spot=choice.spot)
        return check(target.project, wanted, self._timing)

    def machines(self) -> ReportingMachines:
        from .queued_resources import QueuedResources

        return QueuedResources(self.google)
