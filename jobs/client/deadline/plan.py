"""The two jobs that one job file with `spot: prefer` stands for, and how the first carries the second with it. The job
on Spot has the plan in a variable: its whole job file, the target for on demand, and the place that records the move.
So whoever can see the job can move it, without the file and without a service in between. Two clients that do so make
one job, since the second job's key derives from the first one's reference."""

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accel.contract.variables import PLAN, RESERVED_PREFIXES
from accel.diagnostics.errors import BadInput, BadInputs
from accel.rules.aws.retries import MAX_ATTEMPTS
from accel.rules.batch.jobs import MOST_RETRIES

from ...backends.base import Resubmit
from ...backends.registry import of_target
from ...model import keys
from ...model.deadline import CHANGEOVER_S
from ...model.job import Job
from ...model.sweep_tasks import variable

if TYPE_CHECKING:
    from accel.contract.targets import AnyTarget

    from ...backends.base import Backend, JobRef, Request
    from ..targets import Targets

WORD = "on-demand"
"""Text that derives the second job's key, with the reference of the first."""
MOVED = "moved to on demand"
"""Beginning of the reason for cancelling a job that continues elsewhere."""
MOST_LOST = {"aws-batch": MAX_ATTEMPTS - 1, "google-batch": MOST_RETRIES}
"""Most retries of a job, by kind of target. GKE does not count preempted attempts, so it has no entry."""
_ANY_KEY = "0" * 64


@dataclass(frozen=True)
class Plan:
    """Plan of a job on Spot. `then_to` is the target for on demand. `bucket` is where the move is recorded; None where
    the platform keeps a cancel's reason."""

    job: "Job"
    then_to: str
    bucket: str | None = None

    @property
    def on_demand(self) -> "Job":
        return self.job.model_copy(update={**_PLAIN, "spot": False})

    @property
    def deadline_s(self) -> float:
        """Seconds after the job was made."""
        assert self.job.deadline is not None
        return self.job.deadline

    @property
    def changeover_s(self) -> float:
        return self.job.changeover_s or CHANGEOVER_S

    @property
    def work_s(self) -> float:
        """Seconds of the whole job; where no more is known, the longest time of an attempt."""
        found = self.job.work_s or self.job.timeout_s
        assert found is not None
        return found

    def lost_left(self, lost: int, kind: str) -> int | None:
        """Return how many attempts may still be preempted before preemption uses up one of `retries`. None where that
        cannot happen: there are no `retries`, or the platform does not count preempted attempts."""
        on_spot = _on_spot(self.job, kind)
        return on_spot.lost_retries - lost if on_spot.retries and on_spot.lost_retries is not None else None


def plan_job(job: "Job", name: str, target: "AnyTarget", then_to: str | None, known: "Targets") -> "Job":
    """Return the job on Spot with its plan. `then_to` None: the same target. Raises BadInput if that cannot run it."""
    if then_to is None and target.kind == "aws-batch":
        raise BadInput(
            "spot: prefer: on AWS Batch a queue leaves the choice of capacity to Batch, so a second one is needed",
            "--then-to TARGET: a queue with on-demand environments alone, as --to is one with Spot environments alone",
        )
    plan = Plan(job, then_to or name, target.bucket if target.kind == "google-batch" else None)
    second(plan, known, _ANY_KEY)
    on_spot = _on_spot(job, target.kind)
    return on_spot.model_copy(update={"env": {**on_spot.env, PLAN: _written(plan)}})


def second(plan: Plan, known: "Targets", key: str) -> "tuple[Backend, Request]":
    """Return the job on demand. Raises BadInput where there is no such target, or the target cannot run the job."""
    backend = of_target(*known.choose(plan.then_to))
    job = plan.on_demand
    try:
        return backend, backend.render(job, keys.platform_name(job.name, key), key)
    except BadInput as error:
        faults = error.messages if isinstance(error, BadInputs) else [error.message]
        raise BadInputs([f"on demand on {plan.then_to}: {fault}" for fault in faults], error.hint) from None


def second_key(ref: "JobRef") -> str:
    return keys.submission_key(str(ref), WORD)


def plan_of(backend: "Backend", ref: "JobRef") -> Plan | None:
    """Return None for a job without a plan. Raises NotFound, CloudSilent or CloudRefused."""
    if not isinstance(backend, Resubmit):
        return None
    written = variable(backend.resubmit_request(ref, _ANY_KEY).body, PLAN)
    return None if written is None else _read(written, ref)


_PLAIN: dict[str, Any] = {"deadline": None, "work_s": None, "changeover_s": None}


def _on_spot(job: "Job", kind: str) -> "Job":
    """Allow as many preempted attempts as the platform takes."""
    most = MOST_LOST.get(kind)
    lost = job.lost_retries if most is None or job.lost_retries is not None else most - (job.retries or 0)
    return job.model_copy(update={**_PLAIN, "spot": True, "lost_retries": lost})


def _written(plan: Plan) -> str:
    values = {"job": plan.job.model_dump(exclude_defaults=True), "then_to": plan.then_to, "bucket": plan.bucket}
    # Base64, since Kubernetes would expand $(...); uncompressed, since other compressors give other bytes, and so
    # another request.
    return base64.b64encode(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).decode()


def _read(text: str, ref: "JobRef") -> Plan:
    try:
        values = json.loads(base64.b64decode(text, validate=True))
        env = values["job"].pop("env", {})
        # A task of a sweep has variables that no job file may set.
        given = {name: value for name, value in env.items() if not name.startswith(RESERVED_PREFIXES)}
        job = Job.model_validate({**values["job"], "env": given}).model_copy(update={"env": env})
        return Plan(job, values["then_to"], values["bucket"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = f"{ref}: its plan cannot be read: {type(error).__name__}"
        raise BadInput(said, "a newer accel may have made it") from None
