"""The generated pages of the guide say what the models say."""

import re

import pytest

from stacks.reference import pages

from .test_config import ROOT


@pytest.mark.parametrize("name", ["environment", "job"])
def test_no_two_headings_are_the_same(name: str) -> None:
    """A link to the second would lead to the first."""
    headings = re.findall(r"^#+ (.*)$", pages()[name], re.MULTILINE)
    assert [heading for heading in headings if headings.count(heading) > 1] == []


def test_each_link_leads_to_the_model_of_its_field() -> None:
    page = pages()["environment"]
    for section, key, about in (
        ("Aws", "network", "(#created-network-awsnetwork)"),
        ("Gcp", "network", "(#created-network-gcpnetwork)"),
        ("Gpu pool", "reservation", "(#reservation-gcppoolsreservation)"),
    ):
        rows = page.partition(f"## {section}\n")[2].partition("\n## ")[0]
        assert about in re.findall(rf"^\| `{key}` .*$", rows, re.MULTILINE)[0], section


@pytest.mark.parametrize("name", ["environment", "job", "cli"])
def test_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / f"{name}.md").read_text() == pages()[name], (
        f"run: python -m stacks.reference {name} > docs/{name}.md"
    )
