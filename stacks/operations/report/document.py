"""The whole report as JSON values: the content of the Markdown, and the input of --fail-on. The cost of the environment
before and after the change is estimated from the specs in the state and in the config."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from accel.cost import Amount
from components.aws.compute_environment import ComputeEnvironmentSpec
from components.gcp.commitment import CommitmentSpec
from components.gcp.cpu_pool import CpuPoolSpec
from components.gcp.future_reservation import FutureReservationSpec
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.gpu_vm_group import GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.persistent_resource import PersistentResourceSpec
from components.gcp.queued_tpu import QueuedTpuSpec
from components.gcp.reservation import ReservationSpec
from components.gcp.tpu_pool import TpuPoolSpec
from components.gcp.tpu_queue import TpuQueueSpec
from components.gcp.tpu_vm import TpuVmSpec

from ...environment.aws.config import Aws, CreatedNetwork
from ...environment.config import ConfigFaults, Environment, load_environment
from ...environment.gcp.config import Gcp
from ...environment.gcp.vms_config import Vms
from ..cost.estimate import SCENARIOS, Estimate, estimate, usd
from .plain import message_line, sanitize
from .preview import Preview, value_changes
from .threats import Hit, Hits, hits, loss, threats
from .thresholds import Limit, Quotas, breach_reason, quotas, read_stack

_SCHEMA = 1
_FATES = ("ends", "loses", "waits")
"""Fates of jobs, the worst first."""
_OFFLINE = "not asked: --offline"
_UTILISATION = 0.3
_POOLS = {"accel:gcp:CpuPool": CpuPoolSpec, "accel:gcp:GpuPool": GpuPoolSpec, "accel:gcp:TpuPool": TpuPoolSpec}
VMS: Mapping[str, tuple[str, Any]] = {
    "accel:gcp:GpuVm": ("gpus", GpuVmSpec),
    "accel:gcp:GpuVmGroup": ("gpu_groups", GpuVmGroupSpec),
    "accel:gcp:TpuVm": ("tpus", TpuVmSpec),
    "accel:gcp:TpuQueue": ("tpu_queues", TpuQueueSpec),
    "accel:gcp:QueuedTpu": ("queued_tpus", QueuedTpuSpec),
    "accel:gcp:Reservation": ("reservations", ReservationSpec),
    "accel:gcp:FutureReservation": ("future_reservations", FutureReservationSpec),
    "accel:gcp:Commitment": ("commitments", CommitmentSpec),
}
"""Components of machines: their part of `gcp.vms`, and their spec."""
_KEPT = {"accel:gcp:PersistentResource": PersistentResourceSpec}
_COMPUTE = "accel:aws:ComputeEnvironment"
_NETWORK = "accel:aws:Network"

_Parts = tuple[dict[str, Any], set[str]]
"""The specs of existing components that change, by key; and the keys of all that change."""


@dataclass(frozen=True)
class ReportOptions:
    """Parts of a report besides the preview."""

    limits: Sequence[Limit] = ()
    policy: Sequence[Mapping[str, str]] = ()
    drift: Sequence[Mapping[str, str]] = ()
    offline: bool = False
    utilisation: float = _UTILISATION
    strict: bool = False


@dataclass(frozen=True)
class _Costs:
    """`before` is None, with the reason, if the state does not contain it; an empty one before the first deployment."""

    after: Estimate
    before: Estimate | None
    why: str = ""


def document(preview: Preview, wanted: ReportOptions) -> dict[str, Any]:
    """Ask the clouds for jobs and quotas at the same time, unless offline."""
    environment = _environment(preview)
    at_stake = [threat for change in preview.changes for threat in threats(change)]
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(_hits, preview, at_stake, wanted)
        judged = pool.submit(_quotas, preview, environment, wanted)
        priced = _costs(preview, environment, wanted.utilisation) if environment else None
        found, verdicts = asked.result(), judged.result()
    report: dict[str, Any] = {
        "schema": _SCHEMA,
        "stack": preview.stack,
        "project": preview.project,
        "failed": preview.failed,
        "empty": preview.empty,
        "summary": _summary(preview),
        "errors": [message_line(each) for each in preview.errors],
        "warnings": [message_line(each) for each in preview.warnings],
        "stateful": [
            {"name": each.name, "type": each.type, "op": each.op, "loses": lost}
            for each in preview.changes
            if (lost := loss(each))
        ],
        "jobs": {**_jobs(found), "at_stake": len(at_stake)},
        "cost": _cost(priced),
        "quota": {"rows": list(verdicts.rows), "unread": verdicts.unread and message_line(verdicts.unread)},
        "policy": list(wanted.policy),
        "drift": [*_refreshed(preview), *wanted.drift],
        "images": [
            {
                "resource": each.resource,
                "what": each.what,
                "before": sanitize(each.before),
                "after": sanitize(each.after),
            }
            for each in value_changes(preview)
        ],
        "changes": [
            {
                "op": each.op,
                "type": each.type,
                "name": each.name,
                "properties": list(each.diffs),
                "forced_by": list(each.replaces),
            }
            for each in preview.changes
            if not each.is_component and each.op not in ("read", "refresh")
        ],
    }
    reasons = [(limit, breach_reason(limit, report, strict=wanted.strict)) for limit in wanted.limits]
    report["fails"] = [{"limit": str(limit), "why": why} for limit, why in reasons if why]
    return report


def _environment(preview: Preview) -> Environment | None:
    """Return the previewed environment; None where there is none, or a preview has reported its faults."""
    if preview.environment is None:
        return None
    try:
        return load_environment(preview.environment)
    except ConfigFaults:
        return None


def _hits(preview: Preview, at_stake: Sequence[Any], wanted: ReportOptions) -> Hits:
    if wanted.offline:
        return Hits(unread=(_OFFLINE,) if at_stake else ())
    return hits(at_stake, preview.outputs)


def _quotas(preview: Preview, environment: Environment | None, wanted: ReportOptions) -> Quotas:
    if preview.empty and all(limit.name != "quota" for limit in wanted.limits):
        return Quotas()
    if wanted.offline:
        return Quotas(unread=_OFFLINE)
    if environment is None:
        return Quotas(unread="the environment was not valid, or the program has none")
    return quotas(read_stack(preview.stack, environment))


def _costs(preview: Preview, environment: Environment, utilisation: float) -> _Costs:
    # A preview omits what did not change, so it is not considered here.
    beside = {change.urn.split("::")[2].partition("$")[0] for change in preview.changes if change.op != "delete"}
    own = {each for each in beside if not each.startswith("pulumi:")}
    after = estimate(preview.stack, environment, utilisation, own)
    try:
        before = _environment_before(preview, environment)
    except ValidationError:
        return _Costs(after, None, "what is deployed was written by another version, which this one does not read")
    return _Costs(after, estimate(preview.stack, before, utilisation))


def _environment_before(preview: Preview, after: Environment) -> Environment:
    """Take changed parts from the state. Raise ValidationError for a spec that this version does not accept."""
    aws = _section_before(
        after.aws, Aws, "environments", _changed_specs(preview, {_COMPUTE: ComputeEnvironmentSpec}), preview
    )
    networks = [change for change in preview.changes if change.type == _NETWORK]
    if aws is not None and networks:
        made = [CreatedNetwork.model_validate(each.old_inputs.get("spec")) for each in networks if each.op != "create"]
        aws = aws.model_copy(update={"network": made[0] if made else None})
    gcp = _section_before(after.gcp, Gcp, "pools", _changed_specs(preview, _POOLS), preview)
    gcp = _with_machines_before(gcp, after.gcp, preview)
    return after.model_copy(update={"aws": aws, "gcp": gcp})


def _changed_specs(preview: Preview, kinds: Mapping[str, Any]) -> _Parts:
    changes = [change for change in preview.changes if change.type in kinds]
    old = {
        change.name: TypeAdapter(kinds[change.type]).validate_python(change.old_inputs.get("spec"))
        for change in changes
        if change.op != "create"
    }
    return old, {change.name for change in changes}


def _section_before(after: Any, of: type[Aws] | type[Gcp], field: str, parts: _Parts, preview: Preview) -> Any:
    """Return None where nothing of the section existed."""
    found = _specs_before({} if after is None else getattr(after, field), parts)
    region = _region_before(preview, of)
    if after is not None:
        return after.model_copy(update={field: found, "region": region or after.region})
    values: dict[str, Any] = {"region": region, "network": None, field: found}
    return of.model_construct(None, **values) if found and region else None


def _with_machines_before(section: Any, after: Gcp | None, preview: Preview) -> Any:
    """Leave out the former cost of machines that appear or disappear with the whole section."""
    if section is None or after is None:
        return section
    vms = after.vms or Vms.model_construct()
    for kind, (attribute, spec) in VMS.items():
        vms = vms.model_copy(
            update={attribute: _specs_before(getattr(vms, attribute), _changed_specs(preview, {kind: spec}))}
        )
    vertex = after.vertex
    if vertex is not None:
        kept = _specs_before(vertex.persistent_resources, _changed_specs(preview, _KEPT))
        vertex = vertex.model_copy(update={"persistent_resources": kept})
    return section.model_copy(update={"vms": vms, "vertex": vertex})


def _specs_before(kept: Mapping[str, Any], parts: _Parts) -> dict[str, Any]:
    old, changed = parts
    return {**{key: spec for key, spec in kept.items() if key not in changed}, **old}


def _region_before(preview: Preview, of: type[Aws] | type[Gcp]) -> str | None:
    cloud = "aws:" if of is Aws else "gcp:"
    for change in preview.changes:
        found = change.old_outputs.get("region") or change.old_inputs.get("region")
        if change.type.startswith(cloud) and isinstance(found, str) and found:
            return found
    return None


def _cost(priced: _Costs | None) -> dict[str, Any] | None:
    if priced is None:
        return None
    before, after = priced.before.totals if priced.before else None, priced.after.totals
    return {
        "utilisation": priced.after.utilisation,
        "before": {name: usd(before[name]) for name in SCENARIOS} if before else None,
        "after": {name: usd(after[name]) for name in SCENARIOS},
        "rise": {name: usd(_rise(before[name], after[name])) if before else None for name in SCENARIOS},
        "why": priced.why,
        "unknown": list(priced.after.unknown),
    }


def _rise(before: Amount, after: Amount) -> Amount:
    if before.usd is None or after.usd is None:
        return Amount(None, at_least=True)
    return Amount(after.usd - before.usd, before.at_least or after.at_least)


def _summary(preview: Preview) -> dict[str, int]:
    counted = Counter(each.op for each in preview.changes if not each.is_component)
    return {op: counted[op] for op in ("replace", "delete", "forget", "update", "create", "import") if counted[op]}


def _jobs(found: Hits) -> dict[str, Any]:
    """Return each job once, with its worst fate."""
    by_job: dict[str, list[Hit]] = {}
    for hit in found.hits:
        by_job.setdefault(hit.job.ref, []).append(hit)
    rows = [_row(sorted(each, key=lambda hit: _FATES.index(hit.threat.fate))) for each in by_job.values()]
    rows.sort(key=lambda row: (_FATES.index(row["fate"]), -(row["hours"] or 0.0)))
    hours = {
        fate: round(sum(row["hours"] or 0.0 for row in rows if row["fate"] == fate), 3)
        for fate in _FATES
        if any(row["fate"] == fate for row in rows)
    }
    return {"hit": rows, "accelerator_hours": hours, "unread": [message_line(why) for why in found.unread]}


def _row(hits: Sequence[Hit]) -> dict[str, Any]:
    worst, job = hits[0].threat, hits[0].job
    return {
        "ref": job.ref,
        "name": job.name,
        "phase": job.phase,
        "target": job.target,
        "accelerators": job.accelerators,
        "unit": job.unit,
        "hours": None if job.hours is None else round(job.hours, 3),
        "fate": worst.fate,
        "how": worst.how,
        "op": worst.change.op,
        "resources": list(dict.fromkeys(hit.threat.change.name for hit in hits)),
    }


def _refreshed(preview: Preview) -> list[dict[str, str]]:
    """Return the differences from the state that the refresh before the preview found."""
    return [
        {"resource": each.name, "weight": "changed", "text": f"changed outside: {', '.join(each.diffs)}"}
        for each in preview.changes
        if each.op == "refresh" and each.diffs
    ]
