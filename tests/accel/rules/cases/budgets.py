"""Budgets of both clouds, and of AWS."""

from accel.rules import budgets as rules

from .case import Case

ARN = "arn:aws:sns:us-east-1:111122223333:spent"
MAIL = ["ml@company.com"]


def aws(count: int = 1, emails: int = 1, topic: str | None = None):
    return lambda: rules.aws_notifications(count, MAIL * emails, topic)


CASES = [
    Case(
        "budgets.threshold", "actual[1]", ("is 90", "9,000 %"), "write 0.9 for 90 %",
        lambda: rules.thresholds("actual", [0.5, 90]), lambda: rules.thresholds("actual", [0.5, 3]),
    ),
    Case(
        "budgets.threshold-twice", "actual[2]", ("is 0.9 again",), "leave it out",
        lambda: rules.thresholds("actual", [0.9, 1, 0.9]), lambda: rules.thresholds("actual", [0.9, 1, 0.95]),
    ),
    Case(
        "budgets.recipients", "recipients", ("nobody is told",), "one of emails, sns_topic_arn",
        lambda: rules.recipients("recipients", emails=[], sns_topic_arn=None),
        lambda: rules.recipients("recipients", emails=[], sns_topic_arn=ARN),
    ),
    Case(
        "aws.budgets.currency", "currency", ('"EUR"',), "write USD",
        lambda: rules.aws_currency("EUR"), lambda: rules.aws_currency("USD"),
    ),
    Case("aws.budgets.notifications", "thresholds", ("are 11",), "at most 10", aws(11), aws(10)),
    Case("aws.budgets.emails", "recipients.emails", ("11 addresses",), "a topic", aws(emails=11), aws(emails=10)),
    Case(
        "aws.budgets.topic", "recipients.sns_topic_arn", (f'"{ARN}.fifo"',), "arn:aws:sns:<region>",
        aws(topic=f"{ARN}.fifo"), aws(topic=ARN),
    ),
]  # fmt: skip
