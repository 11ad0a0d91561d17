"""What every test shares: markers by folder, hypothesis profiles, the engine's fixtures."""

import os
import signal
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sandbox.aws.calls import keep_models
from sandbox.starting import without_collector
from tests.support.soak import SOAK

pytest_plugins = [f"tests.support.{name}" for name in ("forking", "catalog", "engine", "kubernetes", "order", "wheel")]

HERE = Path(__file__).parent
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would hand on that it is ignored
os.environ.setdefault("GOGC", "200")  # for the servers of Kubernetes: more memory, less CPU
os.environ.pop("ACCEL_CATALOG", None)  # figures of tests are those that ship
os.environ["ACCEL_IMAGE_CHECK"] = "off"  # no test asks a registry of others
keep_models()
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile the project, each anew

# Seeded, so that a failure is one for everybody; the soak looks further, with a new seed each time.
settings.register_profile(
    "sample", max_examples=50, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("soak" if SOAK else "sample")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with without_collector():  # a fifth of the time that the collection takes
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = _folder(item.path)
        if folder in ("engine", "e2e"):
            item.add_marker(folder)


@cache
def _folder(module: Path) -> str:
    return module.relative_to(HERE).parts[0]


@pytest.fixture(autouse=True)
def own_credentials() -> Iterator[None]:
    """boto3 keeps what its first client found for all clients of the process: each test has its own."""
    yield
    if boto3 := sys.modules.get("boto3"):
        vars(boto3)["DEFAULT_SESSION"] = None
