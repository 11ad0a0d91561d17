"""`jobs targets --confirm`: says once that credentials may be sent to the API server that a target names."""

from typing import TYPE_CHECKING

import click

from accel.console.errors import interactive, say
from accel.console.options import PROGRAM
from accel.contract.gke import GkeTarget
from accel.diagnostics.errors import BadInput, Declined

if TYPE_CHECKING:
    from ..client.targets import Targets


def confirm(targets: "Targets", name: str, fingerprint: str | None) -> None:
    """Asks on a terminal; elsewhere the fingerprint has to be the place's. Raises BadInput, Declined."""
    from accel.clouds.kubernetes.endpoint_trust import add

    from ..backends.gke.clusters import named_by, path_of
    from ..backends.gke.labels import Scope

    _, target = targets.choose(name)
    if not isinstance(target, GkeTarget):
        raise BadInput(f"--confirm: target {name} is of kind {target.kind}, which names no endpoint")
    place = named_by(target)
    say(f"cluster {target.cluster} in {target.location} of {target.project}: {place.endpoint}, {place.fingerprint}")
    if fingerprint is None and not interactive():
        raise BadInput(
            "--fingerprint: is missing, and nobody can be asked here",
            f"see that it is right, and say so: {PROGRAM} targets --confirm {name} --fingerprint {place.fingerprint}",
        )
    if fingerprint not in (None, place.fingerprint):
        raise BadInput(f"--fingerprint: {fingerprint[:80]!r} is not {place.fingerprint}")
    if fingerprint is None and not click.confirm("Is it there that your credentials go?", err=True):
        raise Declined("nothing was confirmed")
    add(path_of(Scope(target.project, target.location, target.cluster, target.namespace)), place)
    say(f"confirmed; where Google does not say where cluster {target.cluster} is, it is there")
