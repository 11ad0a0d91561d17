"""Published queues and definitions of a stack, each an SSM parameter."""

from collections.abc import Mapping

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

TOO_LARGE = rule("aws.targets.too-large")

MOST = 8192
"""Maximum characters of a parameter of the advanced tier. Source: the page of the rule."""


def sizes(queues: Mapping[str, int], definitions: Mapping[str, int]) -> list[Finding]:
    """Check sizes in characters: of each queue without its definitions, and of each definition."""
    found: list[Finding] = []
    for field, size in (
        *((f"queues.{name}", size) for name, size in queues.items()),
        *((f"definitions.{name}", size) for name, size in definitions.items()),
    ):
        if size > MOST:
            message = f"takes {size:,} characters of the {MOST:,} that an SSM parameter holds, where jobs read it"
            fix = "write fewer secrets, shares, buckets, instance types or teams with allowances"
            found.append(TOO_LARGE.finding(field, message, fix))
    return found
