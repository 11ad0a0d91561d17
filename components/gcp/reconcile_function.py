"""A scheduled Cloud Run function that advances jobs on machines of their own and declared TPUs, as clients do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from ..base import Component, Spec
from ..sdk import gcp
from .budget_plan import writes
from .cloud_function import FunctionArgs, FunctionSource, function, invoker
from .service_accounts import custom_role
from .services import enable_services

ENTRY = "reconcile"
TIMEOUT_S = 300
"""More than twice a call's own time limit (jobs/backends/vm/function.py). The scheduler waits as long; it takes 15 s to
30 min: https://docs.cloud.google.com/scheduler/docs/reference/rest/v1/projects.locations.jobs"""

SERVICES = ("artifactregistry", "cloudbuild", "cloudfunctions", "cloudscheduler", "logging", "run", "storage")
"""Source: https://docs.cloud.google.com/scheduler/docs/tut-gcf-http"""

SCHEDULE_USD, SCHEDULES_FREE = 0.10, 3
"""Monthly price of a Cloud Scheduler job, whatever it runs, and the number of free ones per billing account. Source:
https://cloud.google.com/scheduler/pricing, read 2026-11-23"""
VCPU_S_FREE = 180_000
"""Free vCPU seconds of Cloud Run per month and billing account; vCPUs are the dearer of its resources. Source:
https://cloud.google.com/run/pricing, read 2026-11-23"""
VCPU = 1 / 6
"""vCPUs of a function with 256 MiB. Source: https://docs.cloud.google.com/functions/docs/configuring/memory"""

PERMISSIONS = (
    *("tpu.nodes.create", "tpu.nodes.delete", "tpu.nodes.get", "tpu.nodes.list", "tpu.operations.get"),
    *("compute.instances.create", "compute.instances.delete", "compute.instances.get"),
    *("compute.instances.setLabels", "compute.instances.setMetadata", "compute.instances.setServiceAccount"),
    *("compute.instances.setTags", "compute.disks.create", "compute.disks.setLabels", "compute.images.useReadOnly"),
    *("compute.subnetworks.use", "compute.subnetworks.useExternalIp", "compute.resourcePolicies.use"),
    *("compute.instanceTemplates.create", "compute.instanceTemplates.delete", "compute.instanceTemplates.get"),
    *("compute.instanceTemplates.useReadOnly", "compute.instanceGroupManagers.create"),
    *("compute.instanceGroupManagers.delete", "compute.instanceGroupManagers.get"),
    *("compute.instanceGroupManagers.update", "compute.instanceGroups.create", "compute.instanceGroups.delete"),
    *("compute.globalOperations.get", "compute.zoneOperations.get", "compute.zoneOperations.list"),
)
"""Permissions of the function in the project. Queued resources have none of their own and fall under those of nodes.
Sources: https://docs.cloud.google.com/iam/docs/roles-permissions/tpu,
https://docs.cloud.google.com/compute/docs/access/iam-permissions"""


class ReconcileSpec(Spec):
    """Schedule of the function."""

    every_min: Literal[1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30] = Field(
        default=5,
        description="Minutes between two runs. The schedule costs USD 0.10 a month at most, with 3 schedules free per "
        "billing account; runs of ten seconds stay within the free tier of Cloud Run, even every minute",
    )

    @property
    def looks(self) -> int:
        """Return the number of runs in a month of 31 days."""
        return 31 * 24 * 60 // self.every_min


@dataclass(frozen=True, kw_only=True)
class ReconcileFunctionArgs:
    """The spec, the bucket of records, the function's files by path, its variables, and machines' accounts by name."""

    spec: ReconcileSpec
    project: str
    region: str
    bucket: pulumi.Input[str]
    files: Mapping[str, str]
    environment: Mapping[str, pulumi.Input[str]]
    runs_as: Mapping[str, pulumi.Input[str]]


class ReconcileFunction(Component):
    """The function, its schedule, and the account of both. Clients may do the same work meanwhile."""

    TYPE = "accel:gcp:ReconcileFunction"

    function: pulumi.Output[str]
    schedule: pulumi.Output[str]

    def __init__(self, name: str, args: ReconcileFunctionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        services = enable_services(self, name, args.project, SERVICES)
        account = gcp.serviceaccount.Account(
            name, project=args.project, display_name="moves jobs and TPUs on", opts=self.child()
        )
        allowed = _allowed(self, name, args, account)
        made = _function(self, name, args, account, [*services, *allowed])
        admitted = invoker(self, name, args.project, args.region, made, account.member)
        scheduled = _schedule(self, name, args, made, account, admitted)
        # projects/<p>/locations/<l>/functions/<f>
        self.function = made.id
        self.schedule = scheduled.id
        self.finish()


def _allowed(
    self: Component, name: str, args: ReconcileFunctionArgs, account: gcp.serviceaccount.Account
) -> list[pulumi.Resource]:
    title = f"accel: moves jobs and TPUs on ({name})"
    role_id = f"accelReconcile_{pulumi.get_stack()}_{name}"
    role = custom_role(self, name, args.project, role_id, title, PERMISSIONS)
    acts = [
        gcp.serviceaccount.IAMMember(
            f"{name}-acts-as-{key}",
            service_account_id=pulumi.Output.concat(f"projects/{args.project}/serviceAccounts/", email),
            role="roles/iam.serviceAccountUser",
            member=account.member,
            opts=self.child(),
        )
        for key, email in args.runs_as.items()
    ]
    return [
        gcp.projects.IAMMember(
            f"{name}-machines", project=args.project, role=role.name, member=account.member, opts=self.child()
        ),
        writes(self, f"{name}-records", args.bucket, account.member),
        *acts,
    ]


def _function(
    self: Component,
    name: str,
    args: ReconcileFunctionArgs,
    account: gcp.serviceaccount.Account,
    before: list[pulumi.Resource],
) -> gcp.cloudfunctionsv2.Function:
    made = FunctionArgs(
        project=args.project,
        region=args.region,
        description="Moves on jobs on machines of their own, and declared TPUs",
        source=FunctionSource(files=args.files, bucket=args.bucket, folder="accel-reconcile", entry=ENTRY),
        builds="builds the reconciling function",
        account=account,
        environment=args.environment,
        timeout_s=TIMEOUT_S,
    )
    return function(self, name, made, before)


def _schedule(
    self: Component,
    name: str,
    args: ReconcileFunctionArgs,
    function: gcp.cloudfunctionsv2.Function,
    account: gcp.serviceaccount.Account,
    admitted: pulumi.Resource,
) -> gcp.cloudscheduler.Job:
    uri = function.service_config.apply(lambda config: (config.uri if config else None) or "")
    scheduler = gcp.cloudscheduler
    return scheduler.Job(
        name,
        project=args.project,
        region=args.region,
        description="Calls the reconciling function",
        schedule=f"*/{args.spec.every_min} * * * *" if args.spec.every_min > 1 else "* * * * *",
        time_zone="Etc/UTC",
        attempt_deadline=f"{TIMEOUT_S}s",
        # Explicit, since the provider would take the API's own numbers for a change (resource_cloud_scheduler_job.go of
        # terraform-provider-google reads them, and the block is not computed).
        retry_config=scheduler.JobRetryConfigArgs(retry_count=1, min_backoff_duration="30s"),
        http_target=scheduler.JobHttpTargetArgs(
            uri=uri,
            http_method="POST",
            oidc_token=scheduler.JobHttpTargetOidcTokenArgs(service_account_email=account.email, audience=uri),
        ),
        opts=self.child(depends_on=[admitted]),
    )
