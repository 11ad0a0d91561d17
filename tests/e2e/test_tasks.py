"""The twelve tasks of docs/README.md, each from its page alone, in a folder that has nothing but what git has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.environment import project
from tests.support.clone import COMMIT, Clone, cloned, environment_of_its_own
from tests.support.pages import blocks, script_of, unlike
from tests.support.soak import soak_only

INDEX = project() / "docs" / "README.md"
BEGIN = 'eval "$(.venv/bin/sandbox env)"'
REF = '"$(accel-jobs ls --all --to gpu -o id | head -1)"'
"""What `submit` printed last; each page has a job by then, that of `make up` at least."""
ELSEWHERE = {"tutorial.md": "test_first_hour.py", "consumer.md": "test_consumer_page.py"}
"""Tasks that begin in another way, from a fresh clone too, and the tests that do them."""


def tasks() -> list[str]:
    """The pages of the table in docs/README.md."""
    return re.findall(r"^\| .* \| \[[\w-]+\.md\]\(([\w-]+\.md)\) \|$", INDEX.read_text(), re.MULTILINE)


def test_the_index_has_twelve_tasks() -> None:
    assert len(tasks()) == len(set(tasks())) == 12
    assert set(ELSEWHERE) < set(tasks())
    assert all((Path(__file__).with_name(name)).exists() for name in ELSEWHERE.values())


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    found = cloned(tmp_path_factory.mktemp("tasks") / "accel")
    environment_of_its_own(found.folder)
    found.run(COMMIT)
    ready = Clone(found.folder, {**found.variables, "PULUMI_SKIP_CONFIRMATIONS": "true", "PYTHONUNBUFFERED": "1"})
    try:
        (begin,) = [block for block in blocks(INDEX) if block.language == "sh"]
        ready.run(begin.text)
        yield ready
    finally:
        found.run(".venv/bin/sandbox stop --wipe")


@soak_only
@pytest.mark.parametrize("page", [each for each in tasks() if each not in ELSEWHERE])
def test_a_task_is_done_from_its_page(clone: Clone, page: str) -> None:
    parts = [block for block in blocks(project() / "docs" / page) if block.runs]
    script, wanted = script_of(parts, {"REF": REF})
    assert parts
    assert unlike(wanted, clone.run(f"{BEGIN}\n{script}")) == ""
