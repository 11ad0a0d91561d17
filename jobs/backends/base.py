"""The interface of a backend, its optional parts, and the values that it exchanges with its callers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

from accel.clouds.rate_limit import Rate
from accel.diagnostics.errors import BadInput

if TYPE_CHECKING:
    from ..model.job import Job


@dataclass(frozen=True)
class JobRef:
    """Name of one job anywhere: `aws-batch:us-east-1/0f3c...`, `local:/digits-1a2b3c4d`."""

    kind: str
    scope: str
    id: str
    there: bool = field(default=False, compare=False, repr=False)
    """Set by submit: the job of the key existed before."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.scope}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> "JobRef":
        """Raise BadInput for text other than <kind>:<scope>/<id>."""
        kind, colon, rest = text.partition(":")
        scope, slash, name = rest.partition("/")
        if not (kind and colon and slash and name):
            shown = repr(text) if len(text) <= 60 else repr(text[:57] + "...")
            raise BadInput(f"job reference {shown}: expected <kind>:<scope>/<id>, as submit and ls print it")
        return cls(kind, scope, name)


class Phase(StrEnum):
    """State of a job, the same for all platforms."""

    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @property
    def ended(self) -> bool:
        return self in (Phase.SUCCEEDED, Phase.FAILED)


@dataclass(frozen=True)
class Request:
    """Complete request, in plain JSON values with the service's own field names. `--dry-run` prints it."""

    kind: str
    target: str
    name: str
    key: str
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """State of a job, as its platform reports it now."""

    ref: JobRef
    name: str
    phase: Phase
    native: str
    """State in the platform's own words."""
    reason: str | None = None
    exit_code: int | None = None
    attempts: int | None = None
    """None if unknown, here and in the fields below."""
    lost: int | None = None
    """Attempts lost to preemption."""
    lost_gpu_hours: float | None = None
    """None without lost attempts or GPUs."""
    taken: str | None = None
    """Reason why a job failed for want of a machine: preemption, or no capacity. Another target may run it."""
    tasks: dict[str, int] = field(default_factory=dict[str, int])
    """Number of an array's tasks by native state."""
    created: datetime | None = None
    started: datetime | None = None
    stopped: datetime | None = None
    target: str | None = None
    gpus: int | None = None
    """GPUs or TPU chips of one task, on all of its nodes."""
    owner: str | None = None
    """See owners.py."""


@dataclass(frozen=True)
class LogLine:
    """Line of a job's output."""

    at: datetime
    text: str
    source: str = ""
    """Task and attempt, if there are several."""


@dataclass(frozen=True)
class QuotaAnswer:
    """Places where a job cannot start for the account's quotas, and the limits that could not be read."""

    over: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Reason why a job waits or failed: one cause, the evidence, and the next step."""

    cause: str
    """Id from docs/explain.md, or "unknown" if none fits."""
    reason: str
    evidence: tuple[str, ...] = ()
    next_step: str = ""
    unread: tuple[str, ...] = ()
    """Sources that could not be read, each with the permission that it needs."""


class Backend(Protocol):
    """Required part of a backend. Calls deliberately raise the errors of errors.py and no others."""

    def render(self, job: "Job", name: str, key: str) -> Request:
        """Use no clock, network or file. Raise BadInput (BadInputs for several) for fields that cannot be honoured."""
        ...

    def submit(self, request: Request) -> JobRef:
        """Give the same JobRef for the same request.key, also after a crash before the answer, and to two clients at
        once. Raise BadInput for the same key with another body."""
        ...

    def status(self, ref: JobRef) -> Status:
        """Read only. Raise NotFound if the platform positively says that there is no such job, CloudSilent if the state
        cannot be determined."""
        ...

    def cancel(self, ref: JobRef, reason: str) -> None:
        """Ask the job to stop. Idempotent: no effect on an ended job."""
        ...


@runtime_checkable
class Logs(Protocol):
    """Backend that stores job output."""

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        """Yield each line so far once, in order, or the last `tail`. With `follow`, go on until the log is complete."""
        ...


@runtime_checkable
class Listing(Protocol):
    """Backend that can list its jobs."""

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        """Yield the newest first, then raise Damaged if records are. `progress` gets the count of jobs named so far."""
        ...


@runtime_checkable
class Many(Protocol):
    """Backend that reads many jobs with few calls."""

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        """Omit jobs that the platform does not know."""
        ...


@runtime_checkable
class TendedBackend(Protocol):
    """Backend whose jobs a client advances, because no service of the cloud requeues preempted ones."""

    def tend(self, ref: JobRef, say: Callable[[str], None] = lambda text: None) -> Status:
        """Take the steps that are due, each told to `say`. Safe for several clients at once, and after a crash."""
        ...


@runtime_checkable
class Concurrent(Protocol):
    """Backend whose submit may be called by several threads at once."""

    def threads(self, submits_per_s: int | None = None) -> int:
        """Return how many threads are worthwhile, and create what they share. `submits_per_s` limits the requests of
        all threads per second. None: the platform's own limit, or slightly less."""
        ...

    def stop(self) -> None:
        """Make submits that have not sent their request yet raise NotSent, until `threads` is called again."""
        ...


@runtime_checkable
class Resubmit(Protocol):
    """Backend that can run a job once more."""

    def resubmit_request(self, ref: JobRef, key: str) -> Request: ...


@dataclass(frozen=True)
class Streams:
    """Input and output of a command in a job."""

    write: Callable[[bool, bytes], None]
    """The flag is true for the error stream."""
    read: Callable[[int], bytes] | None = None
    """Returns at most that many bytes of input, none at the end. None: the command has no input."""
    size: tuple[int, int] | None = None
    """Columns and rows of the terminal. None: there is none."""


@dataclass(frozen=True)
class Places:
    """Tasks or nodes on which a job runs now."""

    word: str | None
    """`task` or `node` if the job has several."""
    running: tuple[int, ...]
    """Their numbers. A job with a single one has number 0."""
    gpus: int = 0
    """GPUs requested for each; `chips`: TPU chips."""
    chips: int = 0


@runtime_checkable
class Exec(Protocol):
    """Backend that can run a command in a running job."""

    def places(self, ref: JobRef) -> Places:
        """Raise BadInput for a job that does not run, NotFound."""
        ...

    def run(
        self, ref: JobRef, command: Sequence[str], streams: Streams, *, task: int | None = None, host: bool = False
    ) -> int:
        """Return the exit code. `host`: on the machine, not in the container. Raise BadInput for a job that does not
        run, several tasks without `task`, and machines that may not be entered. Threads may call it after `places`."""
        ...


@dataclass(frozen=True)
class Attempt:
    """Attempt at a job, a task or a node, numbered from 1. None: unknown."""

    number: int
    place: int | None = None
    """Task or node, if the job has several with attempts of their own."""
    created: datetime | None = None
    """Time when a machine was requested."""
    placed: datetime | None = None
    """Time when a machine was assigned, which then starts and pulls its image."""
    started: datetime | None = None
    stopped: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    lost: bool = False
    """Whether the platform took its machine back."""


@runtime_checkable
class Attempts(Protocol):
    """Backend that remembers the attempts of a job."""

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        """Return them by place and number, of an array for its first hundred tasks. Raise the errors of `status`."""
        ...


@runtime_checkable
class Quotas(Protocol):
    """Backend that can tell whether the account's quotas let a job start."""

    def quota(self, job: "Job") -> QuotaAnswer:
        """Check without changes, by at most one call per quota and hour. Unreadable limits raise nothing."""
        ...


@runtime_checkable
class Explain(Protocol):
    """Backend that can tell why a job waits or failed."""

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Read only. A missing job is a cause too, searched for in the scopes that `elsewhere` returns. Raise
        NoCredentials, and CloudRefused or CloudSilent if the job itself cannot be read."""
        ...


TargetT = TypeVar("TargetT")
ScopeT = TypeVar("ScopeT")
TimingT = TypeVar("TimingT")


class PlatformBackend(Generic[TargetT, ScopeT, TimingT]):
    """Shared part of every backend: construction from a target or a reference's scope, and checks."""

    KIND: ClassVar[str]
    NO_TARGET: ClassVar[str]
    """What a scope alone does not tell, in the words of the error message."""

    def __init__(self, target_name: str, target: TargetT, *, timing: TimingT | None = None) -> None:
        self._target_name: str | None = target_name
        self._target: TargetT | None = target
        self._open(self._scope_of(target), timing)

    @classmethod
    def of_scope(cls, scope: str, *, timing: TimingT | None = None) -> Self:
        """Return a backend for operations that need a job reference only. Raise BadInput for text that is no scope."""
        backend = cls.__new__(cls)
        backend._target_name = backend._target = None
        backend._open(cls._parse_scope(scope), timing)
        return backend

    def _open(self, scope: ScopeT, timing: TimingT | None) -> None:
        """Store scope and timing. A backend adds its clients, which connect at their first call."""
        self._scope, self._timing = scope, timing

    @staticmethod
    def _scope_of(target: TargetT) -> ScopeT:
        raise NotImplementedError

    @staticmethod
    def _parse_scope(text: str) -> ScopeT:
        raise NotImplementedError

    @staticmethod
    def _render(job: "Job", name: str, key: str, target_name: str, target: TargetT) -> Request:
        """Render a job as request.py does."""
        raise NotImplementedError

    def render(self, job: "Job", name: str, key: str) -> Request:
        return self._render(job, name, key, *self._needed("render"))

    def submit(self, request: Request) -> JobRef:
        raise NotImplementedError

    def status(self, ref: JobRef) -> Status:
        raise NotImplementedError

    def cancel(self, ref: JobRef, reason: str) -> None:
        raise NotImplementedError

    def _needed(self, verb: str) -> tuple[str, TargetT]:
        """Raise BadInput for a backend that was created from a reference."""
        if self._target is None or self._target_name is None:
            raise BadInput(f"{verb}: needs a target; {self.NO_TARGET}")
        return self._target_name, self._target

    def _checked(self, ref: JobRef) -> JobRef:
        """Raise BadInput for a reference of another kind or scope."""
        if (ref.kind, ref.scope) != (self.KIND, str(self._scope)):
            raise BadInput(f"{ref} is not a job of {self.KIND}:{self._scope}")
        return ref


class RateLimitedBackend:
    """Part of a Concurrent backend whose threads share connections and a rate of submits."""

    THREADS: ClassVar[int]
    SUBMITS_PER_S: ClassVar[int]
    _rate: Rate | None = None

    def threads(self, submits_per_s: int | None = None) -> int:
        self._rate = Rate(submits_per_s or self.SUBMITS_PER_S)
        return self.THREADS

    def stop(self) -> None:
        if self._rate is not None:
            self._rate.close()

    def _turn(self) -> None:
        if self._rate is not None:
            self._rate.turn()
