"""How jobs are named and marked in a cluster."""

import re
from dataclasses import dataclass

from accel.clouds.kubernetes.clusters import ClusterName
from accel.diagnostics.errors import BadInput

from ...model.keys import NAMED_DIGITS
from ..base import JobRef

KIND = "gke"

OWNER, JOBS = "accel.dev/owner", "jobs"
"""Label and value of every object that this backend makes."""
OBJECT = "accel.dev/job"
"""Label of a job's pods and Service: the name of its Job or JobSet."""
NAME = "accel.dev/name"
"""Annotation: the job file's name."""
TARGET = "accel.dev/target"
KEY = "accel.dev/key"
SPEC = "accel.dev/spec"
"""Annotation: hash of the request, so that one key is not taken for another job."""
REQUEST = "accel.dev/request"
"""Annotation: the object as it was sent, by which a job is run again; what is in the cluster has been added to."""
CANCELLED = "accel.dev/cancelled"
"""Annotation: why the job was asked to stop."""

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
INDEX = "batch.kubernetes.io/job-completion-index"

CONTAINER = "main"
REPLICATED = "node"
"""Of a JobSet: its pods are <name>-node-0-<index>."""

NAME_MAX = 44
"""63 characters of a DNS label, less what JobSet and Jobs append: -node-0, -99999 and -abcde. Source:
https://github.com/kubernetes-sigs/jobset/blob/v0.10.1/pkg/webhooks/jobset_webhook.go"""

_NO_DNS = re.compile(r"[^a-z0-9-]+")


def object_name(name: str) -> str:
    """A platform name (see keys.platform_name) as the name of a Job, JobSet and Service: a label of RFC 1035, which
    keeps the digits of the key."""
    head, _, digits = name.rpartition("-")
    plain = _NO_DNS.sub("-", head.lower())
    if not plain[:1].isalpha():
        plain = f"j-{plain}"
    return f"{plain[: NAME_MAX - NAMED_DIGITS - 1].strip('-')}-{digits}"


@dataclass(frozen=True)
class Scope(ClusterName):
    """Where a job is; written `<project>.<location>.<cluster>.<namespace>`."""

    namespace: str

    def __str__(self) -> str:
        return ".".join((self.project, self.location, self.cluster, self.namespace))

    @classmethod
    def parse(cls, text: str) -> "Scope":
        """A project may have dots of its own; the rest has none. Raises BadInput."""
        parts = text.rsplit(".", 3)
        if len(parts) != 4 or not all(parts):
            raise BadInput(
                f"job reference gke:{text}/...: expected gke:<project>.<location>.<cluster>.<namespace>/<name>"
            )
        return cls(*parts)

    def ref(self, name: str) -> JobRef:
        """The reference of a job there."""
        return JobRef(KIND, str(self), name)

    @property
    def jobs(self) -> str:
        """The path of its Jobs."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def jobsets(self) -> str:
        """The path of its JobSets."""
        return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{self.namespace}/jobsets"

    @property
    def workloads(self) -> str:
        """The path of Kueue's Workloads."""
        return f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{self.namespace}/workloads"

    def core(self, plural: str) -> str:
        """The path of objects of the core group."""
        return f"/api/v1/namespaces/{self.namespace}/{plural}"
