"""Vertex AI: custom jobs, tuning jobs, persistent resources and Tensorboards.

Google's clients ask a region's own host; the sandbox serves `<region>-aiplatform.googleapis.com` and the host without a
region alike. Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest (service endpoints).
"""

from collections.abc import Callable
from typing import Any

from . import PROJECT, verbs
from .errors import Refused
from .operations import begin
from .vertex_checks import checked, disk, labels, located, machine, number_form, refusal
from .vertex_jobs import ENDED, Job, filled
from .vertex_limits import submitted, within
from .vertex_lists import listed
from .vertex_tuning import TuningJob, tuning_checked
from .world import Call, Collection, Json, World, stamp

_LOCATIONS = "aiplatform.projects.locations"
_JOBS, _TUNING = f"{_LOCATIONS}.customJobs", f"{_LOCATIONS}.hyperparameterTuningJobs"
_MISSING = "The {kind} `{key}` does not exist."
"""From memory."""
_OUTPUT = ("name", "state", "createTime", "startTime", "endTime", "updateTime", "error", "webAccessUris", "trials")


def _given(value: Any) -> Any:
    """Without what is null, which JSON of protocol buffers takes for absent."""
    if isinstance(value, dict):
        rows: Json = value
        return {name: _given(item) for name, item in rows.items() if item is not None}
    if isinstance(value, list):
        items: list[Any] = value
        return [_given(item) for item in items]
    return value


def _begun(call: Call) -> tuple[str, Json]:
    """A new job's key, and the body as it is kept."""
    key = f"{call.key}/{call.world.number()}"
    item = {name: value for name, value in _given(call.body).items() if name not in _OUTPUT}
    now = stamp()
    return key, item | {"name": number_form(key), "createTime": now, "updateTime": now}


def create_job(call: Call, collection: Collection) -> Json:
    submitted(call)
    key, item = _begun(call)
    checked(call, item)
    within(call, item["jobSpec"])
    filled(item["jobSpec"])
    call.world.items[f"aiplatform/{key}"] = item
    Job(call.world, key, item, call.plan)
    return item


def create_tuning(call: Call, collection: Collection) -> Json:
    submitted(call)
    key, item = _begun(call)
    checked(call, item, "trialJobSpec")
    tuning_checked(item)
    within(call, item["trialJobSpec"])
    filled(item["trialJobSpec"])
    call.world.items[f"aiplatform/{key}"] = item
    TuningJob(call.world, key, item)
    return item


def cancel(call: Call, collection: Collection) -> Json:
    """What has ended stays as it is."""
    verbs.get(call, collection)
    if running := call.world.runs.get(f"aiplatform/{call.key}"):
        running.cancel()
    return {}


def delete(call: Call, collection: Collection) -> Json:
    """That a job has to have ended, and how that is said, is from memory."""
    submitted(call)
    item = verbs.get(call, collection)
    if item["state"] not in ENDED:
        said = f"The {collection.schema.partition('V1')[2]} {call.key} is in state {item['state']}: cancel it first."
        raise Refused(400, said, status="FAILED_PRECONDITION")

    def end() -> str:
        verbs.forget(call, call.key)
        call.world.history.pop(f"aiplatform/{call.key}", None)
        return ""

    return begin(call, "longrunning", "delete", call.key, end)


def preempt(world: World, name: str) -> None:
    """Take away the Spot VMs of a custom job, or with /replicas/workerpool1-0 after its name restart one worker. Raises
    Refused."""
    key, _, replica = name.partition("/replicas/")
    job = world.runs.get(f"aiplatform/{key}")
    if not isinstance(job, Job):
        raise Refused(404, f"sandbox: {key} is no custom job that runs")
    if replica:
        job.restart(replica)
    else:
        job.preempt()


def _kept_made(call: Call, key: str, item: Json) -> None:
    """A persistent resource. Source of its name's form: https://github.com/search?q="persistent_resource_id+can+only"."""
    located(call.location)
    submitted(call)
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
    """Its name is a number that Google chooses."""
    located(call.location)
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
    **{f"{name}.list": listed for name in (_JOBS, _TUNING)},
    **{f"{name}.cancel": cancel for name in (_JOBS, _TUNING)},
    **{f"{name}.delete": delete for name in (_JOBS, _TUNING)},
}
