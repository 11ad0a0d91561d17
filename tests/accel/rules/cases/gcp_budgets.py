"""Budgets of Google Cloud."""

from accel.rules.gcp import budgets as rules

from .case import Case

MAIL = ["ml@company.com"]
TOPIC = "projects/p/topics/spent"


def told(
    thresholds: int = 1, topic: str | None = None, chat: str | None = None, *, stops: bool = False, mails: int = 1
):
    return lambda: rules.recipients(thresholds, MAIL * mails, topic, chat, admins=False, stops=stops)


CASES = [
    Case(
        "gcp.budgets.account", "billing_account", ('"my-account"',), "billing accounts list",
        lambda: rules.account("my-account"), lambda: rules.account("012345-567890-ABCDEF"),
    ),
    Case(
        "gcp.budgets.currency-code", "currency", ('"usd"',), "such as USD",
        lambda: rules.code("usd"), lambda: rules.code("EUR"),
    ),
    Case(
        "gcp.budgets.currency", "currency", ("USD", "account's is EUR"), "write EUR",
        lambda: rules.currency("USD", "EUR"), lambda: rules.currency("EUR", "EUR"),
    ),
    Case(
        "gcp.budgets.mail", "recipients", ("nobody who gets mail",), "billing_admins: true",
        told(mails=0, topic=TOPIC), told(0, TOPIC, mails=0),
    ),
    Case("gcp.budgets.emails", "recipients.emails", ("6 addresses",), "at most 5", told(mails=6), told(mails=5)),
    Case(
        "gcp.budgets.label", "labels", ("2: owner, team",), "a budget for each",
        lambda: rules.filters([], {"team": "ml", "owner": "me"}), lambda: rules.filters([], {"team": "ml"}),
    ),
    Case(
        "gcp.budgets.service", "services[0]", ('"Compute Engine"',), "has the ids",
        lambda: rules.filters(["Compute Engine"], {}), lambda: rules.filters(["services/6F81-5844-456A"], {}),
    ),
    Case(
        "gcp.budgets.topic", "recipients.pubsub_topic", ("beside stop",), "gcp_budgets",
        told(topic=TOPIC, stops=True), told(topic=TOPIC),
    ),
    Case(
        "gcp.budgets.chat-secret", "recipients.chat_secret", ("no id of a secret",), "Secret Manager",
        told(chat="https://chat.googleapis.com/v1/spaces/x?key=y"), told(chat="chat"),
    ),
    Case(
        "gcp.budgets.unreached", "cluster", ("no public address",), "queues of Kueue are not held",
        lambda: rules.cluster_reach(private_endpoint=True, authorized=False),
        lambda: rules.cluster_reach(private_endpoint=False, authorized=False),
    ),
]  # fmt: skip
