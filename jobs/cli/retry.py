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
@click.option("--to", metavar="TARGET", help="The job's target, if it was not submitted from here.")
@click.option("--key", metavar="TEXT", help="The same JOB and key give the same new job, however often it is retried.")
@click.option("--all", "-a", "every", is_flag=True, help="Of a sweep, the tasks that succeeded too.")
@click.pass_obj
def retry(settings: Settings, job: str, to: str | None, key: str | None, every: bool) -> None:
    """Run JOB again, as it was submitted, as a new job; print the new reference.

    Of a sweep only the tasks run again that failed or were lost, each with its own parameters.
    """
    caller = key if key is not None else keys.random_key()
    with prepare_retry(reference(job, settings), to, caller, every, settings) as (backend, request, submitter):
        submit_one(backend, request, caller, settings, submitter, PrintedReceipts(settings, caller))
