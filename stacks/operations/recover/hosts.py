"""Language hosts that outlive their engine: of a killed one they end by themselves only after minutes. Source:
https://github.com/pulumi/pulumi/pull/9735"""

import os
import re
import signal
import socket
import subprocess
from contextlib import suppress

_HOST = re.compile(r"\s*(\d+) \S*/pulumi-language-\S+ .*\b127\.0\.0\.1:(\d+)")
"""The process, and where its engine listens."""
_ANSWER_S = 1


def orphans() -> list[int]:
    """Those of this user whose engine does not listen any more."""
    listed = subprocess.run(["ps", "-xwwo", "pid=,args="], capture_output=True, text=True, check=False).stdout
    found = [each for each in map(_HOST.match, listed.splitlines()) if each]
    return [int(each[1]) for each in found if not _listens(int(each[2]))]


def end(pid: int) -> None:
    """Asks one to end."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # that nothing was heard proves nothing
    return True
