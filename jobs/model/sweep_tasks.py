"""The tasks of a sweep in requests: their environment, and reruns of some of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from accel.contract import variables
from accel.diagnostics.errors import BadInput

from ..runtime import sweep as parameters
from . import sweep_shell
from .job import Job
from .sweep import sweep_spec, text

ALONE = ("vertex", "tpu-vm", "gce")
"""Kinds of targets that run one task per job; each task of a sweep is a job of its own there."""
MOVED_MAX = 1000
"""Most tasks that each move to on demand: the number of jobs of one target that `tend` looks after at once."""
CAP = 4
"""Tasks that run at once of a sweep without `parallelism`, on platforms with such a cap (CAPPED); larger sweeps
elsewhere get a warning. Our own default: nobody means to pay for a hundred machines by leaving out a line."""
CAPPED = ("google-batch",)

_NAME_MAX = 100


def environment(job: Job) -> dict[str, str]:
    return {variables.SWEEP: text(sweep_spec(job.sweep))} if job.sweep else {}


def command(job: Job, words: Sequence[str], kind: str) -> list[str]:
    """Return the argv of a task, which first exports a sweep's parameters."""
    if not (job.sweep and job.sweep.shell and words):
        return list(words)
    return sweep_shell.command(sweep_spec(job.sweep), words, kind)


def apart(job: Job, kind: str) -> list[Job]:
    """Return the jobs that a job becomes on a target of `kind`: one for each task of a sweep where the target runs one
    task per job, or where each task moves to on demand by itself. Raise BadInput for a parallelism that nothing would
    enforce, and for more tasks than `tend` looks after."""
    moved = job.spot == "prefer"
    if job.sweep is None or (kind not in ALONE and not moved):
        return [job]
    where = "with spot: prefer" if moved else f"on {kind}"
    if job.parallelism is not None and job.parallelism < job.tasks:
        raise BadInput(f"parallelism: is {job.parallelism}; {where} each of the {job.tasks} tasks is a job of its own")
    if moved and job.tasks > MOVED_MAX:
        raise BadInput(
            f"sweep: has {job.tasks} tasks, each a job that moves by itself with spot: prefer, of which `tend --to` "
            f"looks after {MOVED_MAX}; write spot: true, or make several sweeps of it"
        )
    spec = sweep_spec(job.sweep)
    written = text(spec)
    return [_alone(job, spec, written, index) for index in range(parameters.count(spec))]


def at_once(job: Job, kind: str) -> int | None:
    """Return how many of a job's tasks run at once; None: as many as the platform runs."""
    if job.parallelism is None and job.sweep is not None and kind in CAPPED and job.tasks > CAP:
        return CAP
    return job.parallelism


def cap_warnings(job: Job, kind: str) -> tuple[str, ...]:
    if job.sweep is None or job.parallelism is not None or job.tasks <= CAP:
        return ()
    if kind in CAPPED:
        if job.google_batch and job.google_batch.in_order:
            return ()  # one at a time
        told = f"is missing, and {CAP} of the sweep's {job.tasks} tasks run at once on {kind}"
        return (f"parallelism: {told}; write parallelism: {job.tasks} for all of them",)
    told = f"is missing, and all {job.tasks} tasks of the sweep may run at once"
    if kind == "aws-batch":
        fix = "AWS Batch cannot cap an array, only max_vcpus of the queue's environments does"
    elif kind in ALONE or job.spot == "prefer":
        fix = "each is a job of its own, which nothing but quotas and budgets caps"
    else:
        fix = f"write parallelism: {CAP}, or as many as you mean to pay for"
    return (f"parallelism: {told}; {fix}",)


def first(job: Job) -> Job:
    """Return the first task of a sweep as a job of its own, with its parameters; any other job unchanged."""
    if job.sweep is None:
        return job
    spec = sweep_spec(job.sweep)
    return _alone(job, spec, text(spec), 0)


def together(job: Job) -> list[str]:
    return ["sweep: each of its tasks is a job of its own here, which `accel-jobs submit` makes"] if job.sweep else []


def _alone(job: Job, spec: Mapping[str, Any], written: str, index: int) -> Job:
    own = {variables.SWEEP: written, variables.SWEEP_ONLY: str(index)}
    env = job.env | parameters.params(spec, index) | own
    name = f"{job.name[: _NAME_MAX - len(f'-{index}')]}-{index}"
    return job.model_copy(update={"name": name, "sweep": None, "tasks": 1, "parallelism": None, "env": env})


@dataclass(frozen=True)
class SweepPart:
    """A sweep, or a part of one, in a request."""

    spec: dict[str, Any]
    places: Sequence[int]
    """Numbers of the job's tasks in the sweep."""
    first: str | None
    """Reference of the job whose tasks this one reruns; None for a whole sweep."""

    def params(self, index: int) -> dict[str, str]:
        return parameters.params(self.spec, index)

    @property
    def same(self) -> str:
        """Text that is equal for all jobs of one sweep; the objective does not count."""
        return text({name: value for name, value in self.spec.items() if name != "objective"})


def find_sweep(body: Mapping[str, Any]) -> SweepPart | None:
    """Return None without a sweep. Raise BadInput for one that cannot be read."""
    env = {name: variable(body, name) for name in (variables.SWEEP, variables.SWEEP_ONLY, variables.SWEEP_OF)}
    if env[variables.SWEEP] is None:
        return None
    try:
        spec: dict[str, Any] = json.loads(str(env[variables.SWEEP]))
        only = env[variables.SWEEP_ONLY]
        places: Sequence[int] = parameters.spans(only) if only else range(parameters.count(spec))
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{variables.SWEEP}: is no sweep that this version reads: {error}") from None
    return SweepPart(spec, places, env[variables.SWEEP_OF])


def narrow_environment(env: Mapping[str, str], tasks: Sequence[int], ref: object) -> dict[str, str]:
    """Return the environment of a rerun of `tasks`, as `ref` numbers them. Raise BadInput if it is no sweep or lacks
    one."""
    job = find_sweep({"env": dict(env)})
    if job is None:
        raise BadInput(f"{ref}: is no sweep, whose tasks could run apart from the others")
    if wrong := [task for task in tasks if not 0 <= task < len(job.places)]:
        raise BadInput(f"{ref}: has no task {wrong[0]}; it has 0 to {len(job.places) - 1}")
    only = parameters.format_spans([job.places[task] for task in sorted(set(tasks))])
    return {**env, variables.SWEEP_ONLY: only, variables.SWEEP_OF: str(ref)}


def variable(body: object, name: str) -> str | None:
    """Return the value of a variable in a request, as `name: value` or as `{name: ..., value: ...}`."""
    if isinstance(body, dict):
        inside = cast(dict[str, Any], body)
        value = inside["value"] if inside.get("name") == name and "value" in inside else inside.get(name)
        if isinstance(value, str):
            return value
        each = list(inside.values())
    else:
        each = cast(list[Any], body) if isinstance(body, list) else []
    return next((value for part in each if (value := variable(part, name)) is not None), None)
