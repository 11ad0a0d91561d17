"""Cordon the node that this program runs on when the kernel's log reports a GPU error from a list.

A program of its own: a pod of health.py runs this file alone, so it uses only the standard library. It reads $KMSG
record by record, as /dev/kmsg returns them (first all since boot, then each new one), and reads the list of error
numbers in $XIDS anew for each error. It also reads the node's own annotation, so that an error that was handled before
a restart is not handled again, even if somebody has uncordoned the node since.
https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
"""

import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

LAST = "accel/xid"
"""Annotation of a node: number and GPU of the last error that cordoned it."""

SEEN = "accel/xid-seen"
"""Annotation of a node: boot of that error, and the number of its record in the kernel's log."""

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, )?(.*)")
_RECORD = 8192  # the kernel gives one record a read, and refuses a buffer that is too small for it
_SUMMARY = 154
_SERIOUS = ("GPU Reset Required", "Node Reboot Required", "Drain and Reset")
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 60.0


@dataclass(frozen=True)
class Xid:
    """GPU error, and the number of its record."""

    record: int
    gpu: str
    number: int
    text: str


def parse_record(record: bytes) -> Xid | None:
    """Return the error in a record (`priority,number,time,flags;message`); None for any other message."""
    about, _, message = record.decode("utf-8", "replace").partition(";")
    match = _XID.search(message)
    if not match:
        return None
    return Xid(int(about.split(",")[1]), match[1], int(match[2]), match[3].partition("\n")[0])


def parse_numbers(text: str) -> set[int]:
    """Return the numbers of a list: one per line, with comments after #. Raise ValueError for anything else."""
    return {int(line) for each in text.splitlines() if (line := each.partition("#")[0].strip())}


def serious(xid: Xid, numbers: set[int]) -> bool:
    """Return whether the node should accept no new pods: the number is on the list, and for 154, which repeats what
    another error requests, the text requests a reset or a reboot."""
    return xid.number in numbers and (xid.number != _SUMMARY or any(words in xid.text for words in _SERIOUS))


def records(log: int) -> Iterator[bytes]:
    """Yield the records of an open log until it ends; /dev/kmsg never does."""
    while True:
        try:
            record = os.read(log, _RECORD)
        except BrokenPipeError:
            # Records were overwritten before they were read: the next read gives the oldest that is left.
            continue
        if not record:
            return
        yield record


class Node(Protocol):
    """Node object, as far as this program needs it."""

    def annotations(self) -> dict[str, str]: ...
    def change(self, patch: dict[str, Any]) -> None: ...


class ApiNode:
    """Node in the Kubernetes API, accessed with the pod's account. Calls are retried forever, because a lost cordon is
    a lost job."""

    def __init__(self, name: str, url: str, account: Path = _ACCOUNT, first_wait_s: float = _FIRST_WAIT_S) -> None:
        self._url = f"{url}/api/v1/nodes/{name}"
        self._account = account
        self._first_wait_s = first_wait_s
        self._tls = ssl.create_default_context(cafile=str(account / "ca.crt")) if url.startswith("https") else None

    def annotations(self) -> dict[str, str]:
        return self._ask("GET", None)["metadata"].get("annotations") or {}

    def change(self, patch: dict[str, Any]) -> None:
        """Merge a patch into the node."""
        self._ask("PATCH", patch)

    def _ask(self, verb: str, body: dict[str, Any] | None) -> dict[str, Any]:
        wait_s = self._first_wait_s
        while True:
            # The token is rotated, so it is read for each request.
            headers = {
                "Authorization": f"Bearer {(self._account / 'token').read_text().strip()}",
                "Content-Type": "application/merge-patch+json",
            }
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(self._url, data, headers, method=verb)  # noqa: S310  the API server's URL
            try:
                with urllib.request.urlopen(request, timeout=30, context=self._tls) as answer:  # noqa: S310
                    return json.load(answer)
            except (urllib.error.URLError, TimeoutError, ConnectionError, json.JSONDecodeError) as error:
                say(f"{verb} {self._url}: {error}; again in {wait_s:g} s")
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _MOST_WAIT_S)


def watch(log: int, node: Node, numbers: Path, boot: str, cordon: bool = True) -> None:
    """Handle each serious error in the log once: cordon and annotate the node; without `cordon`, only annotate it."""
    before, _, number = node.annotations().get(SEEN, "").partition("/")
    seen = int(number) if before == boot else -1
    for record in records(log):
        xid = parse_record(record)
        if xid is None or xid.record <= seen:
            continue
        fatal = serious(xid, parse_numbers(numbers.read_text()))
        say(f"XID {xid.number} of GPU {xid.gpu}: {'serious' if fatal else 'not on the list'}: {xid.text}")
        if fatal:
            written = {LAST: f"{xid.number} {xid.gpu}", SEEN: f"{boot}/{xid.record}"}
            spec = {"spec": {"unschedulable": True}} if cordon else {}
            node.change({"metadata": {"annotations": written}, **spec})
            say("the node is cordoned" if cordon else "the node is annotated")


def say(text: str) -> None:
    """Write one line to the pod's log."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> None:
    """Read the environment and watch until killed."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    node = ApiNode(os.environ["NODE_NAME"], f"https://{f'[{host}]' if ':' in host else host}:{port}")
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    log = os.open(os.environ.get("KMSG", "/dev/kmsg"), os.O_RDONLY)
    watch(log, node, Path(os.environ["XIDS"]), boot, cordon=os.environ.get("CORDON") != "no")


if __name__ == "__main__":
    main()
