"""Cloud Scheduler v1: jobs with an HTTP target, which really call the functions of the sandbox. A minute lasts
World.minute_s here. Schedules `* * * * *` and `*/N * * * *` come due; others are stored and never do. Not implemented:
other targets, retries, time zones."""

import re
import threading
import time
from collections.abc import Callable
from typing import Any

from . import functions
from .errors import ApiError
from .world import Call, Collection, Json, World, stamp

_JOBS = "cloudscheduler.projects.locations.jobs"
_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/jobs/[A-Za-z0-9_-]{1,500}")
_FIELD = r"(?:\*|\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)(?:/[1-9]\d*)?"
_CRON = re.compile(rf"{_FIELD}(?: {_FIELD}){{4}}")
_MINUTES = re.compile(r"\*(?:/(\d+))? \* \* \* \*")
_DEADLINE = re.compile(r"(\d+(?:\.\d+)?)s")
_PAUSE_S = 0.1
_THREAD, _DUE = "cloudscheduler/thread", "cloudscheduler/due"


def _made(call: Call, key: str, item: Json) -> None:
    """Check what the API's discovery document demands in descriptions; the words of the refusals are the sandbox's."""
    name = call.body.get("name", "")
    if not _NAME.fullmatch(name) or not name.startswith(f"{call.key}/"):
        raise ApiError(
            400, f"Job name must be formatted: '{call.key}/jobs/<JOB_ID>'.", "badRequest", "INVALID_ARGUMENT"
        )
    _checked(call.world, item)
    item |= {"__key": name, "name": name, "state": "ENABLED", "userUpdateTime": stamp()}
    item.setdefault("timeZone", "UTC")
    item.setdefault("attemptDeadline", "180s")
    item["retryConfig"] = {
        "maxRetryDuration": "0s", "minBackoffDuration": "5s", "maxBackoffDuration": "3600s", "maxDoublings": 5,
        **item.get("retryConfig", {}),
    }  # fmt: skip
    _begin(call.world)


def _changed(call: Call, item: Json, news: Json) -> None:
    _checked(call.world, news)
    news["userUpdateTime"] = stamp()


def _checked(world: World, item: Json) -> None:
    def refuse(why: str) -> ApiError:
        return ApiError(400, why, "badRequest", "INVALID_ARGUMENT")

    if not _CRON.fullmatch(item.get("schedule", "")):
        raise refuse("Schedule or time zone is invalid.")
    target = item.get("httpTarget", {})
    if not re.match(r"https?://", target.get("uri", "")):
        raise refuse("HttpTarget.uri must be a valid URI that begins with http:// or https://.")
    deadline = _DEADLINE.fullmatch(item.get("attemptDeadline", "180s"))
    if deadline is None or not 15 <= float(deadline[1]) <= 1800:
        raise refuse("The deadline must be in the interval [15 seconds, 30 minutes].")
    email = target.get("oidcToken", {}).get("serviceAccountEmail", "")
    if email and f"iam/projects/{email.partition('@')[2].partition('.')[0]}/serviceAccounts/{email}" not in world.items:
        raise ApiError(404, f"Service account {email} was not found")


def _run(call: Call, collection: Collection) -> Json:
    item = call.find(call.key)
    if item is None:
        raise ApiError(404, "Job not found.")
    _fire(call.world, item)
    return item


def _switched(call: Call, collection: Collection) -> Json:
    if (item := call.find(call.key)) is None:
        raise ApiError(404, "Job not found.")
    item["state"] = "PAUSED" if call.method.verb == "pause" else "ENABLED"
    return item


def _fire(world: World, item: Json) -> None:
    """Start one execution, unless one is running. The caller holds the lock."""
    busy = any(row["message"].startswith(f"{_id(item)}-") and not row["ended"] for row in functions.calls(world))
    if busy:
        return
    target = item["httpTarget"]
    item["lastAttemptTime"] = stamp()
    code = 0 if _may(world, target) else 7  # PERMISSION_DENIED
    row = None if code else functions.call_function(world, target["uri"], f"{_id(item)}-{world.number()}")
    item["status"] = {"code": code or (0 if row else 5)}


def _may(world: World, target: Json) -> bool:
    """Return whether the token's account may call the service behind the address. Source:
    https://docs.cloud.google.com/run/docs/authenticating/service-to-service"""
    member = f"serviceAccount:{target.get('oidcToken', {}).get('serviceAccountEmail')}"
    services = [each for each in world.below("run", "projects/-/locations/-/services") if each["uri"] == target["uri"]]
    bindings = [b for each in services for b in world.policies.get(f"run/{each['name']}", {}).get("bindings", [])]
    return not services or any(b["role"] == "roles/run.invoker" and member in b["members"] for b in bindings)


def _id(item: Json) -> str:
    return item["name"].rpartition("/")[2]


def _begin(world: World) -> None:
    if _THREAD not in world.live:
        world.live[_THREAD] = threading.Thread(target=_watch, args=(world,), daemon=True)
        world.live[_THREAD].start()


def _watch(world: World) -> None:
    while True:
        time.sleep(_PAUSE_S)
        with world.lock:
            due: dict[str, float] = world.live.setdefault(_DUE, {})
            for item in world.below("cloudscheduler", "projects/-/locations/-/jobs"):
                minutes = _MINUTES.fullmatch(item["schedule"])
                if item["state"] != "ENABLED" or not minutes:
                    continue
                every = int(minutes[1] or 1) * world.minute_s
                if time.monotonic() >= due.setdefault(item["name"], time.monotonic() + every):
                    due[item["name"]] = time.monotonic() + every
                    _fire(world, item)


COLLECTIONS = (Collection(id=_JOBS, schema="Job", made=_made, changed=_changed, missing="Job not found."),)
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_JOBS}.run": _run, f"{_JOBS}.pause": _switched, f"{_JOBS}.resume": _switched,
}  # fmt: skip
