"""Hosts of an attempt: which one this is, where the others are, and a job's variables about them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from .cloud import CallError, Cloud
from .command import Stop

PORT = 29500
"""Port in torchrun's examples: https://docs.pytorch.org/docs/stable/elastic/run.html"""
JAX_PORT = 8482
"""Port of the coordinator that JAX chooses on Cloud TPUs:
https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"""

STOPPED = "stopped: "
"""Beginning of a reason that is another host's."""


@dataclass(frozen=True)
class Host:
    """This machine. `worker` is its number in its slice; `tpu` is what its metadata has about the slice."""

    index: int
    worker: int
    slice: int
    name: str
    ip: str
    tpu: dict[str, str]


def this(cloud: Cloud, job: dict[str, Any]) -> Host:
    """Return this host. Raise ValueError for a name or number from which its index cannot be read."""
    name = cloud.metadata("instance/name") or ""
    ip = cloud.metadata("instance/network-interfaces/0/ip") or ""
    if job["kind"] != "tpu-vm":
        return Host(int(name.rpartition("-")[2]) if job["hosts"] > 1 else 0, 0, 0, name, ip, {})
    # Sources: GceTpuCluster of https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py
    worker = int(cloud.metadata("instance/attributes/agent-worker-number") or 0)
    tpu = _tpu(cloud.metadata("instance/attributes/tpu-env") or "")
    number = 0
    if job["slices"] > 1:
        # Nodes of one queued resource are named <prefix>-<index>.
        number = int(tpu.get("MEGASCALE_SLICE_ID") or tpu.get("NODE_ID", "").rpartition("-")[2])
    return Host(number * job["hosts_per_slice"] + worker, worker, number, name, ip, tpu)


def attempt_name(job: dict[str, Any]) -> str:
    """Return the name of the attempt's machine, or the beginning of its machines' names."""
    return job["name"] if job["attempt"] == 1 else f"{job['name']}-r{job['attempt']}"


def _tpu(text: str) -> dict[str, str]:
    """Parse lines such as `MEGASCALE_NUM_SLICES: '2'`."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip().strip("'") for name, colon, value in pairs if colon}


class Folder:
    """Attempt's folder in the bucket, where hosts meet and write their results."""

    def __init__(self, cloud: Cloud, job: dict[str, Any]) -> None:
        self._cloud, self._bucket, self._folder = cloud, job["bucket"], job["folder"]
        self.hosts: int = job["hosts"]
        self.poll_s = min(10.0, 1.0 + self.hosts / 8)
        """Seconds between two reads, so that all hosts together make a few per second."""

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object of the folder, None if there is none."""
        data = self._cloud.read(self._bucket, f"{self._folder}/{name}")
        return None if data is None else json.loads(data)

    def write(self, name: str, value: dict[str, Any], *, once: bool) -> bool:
        """Write a JSON object; with `once`, only if there is none. Return whether it was written."""
        return self._cloud.write(self._bucket, f"{self._folder}/{name}", json.dumps(value).encode(), once=once)

    def keep(self, name: str, text: bytes) -> None:
        """Write a text object, over an existing one."""
        self._cloud.write(self._bucket, f"{self._folder}/{name}", text, once=False, kind="text/plain; charset=utf-8")

    def over(self, attempt: int) -> str:
        """Return in words why the job's record no longer needs this attempt; "" if it does, or if there is no record. A
        client that was suspended may have created these machines for an attempt that others had ended by then."""
        data = self._cloud.read(self._bucket, f"{self._folder.rpartition('/attempts/')[0]}/record.json")
        record: dict[str, Any] = json.loads(data or b"{}")
        if record.get("ended"):
            return f"the job has ended: {record.get('outcome')}"
        attempts: list[dict[str, Any]] = record.get("attempts") or []
        states: dict[int, str] = {each["number"]: each["state"] for each in attempts}
        if states.get(attempt) in ("ended", "gone"):
            return f"attempt {attempt} has ended before"
        return f"attempt {max(states)} has taken its place" if states and max(states) > attempt else ""

    def arrive(self, host: Host) -> int:
        """Write where this host is. Return how often it has booted for this attempt."""
        name = f"host-{host.index}.json"
        boots = int((self.read(name) or {}).get("boots", 0)) + 1
        self.write(name, {"ip": host.ip, "name": host.name, "boots": boots}, once=False)
        return boots

    def there(self, kind: str) -> list[int]:
        """Return the hosts that have written an object of this kind."""
        names = self._cloud.names(self._bucket, f"{self._folder}/{kind}-")
        found = [name.rpartition("/")[2][len(kind) + 1 : -len(".json")] for name in names if name.endswith(".json")]
        return sorted(int(number) for number in found if number.isdigit())

    def meet(self, wait_s: float, stop: Stop) -> tuple[list[str], list[int]]:
        """Wait until every host has arrived. Return their addresses, or none and the hosts that have not arrived."""
        until = time.monotonic() + wait_s
        while True:
            missing = sorted(set(range(self.hosts)) - set(self.there("host")))
            if not missing or time.monotonic() >= until or stop.requested:
                break
            stop.sleep(self.poll_s)
        if missing:
            return [], missing
        return [str((self.read(f"host-{index}.json") or {})["ip"]) for index in range(self.hosts)], []

    def failed(self, known: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
        """Return a result that is no success, None if there is none. `known` keeps the results that were read."""
        for index in set(self.there("result")) - known.keys():
            known[index] = self.read(f"result-{index}.json") or {}
        for index in sorted(known):
            if (known[index].get("exit_code"), known[index].get("reason")) != (0, "exited"):
                return known[index]
        return None


def watch(folder: Folder, host: Host, stop: Stop) -> None:
    """Request a stop once another host has failed, for which this one would wait forever. Return when the job ends."""
    known: dict[int, dict[str, Any]] = {}
    while not stop.sleep(folder.poll_s):
        try:
            failed = folder.failed(known)
        except (CallError, ValueError):
            continue  # Cloud Storage does not answer: the next look tells
        if failed and failed.get("host") != host.index:
            stop.ask(peer_reason(failed))


def peer_reason(result: dict[str, Any]) -> str:
    """Return a host's failure as the reason for another one's end. A preempted machine is nobody's failure."""
    if result.get("reason") == "preempted":
        return "preempted"
    said = result.get("reason")
    if said and said.startswith(STOPPED):
        return said
    said = f"exit code {result.get('exit_code')}" if said in (None, "exited") else said
    return f"{STOPPED}host {result.get('host')} ended: {said}"


def environment(job: dict[str, Any], host: Host, addresses: list[str]) -> dict[str, str]:
    """Return the variables that tell the job about its hosts. `addresses` has those of all hosts, in order."""
    found: dict[str, str] = {}
    if len(addresses) > 1:
        main = addresses[0]
        found = {
            "ACCEL_NODE_COUNT": str(len(addresses)),
            "ACCEL_NODE_INDEX": str(host.index),
            "ACCEL_NODE_INDEX_FROM": "ACCEL_NODE_INDEX",
            "ACCEL_MAIN_ADDRESS_FROM": "MASTER_ADDR",
            "MASTER_ADDR": main,
            "MASTER_PORT": str(PORT),
            # jax.distributed.initialize() reads the first alone; scripts hand it the other two.
            # https://github.com/jax-ml/jax/blob/main/jax/_src/distributed.py
            "JAX_COORDINATOR_ADDRESS": f"{main}:{JAX_PORT}",
            "JAX_NUM_PROCESSES": str(len(addresses)),
            "JAX_PROCESS_ID": str(host.index),
        }
    if job["kind"] == "tpu-vm":
        return {**found, **_tpu_environment(job, host, addresses)}
    if len(addresses) > 1:
        found.update(
            PET_NNODES=str(len(addresses)),
            PET_NODE_RANK=str(host.index),
            PET_NPROC_PER_NODE=str(job["gpus"] or 1),
            PET_RDZV_BACKEND="c10d",
            PET_RDZV_ENDPOINT=f"{addresses[0]}:{PORT}",
            PET_RDZV_ID=attempt_name(job),
        )
    return found


def _tpu_environment(job: dict[str, Any], host: Host, addresses: list[str]) -> dict[str, str]:
    """Return the variables of a TPU slice, and of several. libtpu finds the same in the metadata; the names are those
    that GKE sets."""
    first = host.slice * job["hosts_per_slice"]
    inside = addresses[first : first + job["hosts_per_slice"]]
    found = {
        "PJRT_DEVICE": "TPU",
        "TPU_WORKER_ID": str(host.worker),
        "TPU_WORKER_HOSTNAMES": ",".join(inside),
    }
    if job["slices"] > 1:
        found.update(
            MEGASCALE_COORDINATOR_ADDRESS=addresses[0],
            MEGASCALE_NUM_SLICES=str(job["slices"]),
            MEGASCALE_SLICE_ID=str(host.slice),
        )
        found.update({name: value for name, value in host.tpu.items() if name.startswith("MEGASCALE_")})
    return found
