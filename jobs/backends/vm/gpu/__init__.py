"""Jobs on GPU VMs of Compute Engine that are created for them."""

from accel.contract.google_vms import GceTarget
from accel.diagnostics.collector import Diagnostics

from ....model.job import Job
from ...base import QuotaAnswer
from ..backend import VmBackend
from ..cloud_messages import ReportingMachines
from .request import KIND, render

PREEMPTIBLE = ("spot", "flex-start")
"""Capacities that use the preemptible quota, which flex-start does too. Source:
https://docs.cloud.google.com/managed-spark/docs/guides/dws-serverless"""

__all__ = ["KIND", "GceBackend"]


class GceBackend(VmBackend[GceTarget]):
    """Backend for GPU VMs. References are `gce:<bucket>/<name>`."""

    KIND = KIND
    NO_TARGET = "a bucket alone does not say where VMs are"

    _render = staticmethod(render)

    def quota(self, job: Job) -> QuotaAnswer:
        from ..quota import check, gpus
        from .machines import choose

        _, target = self._needed("render")
        choice = choose(job, target, Diagnostics())
        if choice is None or choice.reservation:
            return QuotaAnswer()
        spot = choice.capacity in PREEMPTIBLE
        return check(
            target.project,
            gpus(choice.zones, choice.machine, choice.attached, choice.gpus, job.nodes, spot=spot),
            self._timing,
        )

    def machines(self) -> ReportingMachines:
        from .instances import Instances

        return Instances(self.google)
