"""What a backend must do, what it may do besides, and the values between it and the command line."""

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
    """Names one job anywhere: `aws-batch:us-east-1/0f3c...`, `local:/digits-1a2b3c4d`."""

    kind: str
    scope: str
    id: str
    there: bool = field(default=False, compare=False, repr=False)
    """As submit gives it: the job of the key was there before."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.scope}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> "JobRef":
        """Raises BadInput unless the text is <kind>:<scope>/<id>."""
        kind, colon, rest = text.partition(":")
        scope, slash, name = rest.partition("/")
        if not (kind and colon and slash and name):
            shown = repr(text) if len(text) <= 60 else repr(text[:57] + "...")
            raise BadInput(f"job reference {shown}: expected <kind>:<scope>/<id>, as submit and ls print it")
        return cls(kind, scope, name)


class Phase(StrEnum):
    """One state over all platforms."""

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
    """What will be sent, whole, in plain JSON values with the service's own field names: what `--dry-run` shows."""

    kind: str
    target: str
    name: str
    key: str
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """A job as its platform sees it now."""

    ref: JobRef
    name: str
    phase: Phase
    native: str
    """The platform's own word for the state."""
    reason: str | None = None
    exit_code: int | None = None
    attempts: int | None = None
    """None: not known; so it is with each that follows."""
    lost: int | None = None
    """Of the attempts: how many the platform took the machine away from."""
    lost_gpu_hours: float | None = None
    """GPU hours of the lost attempts; None where there are none, or no GPUs."""
    taken: str | None = None
    """Of a job that failed because its machine was taken away, or there was none: which. Elsewhere it may run."""
    tasks: dict[str, int] = field(default_factory=dict[str, int])
    """How many tasks of an array are in which native state."""
    created: datetime | None = None
    started: datetime | None = None
    stopped: datetime | None = None
    target: str | None = None
    gpus: int | None = None
    """GPUs or TPU chips that a task has, on all of its nodes."""
    owner: str | None = None
    """See owners.py."""


@dataclass(frozen=True)
class LogLine:
    """One line of a job's output."""

    at: datetime
    text: str
    source: str = ""
    """Task and attempt, where there is more than one."""


@dataclass(frozen=True)
class QuotaAnswer:
    """What the account's quotas say of a job: where it cannot start, and what could not be read."""

    over: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Why a job waits or failed: one cause, what shows it, and what to do about it."""

    cause: str
    """An id of docs/explain.md; "unknown" where none fits."""
    reason: str
    evidence: tuple[str, ...] = ()
    next_step: str = ""
    unread: tuple[str, ...] = ()
    """What could not be looked at, each with the permission that it needs."""


class Backend(Protocol):
    """The required part. Every call may raise the errors of errors.py and no others on purpose."""

    def render(self, job: "Job", name: str, key: str) -> Request:
        """The request for this job on the backend's target. Pure: no clock, no network, no file. Raises BadInput
        (BadInputs for several) for each field that cannot be honoured, with the reason."""
        ...

    def submit(self, request: Request) -> JobRef:
        """Makes the job. Idempotent in request.key: the same key gives the same JobRef, also after a crash between the
        request and its answer, and for two clients at once. The same key with another body is BadInput."""
        ...

    def status(self, ref: JobRef) -> Status:
        """Reads only. NotFound when the platform positively says so, CloudSilent when it cannot be seen."""
        ...

    def cancel(self, ref: JobRef, reason: str) -> None:
        """Asks the job to stop. Idempotent: cancelling an ended job does nothing."""
        ...


@runtime_checkable
class Logs(Protocol):
    """A backend that keeps what jobs print."""

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        """Lines so far, or the last `tail` of them, in order, each once; follow: until the log is whole."""
        ...


@runtime_checkable
class Listing(Protocol):
    """A backend that knows its jobs."""

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        """Newest first; then perhaps raises Damaged. `progress` is told how many the platform has named so far."""
        ...


@runtime_checkable
class Many(Protocol):
    """A backend that sees many jobs with few calls."""

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        """As status, of those that the platform knows."""
        ...


@runtime_checkable
class TendedBackend(Protocol):
    """A backend whose jobs are moved on by whoever looks at them: no service of the cloud's requeues what was lost."""

    def tend(self, ref: JobRef, say: Callable[[str], None] = lambda text: None) -> Status:
        """Does what is to be done for the job now, and gives its status then. `say` is told what was done. May be
        called by several clients at once, and again after a crash."""
        ...


@runtime_checkable
class Concurrent(Protocol):
    """A backend whose submit may be called by several threads at once."""

    def threads(self, submits_per_s: int | None = None) -> int:
        """How many are worth it; makes what they share. `submits_per_s`: the most requests in a second, of them all;
        None: the platform's own limit, or a little less."""
        ...

    def stop(self) -> None:
        """Submits that have not sent their request yet raise NotSent, until threads is called again."""
        ...


@runtime_checkable
class Resubmit(Protocol):
    """A backend that can run a job once more."""

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        """The request that runs the job of `ref` once more, under a new key."""
        ...


@dataclass(frozen=True)
class Streams:
    """What a command in a job reads and writes."""

    write: Callable[[bool, bytes], None]
    """What it wrote; true for its error stream."""
    read: Callable[[int], bytes] | None = None
    """At most so many bytes for it, none at the end; None: it reads nothing."""
    size: tuple[int, int] | None = None
    """Columns and rows of the terminal that it gets; None: it gets none."""


@dataclass(frozen=True)
class Places:
    """Where a job runs now."""

    word: str | None
    """`task` or `node` where the job has several."""
    running: tuple[int, ...]
    """Their numbers; of a job of one: 0."""
    gpus: int = 0
    """That each was asked for with."""
    chips: int = 0
    """TPU chips, likewise."""


@runtime_checkable
class Exec(Protocol):
    """A backend that can run a command in a job that runs."""

    def places(self, ref: JobRef) -> Places:
        """Reads only. Raises BadInput for a job that does not run, NotFound."""
        ...

    def run(
        self, ref: JobRef, command: Sequence[str], streams: Streams, *, task: int | None = None, host: bool = False
    ) -> int:
        """The command's exit code. `host`: on the machine rather than in the job's container. Raises BadInput for a job
        that does not run, of several tasks and none named, or whose machines may not be entered. Several threads may
        call it once `places` was."""
        ...


@dataclass(frozen=True)
class Attempt:
    """One try at a job, a task or a node, as far as its platform tells; None: not known."""

    number: int
    """From 1."""
    place: int | None = None
    """Task or node where the job has several and each has attempts of its own."""
    created: datetime | None = None
    """When a machine was asked for."""
    placed: datetime | None = None
    """When there was one: from then on it starts, and pulls its image."""
    started: datetime | None = None
    stopped: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    lost: bool = False
    """The platform took its machine away."""


@runtime_checkable
class Attempts(Protocol):
    """A backend that remembers how often a job was tried."""

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        """By place and number; of an array, those of its first hundred tasks. Raises as status."""
        ...


@runtime_checkable
class Quotas(Protocol):
    """A backend that can tell whether the account's quotas let a job start."""

    def quota(self, job: "Job") -> QuotaAnswer:
        """Reads only, at most one call for each quota and hour. Raises nothing for what it cannot read."""
        ...


@runtime_checkable
class Explain(Protocol):
    """A backend that can tell why a job waits or failed."""

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Reads only. A job that is not there is a cause too; it is looked for in the scopes that `elsewhere` gives.
        Raises NoCredentials, and CloudRefused or CloudSilent where the job itself cannot be read."""
        ...


TargetT = TypeVar("TargetT")
ScopeT = TypeVar("ScopeT")
TimingT = TypeVar("TimingT")


class PlatformBackend(Generic[TargetT, ScopeT, TimingT]):
    """The shared part of every backend: construction from a target or from a reference's scope, and checks."""

    KIND: ClassVar[str]
    NO_TARGET: ClassVar[str]
    """What a scope alone does not say, as a refusal puts it."""

    def __init__(self, target_name: str, target: TargetT, *, timing: TimingT | None = None) -> None:
        self._target_name: str | None = target_name
        self._target: TargetT | None = target
        self._open(self._scope_of(target), timing)

    @classmethod
    def of_scope(cls, scope: str, *, timing: TimingT | None = None) -> Self:
        """Return a backend for what a job reference alone is enough. Raise BadInput for text that is no scope."""
        backend = cls.__new__(cls)
        backend._target_name = backend._target = None
        backend._open(cls._parse_scope(scope), timing)
        return backend

    def _open(self, scope: ScopeT, timing: TimingT | None) -> None:
        """Keep scope and timing. A backend adds its clients, which connect at their first call."""
        self._scope, self._timing = scope, timing

    @staticmethod
    def _scope_of(target: TargetT) -> ScopeT:
        raise NotImplementedError

    @staticmethod
    def _parse_scope(text: str) -> ScopeT:
        raise NotImplementedError

    def render(self, job: "Job", name: str, key: str) -> Request:
        """See Backend."""
        raise NotImplementedError

    def submit(self, request: Request) -> JobRef:
        """See Backend."""
        raise NotImplementedError

    def status(self, ref: JobRef) -> Status:
        """See Backend."""
        raise NotImplementedError

    def cancel(self, ref: JobRef, reason: str) -> None:
        """See Backend."""
        raise NotImplementedError

    def _needed(self, verb: str) -> tuple[str, TargetT]:
        """Return name and target. Raise BadInput for a backend that was made from a reference."""
        if self._target is None or self._target_name is None:
            raise BadInput(f"{verb}: needs a target; {self.NO_TARGET}")
        return self._target_name, self._target

    def _checked(self, ref: JobRef) -> JobRef:
        """Raise BadInput for a reference of another kind or scope."""
        if (ref.kind, ref.scope) != (self.KIND, str(self._scope)):
            raise BadInput(f"{ref} is not a job of {self.KIND}:{self._scope}")
        return ref


class RateLimitedBackend:
    """The part of a Concurrent backend whose threads share connections and a rate of submits."""

    THREADS: ClassVar[int]
    SUBMITS_PER_S: ClassVar[int]
    _rate: Rate | None = None

    def threads(self, submits_per_s: int | None = None) -> int:
        """See Concurrent."""
        self._rate = Rate(submits_per_s or self.SUBMITS_PER_S)
        return self.THREADS

    def stop(self) -> None:
        """Refuse requests that have not been sent."""
        if self._rate is not None:
            self._rate.close()

    def _turn(self) -> None:
        """Wait for a turn, if `threads` was called."""
        if self._rate is not None:
            self._rate.turn()
