"""Facts that AWS knows about a job and its environments: plain values, each read when a rule first needs it. None
stands for "could not be read", and makes no cause true."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, ClassVar, TypeVar

from accel.catalog import Machine, holding, resolve_machines
from accel.clouds.aws.reader import Reader
from accel.clouds.aws.responses import structure, structures
from accel.clouds.aws.roles import Role
from accel.clouds.aws.routes import Network
from accel.rules.aws.fit import Size

from ...base import Explanation
from .. import engine

T = TypeVar("T")
Document = Mapping[str, Any]
Lazy = Callable[[], T]


@dataclass(frozen=True)
class Attempt:
    """Attempt that is over. `cluster` is that of ECS, which identifies the environment."""

    status_reason: str
    reason: str
    exit_code: int | None
    stopped: float | None
    cluster: str

    @property
    def code_text(self) -> str:
        return "" if self.exit_code is None else f", exit code {self.exit_code}"


@dataclass(frozen=True)
class Queue:
    """Job queue. `shares`: the fair-share policy, if any. `limits`: seconds until a job is cancelled, by reason."""

    name: str
    state: str
    status: str
    reason: str
    shares: Document | None
    limits: Mapping[str, int]


@dataclass(frozen=True)
class Ahead:
    """Job at the front of the queue."""

    id: str
    name: str
    share: str
    reason: str


@dataclass(frozen=True)
class Other:
    """Job that this one depends on. Status None: Batch no longer knows it."""

    id: str
    name: str
    status: str | None
    index: int | None = None


@dataclass(frozen=True)
class Activity:
    """Activity of Auto Scaling for an environment, tried or done; `at` in seconds."""

    at: float
    failed: bool
    message: str


@dataclass(frozen=True)
class Instance:
    """Pending or running EC2 instance. `joined`: its ECS agent is registered and connected; None: unknown."""

    id: str
    kind: str
    launched: float
    subnet: str
    public_ip: bool
    joined: bool | None
    registered_mib: int = 0
    """Memory registered with ECS for jobs. 0: unknown."""


@dataclass(frozen=True)
class Environment:
    """Compute environment of the queue, in the order in which Batch tries them."""

    name: str
    state: str
    status: str
    reason: str
    spot: bool
    instance_types: tuple[str, ...]
    max_vcpus: int
    desired_vcpus: int
    cluster: str
    images: tuple[tuple[str, str], ...]
    """Pairs of image type and the image that overrides it, or ""."""
    activities: Lazy[tuple[Activity, ...] | None] = lambda: None
    """Newest first."""
    instances: Lazy[tuple[Instance, ...] | None] = lambda: None
    role: Lazy[Role | None] = lambda: None
    network: Lazy[Network | None] = lambda: None
    own_image: Lazy[str | None] = lambda: None
    """Image of the launch template; "" for none."""
    over_quota: Lazy[str | None] = lambda: None
    """Reason why EC2's quotas keep every instance that holds the job from starting; "" if they do not."""

    @property
    def usable(self) -> bool:
        return self.state == "ENABLED" and self.status not in ("INVALID", "DELETING", "DELETED")

    @cached_property
    def machines(self) -> tuple[Machine, ...]:
        """Types that are in the catalogue."""
        return resolve_machines(tuple(self.instance_types))[0]

    @cached_property
    def unknown(self) -> bool:
        """Whether it has types that are not in the catalogue."""
        return bool(resolve_machines(tuple(self.instance_types))[1])

    def smallest(self, size: Size) -> Machine | None:
        held = holding(self.machines, size.vcpus, size.memory_mib, size.gpus)
        return min(held.fits or held.tight, key=lambda machine: machine.vcpus, default=None)


PULL = re.compile(r"CannotPull|ecr registry auth|registry auth from Amazon ECR")
"""Words about an image that was not pulled, or not even asked for. Sources:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html,
https://github.com/doctorray117/minecraft-ondemand/issues/74, https://github.com/aws/copilot-cli/issues/5927"""
WAITING = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING")
_STUCK = "https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html lists what AWS knows of"


@dataclass(frozen=True)
class AwsFacts(engine.Facts):
    """Facts about a job that is no array's parent, and its surroundings. Times are seconds since the epoch."""

    PLATFORM = "aws_batch"
    NEXT_STEPS: ClassVar = {
        "boot-image-missing": "give the environment an image of now, or leave it to AWS, and `pulumi up`",
        "container-gpu": "image_type: ECS_AL2023_NVIDIA, or an AMI of your own with a driver as new as the image's "
        "CUDA needs",
        "disk-full": "write to S3, delete what is no longer needed, or give the environment a larger disk_gib",
        "gpu-not-requested": "accelerator: {count: 1} in the job file, or gpus in the definition",
        "gpu-not-visible": "the image's CUDA must not be newer than the driver of the instances' AMI, whose image type "
        "is ECS_AL2023_NVIDIA or one of your own with the driver",
        "image-forbidden": "let the instance role and the execution role read ECR; another account's repository has to "
        "allow this one",
        "image-pull": "the reason is the registry's own; is the name right, and may the instance's role read it?",
        "image-rate-limit": "log in to the registry, or copy the image to ECR",
        "image-unreachable": "a NAT gateway, or VPC endpoints for ecr.api, ecr.dkr and S3; a public registry needs a "
        "way to the internet",
        "mount": "of EFS: is the file system there, has it a mount target in the instances' zone, and does its "
        "security group let NFS (2049) in from them?",
        "not-offered": "give the environment subnets of other zones, or instance types that all of its zones have",
        "quota": "`stacks quota` shows limits and use, `stacks quota --request` writes the request for more",
    }

    job: Document
    region: str
    now: float
    queue: Lazy[Queue | None] = lambda: None
    environments: Lazy[tuple[Environment, ...] | None] = lambda: None
    front: Lazy[tuple[Ahead, ...] | None] = lambda: None
    active_shares: Lazy[int | None] = lambda: None
    depends_on: Lazy[tuple[Other, ...] | None] = lambda: None
    lines: Lazy[tuple[str, ...] | None] = lambda: None
    """End of the last attempt's log."""
    pull_began: Lazy[float | None] = lambda: None
    """Start of the image's pull, for a job in STARTING."""
    image_exists: Lazy[bool | None] = lambda: None
    reader: Reader | None = None

    @property
    def unread(self) -> tuple[str, ...]:
        return self.reader.unread_lines() if self.reader else ()

    def texts(self, kind: str) -> Sequence[str]:
        """Return ECS's reason why the last attempt's image was not pulled, or its container not started."""
        last = self.last
        if last is None:
            return ()
        match kind:
            case "pull":
                return [last.reason] if PULL.search(last.reason) else ()
            case "start":
                silent = last.exit_code is None and last.reason and "OutOfMemory" not in last.reason
                return [last.reason] if silent else ()
            case _:
                return super().texts(kind)

    def unknown(self) -> Explanation:
        state = f"the job is {self.status}, {self.reason or 'without a reason'}"
        last = self.last
        attempt = f"last attempt: {last.status_reason}, {last.reason}{last.code_text}" if last else ""
        queue = self.queue()
        place = f"the queue {queue.name} is {queue.state}, {queue.status}" if queue else ""
        calls = f"looked at: {', '.join(self.reader.looked)}" if self.reader else ""
        step = _STUCK if self.status in WAITING else ""
        return self.explanation("unknown", evidence=(state, attempt, place, calls), next_step=step)

    @property
    def status(self) -> str:
        return str(self.job["status"])

    @property
    def reason(self) -> str:
        return str(self.job.get("statusReason") or "")

    @property
    def container(self) -> Document:
        """Container of the job; for a multi-node job that of the first range."""
        nodes = structures(structure(self.job, "nodeProperties"), "nodeRangeProperties")
        return structure(self.job, "container") or (structure(nodes[0], "container") if nodes else {})

    @cached_property
    def size(self) -> Size:
        asked = {row["type"]: row["value"] for row in structures(self.container, "resourceRequirements")}
        vcpus, memory = (
            asked.get("VCPU", self.container.get("vcpus")),
            asked.get("MEMORY", self.container.get("memory")),
        )
        return Size(ceil(float(vcpus or 0)), int(memory or 0), int(asked.get("GPU", 0)))

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(_attempt(each) for each in structures(self.job, "attempts"))

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def since(self) -> float:
        """Time of its creation, or of the end of its last attempt."""
        stops = [each.stopped for each in self.attempts if each.stopped]
        return stops[-1] if stops else int(self.job.get("createdAt") or 0) / 1000

    @property
    def candidates(self) -> tuple[Environment, ...]:
        """Environments that Batch may use now and that hold the job, as far as the catalogue knows."""
        return tuple(each for each in self.usable if each.unknown or self._holds(each))

    @property
    def usable(self) -> tuple[Environment, ...]:
        return tuple(each for each in self.environments() or () if each.usable)

    def _holds(self, environment: Environment) -> bool:
        smallest = environment.smallest(self.size)
        return smallest is not None and smallest.vcpus <= environment.max_vcpus

    def ago(self, moment: float) -> str:
        return f"{engine.span(self.now - moment)} ago"

    def reference(self, job_id: str, name: str = "") -> str:
        return f"aws-batch:{self.region}/{job_id} {name}".rstrip()


def _attempt(attempt: Document) -> Attempt:
    container = structure(attempt, "container")
    stopped = attempt.get("stoppedAt")
    # arn:aws:ecs:<region>:<account>:container-instance/<cluster>/<id>
    cluster = str(container.get("containerInstanceArn") or "").split("/")[1:2]
    return Attempt(
        str(attempt.get("statusReason") or ""),
        str(container.get("reason") or ""),
        container.get("exitCode"),
        int(stopped) / 1000 if stopped else None,
        cluster[0] if cluster else "",
    )
