"""`jobs targets`; with --confirm, the user's approval to send credentials to the API server that a target names."""

from typing import TYPE_CHECKING, Any

import click

from accel.clouds.kubernetes.endpoint_trust import add
from accel.console.errors import interactive, say
from accel.console.options import PROGRAM, Settings
from accel.console.output import show, span
from accel.console.verb import Verb
from accel.contract.targets import AwsBatchTarget, GceTarget, GkeTarget, GoogleBatchTarget, TpuVmTarget, VertexTarget
from accel.diagnostics.errors import BadInput, Declined, JobsError

from ..backends.free_gpus import FreeGpus
from ..backends.registry import of_target
from ..client.stale_targets import current_targets
from ..client.targets import known_targets

if TYPE_CHECKING:
    from ..client.targets import Entry, Targets


@click.command(cls=Verb)
@click.option("--refresh", is_flag=True, help="Read published targets again, even if the copy is recent.")
@click.option("--confirm", metavar="TARGET", help="Send your credentials to the API server that TARGET names.")
@click.option("--fingerprint", metavar="TEXT", help="Fingerprint that --confirm shows; required without a terminal.")
@click.pass_obj
def targets(settings: Settings, refresh: bool, confirm: str | None, fingerprint: str | None) -> None:
    """List the targets that jobs can run on. -o wide also shows how many GPUs are free, where the platform can tell.

    The address of a GKE cluster is read from Google. If you may not read it (container.clusters.get), --confirm trusts
    the address and certificate in the target, once you have checked that they are right.
    """
    found = known_targets(settings, refresh=refresh)
    if refresh:
        found = current_targets(found, found.entries, settings)
    if confirm is not None:
        _confirm_endpoint(found, confirm, fingerprint)
        return
    rows = [_row(entry) for entry in found.entries.values()]
    if settings.output == "wide":
        for row, entry in zip(rows, found.entries.values(), strict=True):
            row["free_gpus"] = _free(entry)
    show(
        rows,
        settings.output,
        ("name", "kind", "where", "note"),
        ("name", "kind", "where", "capacity", "free_gpus", "note"),
        "name",
    )
    if settings.output in ("table", "wide"):
        age = "" if found.age_s is None else f", read {span(found.age_s)} ago"
        say(f"targets come from {found.source}{age}")


def _free(entry: "Entry") -> str:
    """Return free GPUs by pool or environment; "-" where the platform does not report them, or without GPUs."""
    if entry.target is None:
        return "-"
    backend = of_target(entry.name, entry.target)
    if not isinstance(backend, FreeGpus):
        return "-"
    try:
        return "; ".join(map(str, backend.free())) or "-"
    except JobsError as error:
        say(f"{entry.name}: free GPUs are not known: {error.message}")
        return "unknown"


def _row(entry: "Entry") -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": entry.name,
        "kind": entry.kind,
        "where": "",
        "capacity": "",
        "note": entry.fault or "",
    }
    target = entry.target
    if target is None:
        return row
    if isinstance(target, AwsBatchTarget):
        capacity = "; ".join(
            f"{each.name}: {each.capacity} {','.join(each.instance_types)}" for each in target.environments
        )
        note = "" if target.claim_table else "no claim table: submit is idempotent on one machine only"
        return row | {"where": target.region, "capacity": capacity, "note": note}
    if isinstance(target, GkeTarget):
        capacity = "; ".join(
            f"{each.key}: {each.capacity} {each.max_nodes} x {each.machine_type}" for each in target.pools.values()
        )
        where = f"{target.location} {target.cluster} {target.namespace}"
        return row | {"where": where, "capacity": capacity}
    if isinstance(target, TpuVmTarget | GceTarget):
        kinds = target.types if isinstance(target, TpuVmTarget) else target.machine_types
        capacity = ",".join(kinds) or "every type that a zone has"
        return row | {"where": f"{target.project} {','.join(target.zones)}", "capacity": capacity}
    if isinstance(target, GoogleBatchTarget | VertexTarget):
        note = "no claims: submit is idempotent on one machine only"
        capacity = ",".join(target.machine_types) or "every type that the service has there"
        unclaimed = isinstance(target, VertexTarget) and not target.claims
        where = f"{target.project} {target.region}"
        return row | {"where": where, "capacity": capacity, "note": note if unclaimed else ""}
    return row | {"where": target.root, "capacity": "this machine"}


def _confirm_endpoint(targets: "Targets", name: str, fingerprint: str | None) -> None:
    """Ask on a terminal; elsewhere require the place's fingerprint. Raises BadInput, Declined."""
    from accel.clouds.kubernetes.clusters import path_of, target_place

    from ..backends.gke.labels import Scope

    _, target = targets.choose(name)
    if not isinstance(target, GkeTarget):
        raise BadInput(f"--confirm: target {name} is of kind {target.kind}, which names no endpoint")
    place = target_place(target)
    say(f"cluster {target.cluster} in {target.location} of {target.project}: {place.endpoint}, {place.fingerprint}")
    if fingerprint is None and not interactive():
        raise BadInput(
            "--fingerprint: is required without a terminal",
            f"check it, then confirm it: {PROGRAM} targets --confirm {name} --fingerprint {place.fingerprint}",
        )
    if fingerprint not in (None, place.fingerprint):
        raise BadInput(f"--fingerprint: {fingerprint[:80]!r} is not {place.fingerprint}")
    if fingerprint is None and not click.confirm("Send your credentials there?", err=True):
        raise Declined("nothing was confirmed")
    add(path_of(Scope(target.project, target.location, target.cluster, target.namespace)), place)
    say(f"confirmed; it is used where Google does not show the address of cluster {target.cluster}")
