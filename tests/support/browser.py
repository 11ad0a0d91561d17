"""Chromium without a window, for pages that have to look right: what it laid out, asked for and complained about.

It is told what to do by its own protocol: https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websocket import WebSocket, create_connection

NAMES = ("chromium", "chromium-browser", "google-chrome")
ANSWER_S = 60
_QUIET = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")


def found() -> str | None:
    """The command; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Page:
    """An open page."""

    link: WebSocket
    session: str
    asked: list[str] = field(default_factory=list[str])
    """URLs that it asked for, but for its own."""
    said: list[str] = field(default_factory=list[str])
    """What went to the console, and what the browser has to say of the page."""
    events: list[str] = field(default_factory=list[str])
    _number: int = 0

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        """A call of the protocol; events that come before its answer are kept."""
        self._number += 1
        mark = {"id": self._number, "method": method, "params": fields}
        self.link.send(json.dumps({**mark, **({"sessionId": self.session} if self.session else {})}))
        while True:
            told = self._heard()
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]

    def wait(self, event: str) -> None:
        while event not in self.events:
            self._heard()

    def _heard(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.link.recv())
        method, fields = told.get("method", ""), told.get("params", {})
        self.events.append(method)
        if method == "Network.requestWillBeSent":
            self.asked.append(fields["request"]["url"])
        elif method == "Log.entryAdded":
            self.said.append(fields["entry"]["text"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.said.append(json.dumps(fields))
        return told

    def size(self, width: int, height: int) -> None:
        """Of the window, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def scheme(self, name: str) -> None:
        """`light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def evaluate(self, code: str) -> Any:
        """The value of an expression in JavaScript, as JSON has it; the page's own policy does not hold it up."""
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, path: Path, width: int, upto: str = "document.documentElement.scrollHeight") -> None:
        """The page as PNG, whole or as far as an expression says."""
        self.size(width, 100)
        self.size(width, int(self.evaluate(upto)))
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def opened(file: Path, folder: Path) -> Generator[Page]:
    """A page of this machine, loaded. `folder`: where the browser keeps what it keeps. Skips the test without one."""
    name = found() or pytest.skip(f"none of {', '.join(NAMES)} is on PATH")
    command = [name, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *_QUIET]
    command += ["--remote-debugging-port=0", f"--user-data-dir={folder / 'browser'}", "about:blank"]
    browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert browser.stderr
    try:
        address = next(filter(None, (re.search("listening on (ws://.*)", line) for line in browser.stderr)))[1]
        link = create_connection(address, timeout=ANSWER_S, suppress_origin=True)
        page = Page(link, "")
        target = page.call("Target.createTarget", url="about:blank")["targetId"]
        page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Network", "Log", "Runtime"):
            page.call(f"{part}.enable")
        page.events.clear()
        page.call("Page.navigate", url=file.resolve().as_uri())
        page.wait("Page.loadEventFired")
        page.asked.remove(file.resolve().as_uri())
        yield page
        link.close()
    finally:
        browser.terminate()
        browser.wait(ANSWER_S)
        browser.stderr.close()
