"""Exit codes by which a command says that not it but its machine is at fault: on any cloud, such an attempt is lost."""

STOPPED = 143
"""It saved and stopped because the machine is taken away: what a shell says of SIGTERM."""
BAD_NODE = 75
"""The machine is not fit for it: "temporary failure" of sysexits.h.
Source: https://man.freebsd.org/cgi/man.cgi?query=sysexits"""
LOST = (BAD_NODE, STOPPED)
"""jobs/runtime, which imports nothing of the project, has the same two."""
