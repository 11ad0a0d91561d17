"""`jobs` itself: its verbs, its help, and shell completion of targets and of jobs submitted from this machine."""

from collections.abc import Iterator

import click

from accel.console.completion import complete
from accel.console.group import Verbs, common
from accel.console.options import Settings

VERBS = {
    "targets": ("targets", "List the targets that jobs can run on."),
    "validate": ("validate", "Check job files without submitting them."),
    "submit": ("submit", "Submit the job of a file."),
    "offers": ("offers", "Show where a job could run, and at what price."),
    "cost": ("cost", "Show what a job costs at most."),
    "spend": ("spend", "Show what teams may spend, and what is reserved for jobs."),
    "ls": ("get", "List jobs."),
    "get": ("get", "Show jobs."),
    "explain": ("explain", "Explain why a job waits or failed."),
    "watch": ("watch", "Watch jobs until they have ended."),
    "logs": ("logs", "Show what a job printed."),
    "report": ("report", "Write a page about a job."),
    "results": ("results", "Show the results of a sweep's tasks."),
    "exec": ("exec", "Run a command in a running job."),
    "wait": ("wait", "Wait until jobs have ended."),
    "tend": ("tend", "Resubmit preempted jobs, and clean up after ended ones."),
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
    from ..client.targets import load

    settings = context.find_object(Settings)
    for entry in load(settings.targets if settings else None).entries.values():
        yield entry.name, entry.kind


def _jobs(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Yield ids, newest first; whole references only where one is begun: bash begins another word at their colon."""
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
    help="""Submit jobs to the targets of a stack or to this machine, and manage them.

    JOB is a reference as `submit` prints it, or the name or short id that `ls` shows, or the beginning of one.
    Jobs submitted from this machine are searched first, then those that the targets list. If several have the
    name, it means the only one that has not ended. If there is none such, or more than one, the candidates are
    listed, newest first, and the exit code is 2.
    """,
    epilog=EPILOG,
)
