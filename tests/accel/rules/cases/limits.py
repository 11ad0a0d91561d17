"""Sizes and spellings that AWS refuses in the middle of an update."""

from accel.rules import Finding
from accel.rules.aws import limits

from .case import Case


def _tags(*, owner: str = "ml", own: int = 5, **labels: str) -> list[Finding]:
    return limits.tags(labels, owner=owner, own=own)


CASES = [
    Case(
        "aws.limits.user-data", "instance.user_data", ("16,385 bytes", "16,384"), "from a bucket",
        lambda: limits.user_data(16_385), lambda: limits.user_data(16_384),
    ),
    Case(
        "aws.limits.function-environment", "budget_stop", ("4,097 bytes", "4,096"), "shorter keys",
        lambda: limits.function_environment(4097, "budget_stop"),
        lambda: limits.function_environment(4096, "budget_stop"),
    ),
    Case(
        "aws.tag.spelling", "labels", ('"team" is "vision, audio"', "','"), "letters, digits",
        lambda: _tags(team="vision, audio"),
        lambda: _tags(team="vision+audio: Zürich/2 @ 10.0") + _tags(owner="x" * 256),
    ),
    Case(
        "aws.tag.own", "labels", ('"Accel:owner"', "begins with accel:"), "rename",
        lambda: limits.tags({"Accel:owner": "a"}, owner="ml", own=5),
        lambda: limits.tags({"accelerated": "a"}, owner="ml", own=5),
    ),
    Case(
        "aws.tag.reserved", "labels", ('"AWS:team"', "begins with aws:"), "rename",
        lambda: limits.tags({"AWS:team": "a"}, owner="ml", own=5),
        lambda: limits.tags({"awsteam": "a"}, owner="ml", own=5),
    ),
    Case(
        "aws.tag.case", "labels", ('"Team" and "team"',), "rename",
        lambda: _tags(team="a", Team="b"), lambda: _tags(team="a", teams="b"),
    ),
    Case(
        "aws.tag.count", "labels", ("are 46, with 5", "50"), "leave some out",
        lambda: _tags(**{f"l{n}": "x" for n in range(46)}), lambda: _tags(**{f"l{n}": "x" for n in range(45)}),
    ),
]  # fmt: skip
