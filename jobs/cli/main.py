"""`jobs` itself: its verbs, its help, and shell completion of targets and of jobs submitted from this machine."""

from collections.abc import Iterator

import click

from accel.console.completion import complete
from accel.console.group import Verbs, common
from accel.console.options import Settings

VERBS = {
    "targets": ("targets", "Where jobs can run."),
    "validate": ("validate", "Check job files without submitting them."),
    "submit": ("submit", "Submit the job of a file."),
    "offers": ("offers", "Show what could run a job where, at what price."),
    "cost": ("cost", "Show what a job costs at most."),
    "spend": ("spend", "Show what teams may spend, and what jobs hold of it."),
    "ls": ("get", "List jobs."),
    "get": ("get", "Show jobs."),
    "explain": ("explain", "Say why a job waits or failed."),
    "watch": ("watch", "Show how jobs go, until they have ended."),
    "logs": ("logs", "Show what a job printed."),
    "report": ("report", "Write a page about a job."),
    "results": ("results", "Show what the tasks of a sweep came to."),
    "exec": ("exec", "Run a command in a job that runs."),
    "wait": ("wait", "Wait until jobs have ended."),
    "tend": ("tend", "Move jobs on whose machines were lost, and clean up."),
    "cancel": ("cancel", "Stop jobs."),
    "retry": ("retry", "Run a job again."),
    "import": ("import_", "Turn a request of another tool into a job file."),
    "runtime": ("runtime", "Write the package that programs use inside a job."),
    "doctor": ("doctor", "Check this machine's set-up."),
    "schema": ("schema", "Print a JSON Schema for editors."),
    "completion": ("completion", "Print a shell's completion script."),
}
"""Module of each verb, and its line in the help, which so needs no import."""

COMPLETED_JOBS = 100

EPILOG = """\b
Exit codes: 0 done, 1 unexpected, 2 bad input, 3 credentials, 4 the cloud
refused, 5 policy, budget or quota, 6 not found, 8 declined at the prompt,
9 the API timed out, 124 waiting timed out, 125 the job failed,
130 interrupted.
"""


def _targets(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Yield the targets of the source that the command would read, with their kinds."""
    from ..client.targets import load

    settings = context.find_object(Settings)
    for entry in load(settings.targets if settings else None).entries.values():
        yield entry.name, entry.kind


def _jobs(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Yield ids, newest first; whole references only where the user has begun one. A reference has a colon, at which
    bash begins another word."""
    from ..client import history

    for entry in history.recent()[:COMPLETED_JOBS]:
        ref = str(entry["ref"])
        yield ref if ":" in begun else ref.rpartition("/")[2], f"{entry['name']} on {entry['target']}"


complete("TARGET", _targets)
complete("JOB", _jobs)

jobs = Verbs(
    "jobs",
    VERBS,
    __package__ or "",
    params=common(),
    help="""Submits jobs to what a stack deployed, or to this machine, and looks after them.

    JOB is a reference as `submit` prints it, or the name or short id that `ls` shows, or the beginning of one.
    Jobs that were submitted from here are looked for first, then those that the targets list. Where several
    have the name, it is the only one that has not ended; with none or several such the candidates are named,
    newest first, and the exit code is 2.
    """,
    epilog=EPILOG,
)
