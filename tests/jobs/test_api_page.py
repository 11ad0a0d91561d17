"""The snippets of docs/python.md and the README, as a notebook runs cells: in their order, and in one event loop."""

import ast
import asyncio
import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import jobs
from accel.diagnostics.errors import JobsError, JobWarning
from jobs.api import Options
from tests.support.pages import ROOT, blocks

PAGE = ROOT / "docs" / "python.md"
CELLS = [block for page in (PAGE, ROOT / "README.md") for block in blocks(page) if block.language == "python"]


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's job file, and this machine as the target `gpu`."""
    shutil.copytree(ROOT / "examples", home / "examples")
    (home / "targets.json").write_text(json.dumps({"gpu": {"kind": "local", "schema": 1, "root": "."}}))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "targets.json"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    job = {"name": "digits", "image": "local/examples", "command": ["python", "train.py"]}
    job["env"] = {"EPOCHS": 2, "STEP_SLEEP_MS": 0, "PYTHONPATH": str(ROOT)}
    (home / "job.yaml").write_text(yaml.safe_dump(job))
    return home


@pytest.mark.usefixtures("project")
def test_every_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    async def notebook() -> None:
        names: dict[str, Any] = {}
        for cell in CELLS:
            code = compile(cell.text, str(cell), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waits = eval(code, names)  # noqa: S307
            if inspect.isawaitable(waits):
                await waits

    asyncio.run(notebook())
    printed = capsys.readouterr()
    assert printed.err == "" and len(CELLS) == 8
    assert "epoch 2/2 loss" in printed.out and printed.out.count("SUCCEEDED") == 8
    assert (
        "'Job: accelerator.count: must be at least 1, is 0', \"Job: cpus: must be an integer, is 'four'\""
        in printed.out
    )


def test_the_page_names_every_option_function_and_method() -> None:
    text = PAGE.read_text()
    own = [name for name, each in vars(jobs.Run).items() if inspect.isfunction(each) and not name.startswith("_")]
    functions = [name for name in jobs.__all__ if name.islower()]
    fields = list(jobs.Run.__dataclass_fields__)
    assert [name for name in [*Options.__annotations__, *own, *functions, *fields] if name not in text] == []
    assert [name for name in own if not hasattr(jobs.aio, name)] == []


def test_the_page_has_every_error_with_its_code() -> None:
    rows = [
        line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `") and "| class" not in line
    ]
    written = {
        name.strip(" `"): row[2].strip() for row in rows for name in row[1].split(",") if row[2].strip().isdigit()
    }
    found = {name: str(getattr(jobs.errors, name).exit_code) for name in written}
    assert written == found and len(written) == 11
    assert not issubclass(JobWarning, JobsError)
