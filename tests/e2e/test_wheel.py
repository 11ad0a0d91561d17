"""The installed command, in an empty environment and another folder."""

from pathlib import Path

import pytest

from tests.support.wheel import run

from .conftest import Shell

JOB = "{name: installed, image: local/examples, command: [python, -c, 'print(42)']}"


@pytest.mark.slow
def test_the_installed_command_reaches_the_queue(shell: Shell, installed: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    wanted = ("AWS_", "ACCEL_", "XDG_")
    environ = {name: value for name, value in shell.variables.items() if name.startswith(wanted)}
    ref = run(installed / "accel-jobs", "submit", "job.yaml", "--to", "gpu", "--wait", cwd=tmp_path, **environ)
    assert ref.startswith("aws-batch:us-east-1/")
    assert run(installed / "accel-jobs", "logs", ref.strip(), cwd=tmp_path, **environ) == "42\n"


@pytest.mark.slow
def test_it_is_the_installed_code_that_runs(installed: Path, tmp_path: Path) -> None:
    assert "submit" in run(installed / "accel-jobs", "--help", cwd=tmp_path)
    where = run(installed / "python", "-c", "import accel.jobs as j; print(j.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
