"""The generated pages of the guide say what the models say."""

import pytest

from stacks.reference import pages

from .test_config import ROOT


@pytest.mark.parametrize("name", ["environment", "job", "cli"])
def test_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / f"{name}.md").read_text() == pages()[name], (
        f"run: python -m stacks.reference {name} > docs/{name}.md"
    )
