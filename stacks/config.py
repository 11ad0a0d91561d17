"""The model of an environment: the one config key `accel:environment`, whole."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from accel.catalog.nearest import nearest
from accel.faults import Fault, find, several
from accel.rules import aws_places
from accel.rules import aws_queues as queue_rules
from accel.rules import placeholders as rules
from accel.rules.aws_fit import fit
from accel.rules.finding import Finding, under
from components.aws.batch_roles import BatchRolesSpec
from components.aws.claim_table import ClaimTableSpec
from components.aws.compute_environment import ComputeEnvironmentSpec
from components.aws.image_repository import ImageRepositorySpec
from components.aws.job_definition import JobDefinitionSpec
from components.aws.job_log import JobLogSpec
from components.aws.job_queue import JobQueueSpec
from components.aws.network import NetworkSpec
from components.base import Name, Spec


class CreatedNetwork(NetworkSpec):
    """A network that this stack makes and owns."""

    kind: Literal["create"]


class ExistingNetwork(Spec):
    """A network that is there already."""

    kind: Literal["existing"]
    vpc_id: str
    subnet_ids: list[str] = Field(min_length=1)
    security_group_ids: list[str] = Field(min_length=1)

    def findings(self) -> list[Finding]:
        return (
            rules.resource_id("vpc_id", self.vpc_id, "vpc")
            + rules.resource_ids("subnet_ids", self.subnet_ids, "subnet")
            + rules.resource_ids("security_group_ids", self.security_group_ids, "sg")
        )


class StackNetwork(Spec):
    """The `network` output of another stack."""

    kind: Literal["stack"]
    stack: str = Field(description="<organisation>/<project>/<stack>, as StackReference takes it")


Network = Annotated[CreatedNetwork | ExistingNetwork | StackNetwork, Field(discriminator="kind")]


class Aws(Spec):
    """What is deployed to one region of AWS."""

    region: str
    account_id: str | None = Field(default=None, description="deploying into any other account is refused")
    network: Network
    roles: BatchRolesSpec = BatchRolesSpec()
    logs: JobLogSpec = JobLogSpec()
    claims: ClaimTableSpec | None = Field(
        default=ClaimTableSpec(), description="null: submit is safe on one machine only"
    )
    repositories: dict[Name, ImageRepositorySpec] = Field(default_factory=dict)
    environments: dict[Name, ComputeEnvironmentSpec] = Field(min_length=1)
    definitions: dict[Name, JobDefinitionSpec] = Field(default_factory=dict)
    queues: dict[Name, JobQueueSpec] = Field(min_length=1)

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
        if faults:
            raise several(faults)
        return self

    def findings(self) -> list[Finding]:
        found = rules.account("account_id", self.account_id) if self.account_id else []
        found += aws_places.region(self.region)
        for name, spec in self.environments.items():
            found += under(f"environments.{name}", aws_places.instance_types(self.region, spec.instance_types))
        types = {name: self._instance_types(queue) for name, queue in self.queues.items()}
        for name, by_environment in types.items():
            found += under(f"queues.{name}", queue_rules.architectures(by_environment))
        for name, spec in self.definitions.items():
            found += under(f"definitions.{name}", _best_fit(spec, [_flat(one) for one in types.values()]))
        return found

    def _instance_types(self, queue: JobQueueSpec) -> dict[str, list[str]]:
        known = [key for key in queue.environments if key in self.environments]
        return {key: self.environments[key].instance_types for key in known}


def _flat(by_environment: dict[str, list[str]]) -> list[str]:
    return [name for names in by_environment.values() for name in names]


def _best_fit(spec: JobDefinitionSpec, queues: list[list[str]]) -> list[Finding]:
    """What is said of a definition on the queue that suits it best: one that no queue can hold waits for ever."""
    tried = [fit(spec.vcpus, spec.memory_mib, spec.gpus, types) for types in queues]
    if not tried:
        return []
    return min(tried, key=lambda found: (any(one.severity == "reject" for one in found), len(found)))


class Environment(Spec):
    """One environment: everything that one stack deploys. A section that is absent is not deployed."""

    owner: str = Field(min_length=1, description="who answers for it; on every resource as a tag")
    labels: dict[str, str] = Field(default_factory=dict, description="on every resource as tags")
    strict: bool = Field(default=False, description="warnings and outdated values are refused")
    aws: Aws | None = None


class ConfigFaults(Exception):
    """Everything that is wrong with an environment."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


def load_environment(document: Any) -> Environment:
    """The environment; raises ConfigFaults with all faults together, each with its path."""
    faults = find(Environment, document)
    if not faults:
        environment = Environment.model_validate(document)
        faults = [_fault(path, finding) for path, finding in _warnings(environment)] if environment.strict else []
        if not faults:
            return environment
    raise ConfigFaults([Fault(("environment", *fault.path), fault.message) for fault in faults])


def warnings(environment: Environment) -> list[Fault]:
    """What is outdated or likely to go wrong, each with its path."""
    return [_fault(("environment", *path), finding) for path, finding in _warnings(environment)]


def _fault(path: tuple[str | int, ...], finding: Finding) -> Fault:
    return Fault((*path, finding.field), f"{finding.text} [{finding.rule}]")


def _warnings(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Finding]]:
    found: list[tuple[tuple[str | int, ...], Finding]] = []
    if isinstance(value, Spec):
        found += [(path, finding) for finding in value.findings()]
        children: Any = ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, dict):
        children = value.items()  # pyright: ignore[reportUnknownVariableType]
    else:
        return found
    for key, child in children:
        found += _warnings(child, (*path, key))
    return found
