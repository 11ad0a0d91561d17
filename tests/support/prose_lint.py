"""proselint over a text, with the checks that suit pages about software."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from proselint import config, tools

OFF = {
    "consistency.spacing": "a table has one space after a period, and a list two",
    "cursing.filth": "a word that nobody writes here would be found anywhere",
    "misc.but": "a paragraph of a manual may begin with But",
    "misc.phrasal_adjectives": "only-dir is an option",
    "spelling.able_atable": "allocatable is Kubernetes' own word",
    "typography.diacritical_marks": "a resume is no résumé",
    "typography.symbols": "quotes, dots and crosses are those that a terminal prints",
    "uncomparables.misc": "its 400 patterns take longer than all others",
}
"""Checks that are not run, with the reason."""

_METACHARACTER = re.compile(r"[\\.^$*+?{}\[\]|()]")


class Hit(NamedTuple):
    """What a check found."""

    check: str
    text: str
    message: str

    def __str__(self) -> str:
        return f"{self.text!r}: {self.message} [{self.check}]"


def lint(text: str) -> list[Hit]:
    """Return what the checks find in a text."""
    found = [(name, hit) for name, check in _checks() for hit in check(text)]
    return [Hit(name, text[hit[0] : hit[1]].strip(), hit[3]) for name, hit in found]


@cache
def _checks() -> list[tuple[str, Callable[[str], Sequence[Any]]]]:
    """Return the checks by name. proselint keeps results in the user's home, which tests must not, and compiles a
    pattern for each of its thousands of words, which takes minutes."""
    originals = (tools.memoize, tools.existence_check, tools.preferred_forms_check)
    tools.memoize = lambda check: check
    tools.existence_check = _only_words_of_the_text(tools.existence_check, _occurring)
    tools.preferred_forms_check = _only_words_of_the_text(tools.preferred_forms_check, _occurring_forms)
    try:
        return list(_loaded())
    finally:
        tools.memoize, tools.existence_check, tools.preferred_forms_check = originals


def _loaded() -> Iterator[tuple[str, Callable[[str], Sequence[Any]]]]:
    switches: Any = config.default["checks"]
    for name, on in switches.items():
        if on and name not in OFF:
            module = import_module(f"proselint.checks.{name}")
            yield from ((name, check) for key, check in vars(module).items() if key.startswith("check"))


def _only_words_of_the_text(
    check: Callable[..., Any], occurring: Callable[[Sequence[Any], str], Sequence[Any]]
) -> Callable[..., Any]:
    def checked(text: str, words: Sequence[Any], *rest: Any, **options: Any) -> Any:
        there = occurring(words, text.lower())
        return check(text, there, *rest, **options) if there else []

    return checked


def _occurring(words: Sequence[str], text: str) -> list[str]:
    return [word for word in words if _METACHARACTER.search(word) or word.lower() in text]


def _occurring_forms(forms: Sequence[Sequence[Any]], text: str) -> list[list[Any]]:
    return [[form[0], there] for form in forms if (there := _occurring(form[1], text))]
