"""Exit codes by which a command says that not it but its machine is at fault: on any cloud, such an attempt is lost."""

STOPPED = 143
"""It saved and stopped because the machine is taken away: what a shell says of SIGTERM."""
BAD_NODE = 75
"""The machine is not fit for it: "temporary failure" of sysexits.h.
Source: https://man.freebsd.org/cgi/man.cgi?query=sysexits"""
CANNOT_RUN = (126, 127)
"""By POSIX, a shell that could not run the command, or not find it, exits so, and docker run does too: another attempt
ends in the same way.
Source: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"""
LOST = (BAD_NODE, STOPPED)
"""jobs/runtime, which imports nothing of the project, has the same two."""
REQUIREMENTS = 69
"""Its packages could not be installed before it began: "service unavailable" of sysexits.h. jobs/runtime/requirements
has the same."""
