"""Google's quotas of a project, as recorded answers."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tests.support.google import Google, google

REGION, PROJECT = "/compute/v1/projects/research/regions/us-central1", "/compute/v1/projects/research"
INFOS = "/v1/projects/research/locations/global/services/compute.googleapis.com/quotaInfos"
SERIES = "/v3/projects/research/timeSeries"


@contextmanager
def quota_cloud(patch: pytest.MonkeyPatch) -> Generator[Google]:
    """With the patch, commands ask it."""
    with google() as found:
        for name, value in found.variables.items():
            patch.setenv(name, value)
        found.on(PROJECT, "project.json")
        found.on(REGION, "region.json")
        found.on(INFOS, "quota_infos_1.json")
        found.on(f"{INFOS}#page-2", "quota_infos_2.json")
        found.on(SERIES, "series_h100.json")
        yield found
