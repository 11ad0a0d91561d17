"""Fair-share queues and the jobs in them."""

from accel.rules import Finding
from accel.rules.aws import shares as aws_shares

from .case import Case


def _policy(shares: dict[str, float] | None = None, decay_s: int = 0, reservation_percent: int = 0) -> list[Finding]:
    return aws_shares.policy(shares=shares or {}, decay_s=decay_s, reservation_percent=reservation_percent)


def _job(shares: dict[str, float] | None, identifier: str | None, priority: int | None = None) -> list[Finding]:
    return aws_shares.job(shares=shares, identifier=identifier, priority=priority)


CASES = [
    Case(
        "aws.share.identifier", "shares", ('"team-a"',), "letters and digits",
        lambda: _policy({"team-a": 1.0}), lambda: _policy({"x" * 255: 1.0, "team*": 0.5}),
    ),
    Case(
        "aws.share.overlap", "shares", ('"user*"', '"userA"'), "drop one",
        lambda: _policy({"user*": 1.0, "userA": 2.0}), lambda: _policy({"user*": 1.0, "use": 2.0}),
    ),
    Case(
        "aws.share.weight", "shares", ("1000", '"a"'), "0.0001 to 999.9999",
        lambda: _policy({"a": 1000.0}), lambda: _policy({"a": 0.0001, "b": 999.9999}),
    ),
    Case(
        "aws.share.decay", "decay_s", ("604801",), "write 604800",
        lambda: _policy(decay_s=604_801), lambda: _policy(decay_s=604_800),
    ),
    Case(
        "aws.share.reservation", "reservation_percent", ("100",), "write 99",
        lambda: _policy(reservation_percent=100), lambda: _policy(reservation_percent=99),
    ),
    Case(
        "aws.share.missing", "share_identifier", ("is missing", "research"), "whose the job is",
        lambda: _job({"research": 1.0}, None), lambda: _job(None, None),
    ),
    Case(
        "aws.share.unwanted", "share_identifier", ('"research"', "first in, first out"), "fair_share",
        lambda: _job(None, "research"), lambda: _job({}, "research"),
    ),
    Case(
        "aws.share.unlisted", "share_identifier", ('"reserch"', "weighs 1"), "did you mean research?",
        lambda: _job({"research": 0.5}, "reserch"), lambda: _job({"res*": 0.5}, "reserch"),
    ),
]  # fmt: skip
