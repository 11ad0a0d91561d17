"""Addresses for processes of this machine that act as if they had a machine of their own. Jobs of two sandboxes, or of
two clouds in one, may listen on the same port, such as torchrun's: on Linux all of 127.0.0.0/8 is this machine, and
each has an address of its own. https://www.rfc-editor.org/rfc/rfc1122#section-3.2.1.3"""

import functools
import hashlib
import itertools
import os
import socket
from collections.abc import Iterator

LOCAL = "127.0.0.1"
_PORTS = range(20_000, 32_000)  # below those that systems give to outgoing connections
_PORTS_APART = 5


class NoFreePort(Exception):
    """Every port that the sandbox uses is taken."""


def address(*names: object) -> str:
    """Return an address for these names in this process, always the same; 127.0.0.1 where it is the only one."""
    if not _all_of_it():
        return LOCAL
    text = "/".join(map(str, (os.getpid(), *names)))
    first, *rest = hashlib.blake2b(text.encode(), digest_size=3).digest()
    return ".".join(map(str, (127, 1 + first % 254, *rest)))


def foreign(port: int, host: str | None, origin: str | None, *origins: str) -> str | None:
    """Return why a request to a port of ours is refused, or None for one that is ours or comes from one of `origins`. A
    request is foreign if it was meant for another host, such as a page whose name was made to lead here, or comes from
    a page. A relay or a tunnel has another port, which a page cannot claim for a host that is not its own."""
    own = (f"{LOCAL}:{port}", f"localhost:{port}")
    if (host or "").lower().partition(":")[0] not in (LOCAL, "localhost"):
        return f"the sandbox answers for {own[0]}, and not for the host {host!r}"
    if origin is not None and origin.lower() not in (*(f"http://{each}" for each in own), *origins):
        return f"the sandbox takes no requests of the pages of {origin!r}"
    return None


@functools.cache
def _all_of_it() -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.1.2.3", 0))
        except OSError:  # macOS
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Return different ports on loopback that nobody listens on. It takes seconds until servers listen on them, so a
    process gets each port once, and processes that start at the same time, whose numbers differ, get different ones.
    Raise NoFreePort."""
    found = [*itertools.islice(filter(_is_free, itertools.islice(_candidates(os.getpid()), len(_PORTS))), count)]
    if len(found) < count:
        raise NoFreePort(f"no free ports on {LOCAL}")
    return found


@functools.cache
def _candidates(process: int) -> Iterator[int]:
    first = process * _PORTS_APART % len(_PORTS)
    return itertools.cycle((*_PORTS[first:], *_PORTS[:first]))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCAL, port))
        except OSError:
            return False
    return True
