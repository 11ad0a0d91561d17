"""The laws of prose: the words of the glossary, docstrings that begin with a verb, and pages that read well."""

import importlib
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.pages import ROOT, pages, prose
from tests.support.prose_lint import lint
from tests.support.words import GOLDEN
from tests.test_house import BANNED, PRODUCT

ORDINARY = {
    "again", "asked", "because", "finding", "found", "held", "hold", "known", "look", "lost", "pay", "pending",
    "prefer", "preparing", "said", "seen", "sending", "sent", "settle", "spend", "stopped", "tend", "then", "told",
    "what is wrong",
}  # fmt: skip
"""Old words of the glossary that plain English needs in other senses. tests/test_house.py bans them as names."""
FORMS = {
    "reclaim": r"reclaim(?:s|ed)?(?! polic)",
    "taken away": r"(?:taken?|takes|taking) (?:\S+ ){0,3}away|took (?:\S+ ){0,3}away",
}
"""Patterns of old words that have several forms; any other is looked for as it is."""
STAY = {
    ("reclaim", "accel/rules/rules.csv"): "what Kueue calls it",
    ("reclaim", "docs/rules.md"): "what Kueue calls it",
    ("taken away", "jobs/backends/"): "reasons in statuses and records of jobs, which earlier versions have written",
    ("taken away", "jobs/importers/"): "sentences of the golden reports of imports",
    ("taken away", "jobs/views/report/"): "shows the reasons of statuses",
}
"""Where an old word stays, by the beginning of the file's name, and why."""

HEADINGS_THAT_STAY = {
    "docs/allowances.md: What is held",
    "docs/allowances.md: Where it is kept",
    "docs/code.md: Code that is sent with a job",
    "docs/code.md: What is sent",
    "docs/guide.md: Be told",
    "docs/schedules.md: One job a day, however often it is asked for",
    "docs/security.md: Before machines are made",
    "docs/security.md: How jobs are kept from it",
}
"""Headings with a word of BANNED; links lead to them."""

LONG_PARAGRAPHS = {
    "docs/allowances.md": 1,
    "docs/cli.md": 2,
    "docs/gke.md": 2,
    "docs/import.md": 2,
    "docs/python.md": 1,
    "docs/vms.md": 2,
}
"""Paragraphs of more than SENTENCES, by page."""
SENTENCES = 4

REPEATED = {"vertex Vertex"}
"""A kind of document, and then what it is."""


# --- the words of the glossary


@cache
def old_words() -> dict[str, str]:
    """Return old words of the glossary that are not ordinary ones, with the words of today."""
    rows = re.findall(r"^\| (.+?) \|.*\| (.*?) \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    words = {old.strip(' "'): word for word, olds in rows for old in olds.split(",")}
    plain = {old: word for old, word in words.items() if re.fullmatch(r"[a-z]+(?: [a-z]+){0,2}", old)}
    assert plain.keys() >= ORDINARY, ORDINARY - plain.keys()
    return {old: word for old, word in plain.items() if old not in ORDINARY}


def old_words_in(text: str) -> list[str]:
    return [old for old in old_words() if re.search(rf"\b(?:{FORMS.get(old, old)})\b", text, re.IGNORECASE)]


def texts() -> Iterator[tuple[str, str]]:
    """Yield each line of the pages' prose, and each text of the commands, with its file."""
    for page in pages():
        if page.name != "glossary.md":
            for line in prose(page).splitlines():
                yield str(page.relative_to(ROOT)), without_code(line)
    place = ""
    for line in GOLDEN.read_text().splitlines():
        place = line[2:] if line.startswith("# ") else place
        yield place, line


def without_code(text: str) -> str:
    """Return Markdown with its code and addresses cut out."""
    return re.sub(r"\]\([^)]*\)|<https?:[^>]*>", "]", re.sub(r"`[^`]*`", "`", text))


def test_the_glossary_has_old_words() -> None:
    assert {"reclaim", "taken away", "marks"} <= old_words().keys()


def test_no_text_has_a_word_that_the_glossary_replaces() -> None:
    found = [(old, place, text) for place, text in texts() for old in old_words_in(text)]
    excused = {key for key in STAY for old, place, _ in found if old == key[0] and place.startswith(key[1])}
    faults = [
        f"{place}: {text}: say {old_words()[old]}, not {old}"
        for old, place, text in found
        if not any(old == word and place.startswith(start) for word, start in STAY)
    ]
    assert faults == []
    assert STAY.keys() - excused == set(), "no longer needed"


@pytest.mark.parametrize("text", ["its machine was taken away", "the cloud took its machine away", "a Reclaim"])
def test_an_old_word_is_found(text: str) -> None:
    assert old_words_in(text)


def test_a_word_of_another_sense_is_none() -> None:
    assert old_words_in("a volume's reclaim policy; a list is marked, and reclaim_in_cohort is set") == []


def test_no_heading_has_a_banned_word() -> None:
    found = {
        f"{page.relative_to(ROOT)}: {heading}"
        for page in pages()
        for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
        if BANNED & set(re.findall(r"[a-z]+", without_code(heading).lower()))
    }
    assert found == HEADINGS_THAT_STAY


# --- docstrings


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    command = [sys.executable, "-m", "ruff", "check", "--select", "D401", "--output-format", "concise", *PRODUCT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", ["jobs", "jobs.runtime", "accel.contract.stack"])
def test_what_users_import_has_docstrings(package: str) -> None:
    """Classes everywhere need one: ruff's D101."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    functions = {name: found for name in names if inspect.isfunction(found := getattr(module, name))}
    assert functions and sorted(name for name, found in functions.items() if not found.__doc__) == []


# --- pages


def paragraphs(page: Path) -> Iterator[str]:
    """Yield paragraphs and items of lists; neither tables nor headings."""
    lines: list[str] = []
    for line in [*prose(page).splitlines(), ""]:
        text = line.strip()
        if re.match(r"$|[#|]|[-*] |\d+\. ", text):
            if lines:
                yield " ".join(lines)
            lines = [] if re.match(r"$|[#|]", text) else [text]
        else:
            lines.append(text)


def sentences(paragraph: str) -> int:
    """Return how many sentences a paragraph has, besides words in bold before the first."""
    text = re.sub(r"`[^`]*`", "Code", re.sub(r"^([-*] |\d+\. )?\*\*[^*]+\*\*", "", paragraph))
    return len(re.findall(r"[.!?][\")*]*(?=\s+[\"(\[*]*[A-Z]|\s*$)", text))


def test_paragraphs_have_at_most_four_sentences() -> None:
    counts = Counter(
        str(page.relative_to(ROOT))
        for page in sorted((ROOT / "docs").glob("*.md"))
        for paragraph in paragraphs(page)
        if sentences(paragraph) > SENTENCES
    )
    assert dict(counts) == LONG_PARAGRAPHS


@pytest.mark.parametrize(
    "paragraph, count",
    [
        ("One. Two.", 2),
        ("`a.b` is one. `c` is two.", 2),
        ("Version 1.2 is one: e.g. this.", 1),
        ("- **Zero.** (One.) Two!", 2),
    ],
)
def test_sentences_are_counted(paragraph: str, count: int) -> None:
    assert sentences(paragraph) == count


def test_items_of_a_list_are_paragraphs_of_their_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nOne.\nTwo.\n\n- a.\n  b.\n- c.\n\n```sh\nd.\n```\n| e. |\n")
    assert list(paragraphs(page)) == ["One. Two.", "- a. b.", "- c."]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_proselint_finds_nothing(page: Path) -> None:
    hits = [hit for hit in lint(without_code(prose(page))) if not any(hit.text in text for text in REPEATED)]
    assert [str(hit) for hit in hits] == []


@pytest.mark.parametrize("text", ["It waits for ever.", "It has to to be so.", "At the end of the day, it runs."])
def test_a_stumbling_block_is_found(text: str) -> None:
    assert lint(f" {text} ")
