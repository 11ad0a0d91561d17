"""Check whether a client is the sandbox's own user, for protocols without a place for a secret: those of Pulumi's
providers and of metadata servers."""

import os
import sys
import time
from pathlib import Path

import psutil

_LOCAL, _ESTABLISHED = "0100007F", "01"
VALID_S = 1.0
"""How long a connection that was ours needs no other look, which reads all connections of the machine. Linux gives the
port of a closed one to no other connection within a second:
https://www.kernel.org/doc/html/latest/networking/ip-sysctl.html (tcp_tw_reuse_delay)"""
_SEEN_MAX = 1000
_seen: dict[tuple[int, int], float] = {}


def ours(theirs: int, port: int) -> bool:
    """Return whether this user owns the other end of a loopback connection from the port `theirs` to a port of ours."""
    now = time.monotonic()
    if now - _seen.get((theirs, port), -VALID_S) < VALID_S:
        return True
    found = _on_linux(theirs, port) if sys.platform == "linux" else _elsewhere(theirs, port)
    if len(_seen) >= _SEEN_MAX:
        _seen.clear()
    if found:
        _seen[theirs, port] = now
    return found


def _on_linux(theirs: int, port: int) -> bool:
    """Look up the owner in the kernel's table: https://www.kernel.org/doc/Documentation/networking/proc_net_tcp.txt.
    The table of IPv6 has the addresses of IPv4 with a prefix. A closed connection has no owner any more."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, remote, state, *_, uid, _, _ = line.split()[:10]
            ends = local.endswith(f"{_LOCAL}:{theirs:04X}") and remote.endswith(f"{_LOCAL}:{port:04X}")
            if ends and state == _ESTABLISHED:
                return int(uid) == os.getuid()
    return False


def _elsewhere(theirs: int, port: int) -> bool:
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and any(
                (each.laddr.port, each.raddr and each.raddr.port) == (theirs, port)
                for each in process.net_connections("tcp")
            ):
                return True
        except psutil.Error:
            continue
    return False
