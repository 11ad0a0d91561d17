"""Links of the guide lead somewhere, and its indexes name every page."""

import re
from pathlib import Path

import pytest

from jobs.cli.main import VERBS
from tests.support.pages import ROOT, pages, prose

WRITTEN = [*pages(), ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "UPGRADING.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path: Path) -> set[str]:
    """Those that GitHub gives the headings; a second of one name has -1 behind it."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", prose(path), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        numbered = name
        count = 0
        while numbered in found:
            count += 1
            numbered = f"{name}-{count}"
        found.add(numbered)
    return found


def broken(path: Path, text: str) -> list[str]:
    """The links of a text that lead nowhere in the checkout, as if it lay at `path`."""
    faults: list[str] = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        file, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", file):
            continue
        to = (path.parent / file).resolve() if file else path
        if not to.exists():
            faults.append(f"{path.relative_to(ROOT)}: {link}: no such file")
        elif anchor and anchor not in anchors(to):
            faults.append(f"{path.relative_to(ROOT)}: {link}: no such heading")
    return faults


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    assert broken(path, prose(path)) == []


@pytest.mark.parametrize(
    "text, words", [("[a](gone.md)", "no such file"), ("[a](guide.md#gone)", "no such heading"), ("[a](#x)", "no such")]
)
def test_a_broken_link_is_found(text: str, words: str) -> None:
    (found,) = broken(ROOT / "docs/README.md", text)
    assert words in found


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs/README.md"
    linked = {link.partition("#")[0] for link in LINK.findall(prose(index))}
    assert sorted({path.name for path in (ROOT / "docs").iterdir() if path.is_file()} - linked - {"README.md"}) == []


def test_the_readme_leads_to_every_kind_of_page() -> None:
    """Its own list is of the pages to begin with; the index has the others."""
    linked = set(LINK.findall(prose(ROOT / "README.md")))
    assert {"docs/README.md", "docs/tutorial.md", "docs/choosing.md", "docs/cli.md", "docs/job.md"} <= linked


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_no_page_calls_the_command_by_the_name_of_a_shells_own(path: Path) -> None:
    """`jobs` is a builtin of every shell, which answers with an error of its own."""
    named = "|".join(map(re.escape, VERBS))
    assert re.findall(rf"(?<!-)`(?:\$ )?jobs\s+(?:{named})\b[^`]*`", path.read_text()) == []


def test_every_deployment_that_is_written_down_keeps_the_outputs_to_itself() -> None:
    """They are hundreds of lines, with a certificate; `pulumi stack output` shows what is asked for."""
    files = ("Makefile", "README.md", "docs/guide.md", ".github/workflows/up.yml")
    texts = [(ROOT / file).read_text() for file in files]
    runs = [line for text in texts for line in re.findall(r"^.*\bpulumi up --stack [^N].*$", text, re.MULTILINE)]
    assert len(runs) == 4 and [line for line in runs if "--suppress-outputs" not in line] == []
