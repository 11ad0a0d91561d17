"""How far it is from `submit` to the call of the service: through how many files a reader follows a job."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from click.testing import Result

from tests.jobs.batch_target import BATCH

ROOT = Path(__file__).resolve().parents[2]
FILES_MAX = 8


def test_a_job_passes_few_files_on_its_way_to_the_service(
    invoke: Callable[..., Result], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way: list[str] = []

    def answer(client: object, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if operation == "SubmitJob":
            frames = [Path(frame.filename) for frame in traceback.extract_stack()]
            way.extend(str(path.relative_to(ROOT)) for path in frames if path.is_relative_to(ROOT / "jobs"))
            return {"jobId": "0f3c0000-0000-0000-0000-000000000000"}
        return {"ListJobs": {"jobSummaryList": []}, "DescribeJobDefinitions": {"jobDefinitions": [{}]}}[operation]

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr(BaseClient, "_make_api_call", answer)
    (home / "t.json").write_text(json.dumps({"gpu": BATCH}))
    (home / "job.yaml").write_text("{name: a, command: [ls], image: 'alpine:3.20', cpus: 1, memory_mib: 100}")
    result = invoke("submit", "job.yaml", "--to", "gpu", "--targets", "t.json", "--no-quota")
    assert result.exit_code == 0, result.output
    files = list(dict.fromkeys(way))
    assert files[0] == "jobs/cli/submit.py" and files[-1] == "jobs/backends/claims/submit.py"
    assert way[-1] == "jobs/backends/aws_batch/submit.py"
    assert len(files) <= FILES_MAX, files
