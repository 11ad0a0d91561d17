"""The model of an environment's section aws."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from accel.catalog.nearest import nearest
from accel.diagnostics.faults import several
from accel.diagnostics.findings import Finding, under
from accel.rules.aws import monitoring as monitoring_rules
from accel.rules.aws import places as aws_places
from accel.rules.aws import queues as queue_rules
from accel.rules.aws import types as aws_types
from accel.rules.aws.clusters import zones
from accel.rules.aws.fit import QueueEnvironment, Size, in_queues, unserved_queue
from accel.rules.aws.network import closed_image
from accel.rules.jobs import image_cuda
from accel.rules.jobs import placeholders as rules
from components.aws.batch_roles import BatchRolesSpec
from components.aws.budget import BudgetSpec
from components.aws.budget_stop import BudgetStopSpec
from components.aws.claim_table import ClaimTableSpec
from components.aws.code_bucket import CodeBucketSpec
from components.aws.compute_environment import ComputeEnvironmentSpec, OnDemandSpec, SpotSpec
from components.aws.image_repository import ImageRepositorySpec
from components.aws.job_definition import JobDefinitionSpec
from components.aws.job_log import JobLogSpec
from components.aws.job_queue import JobQueueSpec
from components.aws.monitoring import MonitoringSpec
from components.aws.network import NetworkSpec
from components.base import Name, Spec

from ..existing import OtherStack


class CreatedNetwork(NetworkSpec):
    """A network that this stack creates and owns."""

    kind: Literal["create"]


class ExistingNetwork(Spec):
    """An existing network."""

    kind: Literal["existing"]
    vpc_id: str
    subnet_ids: list[str] = Field(min_length=1)
    security_group_ids: list[str] = Field(min_length=1)

    def check(self) -> list[Finding]:
        return (
            rules.resource_id("vpc_id", self.vpc_id, "vpc")
            + rules.resource_ids("subnet_ids", self.subnet_ids, "subnet")
            + rules.resource_ids("security_group_ids", self.security_group_ids, "sg")
        )


class StackNetwork(OtherStack):
    """The `network` output of another stack."""


Network = Annotated[CreatedNetwork | ExistingNetwork | StackNetwork, Field(discriminator="kind")]


class Aws(Spec):
    """The resources of one environment in one region of AWS."""

    region: str
    account_id: str | None = Field(
        default=None, description="Id of the account; deployment into any other account is refused"
    )
    network: Network
    roles: BatchRolesSpec = BatchRolesSpec()
    logs: JobLogSpec = JobLogSpec()
    claims: ClaimTableSpec | None = Field(
        default=ClaimTableSpec(),
        description="Table that makes submit idempotent for all machines. null: submit is safe on one machine only",
    )
    code: CodeBucketSpec | None = Field(
        default=CodeBucketSpec(),
        description="Bucket for code that jobs are submitted with. null: jobs on AWS Batch cannot be submitted with "
        "--code",
    )
    repositories: dict[Name, ImageRepositorySpec] = Field(default_factory=dict)
    environments: dict[Name, ComputeEnvironmentSpec] = Field(min_length=1)
    definitions: dict[Name, JobDefinitionSpec] = Field(default_factory=dict)
    queues: dict[Name, JobQueueSpec] = Field(min_length=1)
    monitoring: MonitoringSpec | None = Field(
        default=None, description="Events of jobs, alarms and a dashboard. Default: none of them"
    )
    budgets: dict[Name, BudgetSpec] = Field(default_factory=dict[Name, BudgetSpec])
    budget_stop: BudgetStopSpec = BudgetStopSpec()

    @model_validator(mode="after")
    def _references(self) -> Self:
        faults: list[tuple[str, str]] = []
        for name, queue in self.queues.items():
            for index, key in enumerate(queue.environments):
                if key not in self.environments:
                    near = nearest(key, list(self.environments), 1) or sorted(self.environments)
                    faults.append(
                        (
                            f"queues.{name}.environments[{index}]",
                            f"no environment {key!r}; nearest: {', '.join(near)}",
                        )
                    )
        if isinstance(self.network, CreatedNetwork):
            for index, zone in enumerate(self.network.zones):
                if not zone.startswith(self.region) or zone == self.region:
                    faults.append((f"network.zones[{index}]", f"{zone!r} is not a zone of region {self.region}"))
        for name, spec in self.environments.items():
            if fault := self._zone_fault(spec):
                faults.append((f"environments.{name}.zone", fault))
        if not self.claims:
            text = "needs the claim table, where clients see that the stack is stopped; leave claims as it is"
            faults += [(f"budgets.{name}.stop", text) for name, spec in self.budgets.items() if spec.stop]
        if faults:
            raise several(faults)
        return self

    def _zone_fault(self, spec: OnDemandSpec | SpotSpec) -> str | None:
        if spec.zone is None:
            return None
        if spec.subnet_ids:
            return f"{spec.zone!r} is given beside subnet_ids; keep one of them"
        if not isinstance(self.network, CreatedNetwork):
            return "the network is not made here, so its subnets' zones are not known; name subnet_ids instead"
        if spec.zone not in self.network.zones:
            return f"{spec.zone!r} is not a zone of the network: {', '.join(self.network.zones)}"
        return None

    def _zone_count(self, spec: OnDemandSpec | SpotSpec) -> int:
        if spec.zone:
            return 1
        if spec.subnet_ids:
            return len(spec.subnet_ids)
        match self.network:
            case CreatedNetwork() as made:
                return len(made.zones)
            case ExistingNetwork() as given:
                return len(given.subnet_ids)
            case StackNetwork():
                return 1

    def check(self) -> list[Finding]:
        found = rules.account("account_id", self.account_id) if self.account_id else []
        found += aws_places.region(self.region)
        for name, spec in self.environments.items():
            found += under(f"environments.{name}", zones(wanted=spec.one_zone, count=self._zone_count(spec)))
            found += under(f"environments.{name}", aws_places.instance_types(self.region, spec.instance_types))
        named = {name: queue.environments for name, queue in self.queues.items()}
        for name, spec in self.environments.items():
            if spec.state == "ENABLED":
                found += queue_rules.queue_membership(name, named, f"environments.{name}")
        queues = {name: self._places(queue) for name, queue in self.queues.items()}
        sizes = {name: Size(spec.vcpus, spec.memory_mib, spec.gpus) for name, spec in self.definitions.items()}
        for name, places in queues.items():
            types = {place.name: place.instance_types for place in places}
            found += under(f"queues.{name}", queue_rules.architectures(types) + unserved_queue(sizes, places))
        for name, size in sizes.items():
            found += under(f"definitions.{name}", in_queues(size, queues))
            gpus = [aws_types.gpus(types) for types in self._types_by_queue()] if size.gpus else []
            found += under(f"definitions.{name}", image_cuda.everywhere(self.definitions[name].image, gpus))
            if self.closed:
                found += under(f"definitions.{name}", closed_image(self.definitions[name].image, self.region))
        return found + self._gpu_metrics()

    @property
    def closed(self) -> bool:
        """Return whether instances are known to reach only AWS services."""
        return isinstance(self.network, CreatedNetwork) and self.network.egress == "endpoints"

    def _gpu_metrics(self) -> list[Finding]:
        if self.monitoring is None or not self.monitoring.gpu_metrics:
            return []
        network = self.network if isinstance(self.network, CreatedNetwork) else None
        return monitoring_rules.gpu_metrics(
            closed=self.closed,
            endpoints=network.interface_endpoints if network else [],
            profiles={name: spec.instance_profile for name, spec in self.environments.items()},
        )

    def _types_by_queue(self) -> list[list[str]]:
        return [
            [name for place in self._places(queue) for name in place.instance_types] for queue in self.queues.values()
        ]

    def _places(self, queue: JobQueueSpec) -> list[QueueEnvironment]:
        known = {key: self.environments[key] for key in queue.environments if key in self.environments}
        return [QueueEnvironment(key, spec.instance_types, spec.max_vcpus, self.region) for key, spec in known.items()]
