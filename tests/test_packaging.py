"""What the wheel carries; tests/e2e/test_wheel.py installs it."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.wheel import built, run

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_package_is_listed() -> None:
    names = {folder: name for name, folder in SETTINGS["tool"]["setuptools"]["package-dir"].items()}
    found = {
        ".".join([names[folder], *path.parent.relative_to(ROOT / folder).parts])
        for folder in names
        for path in (ROOT / folder).rglob("*.py")
    }
    listed = set(SETTINGS["tool"]["setuptools"]["packages"])
    assert (found - listed, listed - found) == (set(), set()), "pyproject.toml, tool.setuptools.packages"


@pytest.mark.slow
def test_the_wheel_claims_no_name_but_its_own(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "accel",
        f"accel_infra-{SETTINGS['project']['version']}.dist-info",
    }


@pytest.mark.slow
def test_nothing_in_the_wheel_imports_by_the_names_of_a_checkout(wheel: Path) -> None:
    """`components`, `jobs` and `stacks` lie under `accel` there; what a function's archive holds is text."""
    with zipfile.ZipFile(wheel) as archive:
        sources = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}
    assert "accel/stacks/cli/main.py" in sources
    wrong = [
        f"{name}: {module}"
        for name, source in sources.items()
        for node in ast.walk(ast.parse(source))
        for module in imported(node)
        if module.partition(".")[0] in ("components", "jobs", "stacks", "policy", "sandbox")
    ]
    assert wrong == []


def imported(node: ast.AST) -> list[str]:
    """The modules of an import that is not relative."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, said",
    [
        (["-m", "accel.stacks", "validate", "sandbox"], "Pulumi.sandbox.yaml: valid"),
        (["-m", "accel.stacks", "cost", "sandbox"], "sandbox: idle $"),
        (
            ["-c", "from accel.stacks.environment.gcp.reconcile_archive import archive; print(*archive())"],
            "jobs/backends/vm/function.py",
        ),
        (["-c", "from accel.stacks.environment import deploy; print(deploy.__module__)"], "accel.stacks.environment"),
    ],
    ids=["validate", "cost", "archive", "program"],
)
def test_stacks_of_the_wheel_needs_no_checkout(wheel: Path, tmp_path: Path, words: list[str], said: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    (tmp_path / "Pulumi.sandbox.yaml").write_bytes((ROOT / "Pulumi.sandbox.yaml").read_bytes())
    # Without site, the environment's link to this checkout is not followed.
    path = f"{tmp_path / 'wheel'}:{sysconfig.get_path('purelib')}"
    assert said in run(sys.executable, "-S", *words, cwd=tmp_path, PYTHONPATH=path)


@pytest.mark.slow
def test_without_an_extra_a_command_says_which(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    (tmp_path / "Pulumi.sandbox.yaml").write_bytes((ROOT / "Pulumi.sandbox.yaml").read_bytes())
    hidden = tmp_path / "hidden" / "pulumi.py"
    hidden.parent.mkdir()
    hidden.write_text("raise ModuleNotFoundError(\"No module named 'pulumi'\", name='pulumi')\n")
    done = subprocess.run(
        [sys.executable, "-S", "-m", "accel.stacks", "validate", "sandbox"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{hidden.parent}:{tmp_path / 'wheel'}:{sysconfig.get_path('purelib')}"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        ["error: pulumi is not installed here", "hint: install accel-infra with its extra: accel-infra[pulumi]"],
    )


@pytest.mark.slow
def test_the_same_files_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    again = built(tmp_path)
    assert again.stat().st_mtime_ns != wheel.stat().st_mtime_ns
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_the_wheel_carries_every_data_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
    for pattern in ("*.csv", "*.json", "*.md", "*.yaml"):
        for path in (ROOT / "accel").rglob(pattern):
            assert str(path.relative_to(ROOT)) in carried
