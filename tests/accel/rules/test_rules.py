from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from accel import rules
from accel.rules import apply, under
from accel.rules.__main__ import page
from accel.rules.aws import environments, images
from accel.rules.jobs import containers
from accel.rules.table import TABLE
from accel.rules.table import rules as table

from .cases import CASES, Case

ROOT = Path(__file__).parents[3]
RULES = table()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_fires_with_value_and_fix(case: Case) -> None:
    found = [finding for finding in case.breaks() if finding.rule == case.rule]
    assert found, f"{case.rule} does not fire"
    finding, rule = found[0], RULES[case.rule]
    assert finding.field == case.field
    for part in case.says:
        assert part in finding.message
    assert case.fix in finding.fix
    assert (finding.severity, finding.source) == (rule.severity, rule.source)
    assert finding.replacement == case.replacement
    assert "\n" not in finding.text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_near_miss_does_not_fire(case: Case) -> None:
    assert case.rule not in [finding.rule for finding in case.near_miss()]


def test_every_rule_has_one_case() -> None:
    assert Counter(case.rule for case in CASES) == Counter(RULES.keys())


def test_each_rule_of_the_table_is_of_one_module() -> None:
    paths = [path for path in (ROOT / "accel/rules").rglob("[a-z]*.py") if path.stem != "table"]
    topics = [import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in paths]
    named = [each.id for topic in topics for each in vars(topic).values() if isinstance(each, rules.Rule)]
    assert Counter(named) == Counter(RULES.keys())


def test_ids_are_unique_and_sources_are_pages() -> None:
    assert len(RULES) == len(Path(TABLE).read_text(encoding="utf-8").splitlines()) - 1
    for rule in RULES.values():
        assert rule.source.startswith("https://"), rule
        assert rule.summary, rule
        assert not rule.summary.endswith("."), rule


def test_the_page_is_in_step() -> None:
    written = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m accel.rules > docs/rules.md"


def test_apply_sorts_findings() -> None:
    found = images.image("ECS_AL2_NVIDIA", ["p3", "g5"]) + environments.capacity(4, 8, [])
    errors, warnings, replacements = apply(found)
    assert [finding.rule for finding in errors] == ["aws.image.old-gpu"]
    assert [finding.rule for finding in warnings] == ["aws.image.al2-nvidia", "aws.capacity.min-bills"]
    assert replacements == {"image_type": "ECS_AL2023_NVIDIA"}


def test_none_as_replacement_leaves_the_field_out() -> None:
    found = containers.aws_environment({"NVIDIA_VISIBLE_DEVICES": "all"}, 1)
    assert apply(found).replacements == {"env.NVIDIA_VISIBLE_DEVICES": None}


def test_under_puts_the_path_in_front() -> None:
    found = under("aws.environments.spot", environments.bid("EC2", 50))
    assert [finding.field for finding in found] == ["aws.environments.spot.bid_percentage"]
