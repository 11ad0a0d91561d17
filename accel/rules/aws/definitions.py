"""An AWS Batch job definition of a GPU container."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from accel.diagnostics.findings import Finding
from accel.rules.aws import fit, names, retries
from accel.rules.jobs import containers, placeholders
from accel.rules.table import rule

GPUS = rule("aws.definition.gpus")
FARGATE = rule("aws.definition.fargate")
VCPUS = rule("aws.definition.vcpus")
MEMORY = rule("aws.definition.memory")
SHM_SMALL = rule("aws.definition.shm-small")
SHM_OVER_MEMORY = rule("aws.definition.shm-over-memory")
MULTI_NODE_SPOT = rule("aws.definition.multi-node-on-spot")

MIN_MEMORY_MIB = 4
MIN_SHM_MIB = 2048
"""GPU jobs with less get a warning; also the default."""
_DOCKER_SHM_MIB = 64


@dataclass(frozen=True, kw_only=True)
class DefinitionValues:
    """The values of a definition known before any call. `kinds` and `instance_types` are those of the environments of
    its queue, if a queue is known; `arns` are those of roles and secrets, by field."""

    vcpus: int
    memory_mib: int
    gpus: float = 0
    shm_mib: int | None = None
    name: str | None = None
    image: str | None = None
    env: Mapping[str, object] | None = None
    attempts: int | None = None
    evaluate_on_exit: Sequence[Mapping[str, str]] = ()
    timeout_s: int | None = None
    platform: str = "EC2"
    nodes: int = 1
    kinds: Sequence[str] = ()
    instance_types: Sequence[str] = ()
    arns: Mapping[str, str | None] | None = None
    allowed_accounts: Collection[str] = ()


def definition(given: DefinitionValues) -> list[Finding]:
    found = names.definition(given.name) if given.name is not None else []
    sizes = size(
        vcpus=given.vcpus,
        memory_mib=given.memory_mib,
        gpus=given.gpus,
        shm_mib=given.shm_mib,
        platform=given.platform,
    )
    found += sizes
    if given.image is not None:
        found += containers.image(given.image)
        found += placeholders.account("image", given.image, allowed=given.allowed_accounts)
        found += placeholders.value("image", given.image)
    found += placeholders.arns(given.arns or {}, allowed=given.allowed_accounts)
    found += containers.aws_environment(given.env or {}, math.ceil(given.gpus))
    found += retries.retries(given.attempts, given.evaluate_on_exit) + retries.timeout(given.timeout_s)
    found += multi_node(given.nodes, given.kinds)
    if not any(finding.severity == "reject" for finding in sizes):
        found += fit.fit(given.vcpus, given.memory_mib, int(given.gpus), given.instance_types)
    return found


def size(
    *, vcpus: float, memory_mib: int, gpus: float = 0, shm_mib: int | None = None, platform: str = "EC2"
) -> list[Finding]:
    """Check a reservation. `shm_mib` None: Docker's 64 MiB."""
    found: list[Finding] = []
    if not _whole(gpus) or gpus < 0:
        message = f"must be a whole number of at least 0, is {gpus}"
        found.append(GPUS.finding("gpus", message, "write 1 for one GPU; Batch shares none"))
    if platform != "EC2":
        message = f'is "{platform}"' + (", which has no GPUs" if platform.startswith("FARGATE") else "")
        found.append(FARGATE.finding("platform", message, "use EC2"))
    if not _whole(vcpus) or vcpus < 1:
        found.append(VCPUS.finding("vcpus", f"must be a whole number of at least 1, is {vcpus}", "write 1 or more"))
    if memory_mib < MIN_MEMORY_MIB:
        message = f"must be at least {MIN_MEMORY_MIB} MiB, is {memory_mib}"
        found.append(MEMORY.finding("memory_mib", message, "write the memory in MiB, such as 30000"))
    return found + _shared_memory(memory_mib, gpus, shm_mib)


def _shared_memory(memory_mib: int, gpus: float, shm_mib: int | None) -> list[Finding]:
    if shm_mib is not None and shm_mib > memory_mib:
        message = f"is {shm_mib} MiB, above memory_mib {memory_mib}, of which it is a part"
        return [SHM_OVER_MEMORY.finding("shm_mib", message, f"write at most {memory_mib}, or ask for more memory")]
    if gpus > 0 and (shm_mib is None or shm_mib < MIN_SHM_MIB):
        has = f"is not given, so Docker's {_DOCKER_SHM_MIB} MiB" if shm_mib is None else f"is {shm_mib} MiB"
        message = f"{has}, which data loaders with workers overrun (bus error)"
        return [SHM_SMALL.finding("shm_mib", message, f"write at least {MIN_SHM_MIB}")]
    return []


def multi_node(nodes: int, kinds: Sequence[str]) -> list[Finding]:
    if nodes < 2 or "SPOT" not in kinds:
        return []
    message = f"is {nodes}, and the queue tries a SPOT environment, on which no multi-node job runs"
    return [MULTI_NODE_SPOT.finding("nodes", message, "use a queue of EC2 environments only")]


def _whole(number: float) -> bool:
    return not isinstance(number, bool) and float(number).is_integer()
