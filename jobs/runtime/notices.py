"""Threads that ask the machine's metadata server for notices of preemption and maintenance."""

from __future__ import annotations

import os
import threading
import time
import urllib.error
import urllib.request
from typing import Callable

Ask = Callable[[str, "float | None"], None]
"""Callback for the reason and the seconds that are left."""

EVERY_S = 5.0
"""Interval that AWS recommends. Source:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html"""
ANSWER_S = 2.0
SILENT_MAX = 3
"""Attempts without any answer after which no metadata server is reachable, as in a container on an instance whose hop
limit is 1."""
TOKEN_S = 21600
WAIT_S = 60
MAINTENANCE_S = 60.0
"""Minimum; a VM with GPUs has an hour. Source: https://docs.cloud.google.com/compute/docs/gpus/gpu-host-maintenance"""
PREEMPTED_S = 30.0

# It is on this machine: no proxy can reach it.
_local = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Silent(Exception):
    """No answer from the metadata server."""


class Watch:
    """The threads of one platform; they end with the process, or by `close`."""

    def __init__(self, kind: str, ask: Ask) -> None:
        self._ask = ask
        self._over = threading.Event()
        works = {"ec2": [self._ec2], "gce": [self._preempted, self._maintenance]}[kind]
        self.threads = [threading.Thread(target=work, name=f"accel-{kind}", daemon=True) for work in works]
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """Stop asking. A thread that waits for an answer ends with it."""
        self._over.set()

    def _ec2(self) -> None:
        root = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
        token, until, silent = "", 0.0, 0
        while not self._over.is_set():
            try:
                if time.monotonic() >= until:
                    head = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_S)}
                    token = _answer("PUT", f"{root.rstrip('/')}/latest/api/token", head, ANSWER_S)[1]
                    until = time.monotonic() + TOKEN_S / 2
                path = f"{root.rstrip('/')}/latest/meta-data/spot/instance-action"
                status, text, _ = _answer("GET", path, {"X-aws-ec2-metadata-token": token}, ANSWER_S)
                silent = 0
            except Silent:
                silent += 1
                if silent >= SILENT_MAX and not token:
                    return
                status, text = 0, ""
            if status == 200:
                self._ask("spot-interruption", _left_s(text))
                return
            if status == 401:
                until = 0.0
            self._over.wait(EVERY_S)

    def _preempted(self) -> None:
        self._changes("preempted", "TRUE", "preempted", PREEMPTED_S)

    def _maintenance(self) -> None:
        self._changes("maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE", "maintenance", MAINTENANCE_S)

    def _changes(self, key: str, wanted: str, reason: str, seconds: float) -> None:
        """Wait until the metadata has a value, and report it. Source:
        https://docs.cloud.google.com/compute/docs/metadata/querying-metadata#waitforchange"""
        host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
        etag, silent = "0", 0
        while not self._over.is_set():
            query = f"wait_for_change=true&last_etag={etag}&timeout_sec={WAIT_S}"
            url = f"http://{host}/computeMetadata/v1/instance/{key}?{query}"
            try:
                status, text, etag = _answer("GET", url, {"Metadata-Flavor": "Google"}, WAIT_S + 10)
                silent = 0
            except Silent:
                silent += 1
                status, text = 0, ""
            if status == 200 and text.strip() == wanted:
                self._ask(reason, seconds)
                return
            if status in (403, 404) or (silent >= SILENT_MAX and etag == "0"):
                return
            if status != 200:
                self._over.wait(EVERY_S)


def _answer(method: str, url: str, headers: dict[str, str], timeout_s: float) -> tuple[int, str, str]:
    """Return status, text and etag of the answer. Raise Silent if there is none."""
    request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310
    try:
        with _local.open(request, timeout=timeout_s) as answer:
            return answer.status, answer.read(65536).decode("utf-8", "replace"), answer.headers.get("etag") or "0"
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, "", "0"
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise Silent(str(error)) from None


def _left_s(text: str) -> float | None:
    """Parse an interruption such as `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`. None: it has no time."""
    import calendar
    import json

    try:
        at = calendar.timegm(time.strptime(json.loads(text)["time"], "%Y-%m-%dT%H:%M:%SZ"))
    except (ValueError, KeyError, TypeError):
        return None
    return max(0.0, at - time.time())
