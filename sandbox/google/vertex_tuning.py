"""Hyperparameter tuning jobs: trials, each of them a custom job with the trial's values as arguments."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from .vertex_checks import refusal
from .vertex_jobs import ENDED, Job
from .world import Json, Pending, World, stamp

_SPECS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")
_TRIAL = {"JOB_STATE_SUCCEEDED": "SUCCEEDED"}


def tuning_checked(item: Json) -> None:
    """Raises ApiError. The limits are those of the discovery document; the words are the sandbox's."""
    study: Json = item.get("studySpec", {})
    faults: list[tuple[str, str]] = []
    for field, at in (("maxTrialCount", "max_trial_count"), ("parallelTrialCount", "parallel_trial_count")):
        if int(item.get(field) or 0) < 1:
            faults.append((at, "Required field is not set."))
    for field in ("metrics", "parameters"):
        if not study.get(field):
            faults.append((f"study_spec.{field}", "Required field is not set."))
    for index, row in enumerate(study.get("parameters", [])):
        if not row.get("parameterId") or sum(name in row for name in _SPECS) != 1:
            faults.append((f"study_spec.parameters[{index}]", "A parameter has an ID and one value specification."))
    if faults:
        raise refusal(faults)


def _values(row: Json) -> list[Any]:
    """What grid search tries: values, whole numbers, or ten of a range."""
    for name in ("categoricalValueSpec", "discreteValueSpec"):
        if name in row:
            return row[name]["values"]
    if spec := row.get("integerValueSpec"):
        return list(range(int(spec["minValue"]), int(spec["maxValue"]) + 1))
    spec = row["doubleValueSpec"]
    low, high = float(spec["minValue"]), float(spec["maxValue"])
    return [low + (high - low) * step / 9 for step in range(10)]


def suggestions(study: Json) -> Iterator[dict[str, Any]]:
    """Values of trials: in the order of the grid, or drawn; Google's own search is not known, so it draws too."""
    rows: list[Json] = study["parameters"]
    if study.get("algorithm") == "GRID_SEARCH":
        for values in itertools.product(*map(_values, rows)):
            yield dict(zip((row["parameterId"] for row in rows), values, strict=True))
        return
    chance = random.Random(0)
    while True:
        yield {row["parameterId"]: _drawn(row, chance) for row in rows}


def _drawn(row: Json, chance: random.Random) -> Any:
    if spec := row.get("doubleValueSpec"):
        return chance.uniform(float(spec["minValue"]), float(spec["maxValue"]))
    return chance.choice(_values(row))


class TuningJob:
    """A tuning job that lives."""

    def __init__(self, world: World, key: str, item: Json) -> None:
        self.world, self.key, self.item = world, key, item
        self._left = suggestions(item["studySpec"])
        self._jobs: dict[str, Job] = {}
        item["trials"] = []
        world.runs[f"aiplatform/{key}"] = self
        self._enter("JOB_STATE_PENDING")
        self._later(self._go)

    def kill(self) -> None:
        """Its trials are killed as what they are."""

    def _enter(self, state: str) -> None:
        self.item |= {"state": state, "updateTime": stamp()}

    def _later(self, step: Callable[[], None]) -> None:
        self.world.pending.append(Pending(self.key, 0, step))

    def _go(self) -> None:
        """Follow the trials, and begin as many as may run at a time."""
        state = self.item["state"]
        if state == "JOB_STATE_PENDING":
            self._enter("JOB_STATE_RUNNING")
            self.item["startTime"] = stamp()
        for trial in self.item["trials"]:
            self._follow(trial)
        active = sum(trial["state"] == "ACTIVE" for trial in self.item["trials"])
        room = int(self.item["parallelTrialCount"]) - active
        wanted = int(self.item["maxTrialCount"]) - len(self.item["trials"])
        if state != "JOB_STATE_CANCELLING":
            fresh = list(itertools.islice(self._left, max(0, min(room, wanted))))
            for values in fresh:
                self._begin(values)
            active += len(fresh)
        if active:
            return self._later(self._go)
        return self._end(state)

    def _follow(self, trial: Json) -> None:
        job = self._jobs[trial["id"]]
        if trial["state"] != "ACTIVE" or job.state not in ENDED:
            return
        trial["state"] = _TRIAL.get(job.state, "INFEASIBLE")
        trial["endTime"] = stamp()
        if trial["state"] == "INFEASIBLE":
            trial["infeasibleReason"] = job.item.get("error", {}).get("message", "")

    def _begin(self, values: dict[str, Any]) -> None:
        """Arguments are --<id>=<value>: https://docs.cloud.google.com/vertex-ai/docs/training/using-hyperparameter-tuning."""
        number = str(len(self.item["trials"]) + 1)
        place = self.key.rpartition("/hyperparameterTuningJobs/")[0]
        key = f"{place}/customJobs/{self.world.number()}"
        project = self.item["name"].split("/")[1]
        name = f"projects/{project}/{key.split('/', 2)[2]}"
        now = stamp()
        item: Json = {"name": name, "displayName": f"{self.item['displayName']}-{number}", "createTime": now,
                      "updateTime": now, "jobSpec": self.item["trialJobSpec"]}  # fmt: skip
        self.world.items[f"aiplatform/{key}"] = item
        args = [f"--{parameter}={value}" for parameter, value in values.items()]
        self._jobs[number] = Job(self.world, key, item, trial=(number, args))
        parameters = [{"parameterId": parameter, "value": value} for parameter, value in values.items()]
        self.item["trials"].append(
            {"id": number, "state": "ACTIVE", "startTime": now, "customJob": name, "parameters": parameters}
        )

    def _end(self, state: str) -> None:
        trials: list[Json] = self.item["trials"]
        failed = [trial for trial in trials if trial["state"] == "INFEASIBLE"]
        last = "JOB_STATE_SUCCEEDED"
        if state == "JOB_STATE_CANCELLING":
            last = "JOB_STATE_CANCELLED"
            self.item["error"] = {"code": 1, "message": "CANCELED"}
        elif len(failed) > int(self.item.get("maxFailedTrialCount") or len(trials) - 1):
            last = "JOB_STATE_FAILED"
            self.item["error"] = {"code": 3, "message": "Too many trials have failed."}  # the sandbox's words
        self.item["endTime"] = stamp()
        self.world.runs.pop(f"aiplatform/{self.key}", None)
        self._enter(last)

    def cancel(self) -> None:
        if self.item["state"] not in (*ENDED, "JOB_STATE_CANCELLING"):
            self._enter("JOB_STATE_CANCELLING")
            for job in self._jobs.values():
                job.cancel()
