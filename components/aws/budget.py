"""A monthly budget of AWS Budgets: the recipients at each share of it, and the topic that stops the stack."""

from __future__ import annotations

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding, under
from accel.rules import budgets as rules
from accel.rules.aws.monitoring import subscriptions

from ..base import Component, Spec, join
from ..budgets import Stop, Thresholds
from ..sdk import aws
from . import policies
from .arns import account_id, partition


class BudgetFilters(Spec):
    """Costs that count. Without a filter all spending of the account counts, and for a payer's account that of all its
    members."""

    tags: dict[str, list[str]] = Field(
        default_factory=dict[str, list[str]],
        max_length=1,
        description="Values of one tag, by its name; they count once the payer's account has activated the tag for "
        "cost allocation",
    )
    services: list[str] = Field(
        default_factory=list,
        description="Services as the bill names them, such as Amazon Elastic Compute Cloud - Compute",
    )
    accounts: list[str] = Field(
        default_factory=list, description="Account ids of 12 digits, members of the payer's account"
    )


class Recipients(Spec):
    """Recipients of notifications."""

    emails: list[str] = Field(
        default_factory=list, description="Email addresses, at most ten; each is notified of every threshold"
    )
    sns_topic_arn: str | None = Field(
        default=None, description="ARN of a topic of this account whose policy allows budgets.amazonaws.com to publish"
    )


class BudgetSpec(Spec):
    """The amount that may be spent in a month, and the actions on the way there."""

    amount: float = Field(gt=0, description="Amount per month")
    currency: str = "USD"
    thresholds: Thresholds = Thresholds()
    filters: BudgetFilters = BudgetFilters()
    credits: bool = Field(
        default=True, description="Subtract credits and refunds from the counted costs; false: count what is used"
    )
    recipients: Recipients = Recipients()
    stop: Stop | None = Field(
        default=None, description="Stop the stack at a share of the amount. Without it, the budget only notifies"
    )

    def check(self) -> list[Finding]:
        told = self.recipients
        return (
            rules.aws_currency(self.currency)
            + rules.recipients("recipients", emails=told.emails, sns_topic_arn=told.sns_topic_arn)
            + under("recipients", subscriptions(told.emails, []))
            + rules.aws_notifications(len(lines(self)), told.emails, told.sns_topic_arn)
        )


class Budget(Component):
    """A monthly cost budget. AWS evaluates it several times a day, hours after the money is spent."""

    TYPE = "accel:aws:Budget"

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: BudgetSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        topic = self._topic(name) if spec.stop else None
        self.stop_topic_arn = topic
        """None where the budget stops nothing."""
        budget = aws.budgets.Budget(
            name,
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{spec.amount:f}".rstrip("0").rstrip("."),
            limit_unit=spec.currency,
            cost_filters=_filters(spec.filters) or None,
            cost_types=None
            if spec.credits
            else aws.budgets.BudgetCostTypesArgs(include_credit=False, include_refund=False),
            notifications=_notifications(spec, topic),
            opts=self.child(),
        )
        self.name = budget.name
        self.arn = budget.arn
        self.finish()

    def _topic(self, name: str) -> pulumi.Output[str]:
        """Create the topic that the function listens to, and return it once AWS Budgets may publish to it: it rejects a
        budget that names any other. Source:
        https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-sns-policy.html"""
        account = account_id(self)
        topic = aws.sns.Topic(name, opts=self.child())
        statement = policies.allow(
            ["sns:Publish"],
            topic.arn,
            Principal={"Service": "budgets.amazonaws.com"},
            Condition={
                "StringEquals": {"aws:SourceAccount": account},
                "ArnLike": {"aws:SourceArn": join("arn:", partition(self), ":budgets::", account, ":*")},
            },
        )
        policy = aws.sns.TopicPolicy(name, arn=topic.arn, policy=policies.document(statement), opts=self.child())
        return pulumi.Output.all(topic.arn, policy.id).apply(lambda known: known[0])


def lines(spec: BudgetSpec) -> list[tuple[str, float]]:
    """Return basis and share of every notification, the one that stops included: AWS accepts each only once."""
    wanted = [("actual", share) for share in spec.thresholds.actual]
    wanted += [("forecast", share) for share in spec.thresholds.forecast]
    wanted += [(spec.stop.basis, spec.stop.at)] if spec.stop else []
    return list(dict.fromkeys(wanted))


def _filters(filters: BudgetFilters) -> list[aws.budgets.BudgetCostFilterArgs]:
    # AWS's notation for a user-defined tag: user:<key>$<value>.
    # https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_CreateBudget.html
    tags = [f"user:{name}${value}" for name, values in filters.tags.items() for value in values]
    found = {"TagKeyValue": tags, "Service": filters.services, "LinkedAccount": filters.accounts}
    return [aws.budgets.BudgetCostFilterArgs(name=name, values=values) for name, values in found.items() if values]


def _notifications(spec: BudgetSpec, stop_topic: pulumi.Output[str] | None) -> list[aws.budgets.BudgetNotificationArgs]:
    told = spec.recipients
    stops = (spec.stop.basis, spec.stop.at) if spec.stop else None

    def notification(basis: str, share: float) -> aws.budgets.BudgetNotificationArgs:
        # A notification has room for one topic: at the share that stops, the function forwards it with a report of what
        # it did.
        topic = stop_topic if (basis, share) == stops else told.sns_topic_arn
        return aws.budgets.BudgetNotificationArgs(
            comparison_operator="GREATER_THAN",
            notification_type="ACTUAL" if basis == "actual" else "FORECASTED",
            threshold=round(100 * share, 6),
            threshold_type="PERCENTAGE",
            subscriber_email_addresses=told.emails or None,
            subscriber_sns_topic_arns=[topic] if topic else None,
        )

    return [notification(basis, share) for basis, share in lines(spec)]
