"""A run of the program without an engine: the resources that it registers, and their names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pulumi.runtime import rpc
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks, set_mocks
from pulumi.runtime.settings import ROOT, SETTINGS
from pulumi.runtime.stack import run_in_stack

from accel.catalog.aws_partitions import partition_of
from accel.catalog.aws_permissions import arn_template
from accel.contract.gke import POOL_LABEL, GkeCluster, GkePool
from accel.contract.network import GcpNetwork, GcpSubnet

from ...environment.deployment import create_sections

if TYPE_CHECKING:
    from ...environment.config import Environment


NUMBER = "1"
ADDRESS = "192.0.2.1"
CERTIFICATE = "LQ=="
NAMES = ("name", "bucket", "dashboardName", "policyName")
"""Inputs that name a resource of AWS."""
LOWER = ("aws:s3/bucket:Bucket", "aws:ecr/repository:Repository")
"""Types whose names have no capital letters."""
NETWORK = {"schema": 1, "vpc_id": "vpc-0", "subnet_ids": ["subnet-0"], "security_group_ids": ["sg-0"]}
"""Output of the stack that owns the network: no permission depends on its values."""


@dataclass(frozen=True)
class RegisteredResource:
    """A resource as the program requests it."""

    type: str
    name: str
    """The physical name; Pulumi ends generated names with unpredictable letters: `*`."""
    parent: str
    inputs: Mapping[str, Any]


@dataclass(frozen=True)
class ArnPrefix:
    """The prefix of ARNs."""

    region: str
    account: str

    def arn(self, template: str, name: str) -> str:
        partition = partition_of(self.region).name
        filled = template.format(partition=partition, region=self.region, account=self.account, name=name)
        return filled.replace("**", "*")


def place(environment: Environment) -> ArnPrefix:
    """Return the place of the environment's AWS section; without an account, any matches."""
    section = environment.aws
    return ArnPrefix(section.region if section else "", section.account_id or "*" if section else "*")


def physical_name(kind: str, name: str, inputs: Mapping[str, Any]) -> str:
    prefix = f"{inputs['namePrefix']}*" if "namePrefix" in inputs else f"{name}-*"
    given = next((inputs[each] for each in NAMES if isinstance(inputs.get(each), str)), prefix)
    return given.lower() if kind in LOWER else given


def registered_resources(environment: Environment, project: str, stack: str) -> list[RegisteredResource]:
    """Return resources in the order of the program. No cloud is called, no hook runs, and no file is written."""
    monitor = _Monitor(_Answers(environment))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    set_mocks(monitor.mocks, project=project, stack=stack, preview=False, monitor=monitor)
    # Leftovers of the previous stack; untyped, since Pulumi sets these when it is imported.
    settings: Any = SETTINGS
    settings.rpc_manager.clear()
    settings.outputs.clear()
    settings.callbacks = _Callbacks()
    ROOT.set(None)
    try:
        loop.run_until_complete(run_in_stack(lambda: _run(environment)))
    finally:
        loop.close()
    return monitor.registered


def _run(environment: Environment) -> None:
    create_sections(environment)


class _Answers(Mocks):
    """Answers in place of a cloud, with names and ARNs that match the later ones."""

    def __init__(self, environment: Environment) -> None:
        self._at = place(environment)
        self._project = environment.gcp.project if environment.gcp else ""
        self._outputs = {"network": NETWORK, **_google_outputs(environment)}
        self._answers = {
            "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": self._at.account},
            "aws:index/getPartition:getPartition": {"partition": partition_of(self._at.region).name},
            **_google_answers(environment),
        }

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            return args.name, {"name": args.name, "outputs": self._outputs}
        inputs = cast("dict[str, Any]", args.inputs)  # pyright: ignore[reportUnknownMemberType]
        name = physical_name(args.typ, args.name, inputs)
        arn = self._at.arn(arn_template(args.typ), name)
        computed = {
            **{"arn": arn, "arnPrefix": arn, "name": name, "allocationId": "eipalloc-0"},
            **{"latestVersion": 1, "ecsClusterArn": "*", "repositoryUrl": name},
        }
        google = _google_computed(args.typ, args.name, self._project)
        return name, {**computed, **google, **inputs}

    def call(self, args: MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        return self._answers[args.token], []


class _Callbacks:
    """A registry that accepts hooks and calls none: Pulumi's own mocks know no hooks."""

    def register_resource_hook(self, hook: Any) -> None: ...

    def register_error_hook(self, hook: Any) -> None: ...


class _Monitor(MockMonitor):
    def __init__(self, mocks: Mocks) -> None:
        super().__init__(mocks)
        self.registered: list[RegisteredResource] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        inputs: dict[str, Any] = rpc.deserialize_properties(request.object) if request.object else {}
        name = physical_name(request.type, request.name, inputs)
        self.registered.append(RegisteredResource(request.type, name, request.parent, inputs))
        return super().RegisterResource(request)  # pyright: ignore[reportUnknownMemberType]


def _google_computed(kind: str, name: str, project: str) -> dict[str, Any]:
    email = f"{name}@{project}.iam.gserviceaccount.com"
    match kind:
        case "gcp:serviceaccount/account:Account":
            return {"email": email, "member": f"serviceAccount:{email}", "name": f"projects/{project}/{email}"}
        case "gcp:container/cluster:Cluster":
            return {"endpoint": ADDRESS, "masterAuth": {"clusterCaCertificate": CERTIFICATE}}
        case "gcp:storage/bucket:Bucket":
            return {"projectNumber": int(NUMBER)}
        case _ if kind.startswith("gcp:"):
            return {"selfLink": f"https://www.googleapis.com/{name}"}
        case _:
            return {}


def _google_answers(environment: Environment) -> dict[str, dict[str, Any]]:
    section = environment.gcp
    budgets = section.budgets.values() if section else ()
    currency = next((one.currency for one in budgets if one.currency), "USD")
    return {
        "gcp:organizations/getProject:getProject": {"number": NUMBER, "projectId": section.project if section else ""},
        "gcp:organizations/getBillingAccount:getBillingAccount": {"currencyCode": currency, "open": True},
        "pulumi:pulumi:readStackOutputs": {"outputs": _google_outputs(environment)},
    }


def _google_outputs(environment: Environment) -> dict[str, Any]:
    """Return the outputs of another stack. No permission depends on them, so pools have little more than names."""
    section = environment.gcp
    if section is None:
        return {}
    subnet = GcpSubnet(subnetwork="subnet", pods_range="pods", services_range="services", max_pods_per_node=110)
    network = GcpNetwork(project=section.project, network="network", subnets={section.region: subnet})
    key = getattr(section.cluster, "key", "cluster")
    named = {name: _pool(name, section.region) for name in _pools(section.workloads and section.workloads.model_dump())}
    cluster = GkeCluster(
        project=section.project, location=section.region, name="cluster", endpoint=ADDRESS, pools=named,
        ca_certificate=CERTIFICATE, workload_pool=f"{section.project}.svc.id.goog",
    )  # fmt: skip
    return {"gcp_network": _shown(network), "clusters": {key: _shown(cluster)}}


def _shown(promise: GcpNetwork | GkeCluster) -> dict[str, Any]:
    return promise.model_dump(mode="json", by_alias=True, exclude_none=True)


def _pool(key: str, region: str) -> GkePool:
    return GkePool(
        name=key, key=key, machine_type="e2-standard-4", zones=[f"{region}-a"], capacity="on-demand", max_nodes=1,
        labels={POOL_LABEL: key}, cpu_m=3_000, memory_mib=8_000,
    )  # fmt: skip


def _pools(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        members = cast("dict[str, Any]", document)
        named = [members.get("pool"), *(members.get("pools") or ())]
        yield from (each for each in named if isinstance(each, str))
        for value in members.values():
            yield from _pools(value)
    elif isinstance(document, list | tuple):
        for value in cast("list[Any]", document):
            yield from _pools(value)
