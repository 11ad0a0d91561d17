"""Worker pools of Vertex AI jobs: their tasks, and reduction servers."""

import math
from collections.abc import Sequence

from accel.catalog.gpu_attachments import n1
from accel.catalog.machines import NoMachine, machines_for
from accel.catalog.machines import machine as machine_named
from accel.catalog.nearest import UnknownName
from accel.diagnostics.findings import Finding
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.table import rule

CHIEF = rule("vertex.pools.chief")
MOST = rule("vertex.pools.count")
TPU = rule("vertex.pools.tpu")
REDUCTION = rule("vertex.reduction.workers")
REDUCTION_GPUS = rule("vertex.reduction.gpus")
REDUCTION_RATIO = rule("vertex.reduction.ratio")

POOLS = 4
REDUCER_GBPS = 32
"""Bandwidth of an N1 or N2 machine of 16 vCPUs or more."""


def chief(replicas: int, field: str = "workerPoolSpecs[0].replicaCount") -> list[Finding]:
    if replicas == 1:
        return []
    fix = f"write 1, and {replicas - 1} in the second pool" if replicas > 1 else "write 1"
    return [CHIEF.finding(field, f"is {replicas}, and the first pool is one machine", fix)]


def most(pools: int, field: str = "workerPoolSpecs") -> list[Finding]:
    if pools <= POOLS:
        return []
    fix = "use four: first machine, workers, parameter or reduction servers, evaluators"
    return [MOST.finding(field, f"has {pools} pools", fix)]


def tpu(pools: Sequence[str], nodes: int, hosts: int) -> list[Finding]:
    found = [TPU.finding(field, "is there, and the job runs on TPUs", "leave it out") for field in pools]
    if nodes not in (1, hosts):
        message = f"is {nodes}, and the slice is one replica of {hosts} host{'s' * (hosts > 1)}"
        found.append(TPU.finding("nodes", message, "leave it out; the topology says how many hosts there are"))
    return found


def reduction(workers: int, gpus: int, own_gpus: bool, field: str = "reduction_servers") -> list[Finding]:
    found: list[Finding] = []
    if workers < 2 or not gpus:
        message = f"is there, and the job has {workers} machine{'s' * (workers > 1)} with {gpus or 'no'} GPUs"
        found.append(REDUCTION.finding(field, message, "leave it out, or use two or more nodes with GPUs"))
    if own_gpus:
        fix = "leave it out: a machine of CPUs such as n1-highcpu-16 is meant"
        found.append(REDUCTION_GPUS.finding(f"{field}.accelerator", "is there", fix))
    return found


def reduction_ratio(
    workers: int, machine: str, accelerator: str | None, count: int, servers: int, server_machine: str,
    field: str = "reduction_servers.replicas",
) -> list[Finding]:  # fmt: skip
    """Compare bandwidths; if one is unknown, there is no finding."""
    each, reducer = bandwidth_gbps(machine, accelerator, count), _reducer_gbps(server_machine)
    if each is None or reducer is None:
        return []
    enough = math.ceil(workers * each / reducer)
    if servers >= enough:
        return []
    message = (
        f"is {servers}, {servers * reducer:g} Gbps of {server_machine}, and {workers} {machine} have {workers * each:g}"
    )
    return [REDUCTION_RATIO.finding(field, message, f"use {enough} or more")]


def bandwidth_gbps(machine: str, accelerator: str | None, count: int) -> float | None:
    if n1(machine) and accelerator and (kind := find_accelerator(accelerator)):
        try:
            return machines_for(kind.name, count, "gcp")[0].network_gbps
        except NoMachine:
            return None
    try:
        return machine_named("gcp", machine).network_gbps
    except UnknownName:
        return None


def _reducer_gbps(machine: str) -> float | None:
    series, _, rest = machine.partition("-")
    size = rest.rpartition("-")[2]
    return REDUCER_GBPS if series in ("n1", "n2") and size.isdigit() and int(size) >= 16 else None
