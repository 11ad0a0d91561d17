"""What is read of a digest, and what is none."""

import json
from pathlib import Path

import pytest

from accel.diagnostics.errors import BadInput, NotFound
from stacks.operations.report.preview import of_text, read, value_changes

from .steps import PREFIX, preview, step

QUEUE = "accel:aws:JobQueue$aws:batch/jobQueue:JobQueue"


def test_a_step_becomes_a_change() -> None:
    found = preview(
        step("replace", QUEUE, "gpu", replaces=["schedulingPolicyArn"], diffs=["priority"], outputs={"arn": "a"}),
        step("update", "accel:aws:JobQueue", "gpu"),
        step("same", QUEUE, "other"),
        step("delete", "pulumi:providers:aws", "default"),
    )
    assert [(each.op, each.type, each.name) for each in found.changes] == [
        ("replace", "aws:batch/jobQueue:JobQueue", "gpu"),
        ("update", "accel:aws:JobQueue", "gpu"),
    ]
    change = found.changes[0]
    assert (change.replaces, change.diffs, change.old_outputs) == (
        ("schedulingPolicyArn",),
        ("priority",),
        {"arn": "a"},
    )
    assert change.removes and not found.empty and not found.failed
    assert (found.stack, found.project) == ("dev", "accel")


def test_the_steps_of_one_replacement_are_one_change() -> None:
    ops = ("create-replacement", "replace", "delete-replaced")
    found = preview(*(step(op, QUEUE, "gpu") for op in ops))
    assert [each.op for each in found.changes] == ["replace"]


@pytest.mark.parametrize("op", ["delete", "replace"])
def test_what_stays_in_the_cloud_is_not_gone(op: str) -> None:
    (kept,) = preview(step(op, QUEUE, "gpu", flags={"retainOnDelete": True})).changes
    assert (kept.kept, kept.removes) == (True, False)


def test_a_refresh_alone_changes_nothing() -> None:
    assert preview(step("refresh", QUEUE, "gpu")).empty
    assert preview(step("update", "accel:aws:JobQueue", "gpu")).empty, "the cloud has no components"
    assert preview().empty


def test_an_error_makes_it_failed() -> None:
    told = [{"severity": "error", "message": "boo"}, {"severity": "warning", "message": "hm"}]
    found = preview(diagnostics=told)
    assert (found.failed, found.empty, found.errors, found.warnings) == (True, False, ("boo",), ("hm",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "p.json:1: is no JSON, or not all of it"),
        ('{"steps": [\n', "p.json:2: is no JSON, or not all of it"),
        ("[]", "p.json: is no preview: it has no steps"),
        ('{"a": 1}', "p.json: is no preview: it has no steps"),
        ("[" * 100_000, "p.json:1: is no JSON, or not all of it"),
        (json.dumps({"steps": [{"op": "same", "urn": f"{PREFIX}::a:b:C::d"}]}), "a preview of stack dev, not of prod"),
    ],
)
def test_what_is_no_preview_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        of_text(text, "p.json", "prod")
    assert said in refused.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read(tmp_path / "none.json", "dev")


def test_strange_values_do_no_harm() -> None:
    strange = {"op": "update", "urn": f"{PREFIX}::a:b:C::d", "oldState": 3, "newState": [], "detailedDiff": "x"}
    (change,) = preview(strange, diagnostics=[1, {"severity": "error"}]).changes
    assert (change.old_inputs, change.diffs) == ({}, ())


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("gcp:container/cluster:Cluster", [("1.33.4", "1.34.1")]),
        ("accel:gcp:GkeNodePool", [("1.33.4", "1.34.1")]),
        ("aws:ec2/launchTemplate:LaunchTemplate", []),  # a counter
    ],
)
def test_a_version_is_shown_where_it_is_of_software(kind: str, shown: list[tuple[str, str]]) -> None:
    seen = preview(step("update", kind, "gke", old={"version": "1.33.4"}, new={"version": "1.34.1"}))
    assert [(each.before, each.after) for each in value_changes(seen)] == shown
