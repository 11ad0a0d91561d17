"""Jobs on GPU VMs of Compute Engine that are made for them."""

from typing import ClassVar

from ...backend import Request
from ...errors import BadInput
from ...job import Job
from ..vms.backend import VmBackend
from ..vms.told import Telling
from .render import KIND, render

__all__ = ["KIND", "GceBackend"]


class GceBackend(VmBackend):
    """A reference is `gce:<bucket>/<name>`."""

    KIND: ClassVar[str] = KIND

    def render(self, job: Job, name: str, key: str) -> Request:
        """See render.render."""
        if self.target is None or self.target_name is None:
            raise BadInput("render: needs a target; a bucket alone does not say where VMs are")
        return render(job, name, key, self.target_name, self.target)

    def machines(self) -> Telling:
        """See instances.py."""
        from .instances import Instances

        return Instances(self.google)
