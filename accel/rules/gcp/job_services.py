"""Locations of Google Batch jobs and Vertex AI custom jobs, and the resources that a stack keeps for them."""

import re
from collections.abc import Sequence

from accel.catalog import UnknownName, machine
from accel.catalog.nearest import nearest
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.batch.machines import RESERVATION_NAME
from accel.rules.gcp import gpus
from accel.rules.table import rule
from accel.rules.vertex import machines

SUBNET = rule("gcp.job-target.subnet")
RESERVATION = rule("gcp.job-target.reservation")
TEMPLATE = rule("gcp.job-target.template")
ATTACHMENT = rule("gcp.vertex.network-attachment")
DATABASE = rule("gcp.firestore.database")
KEPT = rule("gcp.persistent-resource.unknown")
REPLICAS = rule("gcp.persistent-resource.replicas")
MACHINE = rule("gcp.persistent-resource.machine")

_ATTACHMENT = re.compile(r"projects/[a-z0-9.:-]+/regions/([a-z0-9-]+)/networkAttachments/[a-z]([a-z0-9-]*[a-z0-9])?")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def subnet(region: str, of_network: Sequence[str], field: str = "region") -> list[Finding]:
    if region in of_network:
        return []
    message = f"is {region}, and the network has subnets in {', '.join(sorted(of_network))} only"
    return [SUBNET.finding(field, message, f"add a subnet in {region}, or use a region of these")]


def reservation(path: str | None, region: str, field: str = "reservation") -> list[Finding]:
    """Check the region for a target without zones. batch/machines.py checks the rest."""
    parts = RESERVATION_NAME.fullmatch(path or "")
    if parts is None or parts[2].rpartition("-")[0] == region:
        return []
    message = f"is in {parts[2]}, and the target is in {region}"
    return [RESERVATION.finding(field, message, "use a reservation of the region, or leave it out")]


def template(wanted: bool, capacity: str | None, region: str, home: str, field: str = "template") -> list[Finding]:
    """Check use of the stack's template, which has this `capacity` (None: there is no template) and region `home`."""
    if not wanted:
        return []
    if capacity is None:
        return [TEMPLATE.finding(field, "is true, and the section has none", "add template to the section")]
    if region != home:
        message = f"is true, and the target is in {region}, where the template has no subnet"
        return [TEMPLATE.finding(field, message, "leave it out, and name machine types")]
    return []


def template_zone(zone: str, region: str, field: str = "zone") -> list[Finding]:
    """Check the zone in which a template's machine is looked up."""
    if zone.rpartition("-")[0] == region:
        return []
    message = f"is {zone}, and the template's subnet is in {region}"
    return [TEMPLATE.finding(field, message, f"use a zone such as {region}-a")]


def attachment(path: str, region: str, field: str = "network_attachment") -> list[Finding]:
    found = _ATTACHMENT.fullmatch(path)
    if found is None:
        fix = f"write projects/<p>/regions/{region}/networkAttachments/<name>"
        return [ATTACHMENT.finding(field, f'is "{path}"', fix)]
    if found[1] != region:
        return [ATTACHMENT.finding(field, f"is in {found[1]}, and jobs are in {region}", f"use one of {region}")]
    return []


def database(name: str, field: str = "database") -> list[Finding]:
    if name == "(default)" or (re.fullmatch(r"[a-z][a-z0-9-]{2,61}[a-z0-9]", name) and not _UUID.fullmatch(name)):
        return []
    return [DATABASE.finding(field, f'is "{name}"', 'write its id alone, such as claims, or "(default)"')]


def persistent_resource_key(
    name: str | None, known: Sequence[str], field: str = "persistent_resource"
) -> list[Finding]:
    if name is None or name in known:
        return []
    fix = did_you_mean(nearest(name, known), known) if known else "add it to persistent_resources"
    return [KEPT.finding(field, f'is "{name}", no key of persistent_resources', fix)]


def replicas(count: int, least: int | None, most: int | None) -> list[Finding]:
    if least is None and most is None:
        return []
    if least is None or most is None:
        field, other = ("min_replicas", "max_replicas") if least is None else ("max_replicas", "min_replicas")
        return [REPLICAS.finding(field, f"is missing, beside {other}", "write both, or none")]
    if least < 1:
        return [REPLICAS.finding("min_replicas", f"is {least}", "write 1 or more")]
    if most <= least:
        return [REPLICAS.finding("max_replicas", f"is {most}, not more than min_replicas ({least})", "write more")]
    if not least <= count <= most:
        return [REPLICAS.finding("replicas", f"is {count}", f"write {least} to {most}")]
    return []


def persistent_machine(machine_type: str, accelerator: str | None, count: int | None) -> list[Finding]:
    """Check a machine that is on demand, and so cannot be a type available as Spot or flex-start only."""
    if _is_tpu(machine_type):
        message = f"is {machine_type}, a TPU"
        return [MACHINE.finding("machine_type", message, "use a machine with GPUs, or jobs without it")]
    found = machines.pool(machine_type, accelerator, count)
    if any(each.severity == "reject" for each in found):
        return found
    had = machines.had(machine_type, None, None, "machine_type")
    return found + [each for each in had if each.rule != machines.ARM.id]  # an image is a job's


def _is_tpu(machine_type: str) -> bool:
    try:
        kind = gpus.find_accelerator(machine("gcp", machine_type).accelerator)
    except UnknownName:
        return False
    return kind is not None and kind.is_tpu
