"""`jobs tend`."""

import time

import click

from accel.console.options import Duration, Settings
from accel.console.output import show
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput, Interrupted

from ..client.reconcile import round_of
from ..client.spot_fallback import Followers
from ..client.targets import known_targets
from ..views.status_rows import STATUS_COLUMNS, STATUS_WIDE, status_row


@click.command(cls=Verb)
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@click.option("--to", metavar="TARGET", help="Advance every job of this target that has not ended.")
@click.option("--every", type=Duration(), help="Repeat after this pause; by default, run once.")
@click.pass_obj
def tend(settings: Settings, jobs: tuple[str, ...], to: str | None, every: int | None) -> None:
    """Advance JOBs that no cloud service advances: resubmit preempted ones, delete the machines of ended ones, and move
    jobs with `spot: prefer` to on demand when their deadline is near.

    `wait`, `submit --wait` and `logs -f` do the same while they run. To do it for everybody, run `tend --to TARGET
    --every 30s` as a service, or set `gcp.vms.reconcile` in the stack; both also maintain the TPUs that the stack
    declares in `queued_tpus`.
    """
    if bool(jobs) == bool(to):
        raise BadInput("tend: name jobs, or a target with --to")
    followers = Followers(lambda: known_targets(settings), settings, every)
    try:
        while True:
            statuses = round_of(settings, jobs, to, followers)
            if every is None:
                break
            time.sleep(every)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the jobs go on, and nobody tends them") from None
    show([status_row(status) for status in statuses], settings.output, STATUS_COLUMNS, STATUS_WIDE, "ref")
