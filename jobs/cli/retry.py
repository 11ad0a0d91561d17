"""`jobs retry`."""

import click

from accel.console.options import Settings
from accel.console.verb import Verb

from ..client.dispatch import submit_one
from ..client.resolve import reference
from ..client.retry import prepare_retry
from ..model import keys
from .receipts import PrintedReceipts


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--to", metavar="TARGET", help="Target of the job, if it was submitted from another machine.")
@click.option("--key", metavar="TEXT", help="Key of the retry: the same JOB and key always give the same new job.")
@click.option("--all", "-a", "every", is_flag=True, help="For a sweep, also rerun the tasks that succeeded.")
@click.pass_obj
def retry(settings: Settings, job: str, to: str | None, key: str | None, every: bool) -> None:
    """Submit JOB again as a new job, and print the new reference.

    For a sweep, only the tasks that failed or were lost run again, each with its own parameters.
    """
    caller = key if key is not None else keys.random_key()
    with prepare_retry(reference(job, settings), to, caller, every, settings) as (backend, request, submitter):
        submit_one(backend, request, caller, settings, submitter, PrintedReceipts(settings, caller))
