"""What the environment costs before and after the change, from the specs that are in the state and in the config."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

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

from ...environment.config import Aws, CreatedNetwork, Environment
from ...environment.gcp.config import Gcp
from ...environment.gcp.vms_config import Vms
from ..cost.estimate import Estimate, estimate
from .preview import Preview

UTILISATION = 0.3
POOLS = {"accel:gcp:CpuPool": CpuPoolSpec, "accel:gcp:GpuPool": GpuPoolSpec, "accel:gcp:TpuPool": TpuPoolSpec}
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
"""By component: its part of `gcp.vms`, and its spec."""
KEPT = {"accel:gcp:PersistentResource": PersistentResourceSpec}
COMPUTE = "accel:aws:ComputeEnvironment"
NETWORK = "accel:aws:Network"


@dataclass(frozen=True)
class Costs:
    """`before` is None, with the reason, where the state does not tell; an empty one before the first deployment."""

    after: Estimate
    before: Estimate | None
    why: str = ""


def costs(preview: Preview, environment: Environment, utilisation: float = UTILISATION) -> Costs:
    """Both estimates. No cloud is asked."""
    # What did not change is in no preview, and so not looked at here.
    beside = {change.urn.split("::")[2].partition("$")[0] for change in preview.changes if change.op != "delete"}
    own = {each for each in beside if not each.startswith("pulumi:")}
    after = estimate(preview.stack, environment, utilisation, own)
    try:
        before = _before(preview, environment)
    except ValidationError:
        return Costs(after, None, "what is deployed was written by another version, which this one does not read")
    return Costs(after, estimate(preview.stack, before, utilisation))


def _before(preview: Preview, after: Environment) -> Environment:
    """The environment as it is deployed: a section's parts that change as the state has them, the others as they
    stay. Raises ValidationError for a spec that this version does not take."""
    aws = _section(after.aws, Aws, "environments", _parts(preview, {COMPUTE: ComputeEnvironmentSpec}), preview)
    networks = [change for change in preview.changes if change.type == NETWORK]
    if aws is not None and networks:
        made = [CreatedNetwork.model_validate(each.old_inputs.get("spec")) for each in networks if each.op != "create"]
        aws = aws.model_copy(update={"network": made[0] if made else None})
    gcp = _section(after.gcp, Gcp, "pools", _parts(preview, POOLS), preview)
    gcp = _kept(gcp, after.gcp, preview)
    return after.model_copy(update={"aws": aws, "gcp": gcp})


Parts = tuple[dict[str, Any], set[str]]
"""The specs of what is there now and changes, by key; and the keys of all that change."""


def _parts(preview: Preview, kinds: Mapping[str, Any]) -> Parts:
    changes = [change for change in preview.changes if change.type in kinds]
    old = {
        change.name: TypeAdapter(kinds[change.type]).validate_python(change.old_inputs.get("spec"))
        for change in changes
        if change.op != "create"
    }
    return old, {change.name for change in changes}


def _section(after: Any, of: type[Aws] | type[Gcp], field: str, parts: Parts, preview: Preview) -> Any:
    """The section as it was; None where nothing of it was there."""
    found = _were({} if after is None else getattr(after, field), parts)
    region = _region(preview, of)
    if after is not None:
        return after.model_copy(update={field: found, "region": region or after.region})
    values: dict[str, Any] = {"region": region, "network": None, field: found}
    return of.model_construct(None, **values) if found and region else None


def _kept(section: Any, after: Gcp | None, preview: Preview) -> Any:
    """The section with the machines that stay as they were. Without a section in either, there is no place for them:
    they go as a whole, and what they cost then is not told."""
    if section is None or after is None:
        return section
    vms = after.vms or Vms.model_construct()
    for kind, (attribute, spec) in VMS.items():
        vms = vms.model_copy(update={attribute: _were(getattr(vms, attribute), _parts(preview, {kind: spec}))})
    vertex = after.vertex
    if vertex is not None:
        kept = _were(vertex.persistent_resources, _parts(preview, KEPT))
        vertex = vertex.model_copy(update={"persistent_resources": kept})
    return section.model_copy(update={"vms": vms, "vertex": vertex})


def _were(kept: Mapping[str, Any], parts: Parts) -> dict[str, Any]:
    """Specs by key as they were: those that change as the state has them, the others as they stay."""
    old, changed = parts
    return {**{key: spec for key, spec in kept.items() if key not in changed}, **old}


def _region(preview: Preview, of: type[Aws] | type[Gcp]) -> str | None:
    """Of a cloud's section as it was, from any of its resources that change."""
    cloud = "aws:" if of is Aws else "gcp:"
    for change in preview.changes:
        found = change.old_outputs.get("region") or change.old_inputs.get("region")
        if change.type.startswith(cloud) and isinstance(found, str) and found:
            return found
    return None
