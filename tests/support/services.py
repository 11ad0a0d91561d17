"""APIs of the sandbox's Google project, which a new project has off."""

import time
from collections.abc import Mapping

import requests

from sandbox.google import PROJECT

GIVE_UP_S = 60


def enable(url: str, signed: Mapping[str, str], *names: str) -> None:
    """Enables APIs by their short names (compute), and waits until each is on."""
    for name in names:
        at = f"{url}/serviceusage.googleapis.com/v1/projects/{PROJECT}/services/{name}.googleapis.com"
        assert requests.post(f"{at}:enable", json={}, headers=signed, timeout=120).ok
        until = time.monotonic() + GIVE_UP_S
        while requests.get(at, headers=signed, timeout=120).json()["state"] != "ENABLED":
            assert time.monotonic() < until, f"{name} is not enabled after {GIVE_UP_S} s"
            time.sleep(0.1)
