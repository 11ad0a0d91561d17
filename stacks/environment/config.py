"""The model of an environment: the one config key `accel:environment`, whole."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from accel.catalog.nearest import nearest
from accel.contract.allowances import Allowance, Allowances, DynamoDbLedger, Ledger
from accel.diagnostics.faults import Fault, find, several
from accel.diagnostics.findings import Finding, under
from accel.rules.aws import limits as tag_rules
from accel.rules.aws import monitoring as monitoring_rules
from accel.rules.aws import places as aws_places
from accel.rules.aws import queues as queue_rules
from accel.rules.aws import types as aws_types
from accel.rules.aws.clusters import zones
from accel.rules.aws.fit import QueueEnvironment, Size, in_queues, unserved_queue
from accel.rules.aws.network import closed_image
from accel.rules.gcp import labels as gcp_labels
from accel.rules.gcp import vms
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
from components.aws.spend_ledger import SpendLedgerSpec as TableSpec
from components.base import Name, Spec
from components.gcp.spend_ledger import GcpSpendLedgerSpec as DatabaseSpec

from .aws import limits, targets
from .gcp.config import Gcp


class MachineLedger(Spec):
    """No ledger of the stack: every machine counts its own jobs alone, and says so."""

    kind: Literal["machine"]


class Team(Spec):
    """What one team may spend in a calendar month (UTC) on jobs of this stack."""

    usd: float = Field(gt=0, description="a month")
    unpriced: Literal["refuse", "warn"] = Field(
        default="refuse",
        description="jobs whose price the catalogue does not wholly know; warn: what is known of it is held",
    )


AnyLedger = Annotated[TableSpec | DatabaseSpec | MachineLedger, Field(discriminator="kind")]


class AllowancesSpec(Spec):
    """Who may spend how much. A job's label `team` names who pays for it; without it that is the owner, if it has an
    allowance."""

    teams: dict[Name, Team] = Field(min_length=1)
    ledger: AnyLedger | None = Field(
        default=None, description="absent: kind dynamodb in a stack with AWS, else kind firestore"
    )

    def ledger_spec(self, *, aws: bool) -> TableSpec | DatabaseSpec | MachineLedger:
        """The ledger, chosen where it is absent."""
        return self.ledger or (TableSpec() if aws else DatabaseSpec())

    def fault(self, *, aws: bool, gcp: bool) -> str | None:
        """What the ledger's kind lacks in an environment with these sections."""
        kind = self.ledger_spec(aws=aws).kind
        if kind == "dynamodb" and not aws:
            return "is a table of AWS, and there is no section aws; use kind firestore"
        if kind == "firestore" and (aws or not gcp):
            return "is for a stack of Google Cloud alone; with a section aws use kind dynamodb, which serves both"
        return None

    def promise(self, stack: str, owner: str, ledger: Ledger | None) -> Allowances:
        """What the stack's jobs are held to."""
        teams = {name: Allowance(usd=team.usd, unpriced=team.unpriced) for name, team in self.teams.items()}
        return Allowances(stack=stack, teams=teams, default_team=owner if owner in teams else None, ledger=ledger)


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
    code: CodeBucketSpec | None = Field(
        default=CodeBucketSpec(), description="null: jobs on AWS Batch cannot be submitted with --code"
    )
    repositories: dict[Name, ImageRepositorySpec] = Field(default_factory=dict)
    environments: dict[Name, ComputeEnvironmentSpec] = Field(min_length=1)
    definitions: dict[Name, JobDefinitionSpec] = Field(default_factory=dict)
    queues: dict[Name, JobQueueSpec] = Field(min_length=1)
    monitoring: MonitoringSpec | None = Field(
        default=None, description="events of jobs, alarms, a dashboard; absent: none of them"
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
        """Of the zones that an environment's instances may be in; where that is not known, of its subnets."""
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

    def findings(self) -> list[Finding]:
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
        return found + self._gpu_metrics() + limits.findings(self)

    @property
    def closed(self) -> bool:
        """Whether instances are known to reach services of AWS alone."""
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


OWN_LABELS = 3
"""Labels that every resource has besides: owner, project and stack."""
OWN_TAGS = OWN_LABELS + 2
"""Of AWS, where a compute environment has how to drain it and where its stop is told."""


class Environment(Spec):
    """One environment: everything that one stack deploys. A section that is absent is not deployed."""

    owner: str = Field(min_length=1, description="who answers for it; on every resource as a tag")
    labels: dict[str, str] = Field(default_factory=dict, description="on every resource as tags")
    strict: bool = Field(default=False, description="warnings and outdated values are refused")
    aws: Aws | None = None
    gcp: Gcp | None = None
    allowances: AllowancesSpec | None = Field(
        default=None, description="what teams may spend on jobs; absent: jobs are not counted"
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not any(each.isalnum() for each in self.owner):
            text = f'is "{self.owner}", without a letter or digit; write a team or a person'
            raise several([("owner", text)])
        return self

    @model_validator(mode="after")
    def _targets(self) -> Self:
        workloads = self.gcp.workloads if self.gcp else None
        both = sorted(set(self.aws.queues if self.aws else ()) & set(workloads.targets if workloads else ()))
        if both:
            text = "is a queue of aws too, and both would be the target of that name; rename one"
            raise several([(f"gcp.workloads.targets.{name}", text) for name in both])
        if self.allowances and (fault := self.allowances.fault(aws=self.aws is not None, gcp=self.gcp is not None)):
            raise several([("allowances.ledger", fault)])
        return self

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        if self.gcp:
            found += gcp_labels.labels(self.labels, own=OWN_LABELS)
            found += vms.own_keys(map(gcp_labels.key, self.labels), ())
        if self.aws:
            found += under("aws", targets.findings(self.aws, self.longest_allowances()))
            found += tag_rules.tags(self.labels, owner=self.owner, own=OWN_TAGS)
        return found

    def longest_allowances(self) -> Allowances | None:
        """Of every target, with the longest names that its ledger may get."""
        if self.allowances is None:
            return None
        longest = targets.LONGEST_ARN
        ledger = DynamoDbLedger(region=self.aws.region if self.aws else longest, table=longest)
        return self.allowances.promise(longest, self.owner, ledger)


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
