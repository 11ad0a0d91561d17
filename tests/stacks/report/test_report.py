"""The document, its Markdown, and what --fail-on refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.diagnostics.errors import BadInput, NotFound
from sandbox.environment import project
from stacks.operations.pulumi_command import UNKNOWN
from stacks.operations.report.document import ReportOptions, document
from stacks.operations.report.markdown import LIMIT, render
from stacks.operations.report.plain import markdown, message_line, sanitize
from stacks.operations.report.preview import Preview
from stacks.operations.report.thresholds import Limit, breach_reason, limits
from stacks.operations.report.tool_findings import drift, policy
from tests.support.speed import CpuTime

from .steps import environment, preview, step

TABLE = "accel:aws:ClaimTable$aws:dynamodb/table:Table"
COMPUTE = "accel:aws:ComputeEnvironment"


def sandbox() -> dict[str, Any]:
    return yaml.safe_load((project() / "Pulumi.sandbox.yaml").read_text())["config"]["accel:environment"]


def offline(found: Preview, **wanted: Any) -> dict[str, Any]:
    return document(found, ReportOptions(offline=True, **wanted))


def test_the_cost_is_that_of_the_state_and_of_the_config() -> None:
    now, before = sandbox(), sandbox()
    before["aws"]["environments"]["spot"]["max_vcpus"] = 128
    old, new = ({"spec": values["aws"]["environments"]["spot"]} for values in (before, now))
    found = offline(preview(step("update", COMPUTE, "spot", old=old, new=new), config=environment(now)))
    whole = offline(preview(step("update", TABLE, "t"), config=environment(before)))["cost"]["after"]
    assert found["cost"]["before"] == whole
    assert found["cost"]["rise"]["worst"]["usd_hour"] > 0


def test_what_is_made_cost_nothing_before_and_what_goes_nothing_after() -> None:
    now = sandbox()
    spec = {"spec": now["aws"]["environments"]["spot"]}
    made = offline(preview(step("create", COMPUTE, "spot", new=spec), config=environment(now)))["cost"]
    without = {"owner": "you"}
    outputs = {"region": "us-east-1"}
    gone = preview(
        step("delete", COMPUTE, "spot", old=spec),
        step("delete", f"{COMPUTE}$aws:batch/computeEnvironment:ComputeEnvironment", "spot", outputs=outputs),
        config=environment(without),
    )
    lost = offline(gone)["cost"]
    assert made["rise"]["worst"]["usd_hour"] == pytest.approx(-lost["rise"]["worst"]["usd_hour"], rel=0.01)
    assert lost["after"]["worst"]["usd_hour"] == 0


def test_a_spec_of_another_version_is_said() -> None:
    changed = preview(step("update", COMPUTE, "spot", old={"spec": {"new_field": 1}}), config=environment(sandbox()))
    cost = offline(changed)["cost"]
    assert (cost["before"], cost["rise"]["worst"]) == (None, None)
    assert "another version" in cost["why"]
    assert "not known" in str(breach_reason(Limit("rise", 1), offline(changed)))


def test_the_cost_before_is_that_of_the_region_before() -> None:
    now = sandbox()
    spec = {"spec": now["aws"]["environments"]["spot"]}
    moved = {"arn": "a", "region": "eu-central-1"}
    steps = [
        step("replace", COMPUTE, "spot", old=spec, new=spec),
        step("replace", f"{COMPUTE}$aws:batch/computeEnvironment:ComputeEnvironment", "spot", outputs=moved),
    ]
    there = {**now, "aws": {**now["aws"], "region": "eu-central-1"}}
    there["aws"]["network"] = {**now["aws"]["network"], "zones": ["eu-central-1a", "eu-central-1b"]}
    cost = offline(preview(*steps, config=environment(now)))["cost"]
    assert cost["before"]["worst"] != cost["after"]["worst"]
    assert cost["before"]["worst"] == offline(preview(config=environment(there)))["cost"]["after"]["worst"]


def test_an_image_that_is_not_known_yet() -> None:
    template = "gcp:compute/instanceTemplate:InstanceTemplate"
    disks = [{"disks": [{"sourceImage": image}]} for image in ("ubuntu-1", UNKNOWN)]
    (found,) = offline(preview(step("replace", template, "t", old=disks[0], new=disks[1])))["images"]
    assert (found["before"], found["after"]) == ("ubuntu-1", "known after the update")


def test_images_and_drivers_that_move_are_shown_with_their_values() -> None:
    pool = "gcp:container/nodePool:NodePool"
    drivers = [
        {"nodeConfig": {"guestAccelerators": [{"gpuDriverInstallationConfig": {"gpuDriverVersion": version}}]}}
        for version in ("DEFAULT", "LATEST")
    ]
    moved = offline(
        preview(
            step(
                "update",
                "accel:aws:JobDefinition",
                "train",
                old={"spec": {"image": "a:1"}},
                new={"spec": {"image": "a:2"}},
            ),
            step("update", pool, "l4", old=drivers[0], new=drivers[1]),
            step("update", "aws:ec2/launchTemplate:LaunchTemplate", "t", old={"version": "1"}, new={"version": "2"}),
        )
    )["images"]
    assert [(each["resource"], each["what"], each["before"], each["after"]) for each in moved] == [
        ("l4", "GPU driver", "DEFAULT", "LATEST"),
        ("train", "image", "a:1", "a:2"),
    ]


def test_nothing_is_one_line() -> None:
    assert render(offline(preview())) == "**dev**: nothing changes. <!-- accel-report:accel/dev -->\n"
    assert render(offline(preview(), drift=[{"resource": "a", "weight": "soon", "text": "b"}])).count("\n") > 3


def test_five_thousand_changes_fit_a_comment_and_the_worst_come_first() -> None:
    steps = [step("delete", TABLE, f"table-{'x' * 80}-{number}") for number in range(5000)]
    with CpuTime() as cpu:
        found = offline(preview(*steps))
        text = render(found)
    assert len(text) <= LIMIT
    assert cpu.seconds < 30
    assert text.index("Lost for good") < text.index("All 5000 changes")
    assert "more, in the JSON report" in text
    assert text.endswith("<!-- accel-report:accel/dev -->\n")
    assert len(render(found, 900)) <= 900
    assert len(found["changes"]) == 5000


def test_names_and_messages_are_text_and_not_markdown() -> None:
    evil = "a|b`c` <img src=x> @everyone [x](javascript:1) <!-- accel-report:accel/dev -->"
    told_so = [{"severity": "error", "message": f"error: {evil}"}]
    text = render(offline(preview(step("delete", TABLE, evil), diagnostics=told_so)))
    assert "<img" not in text and "@everyone" not in text and "[x]" not in text
    assert markdown("https://a.b www.a.b a:b") == "https&#58;//a.b www&#46;a.b a:b", "no link"
    assert text.count("<!-- accel-report") == 1
    for line in text.splitlines():
        if "img" in line and line.startswith("| deleted"):
            assert line.count("|") == 5, "no cell ends early"
    assert markdown("a\nb") == "a b"


HIT = {"name": "train", "fate": "ends"}
BASE: dict[str, Any] = {
    "stateful": [],
    "jobs": {"hit": [], "unread": []},
    "quota": {"rows": [], "unread": None},
    "policy": [],
    "drift": [],
    "cost": None,
}


@pytest.mark.parametrize(
    ("condition", "changed", "holds"),
    [
        ("replace-stateful", {"stateful": [{"name": "claims"}]}, True),
        ("kills-jobs", {"jobs": {"hit": [HIT], "unread": []}}, True),
        ("kills-jobs", {"jobs": {"hit": [{**HIT, "fate": "waits"}], "unread": []}}, False),
        ("kills-jobs", {"jobs": {"hit": [], "unread": ["no credentials"]}}, True),
        ("waits-for-jobs", {"jobs": {"hit": [{**HIT, "fate": "waits"}], "unread": []}}, True),
        ("quota", {"quota": {"rows": [{"verdict": "ok"}], "unread": None}}, False),
        ("quota", {"quota": {"rows": [], "unread": "no credentials"}}, True),
        ("quota", {"quota": {"rows": [{"verdict": "over", "quota": "L-1", "region": "r"}], "unread": None}}, True),
        ("policy", {"policy": [{"level": "advisory", "rule": "a"}]}, False),
        ("policy", {"policy": [{"level": "mandatory", "rule": "a"}]}, True),
        ("drift", {"drift": [{"resource": "a", "weight": "broken"}]}, True),
        ("drift", {"drift": [{"resource": "a", "weight": "soon"}]}, False),
        ("cost>5", {}, True),
        ("cost>5", {"cost": {"after": {"worst": {"usd_hour": 4.0, "at_least": False}}}}, False),
        ("cost>5", {"cost": {"after": {"worst": {"usd_hour": 4.0, "at_least": True}}}}, False),
        ("cost>3.5", {"cost": {"after": {"worst": {"usd_hour": 4.0, "at_least": False}}}}, True),
        ("rise>1", {"cost": {"rise": {"worst": None}}}, True),
        ("rise>1", {"cost": {"rise": {"worst": {"usd_hour": -4.0, "at_least": False}}}}, False),
    ],
)
def test_each_condition_of_fail_on(condition: str, changed: dict[str, Any], holds: bool) -> None:
    (limit,) = limits(condition)
    assert (breach_reason(limit, {**BASE, **changed}) is not None) is holds
    untouched = breach_reason(limit, BASE)
    assert untouched is None or limit.number is not None


def test_strict_takes_nothing_that_is_not_known_for_enough() -> None:
    partly = {"cost": {"after": {"worst": {"usd_hour": 4.0, "at_least": True}}}}
    unknown = {"quota": {"rows": [{"verdict": "unknown", "reason": "may not be read"}], "unread": None}}
    for limit, changed in ((Limit("cost", 5), partly), (Limit("quota"), unknown)):
        assert breach_reason(limit, {**BASE, **changed}) is None
        assert breach_reason(limit, {**BASE, **changed}, strict=True)


def test_fail_on_is_read_strictly() -> None:
    assert limits(" kills-jobs, cost > 12.5 ,") == (Limit("kills-jobs"), Limit("cost", 12.5))
    for text, said in (
        ("kill-jobs", "did you mean kills-jobs"),
        ("cost", "expected cost>NUMBER"),
        ("cost>much", "expected cost>NUMBER"),
        ("cost<3", "expected cost>NUMBER"),
    ):
        with pytest.raises(BadInput) as refused:
            limits(text)
        assert said in refused.value.message


def test_findings_of_others(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    found = [{"rule": "no-public", "severity": "mandatory", "urn": "urn:a::b::c::vm", "message": "m\nmore"}, 3]
    path.write_text(json.dumps({"findings": found}))
    assert policy(path) == [{"rule": "no-public", "level": "mandatory", "resource": "vm", "text": "m"}]
    path.write_text(json.dumps([{"what": "moved", "name": "pool", "why": "by hand"}]))
    assert drift(path) == [{"resource": "pool", "weight": "changed", "text": "by hand"}]
    for text in ("{", "3", '{"a": 1}'):
        path.write_text(text)
        with pytest.raises(BadInput):
            policy(path)
    with pytest.raises(NotFound):
        drift(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:hunter2hunter2@host/db",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnop",
        "ya29.a0AfH6SMBabcdef",
        "hf_abcdefghijklmnop",
        "Authorization: Bearer abcdefghijkl",
        "api_key=abcdefgh",
        "client-secret: 'abcdefgh'",
        "eyJhbGciOi.eyJzdWIi.abc",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    shown = sanitize(f"before {text} after", {})
    assert "[hidden]" in shown
    assert not any(part in shown for part in ("hunter2", "AKIA", "ghp_", "abcdef", "eyJ", "abc"))
    assert shown.startswith("before ")


def test_values_of_variables_with_such_names_are_hidden() -> None:
    assert (
        sanitize("it is 12345678, 1234567", {"MY_TOKEN": "12345678", "PIN_SECRET": "123"}) == "it is [hidden], 1234567"
    )
    assert (
        sanitize("arn:aws:batch:us-east-1:210020003000:job-queue/gpu", {})
        == "arn:aws:batch:us-east-1:210020003000:job-queue/gpu"
    )


def test_a_message_of_any_length_takes_no_time() -> None:
    with CpuTime() as cpu:
        for long in ("a" * 1_000_000, "password" * 100_000, "://a" * 100_000):
            assert len(message_line(long)) <= 400
    assert cpu.seconds < 30


def test_an_exception_is_told_by_its_type_alone() -> None:
    trace = "error: Program failed with an unhandled exception:\nTraceback (most recent call last):\nKeyError: 'pw'"
    assert message_line(f"{trace}\n\n") == "the program failed: KeyError; its log has the rest"
    assert message_line("error: first\nsecond") == "first"
