"""Names, labels and annotations of jobs in a cluster."""

from dataclasses import dataclass

from accel.clouds.kubernetes.clusters import ClusterName
from accel.diagnostics.errors import BadInput

from ...model.keys import resource_name
from ..base import JobRef

KIND = "gke"

OWNER, JOBS = "accel.dev/owner", "jobs"
"""Label and value of every object that this backend creates."""
OBJECT = "accel.dev/job"
"""Label of a job's pods and Service: the name of its Job or JobSet."""
NAME = "accel.dev/name"
"""Annotation for the job file's name."""
TARGET = "accel.dev/target"
KEY = "accel.dev/key"
SPEC = "accel.dev/spec"
"""Annotation for the hash of the request, so that one key is not taken for another job."""
REQUEST = "accel.dev/request"
"""Annotation for the objects as they were submitted, for a resubmission: the cluster adds to them."""
CANCELLED = "accel.dev/cancelled"
"""Annotation for the reason why the job was asked to stop."""

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
INDEX = "batch.kubernetes.io/job-completion-index"

CONTAINER = "main"
REPLICATED = "node"
"""Name of a JobSet's replicated Job. Its pods are <name>-node-0-<index>."""

NAME_MAX = 44
"""Longest name: 63 characters of a DNS label, less what JobSet and Jobs append: -node-0, -99999 and -abcde. Source:
https://github.com/kubernetes-sigs/jobset/blob/v0.10.1/pkg/webhooks/jobset_webhook.go"""


def object_name(name: str) -> str:
    """Convert a platform name to the name of a Job or JobSet."""
    return resource_name(name, NAME_MAX)


@dataclass(frozen=True)
class Scope(ClusterName):
    """Place of a job, written `<project>.<location>.<cluster>.<namespace>`."""

    namespace: str

    def __str__(self) -> str:
        return ".".join((self.project, self.location, self.cluster, self.namespace))

    @classmethod
    def parse(cls, text: str) -> "Scope":
        """Raise BadInput. A project may contain dots, the other parts have none."""
        parts = text.rsplit(".", 3)
        if len(parts) != 4 or not all(parts):
            raise BadInput(
                f"job reference gke:{text}/...: expected gke:<project>.<location>.<cluster>.<namespace>/<name>"
            )
        return cls(*parts)

    def ref(self, name: str) -> JobRef:
        return JobRef(KIND, str(self), name)

    @property
    def jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def jobsets(self) -> str:
        return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{self.namespace}/jobsets"

    @property
    def workloads(self) -> str:
        return f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{self.namespace}/workloads"

    def core(self, plural: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{plural}"
