"""Scheduling of Vertex AI jobs: strategy, reservation, persistent resource, retries."""

import re
from collections.abc import Sequence

from accel.diagnostics.findings import Finding
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.table import rule

STRATEGY = rule("vertex.strategy.name")
STRATEGY_UNKNOWN = rule("vertex.strategy.unknown")
FLEX = rule("vertex.flex-start")
WAIT = rule("vertex.wait")
SPOT_TPU = rule("vertex.spot.tpu-pod")
RESERVATION = rule("vertex.reservation.name")
RESERVATION_WITH = rule("vertex.reservation.with")
PERSISTENT = rule("vertex.persistent-resource")
RETRIES = rule("vertex.retries")
LOST = rule("vertex.lost-retries")
RESTART = rule("vertex.restart")

STRATEGIES = ("STANDARD", "SPOT", "FLEX_START")
LONGEST_FLEX_S = 7 * 86_400
_RENAMED = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT", "DWS_FLEX_START": "FLEX_START"}
_FLEX_GPUS = (
    "nvidia-l4", "nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-h100-80gb", "nvidia-h100-mega-80gb",
    "nvidia-h200-141gb", "nvidia-b200",
)  # fmt: skip
_RESERVATION = re.compile(r"projects/([^/]+)/zones/([a-z0-9-]+)/reservations/([^/]+)")


def strategy(name: str, field: str = "strategy") -> list[Finding]:
    if name in STRATEGIES:
        return []
    if now := _RENAMED.get(name):
        return [STRATEGY.finding(field, f'is "{name}", a name of before', f"write {now}", now)]
    return [STRATEGY_UNKNOWN.finding(field, f'is "{name}"', f"use one of {', '.join(STRATEGIES)}")]


def flex_start(
    machines: Sequence[tuple[str, str | None, int | None]], timeout_s: int | None, field: str = "provisioning"
) -> list[Finding]:
    """Check a flex-start job. `machines`: type, accelerator and count of each pool."""
    kinds = {kind for _, kind, _ in machines if kind}
    gpus = {found.name for kind in kinds if (found := find_accelerator(kind))}
    faults = (
        (
            not gpus or not gpus.issubset(_FLEX_GPUS),
            f"with {', '.join(sorted(kinds)) or 'no GPU'}",
            "use L4, A100, H100, H200 or B200",
        ),
        (len(set(machines)) > 1, "with different machines in its pools", "give all pools the same machine"),
        (
            (timeout_s or 0) > LONGEST_FLEX_S,
            f"with a timeout of {timeout_s} s",
            f"write a timeout_s of at most {LONGEST_FLEX_S}",
        ),
    )
    return [FLEX.finding(field, f"is flex-start, {what}", fix) for wrong, what, fix in faults if wrong]


def flex_with_spot(field: str = "provisioning") -> list[Finding]:
    return [FLEX.finding(field, "is flex-start, beside spot: true", "leave one of the two out")]


def wait(wait_s: int | None, flex: bool, field: str = "wait_s") -> list[Finding]:
    if wait_s is None or flex:
        return []
    return [WAIT.finding(field, f"is {wait_s}, and the job is not flex-start", "leave it out, or ask for flex-start")]


def spot_tpu(name: str, hosts: int, spot: bool, field: str = "spot") -> list[Finding]:
    if not spot or hosts == 1:
        return []
    fix = "use a slice of one host, spot: false, or a target of kind tpu-vm or gke"
    return [SPOT_TPU.finding(field, f"is true, and {name} has {hosts} hosts", fix)]


def reservation(name: str, region: str, field: str = "reservation") -> list[Finding]:
    found = _RESERVATION.fullmatch(name)
    if found is None:
        fix = "write projects/<project>/zones/<zone>/reservations/<name>"
        return [RESERVATION.finding(field, f'is "{name}"', fix)]
    if found[2].rpartition("-")[0] != region:
        message = f"is of {found[2]}, and the job runs in {region}"
        return [RESERVATION.finding(field, message, "use one of a zone of that region")]
    return []


def reservation_with(*, spot: bool, flex: bool, persistent: bool, field: str = "reservation") -> list[Finding]:
    beside = ((spot, "spot: true"), (flex, "flex-start"), (persistent, "a persistent resource"))
    return [
        RESERVATION_WITH.finding(field, f"is named beside {what}", "keep one of the two") for is_, what in beside if is_
    ]


def persistent(name: str, *, spot: bool, flex: bool, field: str = "persistent_resource") -> list[Finding]:
    beside = ((spot, "spot: true"), (flex, "flex-start"))
    return [
        PERSISTENT.finding(field, f"is {name}, beside {what}", "keep one of the two") for is_, what in beside if is_
    ]


def retries(failures: int | None, lost: int | None) -> list[Finding]:
    found: list[Finding] = []
    if failures:
        message = f"is {failures}, and Vertex AI tries again only after exit codes 6, 11, 134 and 139, three times"
        found.append(RETRIES.finding("retries", message, "a command that failed otherwise is run again by `retry`"))
    if lost:
        message = f"is {lost}, and Vertex AI has its own numbers: six after preemption, two after its own faults"
        found.append(LOST.finding("lost_retries", message, "write 0 for none, or leave it out"))
    return found


def restart(asked: bool | None, disabled: bool, field: str = "restart") -> list[Finding]:
    """Check whether all machines restart when one is lost, although retries are off."""
    if not (asked and disabled):
        return []
    message = "is true, and retries and lost_retries say not to try again"
    return [RESTART.finding(field, message, "leave it out, or lost_retries")]
