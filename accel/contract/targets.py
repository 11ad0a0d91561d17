"""The `targets` output of a stack: where jobs can run. Written strictly (an unknown field is our own fault), read
leniently (a newer stack may have more fields). Fields are only added; a removal is an entry in UPGRADING.md."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter, ValidationError

from .allowances import TargetAllowances
from .gke import GkeTarget
from .google_jobs import GoogleBatchTarget, VertexTarget
from .google_vms import GceTarget, TpuVmTarget
from .model import SCHEMA, Contract, Publication


class AwsBatchEnvironment(Contract):
    """A compute environment of a queue. The list is in the order in which Batch tries them."""

    name: str = Field(description="Config key of the environment")
    arn: str
    capacity: Literal["on-demand", "spot"]
    instance_types: list[str] = Field(description="Instance families or sizes, as given to Batch")
    max_vcpus: int
    disk_gib: int = Field(description="Size in GiB of an instance's root volume, shared by the containers on it")
    close: bool = Field(default=False, description="Whether instances form one cluster, close together in one zone")
    efa_interfaces: int = Field(
        default=0, description="Number of Elastic Fabric Adapters of an instance, as in its launch template"
    )
    local_nvme: str | None = Field(default=None, description="Folder of an instance that is on its own NVMe disks")
    buckets: dict[str, Literal["read-only", "read-write"]] = Field(
        default_factory=dict, description="S3 buckets that instances mount, by name"
    )


class AwsBatchDefinition(Contract):
    """A job definition that the stack owns."""

    arn: str = Field(description="ARN without a revision, for which Batch takes the latest active one")
    image: str
    vcpus: int
    memory_mib: int
    gpus: int
    shm_mib: int | None = None
    secrets: dict[str, str] = Field(
        default_factory=dict, description="ARNs in Secrets Manager or SSM, by name of the environment variable"
    )
    attempts: int | None = Field(
        default=None, description="Number of attempts, including the first. Without it, unknown: the stack is older"
    )
    timeout_s: int | None = Field(
        default=None, description="Timeout of one attempt in seconds. Without it, there is none, or the stack is older"
    )


class AwsBatchTarget(Contract):
    """An AWS Batch queue with the definitions, roles and tables that its jobs use."""

    kind: Literal["aws-batch"] = "aws-batch"
    schema_version: int = Field(default=SCHEMA, alias="schema")
    region: str
    queue_arn: str
    environments: list[AwsBatchEnvironment] = Field(min_length=1)
    definitions: dict[str, AwsBatchDefinition]
    definition_prefix: str = Field(description="Prefix of the names of definitions that jobs register")
    log_group: str
    job_role_arn: str
    execution_role_arn: str
    claim_table: str | None = Field(default=None, description="DynamoDB table that makes submissions idempotent")
    shares: dict[str, float] | None = Field(
        default=None,
        description="Weights of a fair-share queue by share identifier, or by prefix*. Without it, first in, first out",
    )
    budget_stops: bool = Field(
        default=False, description="Whether a budget may stop new submissions: the claim table has a row that says so"
    )
    allowances: TargetAllowances = None
    code_bucket: str | None = Field(default=None, description="S3 bucket for the code that jobs are sent with")
    closed: bool | None = Field(
        default=None,
        description="Whether instances reach only services of AWS, and images of the region's ECR. Without it, unknown",
    )
    published: Publication = None


class LocalTarget(Contract):
    """The local machine. An image `local/<folder>` runs in <root>/<folder>."""

    kind: Literal["local"] = "local"
    schema_version: int = Field(default=SCHEMA, alias="schema")
    root: str = "."


AnyTarget = AwsBatchTarget | GkeTarget | TpuVmTarget | GceTarget | GoogleBatchTarget | VertexTarget | LocalTarget
Target = Annotated[AnyTarget, Field(discriminator="kind")]
Targets = dict[str, Target]


@cache
def _adapter(of: Any) -> TypeAdapter[Any]:
    # Built on first use: a command that reads no target starts a few hundredths of a second sooner.
    return TypeAdapter(of)


_MODELS: dict[str, type[AnyTarget]] = {model.model_fields["kind"].default: model for model in get_args(AnyTarget)}
KINDS: tuple[str, ...] = tuple(_MODELS)


def write(targets: Mapping[str, AnyTarget]) -> dict[str, Any]:
    """Return plain JSON values without nulls, as a stack exports and publishes them."""
    return _adapter(Targets).dump_python(dict(targets), mode="json", by_alias=True, exclude_none=True)


def read_one(document: Mapping[str, Any]) -> AnyTarget:
    """Read what another version of accel may have written, ignoring unknown fields. Raise pydantic.ValidationError if a
    field that this version needs is missing or has another type."""
    kind: Any = document.get("kind")
    if isinstance(kind, str) and kind in _MODELS:
        # One model is built sooner than all. A fault is told by the union, whose paths begin with the kind.
        with suppress(ValidationError):
            return _MODELS[kind].model_validate(dict(document), extra="ignore")
    return _adapter(Target).validate_python(dict(document), extra="ignore")
