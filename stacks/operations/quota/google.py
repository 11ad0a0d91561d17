"""A project's quotas from Google's APIs, compared with the planned use. Compute Engine reports limit and use of its
metrics. Cloud Quotas has the limits of everything else (a GPU family, a TPU, Vertex AI), and Cloud Monitoring their use
within the last day."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from accel.catalog.quotas import Quota, standard_of
from accel.clouds.google.quotas import dimensions, info_of, infos_path, limit_of
from accel.clouds.google.rest import GarbledAnswer, get, path_segment, session
from accel.diagnostics.errors import CloudRefused, JobsError
from accel.json_values import mappings, number, object_at
from accel.quota import GooglePool, Need, Use, Verdict, google_needs, google_reading, google_readings, verdict

MAX_PAGES = 100
WINDOW = timedelta(days=1)
AGED = "use as of the last day, by Cloud Monitoring"


@dataclass(frozen=True)
class Own:
    """The instances that are part of the planned use: those with these labels. `machine` parses one, with its zone."""

    labels: Mapping[str, str]
    machine: Callable[[str, Mapping[str, Any]], GooglePool | None]


def judge_google(
    project: str,
    pools: Iterable[GooglePool],
    own: Own | None = None,
    borne: tuple[type[JobsError], ...] = (),
) -> tuple[Verdict, ...]:
    """Judge unreadable values as unknown, also those that fail with an error of the kinds in `borne`. Raise
    NoCredentials, CloudSilent, and NotFound for a project or region that does not exist."""
    asked = _Project(project, own, borne)
    return tuple(asked.judge(need) for need in google_needs(pools))


@dataclass(frozen=True)
class _Found:
    """Values of one quota: `why` one is missing, `remark` on their source, `quota_id` of Cloud Quotas."""

    limit: float | None = None
    use: Use | None = None
    why: str = ""
    remark: str = ""
    quota_id: str = ""


class _Project:
    """The answers about one project; each request is sent once."""

    def __init__(self, project: str, own: Own | None, borne: tuple[type[JobsError], ...]) -> None:
        self._project, self._name, self._own = project, path_segment(project), own
        self._borne = (CloudRefused, GarbledAnswer, *borne)
        self._http = session()
        self._kept: dict[str, Any] = {}

    def judge(self, need: Need) -> Verdict:
        if need.quota is None:
            return verdict(need, None, None)
        found = self._found(need.quota, need.region)
        if found.quota_id:
            need = replace(need, quota=replace(need.quota, quota_id=found.quota_id))
        judged = verdict(need, *self._with_own(need, found))
        if judged.word == "over" and found.limit == 0:
            judged = self._perhaps_standard(judged, need)
        return replace(judged, reason=f"{judged.reason} ({found.remark})") if found.remark else judged

    def _with_own(self, need: Need, found: _Found) -> tuple[Use | None, float | None, str]:
        """Return use, limit, and what is missing. Without its own part a use would count twice, so it is dropped."""
        if self._own is None or found.use is None:
            return found.use, found.limit, found.why
        amounts = self._own_amounts(self._own)
        if isinstance(amounts, str):
            return None, found.limit, amounts
        return replace(found.use, own=amounts.get((need.label, need.region), 0)), found.limit, found.why

    def _own_amounts(self, own: Own) -> dict[tuple[str, str], float] | str:
        """Return the running use by quota and region, or why it could not be read."""
        wanted = " ".join(f'(labels.{key} = "{value}")' for key, value in own.labels.items())
        found: list[GooglePool] = []
        query = {"filter": wanted}
        for _ in range(MAX_PAGES):
            answer = self._ask("compute", f"projects/{self._name}/aggregated/instances", query)
            if isinstance(answer, str):
                return answer
            for place, listed in object_at(answer, "items").items():
                for item in mappings(object_at(listed).get("instances")):
                    machine = own.machine(place.rpartition("/")[2], item)
                    if machine and own.labels.items() <= object_at(item, "labels").items():
                        found.append(machine)
            token = answer.get("nextPageToken")
            if not token:
                return {(need.label, need.region): need.amount for need in google_needs(found)}
            query = {**query, "pageToken": str(token)}
        return f"compute aggregated/instances: more than {MAX_PAGES} pages"

    def _perhaps_standard(self, judged: Verdict, need: Need) -> Verdict:
        """Judge a preemptible limit of 0: if it was never granted, the standard quota limits Spot machines too. Source:
        https://cloud.google.com/compute/resource-usage"""
        standard = standard_of(need.quota) if need.quota and need.quota.purchase == "spot" else None
        other = self.judge(replace(need, quota=standard)) if standard else None
        if not need.quota or not standard or not other or other.word == "over":
            return judged
        text = f"{need.quota.code} is 0; if it was never granted, {standard.key} holds Spot machines: {other.reason}"
        return replace(judged, word="unknown", total=None, reason=text)

    def _found(self, quota: Quota, location: str) -> _Found:
        if quota.service == "compute" and quota.scope != "zone":
            place = f"regions/{path_segment(location)}" if quota.scope == "region" else ""
            answer = self._ask("compute", f"projects/{self._name}/{place}".rstrip("/"))
            if isinstance(answer, str):
                return _Found(why=answer)
            reading = google_reading(quota, google_readings(answer))
            if reading:
                return _Found(reading.limit, Use(reading.use), remark=reading.remark)
        return self._of_cloud_quotas(quota, location)

    def _of_cloud_quotas(self, quota: Quota, location: str) -> _Found:
        infos = self._listed("cloudquotas", infos_path(self._project, quota.service))
        if isinstance(infos, str):
            return _Found(why=infos)
        info = info_of(quota, infos)
        if info is None:
            standard = standard_of(quota) if quota.service == "compute" and quota.purchase == "spot" else None
            if standard is None:
                return _Found(why=f"Cloud Quotas does not have {quota.key} for this project")
            other = self._of_cloud_quotas(standard, location)
            remark = f"{quota.code} is not there: {standard.key} holds Spot machines too"
            return replace(other, remark="; ".join(each for each in (remark, other.remark) if each), quota_id="")
        limit = limit_of(info, quota, location)
        if limit is None:
            return _Found(why=f"Cloud Quotas has no value of {quota.key} for the {quota.scope} {location}")
        use, why = self._used(quota, info, location)
        return _Found(limit, use, why, AGED if use else "", str(info.get("quotaId") or ""))

    def _used(self, quota: Quota, info: Mapping[str, Any], location: str) -> tuple[Use | None, str]:
        """Read the use: quotas with a dimension of their own have metrics of their own; the others share one. Source:
        https://cloud.google.com/monitoring/alerts/using-quota-metrics"""
        metric = str(info.get("metric") or "")
        service, _, name = metric.partition("/")
        if quota.dimension:
            wanted = f'metric.type = "{service}/quota/{name}/usage"'
        else:
            shared = "serviceruntime.googleapis.com/quota/allocation/usage"
            wanted = f'metric.type = "{shared}" AND metric.labels.quota_metric = "{metric}"'
        now = self._kept.setdefault("now", datetime.now(UTC))
        series = self._listed(
            "monitoring",
            f"v3/projects/{self._name}/timeSeries",
            {
                "filter": wanted,
                "interval.startTime": (now - WINDOW).isoformat(),
                "interval.endTime": now.isoformat(),
                "aggregation.alignmentPeriod": f"{int(WINDOW.total_seconds())}s",
                "aggregation.perSeriesAligner": "ALIGN_NEXT_OLDER",
            },
        )
        if isinstance(series, str):
            return None, series
        amount = quota_usage(series, quota, location)
        if amount is None:
            return None, f"Cloud Monitoring has no use of {quota.key} in {location}"
        return Use(amount), ""

    def _ask(self, api: str, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any] | str:
        """Return the answer, or why there is none."""
        key = f"{api} {path} {query}"
        if key not in self._kept:
            try:
                self._kept[key] = get(self._http, api, path, query)
            except self._borne as error:
                self._kept[key] = error.message
        return self._kept[key]

    def _listed(self, api: str, path: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]] | str:
        name = path.rpartition("/")[2]
        found: list[dict[str, Any]] = []
        given = dict(query or {})
        for _ in range(MAX_PAGES):
            answer = self._ask(api, path, given)
            if isinstance(answer, str):
                return answer
            found += mappings(answer.get(name))
            token = answer.get("nextPageToken")
            if not token:
                return found
            given["pageToken"] = str(token)
        return f"{api} {path}: more than {MAX_PAGES} pages"


def quota_usage(series: Iterable[Mapping[str, Any]], quota: Quota, location: str) -> float | None:
    """Return the newest, largest value of a quota's time series in a place; None if none certainly belongs to it."""
    wanted = dimensions(quota).items()
    found: list[float | None] = []
    for each in series:
        labels, resource = (object_at(each, name, "labels") for name in ("metric", "resource"))
        if wanted <= labels.items() and resource.get("location") == location:
            found += list(_newest(each))
    return max((value for value in found if value is not None), default=None) if None not in found else None


def _newest(series: Mapping[str, Any]) -> Iterator[float | None]:
    """Yield the newest point of a series; points are sorted, the newest first. Source:
    https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list"""
    for point in mappings(series.get("points"))[:1]:
        value = object_at(point, "value")
        amount = number(value.get("int64Value", value.get("doubleValue")))
        yield amount if amount is not None and amount >= 0 else None
