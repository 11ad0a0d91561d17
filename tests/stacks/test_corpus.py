"""Every field of an environment with every kind of wrong value: always a line that names the field, never a trace."""

import random
import string
from collections.abc import Iterator
from typing import Any

import pytest

from accel.diagnostics.faults import format_path, parse_path, replace_value
from stacks.environment.config import ConfigFaults, load_environment
from tests.support.project import environment

from .test_config import document, faults

WRONG: dict[type, list[Any]] = {
    int: ["many", 1.5, None, [], {}, "", True and "true"],
    str: [None, [], {}, 3, True],
    list: ["text", 3, {}, [None], [[]], [3]],
    dict: ["text", 3, [], True],
    bool: ["maybe", 3, None, [], {}],
}


def paths(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if here:
        yield here, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*here, key))


def cases() -> Iterator[Any]:
    for stack in ("dev", "prod"):
        for path, value in paths(environment(stack)):
            # A list of types may hold a number as an unknown name, and so on: the kind is what is wrong here.
            for wrong in WRONG[type(value)]:
                yield pytest.param(stack, path, wrong, id=f"{stack}:{format_path(path)}={wrong!r}")


CASES = list(cases())


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 150


@pytest.mark.parametrize(("stack", "path", "wrong"), CASES)
def test_a_value_of_the_wrong_kind(stack: str, path: tuple[str | int, ...], wrong: Any) -> None:
    changed = replaced_with(environment(stack), path, wrong)
    try:
        load_environment(changed)
    except ConfigFaults as refused:
        lines = [str(fault) for fault in refused.faults]
        start = f"environment.{format_path(path)}"
        assert any(line.startswith(start) for line in lines), lines
        assert all("\n" not in line and len(line) < 400 for line in lines)
    else:
        assert wrong is None or wrong == {}, "only a field that may be left empty takes nothing"


def replaced_with(values: Any, path: tuple[str | int, ...], wrong: Any) -> Any:
    """Also None, which `replace_value` takes for "leave it out"."""
    changed = replace_value(values, path, object())
    here = changed
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = wrong
    return changed


def typos(word: str, dice: random.Random) -> str:
    """One edit: a letter lost, doubled, changed or swapped with the next."""
    at = dice.randrange(len(word) - 1)
    letter = dice.choice(string.ascii_lowercase)
    return dice.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        ]
    )


def test_a_misspelt_key_or_type_is_answered_with_the_right_one() -> None:
    dice = random.Random(7)
    keys = [path for path, _ in paths(document()) if path[-1] not in ("dev", "spot", "on-demand", "gpu", "training")]
    tried = right = 0
    while tried < 150:
        path = dice.choice(keys)
        word = typos(str(path[-1]), dice)
        if word == path[-1] or len(word) < 3 or path[-2:-1] == ("labels",):
            continue
        tried += 1
        value: Any = document()
        for step in path:
            value = value[step]
        wrong = replace_value(document(), path, None)
        said = faults(replace_value(wrong, (*path[:-1], word), value))
        right += any(f"{word}: unknown key; did you mean {path[-1]}" in line for line in said)
    assert right >= 0.9 * tried, f"{right} of {tried}"


def test_paths_are_parsed_as_they_are_written() -> None:
    assert parse_path("queues.gpu.environments[1]") == ("queues", "gpu", "environments", 1)
    assert format_path(("queues", "gpu", "environments", 1)) == "queues.gpu.environments[1]"
