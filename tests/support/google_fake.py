"""The sandbox's Google as a process of its own, without the other parts, and pulumi-gcp's stand-in over it."""

import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.environment import environment, project
from tests.support.waiting import PATIENCE_S, announced, until

from .engine import Engine, Sandbox
from .forking import Forked

P = "projects/accel-sandbox"
COMPUTE = f"compute.googleapis.com/compute/v1/{P}"
CONTAINER = f"container.googleapis.com/v1/{P}/locations"


@dataclass(frozen=True)
class Fake:
    """A running server: calls with its token, and what it is told to do wrong."""

    home: Path
    url: str
    token: str

    def ask(
        self, http: str, path: str, body: Any = None, *, token: str | None = None, **query: Any
    ) -> requests.Response:
        bearer = self.token if token is None else token
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return requests.request(http, f"{self.url}/{path}", json=body, params=query, headers=headers, timeout=120)

    def call(self, http: str, path: str, body: Any = None, **query: Any) -> Any:
        answer = self.ask(http, path, body, **query)
        assert answer.ok, answer.text
        return answer.json()

    def slow(self, http: str, path: str, body: Any = None, **query: Any) -> Any:
        """A call whose operation takes so long that what is so meanwhile is seen on a busy machine too."""
        self.fault(method="*", delay_s=4)
        return self.call(http, path, body, **query)

    def done(self, http: str, path: str, body: Any = None, **query: Any) -> Any:
        """A call and the end of its operation."""
        return self.end(self.call(http, path, body, **query))

    def end(self, operation: Any) -> Any:
        link = operation.get("selfLink", "")
        host = "compute.googleapis.com/compute/v1" if "/compute/" in link else "container.googleapis.com/v1"

        def done() -> Any:
            found = self.call("GET", f"{host}/{link.partition('/v1/')[2]}")
            return found if found["status"] == "DONE" else None

        return operation if operation["status"] == "DONE" else until(done)

    def finished(self, api: str, operation: Any) -> Any:
        """An operation as the newer APIs have it, such as firestore.googleapis.com/v1, at its end."""

        def done() -> Any:
            found = self.call("GET", f"{api}/{operation['name']}")
            return found if found["done"] else None

        return until(done)

    def fault(self, **plan: Any) -> Any:
        return self.call("POST", "sandbox-api/faults", plan)

    def well(self) -> None:
        self.call("DELETE", "sandbox-api/faults")


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Fake]:
    """A server of the module's own: what one leaves is not there for another. Every API of its project is enabled.

    A module that looks for each of several states in a row has a SETTLE_S of its own."""
    settle_s = getattr(request.module, "SETTLE_S", 0.05)
    with serving(tmp_path_factory.mktemp("google"), "--all-services", settle_s=settle_s) as made:
        yield made


@contextmanager
def serving(home: Path, *options: str, settle_s: float = 0.05) -> Generator[Fake]:
    """A server with these options."""
    home.mkdir(exist_ok=True)
    environ = {**os.environ, "SANDBOX_SETTLE_S": str(settle_s)}
    process = Forked(["-m", "sandbox.google", "--home", home, *options], project(), environ)
    told = announced(home / "google.json", process)
    assert told["pid"] == process.pid
    try:
        yield Fake(home, told["url"], (home / "key").read_text())
    finally:
        process.terminate()
    assert process.wait(PATIENCE_S) == 0
    assert not (home / "google.json").exists()


@pytest.fixture(scope="module")
def provider(fake: Fake) -> Iterator[dict[str, str]]:
    """The variables that lead the engine to the stand-in."""
    with provider_of(fake) as variables:
        yield variables


@contextmanager
def provider_of(fake: Fake) -> Generator[dict[str, str]]:
    """The same for any server."""
    from sandbox.plugins.gcp.plugin import GcpPlugin
    from sandbox.plugins.server import Servicer, serve

    plugin = GcpPlugin(fake.url, fake.home)
    server, port = serve(Servicer(lambda: plugin))
    (fake.home / "cloud.json").write_text(json.dumps({"port": 9}))
    (fake.home / "plugins.json").write_text(json.dumps({"pid": os.getpid(), "providers": {"gcp": port}}))
    for folder in ("backend", "pulumi"):
        (fake.home / folder).mkdir()
    yield environment(fake.home)
    server.stop(grace=None).wait()


def engine_on(
    folder: Path, fake: Fake, provider: dict[str, str], config: dict[str, str], *destroying: str
) -> Iterator[Engine]:
    """For a fixture: the engine on the stand-in; what a test leaves is destroyed, with these options."""
    engine = Engine(folder, Sandbox(fake.home, provider), config=config)
    yield engine
    fake.well()
    engine.destroy(*destroying, check=False)


def still(engine: Engine) -> None:
    """Nothing differs, neither from the program nor from what Google has."""
    result = engine.up("--refresh")
    changed = {step.name: (step.op, step.diffs) for step in result.steps if step.op not in ("same", "refresh")}
    assert (changed, result.ops("same")) == ({}, {})
