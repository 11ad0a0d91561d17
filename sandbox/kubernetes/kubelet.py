"""Kubelets of the sandbox's nodes: every pod that is bound to one of them is run, or simulated.

A container whose image is `local/<folder>` really runs, as a process in that folder of the project, with the
environment that a kubelet would give it; its volumes are not mounted, its probes and preStop hooks not called. A pod
without such a container is simulated: one that belongs to a Job waits for an image that cannot be pulled (unless that
is `pause`), any other one runs for ever. A deleted node is a preempted machine: its pods have the grace of a node that
shuts down, fail with the condition DisruptionTarget, and are deleted, as pod garbage collection does.
https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms#graceful-shutdown
"""

import contextlib
import ipaddress
import itertools
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.loopback import LOCAL

from ..runner_process import PROJECT
from .client import Cluster, Object, Refusal
from .container import Container, seconds
from .environment import ConfigError, command, environment, local
from .events import Events, stamp
from .nodes import PLAYED
from .settings import Settings
from .store import Store

_BACK_OFF_S = 1
ENDLESS = ("pause",)
"""Images of Jobs' pods that run for ever; any other image of a Job cannot be pulled."""


def workdir(image: str) -> Path | None:
    folder = (PROJECT / image.removeprefix("local/").partition(":")[0]).resolve()
    return folder if folder.is_relative_to(PROJECT) and folder.is_dir() else None


def is_local(container: dict[str, Any]) -> bool:
    return container["image"].startswith("local/")


@dataclass
class PodFault:
    """Reason and message, as a kubelet gives them, for containers that wait."""

    reason: str
    message: str


@dataclass
class PodRun:
    """Life of a pod on its node. `attempts`: the runs of each local container, the last one last. `address` is shown in
    the status; EndpointSlices accept no address of loopback, where the processes really are."""

    pod: Object
    folder: Path
    address: str
    attempts: dict[str, list[Container]] = field(default_factory=dict[str, list[Container]])
    fault: PodFault | None = None
    again_at: float = 0
    stopping: bool = False
    lost: bool = False
    sent: Object = field(default_factory=dict[str, Any])
    since: str = field(default_factory=stamp)
    _times: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    @property
    def spec(self) -> Any:
        return self.pod["spec"]

    @property
    def main(self) -> list[Any]:
        return self.spec["containers"]

    @property
    def first(self) -> list[Any]:
        """Init containers that end before the others start; sidecars are simulated."""
        return [each for each in self.spec.get("initContainers") or [] if each.get("restartPolicy") != "Always"]

    @property
    def really(self) -> bool:
        """Whether any of it is run, and not only simulated."""
        return any(is_local(each) for each in self.main)

    def unpullable(self) -> str:
        """Return the first image that cannot be pulled, or ""."""
        owners = self.pod["metadata"].get("ownerReferences") or []
        of_job = any(owner["kind"] == "Job" for owner in owners)
        for each in [*self.first, *self.main]:
            name = each["image"].rpartition("/")[2].partition(":")[0]
            if is_local(each):
                if workdir(each["image"]) is None:
                    return each["image"]
            elif of_job and not self.really and name not in ENDLESS:
                return each["image"]
        return ""

    def last(self, name: str) -> Container | None:
        return self.attempts[name][-1] if self.attempts.get(name) else None

    def running(self) -> list[Container]:
        return [run for runs in self.attempts.values() for run in runs if not run.over]

    def advance(self, start: Any) -> None:
        """Poll containers and start the next; `start(container, number)` returns a Container or raises ConfigError."""
        for run in self.running():
            run.poll()
        if self.stopping or time.monotonic() < self.again_at:
            return
        if image := self.unpullable():
            self._not_pulled(image)
            return
        try:
            for each in self.first:
                if is_local(each) and not self._step(each, start):
                    return
            if self.failed_first():
                return
            for each in self.main:
                if is_local(each):
                    self._step(each, start)
            self.fault = None
        except ConfigError as error:
            self.fault, self.again_at = (
                PodFault("CreateContainerConfigError", str(error)),
                time.monotonic() + _BACK_OFF_S,
            )

    def _step(self, container: Any, start: Any) -> bool:
        """Start or restart a container if it has to run, and return whether it has succeeded."""
        name, run = container["name"], self.last(container["name"])
        if run is None:
            self.attempts[name] = [start(container, 0)]
        elif run.over and self._again(container, run):
            failures = len(self.attempts[name])
            if time.monotonic() > run.over_since + _BACK_OFF_S * 2 ** min(failures - 1, 5):
                self.attempts[name].append(start(container, failures))
        return run is not None and run.exit_code == 0

    def _again(self, container: Any, run: Container) -> bool:
        policy = self.spec.get("restartPolicy", "Always")
        if policy == "Always" and container in self.main:
            return True
        return policy != "Never" and run.exit_code != 0

    def _not_pulled(self, image: str) -> None:
        name = f'"{image}"'
        if self.fault is None:
            why = f"failed to pull and unpack image {name}: failed to resolve reference {name}: {image}: not found"
            self.fault = PodFault("ErrImagePull", f"rpc error: code = NotFound desc = {why}")
        else:
            self.fault = PodFault("ImagePullBackOff", f"Back-off pulling image {name}")
        self.again_at = time.monotonic() + _BACK_OFF_S

    def failed_first(self) -> bool:
        runs = [self.last(each["name"]) for each in self.first]
        return self.spec.get("restartPolicy") == "Never" and any(run and run.exit_code for run in runs)

    def ended(self) -> bool:
        """Return whether every container that is run has ended for good."""
        if self.running():
            return False
        if self.stopping or self.failed_first():
            return True
        runs = [(each, self.last(each["name"])) for each in self.main if is_local(each)]
        return bool(runs) and all(run and run.over and not self._again(each, run) for each, run in runs)

    def phase(self) -> str:
        if self.ended():
            codes = [run.exit_code for each in [*self.first, *self.main] if (run := self.last(each["name"]))]
            return "Failed" if self.lost or any(codes) or (self.stopping and not codes) else "Succeeded"
        if self.fault and not self.attempts:
            return "Pending"
        started = not self.really or any(self.last(each["name"]) for each in self.main)
        return "Running" if started else "Pending"

    def status(self) -> Object:
        """Return the current status, without what the API server and the scheduler keep of it."""
        phase = self.phase()
        body: Object = {
            "phase": phase,
            "startTime": self.since,
            "hostIP": LOCAL,
            "hostIPs": [{"ip": LOCAL}],
            "containerStatuses": [self._container(each, phase) for each in self.main],
        }
        if phase != "Pending":
            body |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        if self.first:
            body["initContainerStatuses"] = [self._container(each, phase) for each in self.first]
        ready = phase == "Running" and all(each["ready"] for each in body["containerStatuses"])
        why = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
        waits_first = phase == "Pending" and bool(self.first)
        conditions = {
            "PodReadyToStartContainers": (phase in ("Pending", "Running"), ""),
            "Initialized": (not waits_first and not self.failed_first(), "ContainersNotInitialized"),
            "ContainersReady": (ready, why),
            "Ready": (ready, why),
        }
        body["conditions"] = [self._condition(kind, *state) for kind, state in conditions.items()]
        if self.lost and phase == "Failed":
            # https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
            said = "Pod was terminated in response to imminent node shutdown."
            body |= {"reason": "Terminated", "message": said}
            body["conditions"].append(self._condition("DisruptionTarget", True, "TerminationByKubelet", said))
        return body

    def _condition(self, kind: str, holds: bool, reason: str, message: str = "") -> Object:
        state = str(holds)
        if self._times.get(kind, ("", ""))[0] != state:
            self._times[kind] = (state, stamp())
        body = {"type": kind, "status": state, "lastTransitionTime": self._times[kind][1]}
        return body | ({"reason": reason, "message": message} if reason and (not holds or message) else {})

    def _container(self, container: Any, phase: str) -> Object:
        name = container["name"]
        runs = self.attempts.get(name, [])
        state, last = self._state(container, phase), {}
        if runs and not runs[-1].over and len(runs) > 1:
            last = _terminated(container, runs[-2])
        elif "waiting" in state and runs:
            last = _terminated(container, runs[-1])
        ready = "running" in state or (container in self.first and "terminated" in state)
        return {
            "name": name,
            "image": container["image"],
            "imageID": "",
            "containerID": f"containerd://{runs[-1].folder.name}" if runs else "",
            "ready": ready,
            "started": "running" in state,
            "restartCount": max(len(runs) - 1, 0),
            "state": state,
            "lastState": last,
        }

    def _state(self, container: Any, phase: str) -> Object:
        run = self.last(container["name"])
        over = phase in ("Succeeded", "Failed")
        if run is None:
            if self.fault:
                return {"waiting": {"reason": self.fault.reason, "message": self.fault.message}}
            if is_local(container):
                return {"waiting": {"reason": "PodInitializing" if self.first else "ContainerCreating"}}
            if over or container in self.first:
                played = {"exitCode": 0, "reason": "Completed", "startedAt": self.since, "finishedAt": self.since}
                return {"terminated": played}
            return {"running": {"startedAt": self.since}}
        if not run.over:
            return {"running": {"startedAt": seconds(run.started_at)}}
        if not over and not self.stopping and self._again(container, run):
            return {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off restarting {container['name']}"}}
        return _terminated(container, run)


def _terminated(container: Any, run: Container) -> Object:
    message = run.message
    if not message and run.exit_code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        message = run.tail()
    body = {
        "exitCode": run.exit_code,
        "reason": run.reason,
        "startedAt": seconds(run.started_at),
        "finishedAt": seconds(run.ended_at),
        "containerID": f"containerd://{run.folder.name}",
    }
    return {"terminated": body | ({"message": message} if message else {})}


_GRACE_S = 30  # of a pod that does not say
_GONE = (404, 409)
_PODS = ipaddress.ip_network("10.64.0.0/14")


class Kubelet:
    """All kubelets in one. One thread calls `tick` repeatedly; other threads may look at `runs`."""

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
        here = {node["metadata"]["name"] for node in self._nodes.all() if _played(node)}
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
        for uid in self.runs.keys() - seen:  # force-deleted, or with a grace of 0
            self._forget(uid)

    def stop(self) -> None:
        for run in list(self.runs.values()):
            for each in run.running():
                each.kill()

    def find(self, namespace: str, name: str) -> PodRun | None:
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
        """Record events for an image that cannot be pulled, in a kubelet's words."""
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


def _played(node: Object) -> bool:
    return PLAYED in node["metadata"].get("annotations", {})


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
