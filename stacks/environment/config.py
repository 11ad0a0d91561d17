"""The model of an environment: the whole config key `accel:environment`."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from accel.contract.allowances import Allowance, Allowances, DynamoDbLedger, Ledger
from accel.diagnostics.faults import Fault, parse, several
from accel.diagnostics.findings import Finding, under
from accel.rules.aws import limits as tag_rules
from accel.rules.gcp import labels as gcp_labels
from accel.rules.gcp import vms
from components.aws.spend_ledger import SpendLedgerSpec as TableSpec
from components.base import Name, Spec
from components.gcp.spend_ledger import GcpSpendLedgerSpec as DatabaseSpec

from .aws import limits, targets
from .aws.config import Aws
from .gcp.config import Gcp


class MachineLedger(Spec):
    """The absence of a ledger of the stack: every machine counts only its own jobs, and says so."""

    kind: Literal["machine"]


class Team(Spec):
    """Monthly allowance (calendar month, UTC) of one team for jobs of this stack."""

    usd: float = Field(gt=0, description="Allowance in US dollars per month")
    unpriced: Literal["refuse", "warn"] = Field(
        default="refuse",
        description="Handling of jobs whose price the catalogue does not fully know. warn: the known part of the price "
        "is held",
    )


AnyLedger = Annotated[TableSpec | DatabaseSpec | MachineLedger, Field(discriminator="kind")]


class AllowancesSpec(Spec):
    """Allowances of teams. A job's label `team` names the payer; the default is the owner, if it has an allowance."""

    teams: dict[Name, Team] = Field(min_length=1)
    ledger: AnyLedger | None = Field(
        default=None,
        description="Ledger of what is spent and held. Default: kind dynamodb in a stack with AWS, else kind firestore",
    )

    def ledger_spec(self, *, aws: bool) -> TableSpec | DatabaseSpec | MachineLedger:
        return self.ledger or (TableSpec() if aws else DatabaseSpec())

    def fault(self, *, aws: bool, gcp: bool) -> str | None:
        kind = self.ledger_spec(aws=aws).kind
        if kind == "dynamodb" and not aws:
            return "is a table of AWS, and there is no section aws; use kind firestore"
        if kind == "firestore" and (aws or not gcp):
            return "is for a stack of Google Cloud alone; with a section aws use kind dynamodb, which serves both"
        return None

    def promise(self, stack: str, owner: str, ledger: Ledger | None) -> Allowances:
        teams = {name: Allowance(usd=team.usd, unpriced=team.unpriced) for name, team in self.teams.items()}
        return Allowances(stack=stack, teams=teams, default_team=owner if owner in teams else None, ledger=ledger)


OWN_LABELS = 3
"""Labels that every resource has as well: owner, project and stack."""
OWN_TAGS = OWN_LABELS + 2
"""Likewise on AWS, where a compute environment also has its drain settings and the location of its stop record."""


class Environment(Spec):
    """One environment: everything that one stack deploys. A section that is absent is not deployed."""

    owner: str = Field(
        min_length=1, description="Person or team responsible for the environment; set on every resource as a tag"
    )
    labels: dict[str, str] = Field(default_factory=dict, description="Labels that are set on every resource as tags")
    strict: bool = Field(default=False, description="Refuse warnings and outdated values")
    aws: Aws | None = None
    gcp: Gcp | None = None
    allowances: AllowancesSpec | None = Field(
        default=None, description="Spending limits of teams for jobs. Without it, jobs are not counted"
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

    def check(self) -> list[Finding]:
        found: list[Finding] = []
        if self.gcp:
            found += gcp_labels.labels(self.labels, own=OWN_LABELS)
            found += vms.own_keys(map(gcp_labels.key, self.labels), ())
        if self.aws:
            found += under("aws", limits.findings(self.aws))
            found += under("aws", targets.findings(self.aws, self.longest_allowances()))
            found += tag_rules.tags(self.labels, owner=self.owner, own=OWN_TAGS)
        return found

    def longest_allowances(self) -> Allowances | None:
        """Return the allowances of every target, with the longest names that its ledger may get."""
        if self.allowances is None:
            return None
        longest = targets.LONGEST_ARN
        ledger = DynamoDbLedger(region=self.aws.region if self.aws else longest, table=longest)
        return self.allowances.promise(longest, self.owner, ledger)


class ConfigFaults(Exception):
    """All faults of an environment."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


def load_environment(document: Any) -> Environment:
    """Raise ConfigFaults with all faults together, each with its path."""
    environment, faults = parse(Environment, document)
    if environment and environment.strict:
        faults = [_fault(path, finding) for path, finding in _warnings(environment)]
    if environment and not faults:
        return environment
    raise ConfigFaults([Fault(("environment", *fault.path), fault.message) for fault in faults])


def warnings(environment: Environment) -> list[Fault]:
    """Return outdated values and likely mistakes, each with its path."""
    return [_fault(("environment", *path), finding) for path, finding in _warnings(environment)]


def _fault(path: tuple[str | int, ...], finding: Finding) -> Fault:
    return Fault((*path, finding.field), f"{finding.text} [{finding.rule}]")


def _warnings(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Finding]]:
    found: list[tuple[tuple[str | int, ...], Finding]] = []
    if isinstance(value, Spec):
        found += [(path, finding) for finding in value.findings]
        children: Any = ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, dict):
        children = value.items()  # pyright: ignore[reportUnknownVariableType]
    else:
        return found
    for key, child in children:
        found += _warnings(child, (*path, key))
    return found
