"""TPU slices that the stack declares: they are requested until they exist, and again when they are lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.contract import buckets
from accel.diagnostics.findings import Finding
from accel.rules.gcp import labels, tpu_vms

from ..base import Component, join
from ..sdk import gcp
from .slice_spec import SliceSpec
from .tpu_vm import node_id
from .vm_spec import SCOPES, VmArgs, metadata

_NODE_ID_MOST = 58
"""63 characters, minus the number of a slice."""


class QueuedTpuSpec(SliceSpec):
    """Slices of a queued resource that is created again, under the same node names, after preemption or failure."""

    slices: int = Field(
        default=1, ge=1, le=256, description="Number of slices; several are allocated and released together"
    )
    capacity: Literal["on-demand", "spot", "guaranteed", "reserved"] = "on-demand"
    reservation: str | None = Field(
        default=None, description="Name of the reservation, with `capacity: reserved`. Default: any of the project"
    )
    valid_for_s: int | None = Field(
        default=None, ge=60, description="Seconds after which a waiting request is given up, and not made again"
    )
    valid_until: str | None = Field(
        default=None,
        description="Time after which nothing more is requested, such as 2027-01-31T08:00:00Z; running slices continue",
    )
    description: str | None = Field(default=None, max_length=512)

    def check(self) -> list[Finding]:
        found = self.slice_findings()
        found += tpu_vms.valid(self.valid_for_s, self.valid_until)
        return found + tpu_vms.queue_reservation(self.capacity, self.reservation) + self.vm_findings()


@dataclass(frozen=True, kw_only=True)
class QueuedTpuArgs(VmArgs):
    """The spec, the arguments of VmArgs, the bucket of the ground of jobs, the labels of the stack, which no provider
    adds here, and the hooks that request the TPUs on update and remove them on deletion."""

    spec: QueuedTpuSpec
    bucket: pulumi.Input[str]
    stack_labels: Mapping[str, str]
    hooks: pulumi.ResourceHookBinding | None


class QueuedTpu(Component):
    """A declaration in the bucket, from which a reconciler creates queued resources: the provider's own has no Spot,
    guarantee, reservation, time limit, slices or account, and does not change when Google takes its TPU away. Every
    change starts a new request: the nodes are deleted before the next ones come."""

    TYPE = "accel:gcp:QueuedTpu"

    declaration: pulumi.Output[str]
    zone: pulumi.Output[str]
    nodes: pulumi.Output[list[str]]
    accelerator_type: pulumi.Output[str]
    worker_count: pulumi.Output[int]
    """Number per slice."""

    def __init__(self, name: str, args: QueuedTpuArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        node = node_id(f"{pulumi.get_project()}-{pulumi.get_stack()}-{name}", _NODE_ID_MOST)
        wired = pulumi.Output.all(
            network=args.network, subnetwork=args.subnetwork, service_account=args.service_account
        )
        made = gcp.storage.BucketObject(
            name,
            bucket=args.bucket,
            name=f"{buckets.QUEUES}/{name}.json",
            content=pulumi.Output.json_dumps(wired.apply(lambda known: _body(args, spec, node, known)), sort_keys=True),
            content_type="application/json",
            # The object's name is fixed: the new one would be deleted with the old one.
            opts=self.child(hooks=args.hooks, delete_before_replace=True),
        )
        ids = [node] if spec.slices == 1 else [f"{node}-{index}" for index in range(spec.slices)]
        self.declaration = join("gs://", args.bucket, "/", made.name)
        self.zone = pulumi.Output.from_input(spec.zone)
        self.nodes = pulumi.Output.from_input(ids)
        self.accelerator_type = pulumi.Output.from_input(spec.slice.name)
        self.worker_count = pulumi.Output.from_input(spec.slice.hosts)
        self.finish()


def _body(args: QueuedTpuArgs, spec: QueuedTpuSpec, node_id: str, wired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a record of jobs/backends/vms; `node` is the API's. Source:
    https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"""
    own = spec.slice
    shape: dict[str, Any] = {"acceleratorType": own.api_type}
    if spec.topology:
        shape = {"acceleratorConfig": {"type": own.version, "topology": own.topology}}
    node = {
        **shape,
        "runtimeVersion": spec.runtime,
        "networkConfig": {"network": wired["network"], "enableExternalIps": spec.external_address},
        "serviceAccount": {"email": wired["service_account"], "scope": SCOPES},
        "labels": labels.to_gcp({**args.stack_labels, **spec.labels}),
        "metadata": metadata(spec.metadata, startup_script=spec.startup_script),
        **({"description": spec.description} if spec.description else {}),
        **({"tags": spec.tags} if spec.tags else {}),
        **({"shieldedInstanceConfig": {"enableSecureBoot": True}} if spec.secure_boot else {}),
    }
    reserved = (spec.reservation or "-") if spec.capacity == "reserved" else None
    return {
        "standing": {"until": spec.valid_until},
        "project": args.project,
        "zones": [spec.zone],
        "hosts": spec.slices * own.hosts,
        "chips": spec.slices * own.chips,
        "spot": spec.capacity == "spot",
        "lost_retries": None,
        "machine": {
            "node": node,
            "node_id": node_id,
            "subnetworks": {spec.region: wired["subnetwork"]},
            "slices": spec.slices,
            "valid_s": spec.valid_for_s,
            "reservation": reserved,
            "guaranteed": spec.capacity == "guaranteed",
        },
    }
