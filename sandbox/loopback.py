"""Addresses for what runs on this machine as if it had a machine of its own.

Jobs of two sandboxes, or of two clouds in one, may listen on the same port, such as torchrun's: on Linux all of
127.0.0.0/8 is this machine, and each takes an address of its own. https://www.rfc-editor.org/rfc/rfc1122#section-3.2.1.3
"""

import functools
import hashlib
import os
import socket

LOCAL = "127.0.0.1"


def address(*names: object) -> str:
    """Of what has these names in this process: the same for the same names. Where only 127.0.0.1 is there, that."""
    if not _all_of_it():
        return LOCAL
    text = "/".join(map(str, (os.getpid(), *names)))
    first, *rest = hashlib.blake2b(text.encode(), digest_size=3).digest()
    return ".".join(map(str, (127, 1 + first % 254, *rest)))


@functools.cache
def _all_of_it() -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.1.2.3", 0))
        except OSError:  # macOS
            return False
    return True
