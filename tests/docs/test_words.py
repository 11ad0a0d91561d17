"""The list of the commands' words is that of the code, and the generator overlooks none."""

from difflib import unified_diff

import pytest

from tests.support.words import GOLDEN, page, texts_of


def test_the_list_is_current() -> None:
    """Read the difference aloud before the list is written again."""
    kept = GOLDEN.read_text()
    diff = unified_diff(kept.splitlines(), page().splitlines(), "kept", "code", lineterm="", n=0)
    assert not list(diff), "run: python -m tests.support.words > tests/golden/words.txt"


@pytest.mark.parametrize(
    "source, texts",
    [
        ('raise BadInput(f"{name}: is missing", "write one")', {"{…}: is missing", "write one"}),
        ('raise Interrupted("interrupted")', {"interrupted"}),
        ('say("one of " + str(x if y else "the rest") + ".")', {"one of {…}.", "the rest"}),
        ('WHY = {"key": "is not there"}', {"is not there"}),
        ('COLUMNS = ("name", "age")', {"NAME  AGE"}),
        ('show(rows, form, ("name", *MORE), name="ref")', {"NAME"}),
        ('_log.info("seen: %s", name)', {"seen: %s"}),
        ('def f(x: "A B") -> "C D":\n    """A docstring."""\n    return "a text"', {"a text"}),
        ('if text.startswith("not a") or text == "not b" or re.match("no t", text): pass', set()),
        ('x = ["a=$(date) b", "SELECT", "word", "{}"]', set()),
    ],
)
def test_texts_are_found(source: str, texts: set[str]) -> None:
    assert texts_of(source) == texts
