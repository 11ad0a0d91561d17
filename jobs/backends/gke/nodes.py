"""A job of several nodes: how its pods find each other.

A pod of an Indexed Job has the host name <job>-<index>, which DNS knows once a headless Service of the pod's subdomain
selects it; a JobSet makes such a Service itself.
Source: https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/
"""

from typing import Any

from accel.contract import variables

from . import labels as marks
from .machines import PoolChoice

MAIN_PORT = 29500
"""Of torchrun's examples: https://docs.pytorch.org/docs/stable/elastic/run.html"""

INDEX_FIELD = f"metadata.annotations['{marks.INDEX}']"


def environment(name: str, choice: PoolChoice, jobset: bool) -> dict[str, str]:
    """The variables of a node: torch.distributed's, torchrun's (PET_ before an option's name), and a TPU slice's."""
    if choice.nodes == 1 and not jobset:
        return {}
    hosts = [f"{_host(name, index, jobset)}.{name}" for index in range(choice.nodes)]
    found = {
        variables.NODE_COUNT: str(choice.nodes),
        **variables.NODE_VARIABLES[marks.KIND],
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": str(MAIN_PORT),
    }
    if choice.slice:
        # GKE sets these two itself where a Job asks for TPUs and has a subdomain; here they do not depend on it.
        found["TPU_WORKER_HOSTNAMES"] = ",".join(hosts)
    else:
        found |= {
            "PET_NNODES": str(choice.nodes),
            "PET_NPROC_PER_NODE": str(choice.size.gpus or 1),
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{hosts[0]}:{MAIN_PORT}",
            "PET_RDZV_ID": name,
        }
    return found


def fields(choice: PoolChoice) -> dict[str, str]:
    """Variables that hold the pod's own index."""
    if choice.slice and choice.nodes > 1:
        return {"TPU_WORKER_ID": INDEX_FIELD}
    return {"PET_NODE_RANK": INDEX_FIELD} if choice.nodes > 1 else {}


def _host(name: str, index: int, jobset: bool) -> str:
    return f"{name}-{marks.REPLICATED}-0-{index}" if jobset else f"{name}-{index}"


def service(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """The headless Service of an Indexed Job. Names are there before pods are ready: they wait for each other."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {marks.OBJECT: name}},
    }
