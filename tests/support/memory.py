"""A Pulumi engine in memory: runs a program and hands back every registration as it was sent."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pulumi.runtime import resource, rpc
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks, set_mocks
from pulumi.runtime.proto.source_pb2 import StackTrace
from pulumi.runtime.settings import SETTINGS, set_root_resource
from pulumi.runtime.stack import run_in_stack

resource._get_stack_trace = StackTrace  # a tenth of the time of a run, for messages that nobody reads here

CALLS: dict[str, dict[str, Any]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {
        "accountId": "111122223333",
        "arn": "arn:aws:iam::111122223333:root",
    },
    "aws:index/getPartition:getPartition": {"partition": "aws"},
    "gcp:organizations/getBillingAccount:getBillingAccount": {"currencyCode": "USD", "open": True},
    "gcp:organizations/getProject:getProject": {"number": "210020003000", "projectId": "ml-dev-1234"},
}
"""What functions answer, by token."""

COMPUTED: dict[str, dict[str, Any]] = {
    "aws:ec2/eip:Eip": {"allocationId": "eipalloc-1"},
    "gcp:container/cluster:Cluster": {"endpoint": "203.0.113.7", "masterAuth": {"clusterCaCertificate": "TUlJQg=="}},
    "gcp:compute/instanceTemplate:InstanceTemplate": {"selfLink": "https://www.googleapis.com/compute/v1/template"},
    "gcp:compute/reservation:Reservation": {"selfLink": "https://www.googleapis.com/compute/v1/reservation"},
    "gcp:serviceaccount/account:Account": {
        "email": "made@ml-dev-1234.iam.gserviceaccount.com",
        "member": "serviceAccount:made@ml-dev-1234.iam.gserviceaccount.com",
    },
    "gcp:storage/bucket:Bucket": {"projectNumber": 210020003000},
    "gcp:vertex/aiTensorboard:AiTensorboard": {"name": "projects/ml-dev-1234/locations/us-central1/tensorboards/1"},
}
"""Attributes that the cloud makes up, by type."""

STACKS: dict[str, dict[str, Any]] = {
    "organization/accel/network": {
        "network": {
            "schema": 1,
            "vpc_id": "vpc-1",
            "subnet_ids": ["subnet-1"],
            "security_group_ids": ["sg-1"],
        }
    }
}
"""Outputs of other stacks, by name."""


@dataclass(frozen=True)
class Registration:
    """One resource as the program registered it."""

    type: str
    name: str
    urn: str
    parent: str
    inputs: dict[str, Any]
    provider: str = ""
    aliases: list[Any] = field(default_factory=list[Any])
    protect: bool = False
    dependencies: list[str] = field(default_factory=list[str])
    retain_on_delete: bool = False
    ignore_changes: list[str] = field(default_factory=list[str])
    timeouts: tuple[str, str, str] = ("", "", "")
    """Of create, update and delete; empty: the provider's own."""
    references: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The URNs that each input's value comes from."""


class _Provider(Mocks):
    def __init__(self, preview: bool) -> None:
        self.preview = preview

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if self.preview:
            return None, dict(args.inputs)  # what a create leaves unknown until the update
        if args.typ == "pulumi:pulumi:StackReference":
            return args.name, {"name": args.name, "outputs": STACKS[args.name]}
        arn = f"arn:{args.typ}:{args.name}"
        computed = {
            "arn": arn,
            "arnPrefix": arn,
            "name": f"{args.name}-0a1b2c3",
            "latestVersion": 1,
            "ecsClusterArn": arn,
            "repositoryUrl": arn,
        }
        return f"{args.name}-id", {**computed, **args.inputs, **COMPUTED.get(args.typ, {})}

    def call(self, args: MockCallArgs) -> dict[str, Any]:
        if args.token not in CALLS:
            raise AssertionError(f"no answer is set for {args.token}")
        return CALLS[args.token]


class _Callbacks:
    """Takes hooks, and calls none: the mocks that Pulumi brings know no hooks."""

    def register_resource_hook(self, hook: Any) -> None: ...

    def register_error_hook(self, hook: Any) -> None: ...


class Recorder(MockMonitor):
    """What a program registered, exported and logged."""

    def __init__(self, mocks: Mocks) -> None:
        super().__init__(mocks)
        self.registrations: list[Registration] = []
        self.outputs: dict[str, dict[str, Any]] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        response = super().RegisterResource(request)
        if request.type == "pulumi:pulumi:Stack":
            return response  # made by the runtime, and not by the program
        self.registrations.append(
            Registration(
                type=request.type,
                name=request.name,
                urn=response.urn,
                parent=request.parent,
                inputs=rpc.deserialize_properties(request.object) if request.object else {},
                provider=request.provider or "".join(request.providers.values()),
                aliases=list(request.aliases),
                protect=request.protect,
                dependencies=list(request.dependencies),
                retain_on_delete=request.retainOnDelete,
                ignore_changes=list(request.ignoreChanges),
                timeouts=(request.customTimeouts.create, request.customTimeouts.update, request.customTimeouts.delete),
                references={name: list(each.urns) for name, each in request.propertyDependencies.items()},
            )
        )
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        self.outputs[request.urn] = rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)

    @property
    def exports(self) -> dict[str, Any]:
        """What the program exported."""
        return next((outputs for urn, outputs in self.outputs.items() if "pulumi:pulumi:Stack:" in urn), {})

    def of(self, kind: str) -> list[Registration]:
        """Registrations whose type ends in this, such as batch/jobQueue:JobQueue."""
        return [seen for seen in self.registrations if seen.type.endswith(kind)]

    def one(self, kind: str) -> Registration:
        """The only registration of this type."""
        (seen,) = self.of(kind)
        return seen


def run(program: Callable[[], Any], *, preview: bool = False, stack: str = "dev") -> Recorder:
    """Runs the program as `pulumi up` would (or `pulumi preview`, where computed values stay unknown)."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    recorder = Recorder(_Provider(preview))
    set_mocks(recorder.mocks, project="accel", stack=stack, preview=preview, monitor=recorder)

    # What a run before this one left behind.
    SETTINGS.rpc_manager.clear()  # pyright: ignore[reportAttributeAccessIssue]
    SETTINGS.outputs.clear()  # pyright: ignore[reportAttributeAccessIssue]
    set_root_resource(None)
    SETTINGS.callbacks = _Callbacks()  # pyright: ignore[reportAttributeAccessIssue]

    def evaluate() -> None:
        program()

    try:
        loop.run_until_complete(run_in_stack(evaluate))
    finally:
        loop.close()
    return recorder
