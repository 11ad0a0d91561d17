"""What can go wrong, and the exit code that each becomes.

JobsError                 1   unexpected
├── BadInput              2   a job file, an argument, a field that a backend cannot honour
│   └── NotPromised           a record asks for machines that no target has
├── NoCredentials         3   the cloud does not know who we are
├── CloudRefused          4   the cloud understood and said no
│   └── NoCapacity            a zone has no machine to give just now (backends/vms/control.py)
├── OverLimit             5   policy, budget or quota
├── NotFound              6   no such job, target or file
│   └── NoRuntime             this machine has nothing that runs a container
├── ChangesFound          7   none were expected
├── Declined              8   the user said no at the prompt
├── CloudSilent           9   the API timed out, throttled for too long, or could not be reached
│   ├── Damaged               a record that cannot be read, of several that can
│   ├── NotSent               whoever asked stopped before the request was sent
│   ├── Unreached             no connection came about, so nothing was sent
│   └── Throttled             surely not carried out: too many calls
├── WaitedTooLong       124   `wait` ran out of time; the job goes on
├── JobFailed           125   the job itself failed
└── Interrupted         130   the user pressed Ctrl-C; the job goes on
"""

from accel.diagnostics.redaction import redact


class JobWarning(UserWarning):
    """What may not be meant; the functions for Python warn of it, and refuse it with strict=True."""


class JobsError(Exception):
    """One line for the user, and perhaps a second that says what to do; neither with what is nobody else's."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = redact(message)
        self.hint = None if hint is None else redact(hint)
        super().__init__(self.message)


class BadInput(JobsError):
    """A job file, an argument, or a field that a backend cannot honour."""

    exit_code = 2


class BadInputs(BadInput):
    """Several faults of one input, reported together, a line each."""

    def __init__(self, messages: list[str], hint: str | None = None) -> None:
        self.messages = [redact(message) for message in messages]
        super().__init__("\n".join(self.messages), hint)


class NotPromised(BadInput):
    """A record asks for machines that no target has: nothing is made."""


class NoCredentials(JobsError):
    """The cloud does not know who we are."""

    exit_code = 3


class CloudRefused(JobsError):
    """The cloud understood and said no."""

    exit_code = 4


class OverLimit(JobsError):
    """Policy, budget or quota."""

    exit_code = 5


class NotFound(JobsError):
    """No such job, target or file."""

    exit_code = 6


class NoRuntime(NotFound):
    """This machine has nothing that runs a container; the hint has the command that would."""


class ChangesFound(JobsError):
    """None were expected. Source: https://www.pulumi.com/docs/iac/cli/exit-codes/"""

    exit_code = 7


class Declined(JobsError):
    """The user said no at the prompt."""

    exit_code = 8


class CloudSilent(JobsError):
    """Nobody knows: the API timed out, throttled for too long, or could not be reached."""

    exit_code = 9


class Damaged(CloudSilent):
    """Some records cannot be read, a message each; all others were given before."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__("; ".join(messages), "the others are not touched by it")
        self.messages = messages


class NotSent(CloudSilent):
    """Surely nothing was made: whoever asked stopped before the request was sent."""


class Unreached(CloudSilent):
    """No connection came about, so nothing was sent."""


class Throttled(CloudSilent):
    """Surely not carried out: too many calls, or a quota that is used up."""


class WaitedTooLong(JobsError):
    """`wait` ran out of time; the job goes on."""

    exit_code = 124


class JobFailed(JobsError):
    """The job itself failed."""

    exit_code = 125


class Interrupted(JobsError):
    """The user pressed Ctrl-C; the job goes on."""

    exit_code = 130
