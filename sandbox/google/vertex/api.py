"""Vertex AI: custom jobs, tuning jobs, persistent resources and Tensorboards.

Google's clients call a region's own host; the sandbox serves `<region>-aiplatform.googleapis.com` and the host without
a region alike. Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest (service endpoints).

Lists of jobs are delayed, filtered, the newest first. Filter: customJobs.list in the discovery document, with its
operators by https://google.aip.dev/160: AND binds less than OR, a dash or NOT negates. The order, which is not
documented, is from memory.
"""

import itertools
import random
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from .. import PROJECT, verbs
from ..errors import ApiError
from ..operations import begin
from ..world import Call, Collection, Json, Pending, World, stamp
from .checks import check_job, check_region, disk, labels, machine, number_form, refusal
from .jobs import ENDED, Job, fill_defaults, state_change
from .limits import count_submission, within

_SPECS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")
_TRIAL = {"JOB_STATE_SUCCEEDED": "SUCCEEDED"}


def _check_tuning(item: Json) -> None:
    """Raise ApiError beyond the limits of the discovery document, in the sandbox's words."""
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


def _grid_values(row: Json) -> list[Any]:
    """Return the values that grid search tries: all listed ones, all whole numbers, or ten of a range."""
    for name in ("categoricalValueSpec", "discreteValueSpec"):
        if name in row:
            return row[name]["values"]
    if spec := row.get("integerValueSpec"):
        return list(range(int(spec["minValue"]), int(spec["maxValue"]) + 1))
    spec = row["doubleValueSpec"]
    low, high = float(spec["minValue"]), float(spec["maxValue"])
    return [low + (high - low) * step / 9 for step in range(10)]


def _suggestions(study: Json) -> Iterator[dict[str, Any]]:
    """Yield values of trials: in the order of the grid, or drawn at random, as Google's own search is not known."""
    rows: list[Json] = study["parameters"]
    if study.get("algorithm") == "GRID_SEARCH":
        for values in itertools.product(*map(_grid_values, rows)):
            yield dict(zip((row["parameterId"] for row in rows), values, strict=True))
        return
    chance = random.Random(0)
    while True:
        yield {row["parameterId"]: _drawn(row, chance) for row in rows}


def _drawn(row: Json, chance: random.Random) -> Any:
    if spec := row.get("doubleValueSpec"):
        return chance.uniform(float(spec["minValue"]), float(spec["maxValue"]))
    return chance.choice(_grid_values(row))


class TuningJob:
    def __init__(self, world: World, key: str, item: Json) -> None:
        self.world, self.key, self.item = world, key, item
        self._left = _suggestions(item["studySpec"])
        self._jobs: dict[str, Job] = {}
        item["trials"] = []
        world.runs[f"aiplatform/{key}"] = self
        self._enter("JOB_STATE_PENDING")
        self._later(self._go)

    def kill(self) -> None:
        """Do nothing: its trials are jobs, which are killed themselves."""

    def _enter(self, state: str) -> None:
        self.item |= state_change(state)

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
        """Begin a trial. Arguments are --<id>=<value>:
        https://docs.cloud.google.com/vertex-ai/docs/training/using-hyperparameter-tuning."""
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
        self.world.runs.pop(f"aiplatform/{self.key}", None)
        self._enter(last)

    def cancel(self) -> None:
        if self.item["state"] not in (*ENDED, "JOB_STATE_CANCELLING"):
            self._enter("JOB_STATE_CANCELLING")
            for job in self._jobs.values():
                job.cancel()


_LOCATIONS = "aiplatform.projects.locations"
_JOBS, _TUNING = f"{_LOCATIONS}.customJobs", f"{_LOCATIONS}.hyperparameterTuningJobs"
_MISSING = "The {kind} `{key}` does not exist."
"""Wording from memory."""
_OUTPUT = ("name", "state", "createTime", "startTime", "endTime", "updateTime", "error", "webAccessUris", "trials")


def _given(value: Any) -> Any:
    """Return a value without nulls, which the JSON form of protocol buffers treats as absent."""
    if isinstance(value, dict):
        rows: Json = value
        return {name: _given(item) for name, item in rows.items() if item is not None}
    if isinstance(value, list):
        items: list[Any] = value
        return [_given(item) for item in items]
    return value


def _begun(call: Call) -> tuple[str, Json]:
    key = f"{call.key}/{call.world.number()}"
    item = {name: value for name, value in _given(call.body).items() if name not in _OUTPUT}
    now = stamp()
    return key, item | {"name": number_form(key), "createTime": now, "updateTime": now}


def create_job(call: Call, collection: Collection) -> Json:
    count_submission(call)
    key, item = _begun(call)
    check_job(call, item)
    within(call, item["jobSpec"])
    fill_defaults(item["jobSpec"])
    call.world.items[f"aiplatform/{key}"] = item
    Job(call.world, key, item, call.plan)
    return item


def create_tuning(call: Call, collection: Collection) -> Json:
    count_submission(call)
    key, item = _begun(call)
    check_job(call, item, "trialJobSpec")
    _check_tuning(item)
    within(call, item["trialJobSpec"])
    fill_defaults(item["trialJobSpec"])
    call.world.items[f"aiplatform/{key}"] = item
    TuningJob(call.world, key, item)
    return item


def cancel(call: Call, collection: Collection) -> Json:
    """Cancel a job; one that has ended is no error."""
    verbs.get(call, collection)
    if running := call.world.runs.get(f"aiplatform/{call.key}"):
        running.cancel()
    return {}


def delete(call: Call, collection: Collection) -> Json:
    """Delete an ended job. That it has to have ended, and the wording, are from memory."""
    count_submission(call)
    item = verbs.get(call, collection)
    if item["state"] not in ENDED:
        said = f"The {collection.schema.partition('V1')[2]} {call.key} is in state {item['state']}: cancel it first."
        raise ApiError(400, said, status="FAILED_PRECONDITION")

    def end() -> str:
        verbs.forget(call, call.key)
        call.world.history.pop(f"aiplatform/{call.key}", None)
        return ""

    return begin(call, "longrunning", "delete", call.key, end)


def preempt(world: World, name: str) -> None:
    """Preempt a custom job's Spot VMs, or restart one worker: NAME/replicas/workerpool1-0. Raise ApiError."""
    key, _, replica = name.partition("/replicas/")
    job = world.runs.get(f"aiplatform/{key}")
    if not isinstance(job, Job):
        raise ApiError(404, f"sandbox: {key} is no custom job that runs")
    if replica:
        job.restart(replica)
    else:
        job.preempt()


def _kept_made(call: Call, key: str, item: Json) -> None:
    """Check a persistent resource. Source of its name's form:
    https://github.com/search?q="persistent_resource_id+can+only"."""
    check_region(call.location)
    count_submission(call)
    name = key.rpartition("/")[2]
    faults = [*labels(item, "persistent_resource.labels")]
    if not (name[0].isalpha() and name[-1] != "-" and name.replace("-", "a").isalnum() and name == name.lower()):
        said = (
            "persistent_resource_id can only contain numbers, lower case letters and hyphens. The first character must"
        )
        said += " be a letter, and the last character must be a letter or number."
        faults.insert(0, ("persistent_resource_id", said))
    if not item.get("resourcePools"):
        faults.append(("persistent_resource.resource_pools", "Required field is not set."))
    for index, pool in enumerate(item.get("resourcePools", [])):
        at = f"persistent_resource.resource_pools[{index}]"
        faults += [*machine(pool.get("machineSpec", {}), f"{at}.machine_spec"), *disk(pool.get("diskSpec", {}), at)]
        pool.setdefault("id", f"pool-{index}")
        pool["diskSpec"] = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100, **pool.get("diskSpec", {})}
        pool["replicaCount"] = str(pool.get("replicaCount") or 1)
    if faults:
        raise refusal(faults)
    item |= {"name": number_form(key), "createTime": stamp(), "updateTime": stamp()}


def _kept_settled(call: Call, key: str) -> str:
    item = call.find(key) or {}
    kinds = {pool["machineSpec"]["machineType"] for pool in item["resourcePools"]}
    if short := kinds & {name.rpartition("/")[2] for name in call.world.stockouts}:
        item["state"] = "ERROR"
        return f"RESOURCE_EXHAUSTED: Resources are insufficient in region: {call.location}. ({', '.join(short)})"
    item["startTime"] = stamp()
    return ""


def _kept_changed(call: Call, item: Json, news: Json) -> None:
    news["updateTime"] = stamp()


def _board_made(call: Call, key: str, item: Json) -> None:
    """Complete a Tensorboard, whose name is a number that Google chooses."""
    check_region(call.location)
    if not item.get("displayName"):
        raise refusal([("tensorboard.display_name", "Required field is not set.")])
    key = f"{call.key}/{call.world.number()}"
    prefix = f"cloud-ai-platform-{call.world.number():x}"
    now = stamp()
    item |= {
        "__key": key,
        "name": number_form(key),
        "createTime": now,
        "updateTime": now,
        "blobStoragePathPrefix": prefix,
    }


Test = Callable[[Json], bool]
_TOKEN = re.compile(r'\s*(\(|\)|AND\b|OR\b|NOT\b|([\w.-]+)\s*(!=|>=|<=|=|>|<|:)\s*("(?:[^"\\]|\\.)*"|[^\s"()]+))')
_FIELDS = {"display_name": "displayName", "create_time": "createTime", "update_time": "updateTime"}
_COMPARED: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_OPERATORS = {"displayName": "= != :", "state": "= !=", "createTime": "= != < <= > >=", "labels": "= != :"}
_PAGE = 100


def list_page(call: Call, collection: Collection) -> Json:
    member = collection.id.rpartition(".")[2]
    test = parse_filter(call.query.get("filter", ""))
    found = [item for item in (_seen(call, key) for key in _below(call)) if item is not None and test(item)]
    found.sort(key=lambda item: (item["createTime"], item["name"]), reverse=True)
    size, start = int(call.query.get("pageSize") or 0), int(call.query.get("pageToken") or 0)
    if size < 0:
        raise ApiError(400, f"page_size {size} is negative")
    end = start + (min(size, _PAGE) if size else _PAGE)
    mask = [_camel(path) for path in call.query.get("readMask", "").split(",") if path and path != "*"]
    shown = [{name: item[name] for name in mask if name in item} if mask else item for item in found[start:end]]
    answer: Json = {member: shown} if shown else {}
    return answer | ({"nextPageToken": str(end)} if end < len(found) else {})


def _below(call: Call) -> list[str]:
    parts = (re.escape(part) if part != "-" else "[^/]+" for part in call.key.split("/"))
    wanted = re.compile(f"{call.api}/{'/'.join(parts)}/[^/]+")
    return [key for key in call.world.items if wanted.fullmatch(key)]


def _seen(call: Call, key: str) -> Json | None:
    """Return a resource as lists show it by now, or None before they do."""
    rows, now = call.world.history.get(key), time.monotonic()
    if rows is None:
        return call.world.items[key]
    known = [index for index, (since, _) in enumerate(rows) if since <= now]
    if not known:
        return None
    del rows[: known[-1]]
    return rows[0][1]


def _camel(path: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), path).split(".")[0]


def parse_filter(text: str) -> Test:
    """Raise ApiError for text that is no filter."""
    tokens: list[re.Match[str]] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unparseable(text[at:])
        tokens.append(found)
        at = found.end()
    if not tokens:
        return lambda item: True
    reader = _Reader(tokens)
    test = reader.all_of()
    if reader.left:
        raise _unparseable(text)
    return test


def _unparseable(text: str) -> ApiError:
    return ApiError(400, f"Invalid filter: {text.strip()}")  # the sandbox's words


class _Reader:
    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self.left = tokens

    def _take(self, word: str) -> bool:
        taken = bool(self.left) and self.left[0][1] == word
        if taken:
            self.left = self.left[1:]
        return taken

    def all_of(self) -> Test:
        tests = [self._any_of()]
        while self._take("AND") or (self.left and self.left[0][1] != ")"):
            tests.append(self._any_of())
        return lambda item: all(test(item) for test in tests)

    def _any_of(self) -> Test:
        tests = [self._one()]
        while self._take("OR"):
            tests.append(self._one())
        return lambda item: any(test(item) for test in tests)

    def _one(self) -> Test:
        if self._take("NOT"):
            test = self._one()
            return lambda item: not test(item)
        if self._take("("):
            test = self.all_of()
            if not self._take(")"):
                raise _unparseable("(")
            return test
        if not self.left or self.left[0][2] is None:
            raise _unparseable(self.left[0][1] if self.left else "")
        token, self.left = self.left[0], self.left[1:]
        return _compared(token[2], token[3], token[4])


def _compared(path: str, operator: str, written: str) -> Test:
    field, _, rest = path.partition(".")
    field = _FIELDS.get(field, field)
    if operator not in _OPERATORS.get(field, "").split() or (field == "labels") != bool(rest):
        raise _unparseable(f"{path}{operator}{written}")
    wanted = re.sub(r"\\(.)", r"\1", written[1:-1]) if written.startswith('"') else written

    def value(item: Json) -> Any:
        return item.get("labels", {}).get(rest) if rest else item.get(field)

    if operator == "!=":
        return lambda item: value(item) != wanted
    if operator == ":":
        pattern = re.compile(".*".join(map(re.escape, wanted.split("*"))))
        return lambda item: (found := value(item)) is not None and pattern.fullmatch(found) is not None
    compare = _COMPARED[operator]
    return lambda item: (found := value(item)) is not None and compare(found, wanted)


def _collection(collection: str, schema: str, **more: Any) -> Collection:
    missing = _MISSING.replace("{kind}", schema)
    return Collection(
        id=f"{_LOCATIONS}.{collection}", schema=f"GoogleCloudAiplatformV1{schema}", missing=missing, **more
    )


COLLECTIONS = (
    _collection("customJobs", "CustomJob"),
    _collection("hyperparameterTuningJobs", "HyperparameterTuningJob"),
    _collection(
        "persistentResources", "PersistentResource", name="?persistentResourceId", style="longrunning", full_name=True,
        kind="PERSISTENT_RESOURCE", state=("state", "PROVISIONING", "RUNNING", "STOPPING"), made=_kept_made,
        settled=_kept_settled, changed=_kept_changed,
        exists=f"The PersistentResource `{{key}}` already exists in project {PROJECT}.",
    ),
    _collection("tensorboards", "Tensorboard", name="displayName", style="longrunning", kind="TENSORBOARD",
                made=_board_made),
    Collection(id=f"{_LOCATIONS}.operations", schema="GoogleLongrunningOperation"),
)  # fmt: skip
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_JOBS}.create": create_job,
    f"{_TUNING}.create": create_tuning,
    **{f"{name}.list": list_page for name in (_JOBS, _TUNING)},
    **{f"{name}.cancel": cancel for name in (_JOBS, _TUNING)},
    **{f"{name}.delete": delete for name in (_JOBS, _TUNING)},
}
