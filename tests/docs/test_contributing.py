"""Every path in back-ticks in CONTRIBUTING.md and ARCHITECTURE.md exists, and their links lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_links import broken
from tests.support.pages import ROOT, prose

PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
ELSEWHERE = {
    ".venv/": "created by make install",
    "accel.dev/": "a label of Kubernetes",
    "images.lock.yaml": "written by a command",
    "local/<folder>": "an image of the sandbox",
    "ruamel.yaml": "a library",
}
"""Beginnings of texts that look like paths of this repository and are none, and what they are."""
SUFFIXES = (".csv", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml")
PLACEHOLDER = re.compile(r"<\w+>|\bNAME\b")


def paths(text: str) -> Iterator[str]:
    """Yield each text in back-ticks that is a path: without a space, with a slash inside or the suffix of a file."""
    for span in re.findall(r"`([^`\n]+)`", text):
        path = span.split(" > ")[-1]
        if re.search(r"[\s()$:{]", path) or path.startswith(("/", "-", *ELSEWHERE)):
            continue
        if "/" in path or path.endswith(SUFFIXES):
            yield path


def exists(path: str) -> bool:
    """Return whether a path is in the checkout. A placeholder (`<platform>`, `NAME`) stands for any name."""
    pattern = PLACEHOLDER.sub("*", path.rstrip("/"))
    return any(ROOT.glob(pattern)) if "*" in pattern else (ROOT / pattern).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_path_exists(page: Path) -> None:
    named = list(paths(prose(page)))
    assert len(named) > 50
    assert [path for path in dict.fromkeys(named) if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page, prose(page)) == []


@pytest.mark.parametrize(
    "text",
    [
        "`jobs/backends/nowhere.py`",
        "`jobs/backends/<platform>/nowhere.py`",
        "`accel/nowhere/`",
        "`nowhere.py`",
        "`python -m accel.rules > docs/nowhere.md`",
    ],
)
def test_a_path_that_does_not_exist_is_found(text: str) -> None:
    assert [exists(path) for path in paths(text)] == [False]


@pytest.mark.parametrize("text", ["`Spec.check()`", "`make test`", "`--dry-run`", "`/a/<stack>/b/`", "`accel.rules`"])
def test_what_is_no_path_is_none(text: str) -> None:
    assert list(paths(text)) == []


def test_a_placeholder_stands_for_any_name() -> None:
    assert exists("jobs/backends/<platform>/request.py")
    assert exists("Pulumi.NAME.yaml")
