"""A job on GPU VMs created for it: machine, zones, provisioning and reserved variables."""

from collections.abc import Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.gcp.vms import FLEX_LONGEST_S
from accel.rules.jobs.variables import of_platform
from accel.rules.table import rule

FIT = rule("gce.job.fit")
ZONES = rule("gce.job.zones")
FLEX = rule("gce.job.flex-start")
NOTICE = rule("gce.job.notice")
MAX_RUN = rule("gce.job.max-run")
ENV_RESERVED = rule("gce.job.env")

RESERVED_VARIABLES = ("PET_NNODES", "PET_NODE_RANK", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")
_NO_FLEX = ("n1-", "a4x-", "g4-")
"""Series with GPUs that flex-start does not support."""


def fit(asked: Mapping[str, int | None], machine: str, vcpus: int, memory_mib: int) -> list[Finding]:
    most = {"cpus": (vcpus, "vCPUs"), "memory_mib": (memory_mib, "MiB")}
    return [
        FIT.finding(
            field,
            f"is {value}, and the largest machine for it, {machine}, has {most[field][0]} {most[field][1]}",
            "ask for less, or for more GPUs",
        )
        for field, value in asked.items()
        if value and value > most[field][0]
    ]


def zones(wanted: Sequence[str], machine: str, places: Mapping[str, Sequence[str]]) -> tuple[list[str], list[Finding]]:
    """Return the zones known to have the machine, all if none is (the catalogue may be outdated), and findings on the
    others. `places` are zones by region; a region without zones is known as a whole."""
    known = [zone for zone in wanted if offers(places, zone)]
    others = [zone for zone in wanted if zone not in known]
    if not places or not others:
        return list(wanted), []
    if not known:
        message = f"are {', '.join(others)}, where {machine} is not known to be"
        return list(wanted), [ZONES.finding("zones", message, "make sure that it is, or ask for another machine")]
    message = f"have {', '.join(others)}, where {machine} is not known to be"
    return known, [ZONES.finding("zones", message, f"it is asked for in {', '.join(known)} alone")]


def offers(places: Mapping[str, Sequence[str]], zone: str) -> bool:
    region = zone.rpartition("-")[0]
    return region in places and (not places[region] or zone in places[region])


def flex_start(machine: str, gpus: int, nodes: int, spot: bool, max_run_s: int | None) -> list[Finding]:
    faults = (
        (spot, "beside spot: true", "leave one of the two out"),
        (nodes > 1, f"beside nodes: {nodes}", "use one node, or a target of kind gke with queued provisioning"),
        (not gpus or machine.startswith(_NO_FLEX), f"for {machine}", "use a machine of A2, A3, A4 or G2"),
        (
            (max_run_s or 0) > FLEX_LONGEST_S,
            f"for {max_run_s} s",
            f"write a timeout_s and a gce.max_run of at most {FLEX_LONGEST_S}, the one below the other",
        ),
    )
    return [FLEX.finding("provisioning", f"is flex-start, {what}", fix) for wrong, what, fix in faults if wrong]


def notice(notice_s: int | None, spot: bool) -> list[Finding]:
    if notice_s is None or spot:
        return []
    return [NOTICE.finding("notice_s", f"is {notice_s}, and the job is not Spot", "leave it out, or write spot: true")]


def max_run(max_run_s: int | None, timeout_s: int | None, margin_s: int) -> list[Finding]:
    """Check the machines' lifetime, which includes `margin_s` to boot and to end."""
    if max_run_s is None:
        return []
    if max_run_s <= margin_s:
        fix = f"write more than {margin_s}"
        return [MAX_RUN.finding("max_run", f"is {max_run_s}, in which machines boot and end", fix)]
    if timeout_s is None or timeout_s + margin_s <= max_run_s:
        return []
    message = f"is {max_run_s}, and timeout_s is {timeout_s}, beside which machines need {margin_s} to boot and to end"
    return [MAX_RUN.finding("max_run", message, f"write at least {timeout_s + margin_s}, or leave it out")]


def environment(variables: Mapping[str, object], field: str = "env") -> list[Finding]:
    names = [name for name in RESERVED_VARIABLES if name in variables]
    return of_platform(ENV_RESERVED, names, field, "leave it out")
