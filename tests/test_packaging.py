"""What the wheel carries; tests/e2e/test_wheel.py installs it."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.wheel import built

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
        f"accel-{SETTINGS['project']['version']}.dist-info",
    }


@pytest.mark.slow
def test_the_same_files_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    again = built(tmp_path)
    assert again.stat().st_mtime_ns != wheel.stat().st_mtime_ns
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_the_wheel_carries_every_data_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
    for pattern in ("*.csv", "*.md", "*.yaml"):
        for path in (ROOT / "accel").rglob(pattern):
            assert str(path.relative_to(ROOT)) in carried
