from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.jobs.agent.machines import Cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with ExitStack() as stack:
        yield Cloud(stack, tmp_path)
