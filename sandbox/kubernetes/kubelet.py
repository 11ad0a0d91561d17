"""The kubelets of the sandbox's nodes: every pod that is bound to one of them is run, or played.

A container whose image is `local/<folder>` really runs, as a process in that folder of the project, with the
environment that a kubelet would give it; its volumes are not mounted, its probes and preStop hooks not called. Of a
pod without such a container, one that belongs to a Job waits for an image that cannot be pulled (unless that is
`pause`), any other one runs for ever. A node that is deleted is a machine that has gone: its pods have the grace of a
node that shuts down, fail with the condition DisruptionTarget, and are deleted, as pod garbage collection does.
https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms#graceful-shutdown
"""

import contextlib
import ipaddress
import itertools
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .client import Cluster, Object, Refusal
from .container import Container
from .environment import command, environment, local
from .events import Events
from .pod import PodRun, workdir
from .settings import Settings
from .store import Store

_GRACE_S = 30  # of a pod that does not say
_GONE = (404, 409)
_PODS = ipaddress.ip_network("10.64.0.0/14")


class Kubelet:
    """All kubelets in one. `tick` is called again and again by one thread; other threads may look at `runs`."""

    def __init__(
        self, cluster: Cluster, nodes: Store, pods: Store, services: Store, jobs: Path, given: Mapping[str, str]
    ) -> None:
        self._cluster, self._nodes, self._pods, self._services = cluster, nodes, pods, services
        self._jobs, self._given = jobs, given
        self._ours: set[str] = set()
        self._numbers = itertools.count(2)
        self._events = Events(cluster, "kubelet")
        self.runs: dict[str, PodRun] = {}

    def tick(self, settings: Settings) -> None:
        """Look at every pod once. Raises Refusal where the API server does not answer."""
        here = {node["metadata"]["name"] for node in self._nodes.all() if _fake(node)}
        self._ours |= here
        seen: set[str] = set()
        for pod in self._pods.all():
            node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
            if node not in self._ours:
                continue
            seen.add(uid)
            if uid not in self.runs:
                address = str(_PODS[next(self._numbers) % _PODS.num_addresses])
                self.runs[uid] = PodRun(pod, self._jobs / uid, address)
            run = self.runs[uid]
            run.pod = pod
            self._sync(run, node in here, settings)
        for uid in self.runs.keys() - seen:  # deleted without being asked, or with a grace of 0
            self._forget(uid)

    def stop(self) -> None:
        """End every process at once."""
        for run in list(self.runs.values()):
            for each in run.running():
                each.kill()

    def find(self, namespace: str, name: str) -> PodRun | None:
        """The pod of that name that was here last."""
        for run in reversed(list(self.runs.values())):
            metadata = run.pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return run
        return None

    def _sync(self, run: PodRun, node_here: bool, settings: Settings) -> None:
        metadata, over = run.pod["metadata"], run.pod["status"].get("phase") in ("Succeeded", "Failed")
        leaving = metadata.get("deletionTimestamp") is not None
        if not node_here and not run.stopping:
            run.lost = not over
            self._stop(run, settings.grace_s)
        elif leaving and not run.stopping:
            self._stop(run, metadata.get("deletionGracePeriodSeconds") or 0)
        try:
            if not (over and not run.attempts):
                before = run.fault
                run.advance(lambda container, number: self._start(run, container, number))
                self._tell(run, before)
                self._report(run)
            if run.stopping and not run.running():
                body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
                self._cluster.delete(_path(run.pod), body)
                self._pods.drop(run.pod)
        except Refusal as error:
            if error.status not in _GONE:
                raise

    def _stop(self, run: PodRun, grace_s: float) -> None:
        run.stopping = True
        for each in run.running():
            each.stop(grace_s)

    def _report(self, run: PodRun) -> None:
        status = run.status()
        if status != run.sent:
            self._pods.put(self._cluster.patch(f"{_path(run.pod)}/status", {"status": status}, "strategic"))
            run.sent = status

    def _start(self, run: PodRun, container: dict[str, Any], number: int) -> Container:
        namespace = run.pod["metadata"]["namespace"]
        services = [each for each in self._services.all() if each["metadata"]["namespace"] == namespace]
        variables = environment(run.pod, container, lambda kind, name: self._read(namespace, kind, name))
        words = local(command(container, variables), services, namespace)
        variables = dict(zip(variables, local(variables.values(), services, namespace), strict=True))
        folder = workdir(container["image"])
        assert folder
        name = f"{container['name']}-{number}-{uuid.uuid4().hex}"
        # In place of a metadata server, which would speak for the pod's account.
        made = Container(run.folder / name, words, {**self._given, **variables}, folder)
        made.start(max(run.spec.get("terminationGracePeriodSeconds") or 0, _GRACE_S))
        self._events.record(run.pod, "Started", f"Started container {container['name']}")
        return made

    def _read(self, namespace: str, kind: str, name: str) -> Object | None:
        try:
            return self._cluster.get(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        except Refusal as error:
            if error.status == 404:
                return None
            raise

    def _tell(self, run: PodRun, before: Any) -> None:
        """Events of an image that cannot be pulled, in a kubelet's words."""
        fault = run.fault
        if fault is None or fault == before:
            return
        if fault.reason == "ErrImagePull":
            said = f'Failed to pull image "{run.unpullable()}": {fault.message}'
            self._events.record(run.pod, "Failed", said, warning=True)
        elif fault.reason == "ImagePullBackOff":
            self._events.record(run.pod, "BackOff", fault.message)
        elif fault.reason == "CreateContainerConfigError":
            self._events.record(run.pod, "Failed", f"Error: {fault.message}", warning=True)

    def _forget(self, uid: str) -> None:
        run = self.runs[uid]
        self._stop(run, 0)
        for each in run.running():
            each.poll()
        if not run.running():
            del self.runs[uid]
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(run.folder)


def _fake(node: Object) -> bool:
    return node["metadata"].get("annotations", {}).get("kwok.x-k8s.io/node") == "fake"


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
