"""The diagrams of the guide: each has its source in Graphviz's language beside it, and is drawn from that source."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.pages import ROOT, pages

PICTURES = ROOT / "docs" / "pictures"
SOURCES = sorted(PICTURES.glob("*.dot"))
TEXT = "{http://www.w3.org/2000/svg}text"
LABEL = re.compile(r'\blabel\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(<))', re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def labels(source: str) -> list[str]:
    """Return the lines of all labels of a source, plain ones and those in Graphviz's HTML."""
    found: list[str] = []
    for match in LABEL.finditer(source):
        if match[2]:
            found += map(unescape, re.split(r"<[^>]*>", markup(source, match.start(2))))
        else:
            found += re.split(r"\\[nlr]", match[1].replace('\\"', '"'))
    return [line for line in map(plain, found) if line]


def markup(source: str, start: int) -> str:
    """Return what stands between the angle bracket at `start` and the one that closes it."""
    depth = 0
    for match in re.finditer(r"[<>]", source[start:]):
        depth += 1 if match[0] == "<" else -1
        if depth == 0:
            return source[start + 1 : start + match.start()]
    raise ValueError("a label does not end")


def drawn(svg: str) -> list[str]:
    """Return the lines of text of a picture."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - Graphviz wrote it
    return [line for line in (plain("".join(each.itertext())) for each in root.iter(TEXT)) if line]


def plain(text: str) -> str:
    """Return the text with every run of spaces as one space."""
    return " ".join(text.split())


def linked() -> dict[Path, str]:
    """Return the pictures of all pages, with their alternative texts."""
    return {
        (page.parent / where).resolve(): plain(text)
        for page in pages()
        for text, where in PICTURE.findall(page.read_text())
    }


def test_there_are_diagrams() -> None:
    assert len(SOURCES) >= 5


def test_every_picture_is_on_a_page_and_has_an_alternative_text() -> None:
    shown = linked()
    pictures = [path for path in PICTURES.iterdir() if path.suffix != ".dot"]
    assert [path.name for path in pictures if len(shown.get(path, "")) < 30] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_source_says_how_its_picture_is_made(source: Path) -> None:
    name = source.stem
    assert f": dot -Tsvg {name}.dot -o {name}.svg" in source.read_text().partition("digraph")[0]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_picture_has_the_labels_of_its_source(source: Path) -> None:
    """Both ways, so that one that was not drawn again is found on a machine without Graphviz too."""
    assert sorted(drawn(source.with_suffix(".svg").read_text())) == sorted(labels(source.read_text()))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_picture_can_be_read_on_a_dark_page(source: Path) -> None:
    """Its background is white, whatever the page has, and its letters are those of the reader's machine."""
    svg = source.with_suffix(".svg").read_text()
    root = ElementTree.fromstring(svg)  # noqa: S314 - Graphviz wrote it
    assert re.search(r'</title>\s*<polygon fill="white"', svg)
    assert {each.get("font-family") for each in root.iter(TEXT)} == {"sans-serif"}


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_graphviz_draws_the_same_labels_without_a_warning(source: Path) -> None:
    done = subprocess.run(["dot", "-Tsvg", str(source)], capture_output=True, text=True, check=True, timeout=60)
    assert drawn(done.stdout) == drawn(source.with_suffix(".svg").read_text())
    assert done.stderr == ""


@pytest.mark.parametrize(
    "source, lines",
    [
        ('a [label="one"]', ["one"]),
        (r'a [xlabel="no", label="one\ntwo  \"2\""]', ["one", 'two "2"']),
        ("a [label=<<B>one</B><BR/>two &amp; three>, color=red]", ["one", "two & three"]),
        ('a [style=invis, label=""]', []),
    ],
)
def test_labels_are_read(source: str, lines: list[str]) -> None:
    assert labels(source) == lines
