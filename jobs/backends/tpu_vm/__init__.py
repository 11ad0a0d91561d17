"""Jobs on TPU slices that are made for them, by queued resources of the Cloud TPU API."""

from typing import ClassVar

from ...backend import Request
from ...errors import BadInput
from ...job import Job
from ..vms.backend import VmBackend
from ..vms.control import Machines
from .render import KIND, render

__all__ = ["KIND", "TpuVmBackend"]


class TpuVmBackend(VmBackend):
    """A reference is `tpu-vm:<bucket>/<name>`."""

    KIND: ClassVar[str] = KIND

    def render(self, job: Job, name: str, key: str) -> Request:
        """See render.render."""
        if self.target is None or self.target_name is None:
            raise BadInput("render: needs a target; a bucket alone does not say where TPUs are")
        return render(job, name, key, self.target_name, self.target)

    def machines(self) -> Machines:
        """See queued.py."""
        from .queued import QueuedResources

        return QueuedResources(self.google)
