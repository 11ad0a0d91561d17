"""Addresses for processes of this machine that act as if they had a machine of their own. Jobs of two sandboxes, or of
two clouds in one, may listen on the same port, such as torchrun's: on Linux all of 127.0.0.0/8 is this machine, and
each has an address of its own. https://www.rfc-editor.org/rfc/rfc1122#section-3.2.1.3"""

import functools
import hashlib
import os
import socket

LOCAL = "127.0.0.1"


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
