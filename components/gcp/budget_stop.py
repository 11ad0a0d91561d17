"""The parts that stop a Google section at its budget: a topic that budgets publish to, and a Cloud Run function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pulumi
from pydantic import Field

import accel.budget

from ..base import Component, Spec, map_present, once
from ..sdk import gcp
from . import budget_function
from .budget import PUBLISHER
from .budget_function import handler
from .budget_function.plan import STOP
from .budget_plan import writes
from .cloud_function import FunctionArgs, FunctionSource, function, invoker, packages
from .job_bucket import unfinished_uploads
from .service_accounts import custom_role
from .services import enable_services

TIMEOUT_S = 300
"""Less than the lease of a stop (accel.budget.acting), and than Google's maximum. Source:
https://docs.cloud.google.com/functions/quotas#time_limits"""
PACKAGE = "stack_budget"
ENTRY = "stop"

SERVICES = ("artifactregistry", "cloudbuild", "cloudfunctions", "eventarc", "logging", "pubsub", "run", "storage")
"""Source: https://docs.cloud.google.com/functions/docs/calling/pubsub"""

LOOKS = (
    *("container.clusters.get", "container.operations.get", "compute.instanceGroupManagers.get"),
    *("tpu.nodes.get", "tpu.nodes.list", "aiplatform.customJobs.get", "aiplatform.customJobs.list"),
)
PULLS = (
    *("container.clusters.update", "tpu.nodes.delete", "aiplatform.customJobs.cancel", "compute.instances.delete"),
    *("compute.instanceGroupManagers.delete", "compute.instanceGroups.delete"),
)
"""Permissions of the function in the project; a person resumes the stack with their own. A node pool falls under its
cluster's permission and a queued resource under its node's, and deleting a managed group needs permission to delete the
group in it. Sources: https://docs.cloud.google.com/iam/docs/roles-permissions/container,
https://docs.cloud.google.com/iam/docs/roles-permissions/tpu,
https://docs.cloud.google.com/iam/docs/roles-permissions/compute"""

CANCELS = "roles/batch.jobsEditor"
"""Role for jobs of Google Batch. Google documents this role for cancelling them, and no permission: there is no
`batch.jobs.cancel`. Creating a job needs an account to run as, which the function may not use. Source:
https://docs.cloud.google.com/batch/docs/cancel-job#before-you-begin"""

_MAIN = f'''\
"""Where Cloud Run functions begin: {PACKAGE} has what happens."""

import functions_framework

from {PACKAGE}.handler import handler

{ENTRY} = functions_framework.cloud_event(handler)
'''


class GcpBudgetStopSpec(Spec):
    """Principals who may see whether the stack is stopped."""

    readers: list[str] = Field(
        default_factory=list,
        description="Principals that may read whether the stack is stopped, such as group:ml@example.com; everyone who "
        "submits jobs needs this",
    )


@dataclass(frozen=True, kw_only=True)
class GcpBudgetStopArgs:
    """The spec, the project and region, the project's secrets with addresses of chats, and StopHooks.function."""

    spec: GcpBudgetStopSpec
    project: str
    region: str
    secrets: Sequence[str] = ()
    hooks: pulumi.ResourceHookBinding | None = None


class GcpBudgetStop(Component):
    """The topic, the bucket with plan and state, and the function. Google builds its image during the deployment, which
    takes minutes. A failed call is retried for a day, at intervals of at most ten minutes:
    https://docs.cloud.google.com/eventarc/docs/retry-events"""

    TYPE = "accel:gcp:BudgetStop"

    topic: pulumi.Output[str]
    bucket: pulumi.Output[str]
    stop: pulumi.Output[str]
    email: pulumi.Output[str]
    member: pulumi.Output[str]
    function: pulumi.Output[str]

    def __init__(self, name: str, args: GcpBudgetStopArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        services = enable_services(self, name, args.project, SERVICES)
        after = self.child(depends_on=services)
        topic = gcp.pubsub.Topic(name, project=args.project, opts=after)
        admitted = gcp.pubsub.TopicIAMMember(
            f"{name}-publisher",
            project=args.project,
            topic=topic.name,
            role="roles/pubsub.publisher",
            member=PUBLISHER,
            opts=self.child(),
        )
        bucket = gcp.storage.Bucket(
            name,
            project=args.project,
            location=args.region,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            # The stop is deleted with the stack.
            force_destroy=True,
            lifecycle_rules=[unfinished_uploads()],
            opts=self.child(),
        )
        account = gcp.serviceaccount.Account(
            name, project=args.project, display_name="stops the stack at its budget", opts=self.child()
        )
        allowed = _allowed(self, name, args, account, bucket)
        function = _function(self, name, args, bucket, topic, account, [*services, *allowed])
        invoker(self, name, args.project, args.region, function, account.member)
        _read(self, name, args.spec.readers, bucket)
        # In the budget's notation, projects/<p>/topics/<t>, once budgets may publish to it.
        self.topic = once(topic.id, admitted.id)
        self.bucket = bucket.name
        self.stop = map_present(bucket.name, lambda known: f"gs://{known}/{STOP}")
        self.email = account.email
        self.member = account.member
        # projects/<p>/locations/<l>/functions/<f>
        self.function = function.id
        self.finish()


def _allowed(
    self: Component,
    name: str,
    args: GcpBudgetStopArgs,
    account: gcp.serviceaccount.Account,
    bucket: gcp.storage.Bucket,
) -> list[pulumi.Resource]:
    title = f"accel: stops the stack at its budget ({name})"
    role_id = f"accelBudget_{pulumi.get_stack()}_{name}"
    role = custom_role(self, name, args.project, role_id, title, (*LOOKS, *PULLS))
    made: list[pulumi.Resource] = [
        gcp.projects.IAMMember(
            f"{name}-levers", project=args.project, role=role.name, member=account.member, opts=self.child()
        ),
        gcp.projects.IAMMember(
            f"{name}-jobs", project=args.project, role=CANCELS, member=account.member, opts=self.child()
        ),
    ]
    made.append(writes(self, f"{name}-state", bucket.name, account.member))
    for secret in dict.fromkeys(args.secrets):
        made.append(
            gcp.secretmanager.SecretIamMember(
                f"{name}-secret-{secret}",
                project=args.project,
                secret_id=secret,
                role="roles/secretmanager.secretAccessor",
                member=account.member,
                opts=self.child(),
            )
        )
    return made


def _function(
    self: Component,
    name: str,
    args: GcpBudgetStopArgs,
    bucket: gcp.storage.Bucket,
    topic: gcp.pubsub.Topic,
    account: gcp.serviceaccount.Account,
    before: list[pulumi.Resource],
) -> gcp.cloudfunctionsv2.Function:
    trigger = gcp.cloudfunctionsv2.FunctionEventTriggerArgs(
        trigger_region=args.region,
        event_type="google.cloud.pubsub.topic.v1.messagePublished",
        pubsub_topic=topic.id,
        retry_policy="RETRY_POLICY_RETRY",
        service_account_email=account.email,
    )
    made = FunctionArgs(
        project=args.project,
        region=args.region,
        description="Stops the stack when its budget is crossed",
        source=FunctionSource(files=archive(), bucket=bucket.name, folder="accel-budget", entry=ENTRY),
        builds="builds the function of the budget",
        account=account,
        environment={handler.BUCKET: bucket.name},
        timeout_s=TIMEOUT_S,
        trigger=trigger,
    )
    return function(self, name, made, before, args.hooks)


def _read(self: Component, name: str, readers: Sequence[str], bucket: gcp.storage.Bucket) -> None:
    for index, member in enumerate(readers):
        gcp.storage.BucketIAMMember(
            f"{name}-reader-{index}",
            bucket=bucket.name,
            role="roles/storage.objectViewer",
            member=member,
            opts=self.child(),
        )


def archive() -> dict[str, str]:
    """Return files by their paths in the archive: the function's own in a package, shared ones as in this project."""
    own = sorted(Path(budget_function.__file__).parent.glob("*.py"))
    shared = sorted(Path(accel.budget.__file__).parent.glob("*.py"))
    return {
        "main.py": _MAIN,
        "requirements.txt": packages("budget-function"),
        # Pulumi's SDK cannot read an empty asset back.
        "accel/__init__.py": "# A package.\n",
        **{f"accel/budget/{path.name}": path.read_text(encoding="utf-8") for path in shared},
        **{f"{PACKAGE}/{path.name}": path.read_text(encoding="utf-8") for path in own},
    }
