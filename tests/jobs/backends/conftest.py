"""A cluster of a test's own, for tests of the GKE backend that have no other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.backends.gke_cluster import Cluster


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = Cluster()
    yield made
    made.stop()
