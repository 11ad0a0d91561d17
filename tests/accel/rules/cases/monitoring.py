"""Subscriptions, alarms, logs, and whether GPU metrics arrive."""

from accel.rules import Finding
from accel.rules.aws import monitoring

from .case import Case

_HOOK = "https://hooks.company.com/services/T0/B1"


def _arrive(**changed: object) -> list[Finding]:
    right = {"closed": True, "endpoints": ["logs", "monitoring"], "profiles": {"spot": None}}
    return monitoring.gpu_metrics(**{**right, **changed})  # type: ignore[arg-type]


CASES = [
    Case(
        "aws.monitoring.email", "emails[1]", ('"ml-team"',), "team@mail.company.com",
        lambda: monitoring.subscriptions(["ml@company.com", "ml-team"], []),
        lambda: monitoring.subscriptions(["ml+gpu@mail.company.co.uk"], []),
    ),
    Case(
        "aws.monitoring.https", "https_endpoints[0]", ("no plain https address",), "https://<host>/<path>",
        lambda: monitoring.subscriptions([], ["https://user:hunter2@company.com/hook"]),
        lambda: monitoring.subscriptions([], [_HOOK, "https://company.com", "https://company.com?id=1"]),
    ),
    Case(
        "aws.monitoring.key", "kms_key_arn", ('"alias/aws/sns"', "not the ARN of a key"), "leave it out",
        lambda: monitoring.key("alias/aws/sns"),
        lambda: monitoring.key("arn:aws:kms:us-east-1:210020003000:key/1b2c"),
    ),
    Case(
        "aws.monitoring.period", "period_s", ("multiple of 60", "is 90"), "write 120",
        lambda: monitoring.alarm(period_s=90), lambda: monitoring.alarm(period_s=60),
    ),
    Case(
        "aws.monitoring.span", "periods", ("is 289", "86400"), "write at most 288",
        lambda: monitoring.alarm(period_s=300, periods=289),
        lambda: monitoring.alarm(period_s=3600, periods=168),
    ),
    Case(
        "aws.logs.retention", "retention_days", ("is 100",), "write 120",
        lambda: monitoring.retention("retention_days", 100),
        lambda: monitoring.retention("retention_days", 120),
    ),
    Case(
        "aws.monitoring.endpoint", "monitoring.gpu_metrics", ("cannot reach CloudWatch",), "add monitoring",
        lambda: _arrive(endpoints=["logs"]), lambda: _arrive(closed=False, endpoints=[]),
    ),
    Case(
        "aws.monitoring.own-profile", "environments.spot.instance_profile", ('"ours"',), "cloudwatch:PutMetricData",
        lambda: _arrive(profiles={"spot": "ours"}), _arrive,
    ),
]  # fmt: skip
