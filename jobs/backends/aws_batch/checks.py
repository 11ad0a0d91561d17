"""Checks of a job against AWS Batch: what it cannot do, and what it does in another way than the job says. Their order
is the order of the messages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.contract.targets import AwsBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules import under
from accel.rules.aws import definitions, jobs, network, shares, storage
from accel.rules.aws import retries as aws_retries
from accel.rules.aws import types as aws_types
from accel.rules.jobs import containers, image_cuda, launchers, placeholders

from ...model import sweep_tasks
from ...model.job import Job, unused_blocks
from . import capacity, labels, nodes
from .definition import EFS, DefinitionChoice

_SECRET = re.compile(r"arn:aws[a-z-]*:(secretsmanager|ssm):[a-z0-9-]+:\d{12}:\S+|/[A-Za-z0-9_./-]+")
_S3 = re.compile(r"s3://[^/\s]+(/\S*)?")
_HOST = re.compile(r"host://(/\S*)")

ONE_MACHINE_ONLY = (
    "the target has no claim table: submitting the same key again is safe on this machine only; from "
    "another one it may make a second job"
)


@dataclass(frozen=True)
class Draft:
    """Job during rendering, with the parts of the request that checks look at."""

    job: Job
    name: str
    key: str
    target: AwsBatchTarget
    depends_on: Sequence[Mapping[str, str]]
    tags: Mapping[str, str]


def _labels(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.errors += labels.faults(draft.job.labels, draft.key)


def _unsupported(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    if job.parallelism is not None and job.parallelism < job.tasks:
        diagnostics.error(
            f"parallelism: {job.parallelism} of {job.tasks} tasks: AWS Batch cannot cap an array; use a "
            "queue whose environments have a lower max_vcpus"
        )
    diagnostics.add(aws_retries.timeout(job.timeout_s))
    for i, word in enumerate(job.command):
        if not word:
            diagnostics.error(f"command[{i}]: is empty, which AWS Batch does not take")


def _unused(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.warnings += [
        *unused_blocks(draft.job, labels.KIND),
        *sweep_tasks.cap_warnings(draft.job, labels.KIND),
    ]


def _secrets(draft: Draft, diagnostics: Diagnostics) -> None:
    for name, reference in sorted(draft.job.secrets.items()):
        if not _SECRET.fullmatch(reference):
            # The text is not shown, because it may be the secret itself.
            diagnostics.error(
                f"secrets.{name}: must be the ARN of a Secrets Manager secret or of an SSM parameter, or the "
                "parameter's name with a leading /"
            )


def _private_image(draft: Draft, diagnostics: Diagnostics) -> None:
    if draft.target.closed and draft.job.image:
        diagnostics.add_errors(network.closed_image(draft.job.image, draft.target.region))


def _mounts(draft: Draft, diagnostics: Diagnostics) -> None:
    mounted = {environment.name: environment.buckets for environment in draft.target.environments}
    for i, mount in enumerate(draft.job.mounts):
        field = f"mounts[{i}].source"
        buckets = storage.bucket(field, mount.source, mount.read_only, mounted)
        diagnostics.add(buckets)
        if not buckets and not any(form.fullmatch(mount.source) for form in (EFS, _HOST, _S3)):
            diagnostics.error(
                f'{field}: "{mount.source}" is neither efs://fs-<8 or 17 hexadecimal '
                "digits>[/folder] nor host:///folder nor s3://bucket[/folder]"
            )


def _submission(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    array_size = job.tasks if job.tasks > 1 else None
    diagnostics.add(jobs.job(name=draft.name, array_size=array_size, depends_on=draft.depends_on, tags=draft.tags))


def _shares(draft: Draft, diagnostics: Diagnostics) -> None:
    own = draft.job.aws_batch
    identifier, priority = (own.share_identifier, own.scheduling_priority) if own else (None, None)
    found = shares.job(shares=draft.target.shares, identifier=identifier, priority=priority)
    diagnostics.add(under("aws_batch", found))


def _retries(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.add(aws_retries.counts(draft.job.retries, draft.job.lost_retries))


def _definition(draft: Draft, choice: DefinitionChoice, diagnostics: Diagnostics) -> None:
    size = choice.size
    diagnostics.warnings += choice.warnings
    diagnostics.add(
        definitions.size(vcpus=size.vcpus, memory_mib=size.memory_mib, gpus=size.gpus, shm_mib=choice.shm_mib)
    )


def _queue(draft: Draft, choice: DefinitionChoice, diagnostics: Diagnostics) -> None:
    capacity.check(draft.job, choice.size, draft.target, diagnostics)
    diagnostics.add(nodes.check(draft.job, choice.size, draft.target))


def _environment(draft: Draft, choice: DefinitionChoice, diagnostics: Diagnostics) -> None:
    job = draft.job
    diagnostics.add(containers.aws_environment(job.env, choice.size.gpus))
    diagnostics.add(launchers.check(job.command, job.env, launchers.Shape(job.nodes, choice.size.gpus)))


def _image(draft: Draft, choice: DefinitionChoice, diagnostics: Diagnostics) -> None:
    own, image = draft.job.image, draft.job.image or choice.image
    # A local image is a folder, which no push changes.
    if own and not own.startswith(containers.LOCAL):
        diagnostics.add(containers.image(own) + placeholders.account("image", own) + placeholders.value("image", own))
    if image and choice.size.gpus and image_cuda.version_in_name(image):
        types = [name for environment in draft.target.environments for name in environment.instance_types]
        diagnostics.add(image_cuda.image(image, aws_types.gpus(types)))


JOB = (
    _labels,
    _unsupported,
    _unused,
    _secrets,
    _private_image,
    _mounts,
    _submission,
    _shares,
    _retries,
)

PLACED = (_definition, _queue, _environment, _image)
"""Checks of a job whose definition, and so its size, is chosen."""
