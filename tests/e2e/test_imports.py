"""Files of other tools on AWS Batch: imported, submitted, run, and their log shown.

Those that belong to Google Cloud are in test_google_jobs.py, test_gke.py and test_vms.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Sandbox

from . import files_of_others as files
from .conftest import Shell

TEXTS = {
    "slurm": files.SLURM,
    "aws-batch": files.AWS_DEFINITION,
    "aws-batch command": files.AWS_REGISTER,
}


@pytest.fixture(scope="module", autouse=True)
def definitions(sandbox: Sandbox) -> Iterator[None]:
    """Jobs register definitions, which stay until `stacks images prune-definitions` removes them."""
    yield
    batch = sandbox.client("batch")
    for definition in batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]:
        if definition["containerProperties"]["image"] == files.IMAGE:
            batch.deregister_job_definition(jobDefinition=definition["jobDefinitionArn"])


@pytest.mark.parametrize("kind", TEXTS)
def test_a_file_of_another_tool_runs_to_its_end(kind: str, shell: Shell, tmp_path: Path) -> None:
    log = files.imported(shell, TEXTS[kind], kind.partition(" ")[0], "gpu", tmp_path)
    assert "trained with --epochs 2" in log
