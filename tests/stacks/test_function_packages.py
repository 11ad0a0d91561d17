"""What is installed for the Cloud Run functions is named file by file."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import components.gcp.budget_stop
import stacks.environment.gcp.reconcile_archive
from sandbox.google.functions import FRAMEWORK
from stacks.environment.function_packages import WANTED

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"[a-z0-9_.-]+==[0-9][\w.]*( --hash=sha256:[0-9a-f]{64})+")
ARCHIVES = {
    "budget-function": components.gcp.budget_stop.archive,
    "reconcile-function": stacks.environment.gcp.reconcile_archive.archive,
}


def lines(name: str) -> list[str]:
    text = re.sub(r" \\\n +", " ", ARCHIVES[name]()["requirements.txt"])
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("name", WANTED)
def test_every_package_has_its_hashes(name: str) -> None:
    first, *packages = lines(name)
    assert first == "--only-binary :all:", "a source would run its own build"
    assert [line for line in packages if not LINE.fullmatch(line)] == []
    assert len(packages) > 10, "what is installed besides is named too"


@pytest.mark.parametrize("name", WANTED)
def test_the_file_is_of_the_versions_that_are_wanted(name: str) -> None:
    """Else: python -m stacks.environment.function_packages."""
    assert set(WANTED[name]) <= {line.partition(" ")[0] for line in lines(name)}
    pinned = (ROOT / "requirements.txt").read_text().splitlines()
    assert [wanted for wanted in WANTED[name] if "requests" in wanted and wanted not in pinned] == []


def test_the_sandbox_has_the_versions_that_the_functions_name() -> None:
    """`make` installs them so; a function would be called with others than it is built from, and is refused."""
    pinned = (line.split()[0].split("==") for name in WANTED for line in lines(name)[1:])
    named = {package: number for package, number in pinned if package not in FRAMEWORK}
    assert len(named) > 5
    assert {name: version(name) for name in named} == named
