"""Exit codes by which a command blames its machine: on any cloud, such an attempt counts as lost."""

STOPPED = 143
"""The command saved its state and stopped because of a preemption: the shell's code for SIGTERM."""
BAD_NODE = 75
"""The machine is unsuitable: "temporary failure" of sysexits.h. Source:
https://man.freebsd.org/cgi/man.cgi?query=sysexits"""
CANNOT_RUN = (126, 127)
"""POSIX codes of a shell that could not run or find the command, also used by docker run. Another attempt ends in the
same way. Source: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"""
LOST = (BAD_NODE, STOPPED)
"""Codes that count as lost. jobs/runtime, which imports nothing of the project, has the same two."""
