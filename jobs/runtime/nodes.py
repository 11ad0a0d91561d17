"""The nodes of a job and the task of its array, in one form on every platform. If the platform reveals only the main
node's address, each of the others sends its rank there and receives all addresses: one line of JSON each way."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, cast

PORT = 29500
"""Port of torchrun's examples. Source: https://docs.pytorch.org/docs/stable/elastic/run.html"""
HOSTS_FILE = "/etc/cloudbatch-taskgroup-hosts"
"""Hosts file of Google Batch, unless BATCH_HOSTS_FILE names another. Source:
https://github.com/GoogleCloudPlatform/batch-samples/tree/main/mpi-container"""


@dataclass(frozen=True)
class Task:
    """A task of an array: `index` is from 0 to `count` - 1. A job without an array is one of one."""

    index: int
    count: int


@dataclass(frozen=True)
class Rendezvous:
    """This node among `nodes`; `rank` 0 is the main one, which the others reach at `address`."""

    rank: int
    nodes: int
    address: str
    port: int = PORT
    hosts: tuple[str, ...] = ()
    """Addresses of all nodes in the order of their ranks, if the platform reveals them; else `meet` finds them."""
    coordinator: str = ""
    """Address of JAX's coordinator, if it has another port."""

    def torchrun_env(self, processes: int | None = None) -> dict[str, str]:
        """Return the variables with which `torchrun train.py` needs no options. `processes` is per node. Source:
        https://docs.pytorch.org/docs/stable/elastic/run.html"""
        found = {
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
            "PET_NNODES": str(self.nodes),
            "PET_NODE_RANK": str(self.rank),
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{self.address}:{self.port}",
            "PET_RDZV_ID": os.environ.get("PET_RDZV_ID") or os.environ.get("ACCEL_JOB_NAME") or "accel",
            "PET_RDZV_CONF": f"is_host={int(self.rank == 0)}",
        }
        return found if processes is None else {**found, "PET_NPROC_PER_NODE": str(processes)}

    def jax(self) -> dict[str, Any]:
        """Return the arguments of jax.distributed.initialize, for one process per node."""
        return {
            "coordinator_address": self.coordinator or f"{self.address}:{self.port}",
            "num_processes": self.nodes,
            "process_id": self.rank,
        }

    def tf_config(self) -> str:
        """Return TF_CONFIG of a MultiWorkerMirroredStrategy, in which every node is a worker. Raise ValueError while
        the addresses of the others are unknown: `meet` finds them. Source:
        https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable"""
        if len(self.hosts) != self.nodes:
            raise ValueError("this platform tells the main node's address alone: rendezvous().meet() asks the others")
        workers = [f"{host}:{self.port}" for host in self.hosts]
        return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": self.rank}})

    def meet(self, timeout_s: float = 600.0) -> Rendezvous:
        """Wait until every node has called it, and return this object with all hosts. Use the port after `port`. Raise
        TimeoutError."""

        if len(self.hosts) == self.nodes:
            return self
        hosts = addresses(self.rank, self.nodes, self.address, self.port + 1, timeout_s)
        return Rendezvous(self.rank, self.nodes, self.address, self.port, hosts, self.coordinator)


def rendezvous() -> Rendezvous:
    """Return this node's rendezvous, by the variables of accel or else of the platform; without any, one node of one.
    Raise ValueError if a variable is missing or cannot be read."""
    for reader in READERS:
        found = reader()
        if found is not None:
            if not 0 <= found.rank < found.nodes:
                raise ValueError(f"node {found.rank} of {found.nodes} nodes: no such node")
            return found
    return Rendezvous(0, 1, "127.0.0.1", _port(), ("127.0.0.1",))


def task() -> Task:
    """Return the task of this process. Raise ValueError if a variable is missing or cannot be read."""
    count = "ACCEL_TASK_COUNT"
    index = os.environ.get("ACCEL_TASK_INDEX_FROM", "ACCEL_TASK_INDEX")
    if count not in os.environ:
        native = [pair for pair in ARRAYS if os.environ.get(pair[0]) and os.environ.get(pair[1])]
        if not native:
            return Task(0, 1)
        index, count = native[0]
    total = _number(count)
    if total == 1 and not os.environ.get(index):
        return Task(0, 1)
    at = _number(index)
    if not 0 <= at < total:
        raise ValueError(f"{index}: must be a whole number from 0 to {total - 1}, is {at}")
    return Task(at, total)


def first_process() -> bool:
    """Return whether this process is the job's first: by torchrun's RANK if that is set, else by the node's."""
    return (_number("RANK") if os.environ.get("RANK") else rendezvous().rank) == 0


ARRAYS = (
    ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),
    ("BATCH_TASK_INDEX", "BATCH_TASK_COUNT"),
)
"""A platform's own index and count, for jobs that accel did not submit. Sources:
https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html,
https://docs.cloud.google.com/batch/docs/create-run-basic-job#use-predefined-environment-variables"""


def _accel() -> Rendezvous | None:
    if not os.environ.get("ACCEL_NODE_COUNT"):
        return None
    nodes = _number("ACCEL_NODE_COUNT")
    name = os.environ.get("ACCEL_NODE_INDEX_FROM") or "ACCEL_NODE_INDEX"
    if name == "RANK" and os.environ.get("TORCHELASTIC_RUN_ID"):
        name = "GROUP_RANK"  # torchrun has put the process's rank in its place
    return _of_main(_number(name), nodes, os.environ.get("ACCEL_MAIN_ADDRESS_FROM") or "MASTER_ADDR")


def _aws() -> Rendezvous | None:
    """Source: https://docs.aws.amazon.com/batch/latest/userguide/mnp-env-vars.html"""
    if not os.environ.get("AWS_BATCH_JOB_NUM_NODES"):
        return None
    address = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"
    rank = _number("AWS_BATCH_JOB_NODE_INDEX") - _number("AWS_BATCH_JOB_MAIN_NODE_INDEX")
    nodes = _number("AWS_BATCH_JOB_NUM_NODES")
    return _of_main(rank % nodes, nodes, address)


def _vertex() -> Rendezvous | None:
    """Read CLUSTER_SPEC. The machine of the first pool is the main node, those of the second pool follow."""
    text = os.environ.get("CLUSTER_SPEC")
    if not text:
        return None
    try:
        told = json.loads(text)
        pools = sorted(name for name in told["cluster"] if name in ("workerpool0", "workerpool1"))
        named = [(pool, index) for pool in pools for index in range(len(told["cluster"][pool]))]
        hosts = tuple(str(told["cluster"][pool][index]).rpartition(":")[0] for pool, index in named)
        rank = named.index((told["task"]["type"], int(told["task"]["index"])))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"CLUSTER_SPEC: does not tell of this node: {text[:200]}") from None
    return Rendezvous(rank, len(hosts), hosts[0], _port(), hosts, _coordinator())


def _tpu() -> Rendezvous | None:
    """Read the variables that GKE sets for a slice, and the MEGASCALE_ ones for several."""
    inside = tuple(filter(None, os.environ.get("TPU_WORKER_HOSTNAMES", "").split(",")))
    if not inside:
        return None
    rank = _number("TPU_WORKER_ID")
    if not os.environ.get("MEGASCALE_NUM_SLICES"):
        return Rendezvous(rank, len(inside), inside[0], _port(), inside, _coordinator())
    rank += _number("MEGASCALE_SLICE_ID") * len(inside)
    main = os.environ.get("MEGASCALE_COORDINATOR_ADDRESS", "").partition(":")[0]
    if not main:
        raise ValueError("MEGASCALE_COORDINATOR_ADDRESS: is missing; it names the main node of several slices")
    return Rendezvous(rank, len(inside) * _number("MEGASCALE_NUM_SLICES"), main, _port(), (), _coordinator())


READERS: tuple[Callable[[], Rendezvous | None], ...] = (_accel, _aws, _vertex, _tpu)
"""Readers in the order in which they are tried."""


def _of_main(rank: int, nodes: int, variable: str) -> Rendezvous:
    """Read the main node's address from a variable, which the main node itself may lack."""
    address = os.environ.get(variable) or ""
    if not address and rank:
        raise ValueError(f"{variable}: is missing; it names the main node, and this is node {rank}")
    return Rendezvous(rank, nodes, address or "127.0.0.1", _port(), _hosts(nodes, address), _coordinator())


def _hosts(nodes: int, main: str) -> tuple[str, ...]:
    slices = tuple(filter(None, os.environ.get("TPU_WORKER_HOSTNAMES", "").split(",")))
    if len(slices) == nodes:
        return slices
    # Pods of an Indexed Job, and of a JobSet: <name>-<index>.<subdomain>.
    pod = re.fullmatch(r"(.+)-0\.([^.].*)", main)
    if pod and os.environ.get("JOB_COMPLETION_INDEX"):
        return tuple(f"{pod[1]}-{index}.{pod[2]}" for index in range(nodes))
    if os.environ.get("BATCH_JOB_UID"):
        try:
            listed = Path(os.environ.get("BATCH_HOSTS_FILE") or HOSTS_FILE).read_text(encoding="utf-8").split("\n")
        except OSError:
            return ()
        found = tuple(line.split()[0] for line in listed if line.strip())
        return found if len(found) == nodes and found[0] == main else ()
    return ()


def _port() -> int:
    return _number("MASTER_PORT") if os.environ.get("MASTER_PORT") else PORT


def _coordinator() -> str:
    return os.environ.get("JAX_COORDINATOR_ADDRESS", "")


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name}: must be a whole number, is {text!r}" if text else f"{name}: is missing")
    return int(text)


LINE_MAX = 1 << 20
PAUSE_S = 0.2


def addresses(rank: int, nodes: int, main: str, port: int, timeout_s: float) -> tuple[str, ...]:
    """Return the addresses of all nodes in the order of their ranks. Raise TimeoutError."""
    until = time.monotonic() + timeout_s
    return _gather(nodes, port, until) if rank == 0 else _ask(rank, nodes, main, port, until)


def _gather(nodes: int, port: int, until: float) -> tuple[str, ...]:
    known: dict[int, tuple[socket.socket, str]] = {}
    own = ""
    with socket.create_server(("", port), backlog=nodes) as server:
        while len(known) < nodes - 1:
            server.settimeout(_left(until, f"{len(known) + 1} of {nodes} nodes have come"))
            try:
                caller, (address, *_) = server.accept()
            except socket.timeout:  # in Python 3.9 it is no TimeoutError
                continue
            caller.settimeout(_left(until, "a node says nothing"))
            told = _line(caller)
            at = told.get("rank")
            if told.get("nodes") != nodes or not isinstance(at, int) or not 0 < at < nodes:
                caller.close()  # no node of this job
                continue
            if at in known:
                known[at][0].close()
            known[at], own = (caller, address), caller.getsockname()[0]
    hosts = [own, *(known[at][1] for at in range(1, nodes))]
    for caller, _ in known.values():
        with caller:
            caller.sendall(json.dumps({"hosts": hosts}).encode() + b"\n")
    return tuple(hosts)


def _ask(rank: int, nodes: int, main: str, port: int, until: float) -> tuple[str, ...]:
    while True:
        left = _left(until, f"node 0 does not answer at {main}:{port}")
        try:
            with socket.create_connection((main, port), timeout=min(left, 5.0)) as caller:
                caller.settimeout(left)
                caller.sendall(json.dumps({"rank": rank, "nodes": nodes}).encode() + b"\n")
                hosts: list[str] = _line(caller).get("hosts") or []
            if len(hosts) == nodes:
                return tuple(hosts)
        except OSError:
            pass  # it is not there yet
        time.sleep(min(PAUSE_S, left))


def _line(caller: socket.socket) -> dict[str, Any]:
    """Return an empty object if what the other node sends is not ours."""
    text = b""
    try:
        while not text.endswith(b"\n") and len(text) < LINE_MAX:
            part = caller.recv(65536)
            if not part:
                break
            text += part
        told: Any = json.loads(text)
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}


def _left(until: float, doing: str) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"the nodes of the job do not meet: {doing}")
    return left
