"""The hooks of declared TPUs: what Google refuses is a warning of the update, and stops a deletion."""

from typing import Any

import pulumi
import pytest

from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from stacks.environment.gcp.queued_tpu_hooks import ask, retire


class Queues:
    """What the hooks call, with answers that are given."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def reconcile(self, say: Any, only: str) -> Any:
        return self._given()

    def retire(self, key: str, say: Any, patience_s: float) -> Any:
        return self._given()

    def _given(self) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lines.append)
    return lines


def answer(monkeypatch: pytest.MonkeyPatch, given: Any) -> None:
    monkeypatch.setattr("stacks.environment.gcp.queued_tpu_hooks._queues", lambda bucket: Queues(given))


@pytest.mark.parametrize("given", [([], ["queue trainer: quota"]), CloudSilent("out of reach")])
def test_what_is_refused_at_once_is_a_warning(given: Any, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, given)
    ask("jobs", "trainer", lambda text: None)
    (line,) = said
    assert ("quota" in line or "out of reach" in line) and "`accel-jobs tend`" in line


def test_a_deletion_waits_and_says_why_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, CloudRefused("permission tpu.nodes.delete is missing"))
    with pytest.raises(pulumi.RunError, match=r"trainer: its TPUs could not be deleted: permission tpu\.nodes\.delete"):
        retire("jobs", "trainer")


def test_a_bucket_that_is_gone_has_no_tpus(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, NotFound("no bucket"))
    retire("jobs", "trainer")
