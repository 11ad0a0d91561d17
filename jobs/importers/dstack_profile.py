"""Fields of a dstack configuration that are its profile's: where it runs, for how long, and how often."""

import re

from accel.duration import seconds

from .fields import RequestFields
from .reading import Json
from .tasks import Place, cloud_of, is_filled

_BACKENDS = {"aws": "aws", "gcp": "gcp", "kubernetes": "kubernetes"}


def read(given: RequestFields, values: Json, place: Place) -> None:
    """Puts what the profile says into the job."""
    _place(given, place)
    policy = given.text("spot_policy")
    if policy not in (None, "spot", "on-demand", "auto"):
        given.report.refuse("spot_policy", "must be spot, on-demand or auto")
    if policy != "auto":
        values["spot"] = policy == "spot"
    if policy == "auto":
        given.report.keep("spot_policy", why="is so without spot")
    else:
        given.keep_value("spot_policy", f"spot: {str(policy == 'spot').lower()}")
    if policy is None:
        given.report.note("spot_policy", "is on-demand there without it: spot: false")
    _retry(given, values)
    _duration(given, values)
    criteria = given.text("stop_criteria")
    given.leave_value("stop_criteria", "a job of several nodes ends with its main node" if criteria else "")
    for name, text in given.mapping("tags").items():
        if name.startswith("accel-"):
            given.leave_value(f"tags.{name}", "is the platform's own")
        elif is_filled(given, f"tags.{name}", text):
            values.setdefault("labels", {})[name] = text
            given.keep_value(f"tags.{name}", "labels")


def _place(given: RequestFields, place: Place) -> None:
    backends, regions = given.texts("backends"), given.texts("regions")
    region = regions[0] if len(regions) == 1 else ""
    given.leave_value("regions", "is the target's")
    if len(backends) == 1:
        given.leave_value(
            "backends", cloud_of(given, "backends", _BACKENDS.get(backends[0], backends[0]), region, place)
        )
    else:
        given.leave_value("backends", "--to chooses the target")
        place.region = region


def _retry(given: RequestFields, values: Json) -> None:
    flag = given.values.get("retry")
    if isinstance(flag, bool) and not flag:
        values |= {"retries": 0, "lost_retries": 0}
        given.keep_value("retry", "retries: 0, lost_retries: 0")
        return
    why = "a job file counts attempts, and has no time for them: write retries (after any failure) or lost_retries"
    for path in given.paths("retry"):
        if path in ("retry", "retry.on_events", "retry.duration") or path.startswith("retry.on_events["):
            given.report.decide(given.name(path), why, is_open=False)


def _duration(given: RequestFields, values: Json) -> None:
    value = given.values.get("max_duration")
    text = str(value) if isinstance(value, str) else ""
    if value is False or text.lower() == "off":
        given.report.keep("max_duration", why="is so without it")
        return
    if not text:
        return
    weeks = re.fullmatch(r"(\d{1,4})w", text)
    number = int(weeks[1]) * 604_800 if weeks else seconds(text)
    if not number:
        given.report.refuse("max_duration", "must be a duration such as 2h, 1d or off")
        return
    values["timeout_s"] = number
    given.report.keep("max_duration", f"timeout_s: {number}", "is of one attempt")
