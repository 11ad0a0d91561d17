"""A budget of Google Cloud Billing: the recipients at each share of it, and the topic that stops the stack."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding, under
from accel.rules import budgets
from accel.rules.aws import monitoring
from accel.rules.gcp import budgets as rules

from ..base import Component, Spec, map_present
from ..budgets import Stop, Thresholds
from ..sdk import gcp
from .services import enable_services

PUBLISHER = "serviceAccount:billing-budget-alert@system.gserviceaccount.com"
"""Publisher of budget notifications. Source: https://docs.cloud.google.com/organization-policy/restrict-domains"""

_ACCOUNT = "gcp:organizations/getBillingAccount:getBillingAccount"
OFF = "has not been used in project"
"""Part of Google's error for an API that is off."""
_NAME_MOST = 60
_NANOS = 1_000_000_000


class GcpBudgetFilters(Spec):
    """Costs that count."""

    projects: list[str] | None = Field(
        default=None,
        description="Ids of the projects to count. Default: the section's own; [] counts everything that the billing "
        "account pays for",
    )
    services: list[str] = Field(
        default_factory=list, description="Ids of the services to count, such as services/6F81-5844-456A. Default: all"
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="Label of the costs to count, one at most, such as accel-stack"
    )

    def check(self) -> list[Finding]:
        return rules.filters(self.services, self.labels)


class GcpRecipients(Spec):
    """Recipients of notifications. Mail goes out at the thresholds; a topic gets a message several times a day,
    whatever is spent."""

    emails: list[str] = Field(default_factory=list, description="Email addresses, five at most")
    billing_admins: bool = Field(
        default=False, description="Send mail to administrators and users of the billing account"
    )
    pubsub_topic: str | None = Field(default=None, description="Existing Pub/Sub topic: projects/<p>/topics/<t>")
    chat_secret: str | None = Field(
        default=None, description="Id of the secret that contains the URL of a Google Chat webhook"
    )


class GcpBudgetSpec(Spec):
    """The amount that may be spent in a period, and the actions on the way there."""

    billing_account: str = Field(description="Id of the billing account, such as 012345-567890-ABCDEF")
    amount: float = Field(gt=0)
    currency: str = Field(
        default="USD",
        description="Currency of the amount, which must be that of the billing account; any other is refused",
    )
    period: Literal["month", "quarter", "year"] = "month"
    thresholds: Thresholds = Thresholds()
    filters: GcpBudgetFilters = GcpBudgetFilters()
    credits: bool = Field(
        default=True, description="Subtract credits from the costs that count. false: count usage before credits"
    )
    recipients: GcpRecipients = GcpRecipients()
    stop: Stop | None = Field(
        default=None,
        description="Stop of the stack at its budget. Without it, recipients are notified, and nothing else happens",
    )

    @property
    def watched(self) -> bool:
        """Return whether the stack's function has to receive its messages."""
        return self.stop is not None or self.recipients.chat_secret is not None

    def check(self) -> list[Finding]:
        told = self.recipients
        found = rules.account(self.billing_account) + rules.code(self.currency)
        ways = {
            "emails": told.emails,
            "billing_admins": "yes" if told.billing_admins else "",
            "pubsub_topic": told.pubsub_topic,
            "chat_secret": told.chat_secret,
        }
        nobody = budgets.recipients("recipients", **ways)
        found += nobody or rules.recipients(
            len(_shares(self)),
            told.emails,
            told.pubsub_topic,
            told.chat_secret,
            admins=told.billing_admins,
            stops=self.stop is not None,
        )
        return found + under("recipients", monitoring.subscriptions(told.emails, []))


@dataclass(frozen=True, kw_only=True)
class GcpBudgetArgs:
    """The spec, the section's project, the topic of the function if the budget stops something, and the APIs of the
    environment: project and account cannot be read before they are enabled."""

    spec: GcpBudgetSpec
    project: str
    topic: pulumi.Input[str] | None = None
    services: pulumi.Input[Sequence[str]] = ()


class GcpBudget(Component):
    """A budget, and a channel of Cloud Monitoring for each address. Google counts hours late: a budget reports the
    past, and limits nothing meanwhile. Deployment needs roles/billing.costsManager on the billing account."""

    TYPE = "accel:gcp:Budget"

    name: pulumi.Output[str]
    id: pulumi.Output[str]

    def __init__(self, name: str, args: GcpBudgetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        services = enable_services(
            self, name, args.project, ["billingbudgets", *(["monitoring"] if spec.recipients.emails else [])]
        )
        after = self.child(depends_on=services)
        enabled_apis = pulumi.Output.from_input(args.services)
        channels = [
            gcp.monitoring.NotificationChannel(
                f"{name}-mail-{index}",
                project=args.project,
                type="email",
                display_name=f"Budget {name}",
                labels={"email_address": address},
                opts=after,
            ).name
            for index, address in enumerate(spec.recipients.emails)
        ]
        shown = f"{pulumi.get_project()}-{pulumi.get_stack()}-{name}"[-_NAME_MOST:]
        made = gcp.billing.Budget(
            name,
            billing_account=spec.billing_account,
            display_name=shown,
            amount=_amount(spec, _currency(self, spec.billing_account, enabled_apis)),
            budget_filter=_filter(self, spec, args.project, enabled_apis),
            threshold_rules=[
                gcp.billing.BudgetThresholdRuleArgs(threshold_percent=share, spend_basis=basis)
                for basis, share in _shares(spec)
            ],
            all_updates_rule=_told(spec, channels, args.topic or spec.recipients.pubsub_topic),
            opts=after,
        )
        self.name = pulumi.Output.from_input(shown)
        # billingAccounts/<a>/budgets/<b>; its messages contain the last part.
        self.id = map_present(made.name, lambda full: full.rpartition("/")[2])
        self.finish()


def _currency(self: Component, account: str, services: pulumi.Output[Sequence[str]]) -> pulumi.Output[str]:
    """Return the billing account's currency, which a preview does not know while the API is off. Raise RunError for an
    account that may not be read, in a preview too."""

    async def currency() -> str | None:
        # Not the SDK's own function: its failure would be printed twice, once with a trace.
        asked = pulumi.runtime.invoke_async(_ACCOUNT, {"billingAccount": account}, pulumi.InvokeOptions(parent=self))
        found = asyncio.ensure_future(asked)
        await asyncio.wait([found])
        if error := found.exception():
            if isinstance(error, pulumi.RunError):
                raise error  # the run has ended for another reason, and nothing was asked
            # The SDK's error has no type of its own.
            why = f"{error}".strip().rpartition("\n")[2]
            if OFF in why and pulumi.runtime.is_dry_run():
                return None
            needed = "roles/billing.costsManager on the account, and cloudbilling.googleapis.com in the project"
            raise pulumi.RunError(f"billing_account: {account} cannot be read ({why}); it takes {needed}")
        answer: dict[str, Any] = found.result() or {}
        return str(answer.get("currencyCode") or "")

    first: pulumi.Output[str | None] = pulumi.Output.from_input(currency())
    return first.apply(lambda known: services.apply(lambda _: known or "") if known is None else known)


def _amount(spec: GcpBudgetSpec, of_account: pulumi.Output[str]) -> gcp.billing.BudgetAmountArgs:
    units, nanos = divmod(round(spec.amount * _NANOS), _NANOS)

    def checked(currency: str | None) -> str:
        # In a preview too: Google's error only says that an argument is invalid.
        for finding in rules.currency(spec.currency, currency or spec.currency):
            raise pulumi.RunError(f"{finding.field}: {finding.text}")
        return spec.currency

    return gcp.billing.BudgetAmountArgs(
        specified_amount=gcp.billing.BudgetAmountSpecifiedAmountArgs(
            currency_code=of_account.apply(checked), units=str(units), nanos=nanos or None
        )
    )


def _filter(
    self: Component, spec: GcpBudgetSpec, own: str, services: pulumi.Output[Sequence[str]]
) -> gcp.billing.BudgetBudgetFilterArgs:
    kept = spec.filters
    found = [_numbered(self, project, services) for project in ([own] if kept.projects is None else kept.projects)]
    return gcp.billing.BudgetBudgetFilterArgs(
        calendar_period=spec.period.upper(),
        # By number, as Google answers: with ids each update would find a difference.
        projects=found or None,
        services=kept.services or None,
        labels=kept.labels or None,
        credit_types_treatment="INCLUDE_ALL_CREDITS" if spec.credits else "EXCLUDE_ALL_CREDITS",
    )


def _numbered(self: Component, project: str, services: pulumi.Output[Sequence[str]]) -> pulumi.Output[str]:
    id = services.apply(lambda _: project)
    found = gcp.organizations.get_project_output(project_id=id, opts=pulumi.InvokeOptions(parent=self))
    return found.number.apply(lambda number: f"projects/{number}")


def _shares(spec: GcpBudgetSpec) -> list[tuple[str, float]]:
    """Return pairs of basis and share, with Google's name of the basis."""
    by_basis = {"CURRENT_SPEND": spec.thresholds.actual, "FORECASTED_SPEND": spec.thresholds.forecast}
    wanted = [(basis, share) for basis, shares in by_basis.items() for share in shares]
    if spec.stop and spec.stop.basis == "forecast":
        # A forecast message says only which threshold it exceeds.
        wanted.append(("FORECASTED_SPEND", spec.stop.at))
    return list(dict.fromkeys(wanted))


def _told(
    spec: GcpBudgetSpec, channels: Sequence[pulumi.Output[str]], topic: pulumi.Input[str] | None
) -> gcp.billing.BudgetAllUpdatesRuleArgs:
    return gcp.billing.BudgetAllUpdatesRuleArgs(
        monitoring_notification_channels=list(channels) or None,
        disable_default_iam_recipients=not spec.recipients.billing_admins,
        pubsub_topic=topic,
        schema_version="1.0",
    )
