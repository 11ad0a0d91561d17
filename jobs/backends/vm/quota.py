"""Check whether the project's quotas could ever hold a job's machines: GPUs by region and in all, TPU cores by zone.
Present use is not checked: it may be gone when the job's turn comes. A request above its limit is refused, and a
refusal ends the job, so each place of the job is reported separately."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accel.catalog import UnknownName, machine
from accel.catalog.quotas import Quota, standard_of
from accel.clouds.google.api import Google
from accel.clouds.google.quotas import infos_path, limit_of
from accel.clouds.google.rest import path_segment
from accel.clouds.quota_cache import DOUBTED_S, MAX_AGE_S, Limit, cached_limits
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudRefused, JobsError, NotFound
from accel.quota import GooglePool, Need, google_needs, google_reading, google_readings

from ..base import QuotaAnswer

QUICK = Timing(connect_s=3, read_s=10, attempts=2)
"""Timing of quota reads, on which a submit does not depend."""
_IDENTITY = (
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLOUDSDK_CONFIG",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDQUOTAS",
)
"""Variables that determine the caller and the endpoint. A token is not among them, because there is a new one each
hour: limits are the project's."""


@dataclass(frozen=True)
class QuotaDemand:
    """Demand of a job in one place: a zone for TPUs, a region for GPUs."""

    place: str
    what: str
    needs: tuple[Need, ...]


def tpus(zones: Iterable[str], kind: str, accelerator: str, chips: int, *, spot: bool) -> list[QuotaDemand]:
    found: list[QuotaDemand] = []
    for zone in zones:
        pool = GooglePool(zone, zone, accelerator, chips, 1, spot, service="tpu")
        found.append(QuotaDemand(zone, kind, tuple(google_needs([pool]))))
    return found


def gpus(
    zones: Iterable[str], kind: str, attached: str | None, count: int, nodes: int, *, spot: bool
) -> list[QuotaDemand]:
    try:
        accelerator = attached or machine("gcp", kind).accelerator
    except UnknownName:
        return []
    found: list[QuotaDemand] = []
    for region in dict.fromkeys(zone.rpartition("-")[0] for zone in zones) if count else ():
        pool = GooglePool(region, region, accelerator, count, nodes, spot)
        found.append(QuotaDemand(region, kind if nodes == 1 else f"{nodes} x {kind}", tuple(google_needs([pool]))))
    return found


def check(project: str, wanted: Iterable[QuotaDemand], timing: Timing | None = None) -> QuotaAnswer:
    """Report an unreadable limit, which is no error."""
    wanted = list(wanted)
    asked = _Asked(project, Google(timing or QUICK))
    answer = QuotaAnswer()
    for max_age_s in (MAX_AGE_S, DOUBTED_S):
        try:
            answer = _judged(wanted, asked.limits(_quotas(wanted), max_age_s))
        except JobsError as error:
            return QuotaAnswer((), (error.message,))
        if answer == QuotaAnswer():
            break
    return answer


def _quotas(wanted: Iterable[QuotaDemand]) -> dict[str, tuple[Quota, str]]:
    """Return the quotas in question with their places; for Spot machines also the standard one, which may hold them."""
    found: dict[str, tuple[Quota, str]] = {}
    for each in wanted:
        for need in each.needs:
            for quota in (need.quota, _standard(need.quota)):
                if quota:
                    found[_name(quota, need.region)] = quota, need.region
    return found


def _standard(quota: Quota | None) -> Quota | None:
    """Return the standard quota for Spot machines of Compute Engine, which count towards it if a preemptible quota was
    never granted. Source: https://cloud.google.com/compute/resource-usage"""
    return standard_of(quota) if quota and quota.service == "compute" and quota.purchase == "spot" else None


def _name(quota: Quota, place: str) -> str:
    return f"{quota.service} {quota.key} {place}"


def _judged(wanted: Iterable[QuotaDemand], known: Mapping[str, Limit]) -> QuotaAnswer:
    over: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for each in wanted:
        for need in each.needs:
            if need.quota is None:
                unknown[f"none is known that holds {need.label}"] = None
                continue
            limit = known[_name(need.quota, need.region)]
            if limit.value is None:
                unknown[f"{need.quota} in {need.region}: {limit.why}"] = None
                continue
            if limit.value < 0 or need.amount <= limit.value:
                continue
            standard = _standard(need.quota)
            other = known[_name(standard, need.region)] if standard and limit.value == 0 else None
            if standard and other and (other.value is None or other.value < 0 or need.amount <= other.value):
                text = f"is 0 in {need.region}; if it was never granted, {standard.key} holds Spot machines"
                unknown[f"{need.quota} {text}"] = None
                continue
            unit = f"{need.quota.unit}s" if need.amount != 1 else need.quota.unit
            where = "all regions" if need.quota.scope == "global" else need.region
            text = f"{each.what} takes {need.amount:g} {unit}, and the limit of {need.quota} in {where} is"
            over[f"{each.place}: {text} {limit.value:g}"] = None
    return QuotaAnswer(tuple(over), tuple(unknown))


class _Asked:
    """Quota answers for one project. Compute Engine reports the limits without a dimension, Cloud Quotas all others."""

    def __init__(self, project: str, google: Google) -> None:
        self._project, self._google = project, google
        self._places: dict[str, dict[str, object]] = {}

    def limits(self, quotas: Mapping[str, tuple[Quota, str]], max_age_s: float) -> dict[str, Limit]:
        """Return limits by name. Raise NoCredentials and CloudSilent."""
        identity = "\n".join(["google", self._project, *(os.environ.get(name, "") for name in _IDENTITY)])

        def ask(missing: list[str]) -> dict[str, Limit]:
            return {name: self._limit(*quotas[name]) for name in missing}

        return cached_limits(identity, quotas, ask, max_age_s=max_age_s)

    def _limit(self, quota: Quota, place: str) -> Limit:
        try:
            if quota.service == "compute" and quota.scope != "zone":
                reading = google_reading(quota, google_readings(self._place(quota, place)))
                if reading:
                    return Limit(reading.limit)
            return self._of_cloud_quotas(quota, place)
        except (CloudRefused, NotFound) as error:
            return Limit(None, error.message)

    def _place(self, quota: Quota, place: str) -> dict[str, object]:
        if place not in self._places:
            where = f"/regions/{path_segment(place)}" if quota.scope == "region" else ""
            self._places[place] = self._google.get(
                "compute", f"projects/{path_segment(self._project)}{where}", fields="quotas"
            )
        return self._places[place]

    def _of_cloud_quotas(self, quota: Quota, place: str) -> Limit:
        if not quota.quota_id:
            return Limit(None, "its id in Cloud Quotas is not known")
        info = self._google.get(
            "cloudquotas", f"{infos_path(self._project, quota.service)}/{path_segment(quota.quota_id)}"
        )
        value = limit_of(info, quota, place)
        return Limit(value, "" if value is not None else f"Cloud Quotas has no value of it for {place}")
