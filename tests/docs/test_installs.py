"""What docs and examples install: never the `accel` of PyPI, which is somebody else's."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.support.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STRANGERS = {"accel"}
READ = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "UPGRADING.md",
    "docs",
    "examples",
    ".github",
    "Makefile",
    "toolchain",
    "stacks",
)
FILES = [path for name in READ for path in sorted([ROOT / name, *(ROOT / name).rglob("*")]) if path.is_file()]
TEXTS = [path for path in FILES if path.suffix in ("", ".md", ".yml", ".yaml", ".sh", ".py", ".Dockerfile")]
REQUIREMENTS = [
    *ROOT.glob("requirements*.txt"),
    *(path for path in FILES if re.match(r"requirements.*\.txt", path.name)),
]
INSTALL = re.compile(r"\bpip3? +(?:install|download|wheel) +([^\n|;&]*)")
SKIPPED = ("-", "$", "..", "<")


def distribution(word: str) -> str | None:
    """The distribution that a requirement names, by name or by its wheel; None for what is neither."""
    name = word.strip().removesuffix("`")
    if name.endswith(".whl") and "*" not in name:
        return str(parse_wheel_filename(Path(name).name)[0])
    try:
        return canonicalize_name(Requirement(name).name)
    except InvalidRequirement:
        return None


def of_requirements(path: Path) -> Iterator[str]:
    for line in path.read_text().splitlines():
        word = line.partition(" #")[0].strip()
        if word and not word.startswith(("#", "-")) and (found := distribution(word)):
            yield found


def of_commands(text: str) -> Iterator[str]:
    for words in INSTALL.findall(text.replace("\\\n", " ")):
        try:
            parts = shlex.split(words)
        except ValueError:  # in the middle of a sentence
            parts = words.split()
        for word in parts:
            if not word.startswith(SKIPPED) and (found := distribution(word)):
                yield found


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_requirements_file_names_a_stranger(path: Path) -> None:
    assert STRANGERS & set(of_requirements(path)) == set()


def test_no_command_installs_a_stranger() -> None:
    found = {str(path.relative_to(ROOT)): STRANGERS & set(of_commands(path.read_text())) for path in TEXTS}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_distribution_is_not_called_as_somebody_elses() -> None:
    assert PROJECT["name"] == "accel-infra"


def test_the_consumer_installs_the_wheel_that_this_project_builds() -> None:
    """By its file: a name might be registered by anybody, and pip would take the newer one."""
    lines = (ROOT / "examples" / "consumer" / "requirements.txt").read_text().splitlines()
    (wheel,) = [line for line in lines if ".whl" in line]
    name, version, *_ = parse_wheel_filename(Path(wheel.partition(" ")[0]).name)
    assert (name, str(version)) == (PROJECT["name"], PROJECT["version"])
    assert PROJECT["name"] not in [line.partition("[")[0] for line in lines]


@pytest.mark.parametrize(
    "text, found",
    [
        ("pip install accel", ["accel"]),
        ("python -m pip install --quiet 'accel[google]>=1' boto3", ["accel", "boto3"]),
        ("RUN python3 -m pip install --no-cache-dir \\\n  Accel==0.1", ["accel"]),
        ("pip install wheels/accel_infra-0.1.0-py3-none-any.whl", ["accel-infra"]),
        ("pip wheel --no-deps --wheel-dir dist .", ["dist"]),
        ("pip install -r requirements.txt", ["requirements-txt"]),
    ],
)
def test_what_a_command_installs_is_found(text: str, found: list[str]) -> None:
    assert list(of_commands(text)) == found
