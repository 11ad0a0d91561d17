"""The wheel, and an empty environment with nothing but it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.environment import project
from sandbox.toolchain import packages


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    """What a command printed; it must succeed."""
    # Outside the checkout, and deaf to a PYTHONPATH that would find it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    answer = subprocess.run(command, cwd=cwd, env=environment | environ, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def built(source: Path) -> Path:
    """Built from a copy in this folder: setuptools leaves its own folders beside what it reads."""
    for name in ("pyproject.toml", "setup.py", "LICENSE"):
        shutil.copyfile(project() / name, source / name)
    for folder in ("accel", "components", "jobs", "stacks"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(project() / folder, source / folder, ignore=unwanted, copy_function=shutil.copyfile)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    run(*build, "--wheel-dir", source / "dist", source, cwd=source, SOURCE_DATE_EPOCH="1795000000")
    (made,) = (source / "dist").glob("accel_infra-*.whl")
    return made


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for the session."""
    return built(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel and what it requires."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=environment)
    python, settings = environment / "bin" / "python", packages.own_settings()
    if settings is None:  # uv has no equal
        run(*packages.PIP, "--python", python, "install", *packages.QUIET, wheel, cwd=environment)
    else:
        uv = Path(sys.executable).with_name("uv")
        run(uv, "pip", "install", "--quiet", "--python", python, wheel, cwd=environment, **settings)
    return environment / "bin"
