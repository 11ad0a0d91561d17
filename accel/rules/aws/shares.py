"""Fair-share queues: the shares of a queue, and the share identifiers of jobs."""

import re
from collections.abc import Mapping
from itertools import combinations

from accel.catalog import nearest
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

IDENTIFIER = rule("aws.share.identifier")
OVERLAP = rule("aws.share.overlap")
WEIGHT = rule("aws.share.weight")
DECAY = rule("aws.share.decay")
RESERVATION = rule("aws.share.reservation")
MISSING = rule("aws.share.missing")
UNWANTED = rule("aws.share.unwanted")
UNLISTED = rule("aws.share.unlisted")

PATTERN = re.compile(r"[A-Za-z0-9]{1,255}\*?")
LEAST_WEIGHT, MOST_WEIGHT = 0.0001, 999.9999
MAX_DECAY_S = 604_800
MAX_RESERVATION = 99
PRIORITY = 0
"""Priority of a job that sets none. A fair-share queue rejects a job without one. Source:
https://github.com/nextflow-io/nextflow/pull/3505"""


def policy(*, shares: Mapping[str, float], decay_s: int, reservation_percent: int) -> list[Finding]:
    """Check weights by identifier, or by a prefix of identifiers followed by *."""
    found: list[Finding] = []
    for name, weight in shares.items():
        if not PATTERN.fullmatch(name):
            found.append(IDENTIFIER.finding("shares", f'has "{name[:80]}"', "write letters and digits only, as teamA"))
        if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
            message = f'has the weight {weight:g} for "{name[:80]}"'
            found.append(WEIGHT.finding("shares", message, f"write {LEAST_WEIGHT} to {MOST_WEIGHT}; 0.5 gets twice 1"))
    for one, other in combinations(shares, 2):
        if covers(one, other) or covers(other, one):
            found.append(OVERLAP.finding("shares", f'has "{one[:80]}" and "{other[:80]}", which overlap', "drop one"))
    if not 0 <= decay_s <= MAX_DECAY_S:
        message = f"must be 0 to {MAX_DECAY_S}, is {decay_s}"
        found.append(DECAY.finding("decay_s", message, f"write {0 if decay_s < 0 else MAX_DECAY_S}"))
    if not 0 <= reservation_percent <= MAX_RESERVATION:
        message = f"must be 0 to {MAX_RESERVATION}, is {reservation_percent}"
        fix = f"write {0 if reservation_percent < 0 else MAX_RESERVATION}"
        found.append(RESERVATION.finding("reservation_percent", message, fix))
    return found


def job(*, shares: Mapping[str, float] | None, identifier: str | None, priority: int | None) -> list[Finding]:
    """Check a job on a queue with these `shares`; None: the queue is first in, first out."""
    field, found = "share_identifier", list[Finding]()
    if shares is None:
        for name, value in ((field, identifier), ("scheduling_priority", priority)):
            if value is not None:
                message = f'is "{value}", and the queue is first in, first out'
                found.append(UNWANTED.finding(name, message, "leave it out, or use a queue with fair_share"))
    elif identifier is None:
        listed = f", such as {', '.join(shares)}" if shares else ""
        message = f"is missing, and the queue shares by it{listed}"
        found.append(MISSING.finding(field, message, "write whose the job is: a team, a user, a project"))
    elif not PATTERN.fullmatch(identifier):
        message = f'"{identifier[:80]}" must be at most 255 letters and digits'
        found.append(IDENTIFIER.finding(field, message, "leave out the other signs"))
    elif shares and not any(covers(entry, identifier) for entry in shares):
        near = nearest(identifier, [entry.rstrip("*") for entry in shares], 1)
        message = f'is "{identifier}", which the queue does not list ({", ".join(shares)}), so it weighs 1'
        fix = f"did you mean {near[0]}?" if near else "list it in the queue's fair_share, or leave it so"
        found.append(UNLISTED.finding(field, message, fix))
    return found


def covers(entry: str, identifier: str) -> bool:
    return identifier.startswith(entry[:-1]) if entry.endswith("*") else entry == identifier
