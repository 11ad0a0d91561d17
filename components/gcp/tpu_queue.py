"""A TPU that waits in Google's queue for capacity: the part of a queued resource that the provider supports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pulumi
from pydantic import Field, model_validator

from accel.catalog.tpu import Slice, tpu
from accel.diagnostics.faults import several
from accel.diagnostics.findings import Finding
from accel.rules.gcp import tpu_vms

from ..base import Component, Spec
from ..sdk import gcp
from .slice_spec import slice_findings
from .timeouts import long
from .tpu_vm import node_id

_NODE_ID_MOST = 63


class TpuQueueSpec(Spec):
    """One slice, on demand, which is requested once. Use queued_tpus for Spot, a guarantee, a reservation, several
    slices, a time limit, an account or a startup script."""

    zone: str
    accelerator_type: str
    runtime_version: str | None = Field(
        default=None, description="TPU software version. Default: that of the generation"
    )
    description: str | None = Field(default=None, max_length=512)
    external_address: bool = False

    @model_validator(mode="before")
    @classmethod
    def _not_the_providers(cls, given: Any) -> Any:
        """Refuse fields of queued_tpus by name: a plain refusal would not say where they can be used."""
        if isinstance(given, Mapping):
            found = tpu_vms.queue_fields(cast("Mapping[str, Any]", given))
            if found:
                raise several([(finding.field, finding.text) for finding in found])
        return cast("Any", given)

    @property
    def slice(self) -> Slice:
        return tpu(self.accelerator_type)

    @property
    def runtime(self) -> str:
        return self.runtime_version or next(iter(self.slice.runtime_versions))

    def check(self) -> list[Finding]:
        found = slice_findings(self.accelerator_type, None, self.runtime_version, self.zone)
        return found + tpu_vms.queue_account()


@dataclass(frozen=True, kw_only=True)
class TpuQueueArgs:
    """The spec, the TPU's network, and the hooks of `queue_hooks()`, needed to delete a request that has its TPU."""

    spec: TpuQueueSpec
    project: str
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    hooks: pulumi.ResourceHookBinding | None


class TpuQueue(Component):
    """A queued resource with one node. The update that creates it ends when Google has accepted the request, not when
    the TPU exists. No one generates the node's name, so it consists of project, stack and component, and the old
    request is deleted before a new one is made."""

    TYPE = "accel:gcp:TpuQueue"

    name: pulumi.Output[str]
    zone: pulumi.Output[str]
    node: pulumi.Output[str]
    accelerator_type: pulumi.Output[str]
    worker_count: pulumi.Output[int]

    def __init__(self, name: str, args: TpuQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        node = node_id(f"{pulumi.get_project()}-{pulumi.get_stack()}-{name}", _NODE_ID_MOST)
        made = gcp.tpu.V2QueuedResource(
            name,
            project=args.project,
            zone=spec.zone,
            tpu=gcp.tpu.V2QueuedResourceTpuArgs(
                node_specs=[
                    gcp.tpu.V2QueuedResourceTpuNodeSpecArgs(
                        parent=f"projects/{args.project}/locations/{spec.zone}",
                        node_id=node,
                        node=gcp.tpu.V2QueuedResourceTpuNodeSpecNodeArgs(
                            accelerator_type=spec.slice.api_type,
                            runtime_version=spec.runtime,
                            description=spec.description,
                            network_config=gcp.tpu.V2QueuedResourceTpuNodeSpecNodeNetworkConfigArgs(
                                network=args.network,
                                subnetwork=args.subnetwork,
                                enable_external_ips=spec.external_address,
                            ),
                        ),
                    )
                ]
            ),
            opts=self.child(
                delete_before_replace=True,
                hooks=args.hooks,
                custom_timeouts=long(),
            ),
        )
        self.name = made.name
        self.zone = pulumi.Output.from_input(spec.zone)
        self.node = pulumi.Output.from_input(node)
        self.accelerator_type = pulumi.Output.from_input(spec.slice.name)
        self.worker_count = pulumi.Output.from_input(spec.slice.hosts)
        self.finish()
