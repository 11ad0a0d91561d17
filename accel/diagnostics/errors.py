"""The errors of accel, and the exit code of each.

JobsError                 1   unexpected
├── BadInput              2   a job file, an argument, a field that a backend cannot honour
│   └── NotPromised           a record asks for machines that no target has
├── NoCredentials         3   the cloud does not know the caller
├── CloudRefused          4   the cloud understood and refused
│   └── NoCapacity            a zone has no free machine at the moment (backends/vms/control.py)
├── OverLimit             5   policy, budget or quota
├── NotFound              6   no such job, target or file
│   └── NoRuntime             this machine has nothing that runs a container
├── ChangesFound          7   changes where none were expected
├── Declined              8   the user declined at the prompt
├── CloudSilent           9   the API timed out, throttled for too long, or could not be reached
│   ├── Damaged               unreadable records among readable ones
│   ├── NotSent               the caller stopped before the request was sent
│   ├── Unreached             no connection was established, so nothing was sent
│   └── Throttled             certain not to be carried out: too many calls
├── WaitedTooLong       124   `wait` ran out of time; the job goes on
├── JobFailed           125   the job itself failed
└── Interrupted         130   the user pressed Ctrl-C; the job goes on
"""

from accel.diagnostics.redaction import redact


class JobWarning(UserWarning):
    """A likely mistake. The Python API issues it as a warning, and rejects it with strict=True."""


class JobsError(Exception):
    """An error for the user: one line, and an optional second one with what to do. Neither contains secrets."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = redact(message)
        self.hint = None if hint is None else redact(hint)
        super().__init__(self.message)


class BadInput(JobsError):
    """A job file, an argument, or a field that a backend cannot honour."""

    exit_code = 2


class BadInputs(BadInput):
    """Several faults of one input, reported together, one line each."""

    def __init__(self, messages: list[str], hint: str | None = None) -> None:
        self.messages = [redact(message) for message in messages]
        super().__init__("\n".join(self.messages), hint)


class NotPromised(BadInput):
    """A record asks for machines that no target has; nothing is created."""


class NoCredentials(JobsError):
    """The cloud does not know the caller."""

    exit_code = 3


class CloudRefused(JobsError):
    """The cloud understood and refused."""

    exit_code = 4


class OverLimit(JobsError):
    """A policy, budget or quota forbids it."""

    exit_code = 5


class NotFound(JobsError):
    """No such job, target or file."""

    exit_code = 6


class NoRuntime(NotFound):
    """This machine has nothing that runs a container; the hint has the command to use."""


class ChangesFound(JobsError):
    """Changes were found where none were expected. Source: https://www.pulumi.com/docs/iac/cli/exit-codes/"""

    exit_code = 7


class Declined(JobsError):
    """The user declined at the prompt."""

    exit_code = 8


class CloudSilent(JobsError):
    """Outcome unknown: the API timed out, throttled for too long, or could not be reached."""

    exit_code = 9


class Damaged(CloudSilent):
    """Some records cannot be read, with a message each; all others were returned before."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__("; ".join(messages), "the other records are not affected")
        self.messages = messages


class NotSent(CloudSilent):
    """The caller stopped before the request was sent, so nothing was created."""


class Unreached(CloudSilent):
    """No connection was established, so nothing was sent."""


class Throttled(CloudSilent):
    """The call was not carried out: too many calls, or an exhausted quota."""


class WaitedTooLong(JobsError):
    """`wait` ran out of time; the job goes on."""

    exit_code = 124


class JobFailed(JobsError):
    """The job itself failed."""

    exit_code = 125


class Interrupted(JobsError):
    """The user pressed Ctrl-C; the job goes on."""

    exit_code = 130
