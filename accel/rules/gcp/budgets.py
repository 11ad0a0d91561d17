"""Restrictions of Google's budgets, in addition to those of both clouds in budgets.py."""

import re
from collections.abc import Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

ACCOUNT = rule("gcp.budgets.account")
CODE = rule("gcp.budgets.currency-code")
CURRENCY = rule("gcp.budgets.currency")
MAIL = rule("gcp.budgets.mail")
MAILS = rule("gcp.budgets.emails")
LABEL = rule("gcp.budgets.label")
SERVICE = rule("gcp.budgets.service")
TOPIC = rule("gcp.budgets.topic")
SECRET = rule("gcp.budgets.chat-secret")
UNREACHED = rule("gcp.budgets.unreached")

MOST_EMAILS = 5
_ACCOUNT = re.compile(r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}")
_SERVICE = re.compile(r"services/[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}")
_TOPIC = re.compile(r"projects/[a-z0-9.:-]+/topics/[A-Za-z][A-Za-z0-9._~%+-]{2,254}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,255}")


def account(value: str, field: str = "billing_account") -> list[Finding]:
    if _ACCOUNT.fullmatch(value):
        return []
    return [ACCOUNT.finding(field, f'is "{value}"', "`gcloud billing accounts list` shows its id")]


def code(currency: str, field: str = "currency") -> list[Finding]:
    if re.fullmatch(r"[A-Z]{3}", currency):
        return []
    return [CODE.finding(field, f'is "{currency}"', "write its code, such as USD or EUR")]


def currency(wanted: str, of_account: str, field: str = "currency") -> list[Finding]:
    """Compare the currencies. For a mismatch Google only says "Request contains an invalid argument"."""
    if wanted == of_account:
        return []
    fix = f"write {of_account}, and the amount in it"
    return [CURRENCY.finding(field, f"is {wanted}, and the billing account's is {of_account}", fix)]


def recipients(
    thresholds: int, emails: Sequence[str], topic: str | None, chat: str | None, *, admins: bool, stops: bool
) -> list[Finding]:
    """Check recipients for a number of thresholds. Fields are relative to the budget."""
    found: list[Finding] = []
    if thresholds and not emails and not admins:
        fix = "add emails or billing_admins: true, or write thresholds: {actual: [], forecast: []}"
        found.append(MAIL.finding("recipients", "has nobody who gets mail, and there are thresholds", fix))
    if len(emails) > MOST_EMAILS:
        message, fix = f"has {len(emails)} addresses", f"leave at most {MOST_EMAILS}, one of them a list of your own"
        found.append(MAILS.finding("recipients.emails", message, fix))
    if topic is not None and not _TOPIC.fullmatch(topic):
        found.append(TOPIC.finding("recipients.pubsub_topic", f'is "{topic}"', "write projects/<p>/topics/<t>"))
    elif topic is not None and (stops or chat):
        fix = "leave it out, and subscribe to the topic that the output gcp_budgets names"
        found.append(TOPIC.finding("recipients.pubsub_topic", f"is beside {'stop' if stops else 'chat_secret'}", fix))
    if chat is not None and not _SECRET.fullmatch(chat):
        # The mistake may be in the address itself, which must not be shown.
        fix = "write the id of a secret of Secret Manager in the section's project"
        found.append(SECRET.finding("recipients.chat_secret", "is no id of a secret", fix))
    return found


def filters(services: Sequence[str], labels: Mapping[str, str]) -> list[Finding]:
    """Check which spending counts. Fields are relative to the filters."""
    found = [
        SERVICE.finding(f"services[{index}]", f'is "{one}"', "the list of SKUs of Cloud Billing has the ids")
        for index, one in enumerate(services)
        if not _SERVICE.fullmatch(one)
    ]
    if len(labels) > 1:
        fix = "make a budget for each, or one label that says both"
        found.append(LABEL.finding("labels", f"has {len(labels)}: {', '.join(sorted(labels))}", fix))
    return found


def cluster_reach(*, private_endpoint: bool, authorized: bool, field: str = "cluster") -> list[Finding]:
    """Check that the function that stops the stack can reach a cluster created here."""
    if not private_endpoint and not authorized:
        return []
    why = "has no public address" if private_endpoint else "admits the authorized networks alone"
    fix = "queues of Kueue are not held by the function then; pools, jobs and submissions are"
    return [UNREACHED.finding(field, f"its API server {why}", fix)]
