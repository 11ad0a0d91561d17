"""A law: the rules judge each spec once in a run, however many read what they found."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from components.base import Spec
from stacks.environment import config
from tests.laws.test_written_by_jobs import BUILT_ON, SHIPPED, everything, of_file, ran


def kinds(of: type[Spec] = Spec) -> Iterator[type[Spec]]:
    for each in of.__subclasses__():
        yield each
        yield from kinds(each)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often the rules were applied to each spec."""
    times: Counter[int] = Counter()
    kept: list[Spec] = []  # so that no other gets the same id

    def counting(kind: type[Spec], check: Any) -> Any:
        def counted(spec: Spec) -> Any:
            if type(spec) is kind:  # not for the part of a parent class
                kept.append(spec)
                times[id(spec)] += 1
            return check(spec)

        return counted

    for kind in set(kinds()):
        monkeypatch.setattr(kind, "check", counting(kind, kind.check))
    return times


@pytest.mark.parametrize("stack", [*SHIPPED, ""])
def test_a_spec_is_judged_once(stack: str, judged: Counter[int]) -> None:
    values = of_file(stack) if stack else everything()
    environment = config.load_environment(values)
    config.warnings(environment)
    loaded = len(judged)
    ran(values, BUILT_ON.get(stack))
    assert set(judged.values()) == {1}
    assert len(judged) > loaded > 0


def test_a_copy_with_other_values_is_judged_again() -> None:
    spec = config.load_environment(of_file("dev")).aws
    assert spec and spec.findings is spec.findings
    assert spec.model_copy() == spec
    (name, pool), *_ = spec.environments.items()
    changed = pool.model_copy(update={"max_vcpus": 0})
    assert "aws.capacity.bounds" in {finding.rule for finding in changed.findings}, name
    assert not pool.findings
