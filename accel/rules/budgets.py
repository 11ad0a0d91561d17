"""Budgets of both clouds: thresholds, recipients, and restrictions of AWS."""

import re
from collections.abc import Sequence

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

THRESHOLD = rule("budgets.threshold")
TWICE = rule("budgets.threshold-twice")
NOBODY = rule("budgets.recipients")
CURRENCY = rule("aws.budgets.currency")
MANY = rule("aws.budgets.notifications")
MAILS = rule("aws.budgets.emails")
TOPIC = rule("aws.budgets.topic")

MOST_SHARE = 3.0
"""Maximum share of the amount. A larger one is probably a percentage: the clouds would read 90 as 9,000 %, and never
notify anybody."""
MOST_NOTIFICATIONS = 10
MOST_EMAILS = 10

_TOPIC = re.compile(r"arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}")


def thresholds(field: str, shares: Sequence[float]) -> list[Finding]:
    found: list[Finding] = []
    for index, value in enumerate(shares):
        found += threshold(f"{field}[{index}]", value)
        if value in shares[:index]:
            found.append(TWICE.finding(f"{field}[{index}]", f"is {value:g} again", "leave it out"))
    return found


def threshold(field: str, value: float) -> list[Finding]:
    if 0 < value <= MOST_SHARE:
        return []
    fix = f"write {value / 100:g} for {value:g} %" if value > MOST_SHARE else f"write a share from 0 to {MOST_SHARE:g}"
    return [THRESHOLD.finding(field, f"is {value:g}, which is {100 * value:,.0f} % of the amount", fix)]


def recipients(field: str, **ways: Sequence[str] | str | None) -> list[Finding]:
    """Check that one of the fields in `ways` names a recipient."""
    if any(ways.values()):
        return []
    return [NOBODY.finding(field, "is empty, so nobody is told", f"give one of {', '.join(ways)}")]


def aws_currency(currency: str) -> list[Finding]:
    if currency == "USD":
        return []
    fix = "write USD, and the amount in dollars"
    return [CURRENCY.finding("currency", f'is "{currency}", and AWS Budgets takes USD alone', fix)]


def aws_notifications(count: int, emails: Sequence[str], topic: str | None) -> list[Finding]:
    found: list[Finding] = []
    if count > MOST_NOTIFICATIONS:
        message = f"are {count}, with the one that stops the stack"
        found.append(MANY.finding("thresholds", message, f"leave at most {MOST_NOTIFICATIONS}"))
    if len(emails) > MOST_EMAILS:
        fix = "write to a list of your own, or to a topic"
        found.append(MAILS.finding("recipients.emails", f"has {len(emails)} addresses", fix))
    if topic is not None and not _TOPIC.fullmatch(topic):
        fix = "write arn:aws:sns:<region>:<account>:<name>"
        found.append(TOPIC.finding("recipients.sns_topic_arn", f'is "{topic}", not the ARN of a topic', fix))
    return found
