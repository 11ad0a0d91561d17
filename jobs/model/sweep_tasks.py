"""The tasks of a sweep as requests have them: what their environment says, and how some of them run again."""

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
"""Kinds of targets that run one task a job: there each task of a sweep is a job of its own."""
MOVED_MAX = 1000
"""Tasks of a sweep that move to on demand, each by itself: as many jobs of a target are looked after at once."""
CAP = 4
"""Tasks of a sweep without `parallelism` that run at once, where a platform can be told (CAPPED); a sweep of more that
runs elsewhere is warned of. A default of ours, for nobody means to pay for a hundred machines by leaving out a line."""
CAPPED = ("google-batch",)

_NAME_MAX = 100


def environment(job: Job) -> dict[str, str]:
    """What every task is told of the sweep; nothing without one."""
    return {variables.SWEEP: text(sweep_spec(job.sweep))} if job.sweep else {}


def command(job: Job, words: Sequence[str], kind: str) -> list[str]:
    """The argv of a task: the job's words, after what exports their parameters where the job is a sweep."""
    if not (job.sweep and job.sweep.shell and words):
        return list(words)
    return sweep_shell.command(sweep_spec(job.sweep), words, kind)


def apart(job: Job, kind: str) -> list[Job]:
    """The jobs that run a job on a target of `kind`: one for each task of a sweep where a job has one task, or where
    each is moved to on demand by itself.

    Raises BadInput for a parallelism that nobody would keep, and for more tasks than are looked after.
    """
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
    """Return how many tasks of a job run at once on a target of `kind`; None: as many as the platform runs."""
    if job.parallelism is None and job.sweep is not None and kind in CAPPED and job.tasks > CAP:
        return CAP
    return job.parallelism


def cap_warnings(job: Job, kind: str) -> tuple[str, ...]:
    """Return the warning for a sweep that names no parallelism: that it is capped, or that nothing caps it."""
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
    """The first task of a sweep as a job of its own, with its parameters; any other job as it is."""
    if job.sweep is None:
        return job
    spec = sweep_spec(job.sweep)
    return _alone(job, spec, text(spec), 0)


def together(job: Job) -> list[str]:
    """What is wrong with a sweep in one job, where it runs one task."""
    return ["sweep: each of its tasks is a job of its own here, which `accel-jobs submit` makes"] if job.sweep else []


def _alone(job: Job, spec: Mapping[str, Any], written: str, index: int) -> Job:
    own = {variables.SWEEP: written, variables.SWEEP_ONLY: str(index)}
    env = job.env | parameters.params(spec, index) | own
    name = f"{job.name[: _NAME_MAX - len(f'-{index}')]}-{index}"
    return job.model_copy(update={"name": name, "sweep": None, "tasks": 1, "parallelism": None, "env": env})


@dataclass(frozen=True)
class SweepPart:
    """A sweep, or a part of one, as a request has it."""

    spec: dict[str, Any]
    places: Sequence[int]
    """Which of the sweep's tasks the job's are."""
    first: str | None
    """Reference of the job of which it runs some tasks again."""

    def params(self, index: int) -> dict[str, str]:
        """Of one of the sweep's tasks."""
        return parameters.params(self.spec, index)

    @property
    def same(self) -> str:
        """Equal for jobs of one sweep."""
        return text({name: value for name, value in self.spec.items() if name != "objective"})


def find_sweep(body: Mapping[str, Any]) -> SweepPart | None:
    """The sweep of a request's body; None where it is none. Raises BadInput for one that cannot be read."""
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
    """The environment of a job that runs some tasks of the job of `ref` again, by their numbers there.

    Raises BadInput where that job is no sweep, or has no such task.
    """
    job = find_sweep({"env": dict(env)})
    if job is None:
        raise BadInput(f"{ref}: is no sweep, whose tasks could run apart from the others")
    if wrong := [task for task in tasks if not 0 <= task < len(job.places)]:
        raise BadInput(f"{ref}: has no task {wrong[0]}; it has 0 to {len(job.places) - 1}")
    only = parameters.format_spans([job.places[task] for task in sorted(set(tasks))])
    return {**env, variables.SWEEP_ONLY: only, variables.SWEEP_OF: str(ref)}


def variable(body: object, name: str) -> str | None:
    """A variable that a request sets, whether as `name: value` or as `{name: ..., value: ...}`."""
    if isinstance(body, dict):
        inside = cast(dict[str, Any], body)
        value = inside["value"] if inside.get("name") == name and "value" in inside else inside.get(name)
        if isinstance(value, str):
            return value
        each = list(inside.values())
    else:
        each = cast(list[Any], body) if isinstance(body, list) else []
    return next((value for part in each if (value := variable(part, name)) is not None), None)
