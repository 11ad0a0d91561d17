"""Choice of a job's definition: one of the stack's, or one of the job's own."""

import re
from dataclasses import dataclass
from typing import Any

from accel.catalog import nearest
from accel.contract.submissions import DIGEST, own_definition
from accel.contract.targets import AwsBatchDefinition, AwsBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules.aws import definitions, storage
from accel.rules.aws.fit import Size

from ...model.fields import Mount
from ...model.job import Job
from ...model.keys import content_hash
from . import nodes
from .retries import DEFAULT_ATTEMPTS, infrastructure_only

OWNER_TAG = {"accel:owner": "jobs"}
"""Tag that distinguishes definitions registered by jobs from the stack's."""

EFS = re.compile(r"efs://(?P<id>fs-[0-9a-f]{8}(?:[0-9a-f]{9})?)(?P<root>/\S*)?")


@dataclass(frozen=True)
class DefinitionChoice:
    """Job definition, the size of a task, and the RegisterJobDefinition input if it is the job's own."""

    job_definition: str
    size: Size
    shm_mib: int | None
    attempts: int | None = None
    """None: the target does not tell."""
    timeout_s: int | None = None
    register: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    image: str | None = None
    """Image of the stack's definition, if the job runs with that one."""


def choose(job: Job, target: AwsBatchTarget, diagnostics: Diagnostics) -> DefinitionChoice | None:
    """Return None with the reasons added to `diagnostics`. The base is the definition that the job names, else the
    stack's only one with the same image, else (for a job without image) the stack's only one. It is used unchanged if
    it agrees with the job in everything that SubmitJob cannot override."""
    found = len(diagnostics.errors)
    base = _base(job, target, diagnostics)
    if len(diagnostics.errors) > found:
        return None
    size = _size(job, base, diagnostics)
    if size is None:
        return None
    differences = _differences(job, base[1]) if base else []
    if base and not differences:
        return DefinitionChoice(
            base[1].arn, size, base[1].shm_mib, base[1].attempts, base[1].timeout_s, image=base[1].image
        )
    return _own(job, target, base, differences, size)


def _base(job: Job, target: AwsBatchTarget, diagnostics: Diagnostics) -> tuple[str, AwsBatchDefinition] | None:
    named = job.aws_batch.definition if job.aws_batch else None
    known = target.definitions
    if named is not None:
        if named in known:
            return named, known[named]
        near = nearest(named, known)
        hint = f"nearest: {', '.join(near)}" if near else f"the target has {', '.join(sorted(known)) or 'none'}"
        diagnostics.error(f'aws_batch.definition: unknown definition "{named}"; {hint}')
        return None
    fitting = [(name, each) for name, each in sorted(known.items()) if job.image in (None, each.image)]
    if len(fitting) > 1 and job.accelerator:
        fitting = [each for each in fitting if each[1].gpus == job.accelerator.count] or fitting
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(name for name, _ in fitting)
    if fitting:
        diagnostics.error(f"aws_batch.definition: say which of the target's definitions to use: {names}")
    elif job.image is None:
        diagnostics.error("image: is missing, and the target has no definition that would name one")
    return None


def _size(job: Job, base: tuple[str, AwsBatchDefinition] | None, diagnostics: Diagnostics) -> Size | None:
    vcpus = job.cpus or (base[1].vcpus if base else None)
    memory_mib = job.memory_mib or (base[1].memory_mib if base else None)
    gpus = job.accelerator.count if job.accelerator else base[1].gpus if base else 0
    for name, value in (("cpus", vcpus), ("memory_mib", memory_mib)):
        if value is None:
            diagnostics.error(f"{name}: is missing, and no definition of the target has the image {job.image}")
    return Size(vcpus, memory_mib, gpus) if vcpus and memory_mib else None


def _differences(job: Job, base: AwsBatchDefinition) -> list[str]:
    """Name the fields that disagree and that SubmitJob cannot override."""
    disagrees = {
        "image": job.image not in (None, base.image),
        "shm_mib": job.shm_mib not in (None, base.shm_mib),
        "secrets": not job.secrets.items() <= base.secrets.items(),
        "mounts": bool(job.mounts),
        "nodes": job.nodes > 1,
    }
    return [name for name, differs in disagrees.items() if differs]


def _own(
    job: Job,
    target: AwsBatchTarget,
    base: tuple[str, AwsBatchDefinition] | None,
    differences: list[str],
    size: Size,
) -> DefinitionChoice:
    shm_mib = job.shm_mib or (base[1].shm_mib if base else None)
    if shm_mib is None and size.gpus:
        shm_mib = min(definitions.MIN_SHM_MIB, size.memory_mib)
    image = job.image or (base[1].image if base else "")
    secrets = (base[1].secrets if base else {}) | job.secrets
    container, warnings = _container(job, target, image, size, shm_mib, secrets), list[str]()
    content: dict[str, Any] = {"platformCapabilities": ["EC2"], "retryStrategy": infrastructure_only()}
    content["tags"] = OWNER_TAG
    if job.nodes > 1:
        efa = nodes.efa_interfaces(target)
        warnings += [nodes.MIXED_EFA] if efa is None else []
        shape = nodes.properties(job.nodes, nodes.with_efa(container, efa) if efa else container)
        content |= {"type": "multinode", "nodeProperties": shape}
    else:
        content |= {"type": "container", "containerProperties": container}
    name = own_definition(target.definition_prefix, content_hash(content)[:DIGEST])
    if base:
        warnings.append(
            f"definition {base[0]} cannot take this job's {' and '.join(differences)}, so the job registers "
            f"its own, {name}: command, environment, mounts, retries and timeout of {base[0]} do not apply"
        )
    registered = {"jobDefinitionName": name, **content}
    return DefinitionChoice(name, size, shm_mib, DEFAULT_ATTEMPTS, None, registered, tuple(warnings))


def _container(
    job: Job, target: AwsBatchTarget, image: str, size: Size, shm_mib: int | None, secrets: dict[str, str]
) -> dict[str, Any]:
    # An init process forwards SIGTERM: as process 1, a shell or Python without a handler ignores it.
    linux: dict[str, Any] = {"initProcessEnabled": True}
    if shm_mib is not None:
        linux["sharedMemorySize"] = shm_mib
    container: dict[str, Any] = {
        "executionRoleArn": target.execution_role_arn,
        "image": image,
        "jobRoleArn": target.job_role_arn,
        "linuxParameters": linux,
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": target.log_group,
                "awslogs-region": target.region,
                "awslogs-stream-prefix": target.definition_prefix,
            },
        },
        "resourceRequirements": requirements(size),
    }
    if secrets:
        container["secrets"] = [{"name": name, "valueFrom": secrets[name]} for name in sorted(secrets)]
    if job.mounts:
        container["volumes"] = [_volume(f"mount-{i}", mount) for i, mount in enumerate(job.mounts)]
        container["mountPoints"] = [
            {"containerPath": mount.path, "readOnly": mount.read_only, "sourceVolume": f"mount-{i}"}
            for i, mount in enumerate(job.mounts)
        ]
    return container


def _volume(name: str, mount: Mount) -> dict[str, Any]:
    efs = EFS.fullmatch(mount.source)
    if efs is None:
        bucket = mount.source.startswith("s3://")
        path = storage.folder(mount.source) if bucket else mount.source.removeprefix("host://")
        return {"host": {"sourcePath": path}, "name": name}
    configuration = {
        "fileSystemId": efs["id"],
        "rootDirectory": efs["root"] or "/",
        "transitEncryption": "ENABLED",
    }
    return {"efsVolumeConfiguration": configuration, "name": name}


def requirements(size: Size) -> list[dict[str, str]]:
    """Return the resourceRequirements, ordered by type."""
    amounts = {"GPU": size.gpus, "MEMORY": size.memory_mib, "VCPU": size.vcpus}
    return [{"type": kind, "value": str(amount)} for kind, amount in amounts.items() if amount]
