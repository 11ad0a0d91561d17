"""Notifications, metrics, and the limits of CloudWatch alarms."""

import re
from collections.abc import Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

EMAIL = rule("aws.monitoring.email")
ENDPOINT = rule("aws.monitoring.https")
KEY = rule("aws.monitoring.key")
PERIOD = rule("aws.monitoring.period")
SPAN = rule("aws.monitoring.span")
RETENTION = rule("aws.logs.retention")
CLOSED = rule("aws.monitoring.endpoint")
OWN_PROFILE = rule("aws.monitoring.own-profile")

RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)

_ADDRESS = re.compile(r"[^@\s\"(),:;<>\[\]\\]+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,63}")
_ENDPOINT = re.compile(r"https://[^\s/@?#]+(?:[/?#]\S*)?")
_KEY = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:key/\S+")

MONITORING_ENDPOINT = "monitoring"

_DAY_S = 86_400
_HOUR_S = 3600


def subscriptions(emails: Sequence[str], https: Sequence[str]) -> list[Finding]:
    """Check without repeating an endpoint in messages, since its path is often a secret."""
    found: list[Finding] = []
    for index, address in enumerate(emails):
        if not _ADDRESS.fullmatch(address):
            message = f'is "{address}", which is no address'
            found.append(EMAIL.finding(f"emails[{index}]", message, "write one address, as in team@mail.company.com"))
    for index, endpoint in enumerate(https):
        if not _ENDPOINT.fullmatch(endpoint):
            fix = "write https://<host>/<path>, and let the receiver check the signature of SNS"
            found.append(ENDPOINT.finding(f"https_endpoints[{index}]", "is no plain https address", fix))
    return found


def key(arn: str | None) -> list[Finding]:
    if arn is None or _KEY.fullmatch(arn):
        return []
    fix = "write arn:aws:kms:<region>:<account>:key/<id>, or leave it out"
    return [KEY.finding("kms_key_arn", f'is "{arn}", not the ARN of a key', fix)]


def alarm(*, period_s: int, periods: int = 1) -> list[Finding]:
    """Check an alarm that has to be true for `periods` consecutive periods."""
    if period_s < 60 or period_s % 60:
        message = f"must be a multiple of 60 seconds, is {period_s}"
        return [PERIOD.finding("period_s", message, f"write {max(round(period_s / 60), 1) * 60}")]
    most = _DAY_S if period_s < _HOUR_S else 7 * _DAY_S
    if period_s * periods > most:
        message = f"{periods} periods of {period_s} seconds are longer than the {most} seconds that an alarm looks back"
        return [SPAN.finding("periods", f"is {periods}; {message}", f"write at most {most // period_s}")]
    return []


def retention(field: str, days: int) -> list[Finding]:
    if days in RETENTION_DAYS:
        return []
    longer = next((known for known in RETENTION_DAYS if known > days), RETENTION_DAYS[-1])
    return [RETENTION.finding(field, f"is {days}, which CloudWatch Logs does not know", f"write {longer}")]


def gpu_metrics(*, closed: bool, endpoints: Sequence[str], profiles: Mapping[str, str | None]) -> list[Finding]:
    """Check that the agent's metrics reach CloudWatch. `closed`: no internet access, but these interface `endpoints`;
    `profiles`: each environment's own instance profile, None for the stack's."""
    found: list[Finding] = []
    if closed and MONITORING_ENDPOINT not in endpoints:
        message = "is true, and instances in this network cannot reach CloudWatch"
        fix = f"add {MONITORING_ENDPOINT} to interface_endpoints of the network"
        found.append(CLOSED.finding("monitoring.gpu_metrics", message, fix))
    for name, profile in profiles.items():
        if profile:
            message = f'is "{profile}", whose role the stack does not let publish GPU metrics'
            fix = "allow it cloudwatch:PutMetricData, or leave the profile out"
            found.append(OWN_PROFILE.finding(f"environments.{name}.instance_profile", message, fix))
    return found
