"""Each policy over its cases, and over anything at all."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi.runtime import proto

from policy.analyzer import Analyzer
from policy.capacity import MAKERS
from policy.commands import policies_page, policy
from policy.guard import Policy, ResourcePolicy
from policy.judge import Config, ConfigFault, Finding, findings
from policy.judge import config as read_config
from policy.resource import UNSEEN, Resource
from policy.table import POLICIES
from tests.support.soak import SOAK

from .cases import AWS, CASES, one

ROOT = Path(__file__).resolve().parents[2]

PASSES = [(name, stack) for name, case in CASES.items() for stack in case.passes]
FAILS = [(name, stack, said) for name, case in CASES.items() for stack, said in case.fails]
UNKNOWN = [(name, stack, path) for name, case in CASES.items() for stack, path in case.unknown]


def said_by(name: str, stack: list[Resource], **given: Any) -> list[Finding]:
    using = Config({}, {name: given or CASES[name].settings})
    return [each for each in findings(stack, using) if each.policy.id == name]


def test_every_policy_has_cases() -> None:
    assert set(CASES) == set(POLICIES)
    for name, case in CASES.items():
        enough = len(case.passes) >= (1 if name == "no-public-buckets" else 2)
        assert enough and len(case.fails) >= 2 and case.unknown, name


@pytest.mark.parametrize("name, stack", PASSES)
def test_what_is_right_passes(name: str, stack: list[Resource]) -> None:
    assert said_by(name, stack) == []


@pytest.mark.parametrize("name, stack, said", FAILS)
def test_what_is_wrong_is_said(name: str, stack: list[Resource], said: str) -> None:
    found = said_by(name, stack)
    assert said in " / ".join(each.message for each in found)
    assert not any(each.unknown for each in found)
    assert all(each.level == "advisory" for each in found)


@pytest.mark.parametrize("name, stack, path", UNKNOWN)
def test_what_is_not_known_yet_is_neither(name: str, stack: list[Resource], path: str) -> None:
    (found,) = said_by(name, stack)
    assert found.unknown and found.message == path


def test_a_maximum_counts_nothing_until_it_is_given() -> None:
    stack = CASES["accelerators-maximum"].fails[0][0]
    assert not [each for each in findings(stack) if each.policy.id == "accelerators-maximum"]


def test_settings_change_what_is_allowed() -> None:
    short = one("aws:cloudwatch/logGroup:LogGroup", retentionInDays=30)
    assert said_by("log-retention", [short], least_days=90)
    tagged = CASES["images-by-digest"].fails[0][0]
    assert not said_by("images-by-digest", tagged, allow=["repo/"])


KEYS = (
    *("Statement", "Effect", "Action", "Principal", "spot", "ebs", "tags", "node", "type", "count"),
    *("instanceTypes", "maxVcpus", "machineType", "machine_type", "tpuTopology", "topology", "acceleratorType"),
    *("nodeSpecs", "machineSpec", "autoscalingSpec", "maxReplicaCount", "totalMaxNodeCount", "size", "accelerator"),
)
TEXTS = ("*", "{}", "[1]", "EC2", "g5", "g5.xlarge", "n1-standard-8", "v5litepod-16", "v5p", "2x2", "0x1", "nvidia-l4")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(UNSEEN) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


def keys_of(policy: Policy) -> list[str]:
    """The first steps of the paths that a policy's cases have."""
    case = CASES[policy.id]
    stacks = [*case.passes, *(stack for stack, _ in case.fails)]
    return sorted({key for stack in stacks for resource in stack for key in resource.properties}) or ["x"]


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_falls_over_what_it_does_not_expect(name: str) -> None:
    policy = POLICIES[name]
    types = policy.types if isinstance(policy, ResourcePolicy) else tuple(MAKERS)
    using = Config({other: "disabled" for other in POLICIES if other != name}, {name: CASES[name].settings})

    @settings(max_examples=1000 if SOAK else 30)
    @given(kind=st.sampled_from(types), properties=st.dictionaries(st.sampled_from(keys_of(policy)), VALUES))
    def judged(kind: str, properties: dict[str, Any]) -> None:
        findings([Resource(kind, "x", "urn::x", properties, provider=AWS)], using)

    judged()


def test_the_page_is_of_this_table() -> None:
    assert (ROOT / "docs" / "policy.md").read_text() == policies_page(), "python -m policy page > docs/policy.md"


def run(*arguments: str, document: Any = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "policy", *arguments]
    text = None if document is None else json.dumps(document)
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=60, check=False)


STATE = {
    "deployment": {
        "resources": [
            {
                "type": "aws:cloudwatch/logGroup:LogGroup",
                "urn": "urn:pulumi:dev::accel::aws:cloudwatch/logGroup:LogGroup::jobs",
                "inputs": {"retentionInDays": 3, "kmsKeyId": "[secret]"},
            }
        ]
    }
}


def test_the_command_refuses_with_5(tmp_path: Path) -> None:
    strict = tmp_path / "strict.json"
    strict.write_text(json.dumps({"all": "mandatory"}))
    lenient = run("check", document=STATE)
    assert lenient.returncode == 0 and "retentionInDays is 3, less than 7" in lenient.stdout
    refused = run("check", "--config", str(strict), "-o", "json", document=STATE)
    assert refused.returncode == 5 and "error: 1 findings of mandatory policies" in refused.stderr
    (found,) = json.loads(refused.stdout)["findings"]
    assert (found["policy"], found["level"], found["name"]) == ("log-retention", "mandatory", "jobs")
    assert found["also"] == ["CKV_AWS_66", "CKV_AWS_338"]


def test_it_advises_in_dev_and_is_mandatory_in_prod() -> None:
    dev, prod = (read_config(json.loads((ROOT / "policy" / f"{name}.json").read_text())) for name in ("dev", "prod"))
    assert {dev.level(each) for each in POLICIES.values()} == {"advisory", "disabled"}
    assert {dev.level(POLICIES[name]) for name in ("spot-first", "imdsv2")} == {"advisory"}
    assert {name for name, each in POLICIES.items() if prod.level(each) != "mandatory"} == {"spot-first"}
    assert set(POLICIES) - set(prod.active) == {"spot-first"}


@pytest.mark.parametrize(
    "config, said",
    [
        ({"log-retentoin": "advisory"}, "log-retentoin: no such policy; nearest: log-retention"),
        ({"log-retention": "strict"}, "log-retention.enforcementLevel: must be one of advisory, mandatory, disabled"),
        ({"log-retention": {"least": 3}}, "log-retention.least: no such setting; known: enforcementLevel, least_days"),
        ({"log-retention": {"least_days": "3"}}, "log-retention.least_days: must be of type integer, is '3'"),
        ({"spot-first": {"on_demand_share": 50}}, "must be at least 0 and at most 1, is 50"),
        ({"all": "mandtory"}, "all.enforcementLevel: must be one of"),
        ({"all": 3}, "all: must be a level, or an object with enforcementLevel"),
        ({"imdsv2": ["mandatory"]}, "imdsv2: must be a level, or an object"),
        ({"images-by-digest": {"allow": [1]}}, "images-by-digest.allow: must be a list of texts, is [1]"),
    ],
)
def test_a_wrong_config_is_one_line(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigFault) as fault:
        read_config(config)
    assert said in str(fault.value) and "\n" not in str(fault.value)


def test_what_cannot_be_judged_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(document: Any, levels: dict[str, str]) -> tuple[int, str]:
        for name, value in (("document", document), ("levels", levels)):
            (tmp_path / name).write_text(json.dumps(value))
        with pytest.raises(SystemExit) as ended:
            policy.main(["check", str(tmp_path / "document"), "--config", str(tmp_path / "levels")])
        return int(str(ended.value.code)), capsys.readouterr().err.splitlines()[0].partition(str(tmp_path))[2]

    for wrong in ({"resources": []}, {"steps": 3}, {"deployment": [1]}, {"steps": [{"newState": {"urn": "x"}}]}):
        assert told(wrong, {}) == (2, "/document: is neither a preview nor a state")
    assert told([], {}) == (2, "/document: must be a JSON object")
    assert told({"steps": []}, {"log-retention": "strict"})[0] == 2
    halfway = {"steps": [], "diagnostics": [{"severity": "error", "message": "halfway"}]}
    failed = "/document: the preview failed: what it did not come to is not judged"
    assert told(halfway, {"all": "mandatory"}) == (5, failed)
    assert told(halfway, {"all": "advisory"}) == (0, failed)


def test_the_engine_gives_a_component_once_with_what_it_is_made_of() -> None:
    """And once more, for the whole stack, with what it says of itself alone."""
    group, most = CASES["accelerators-maximum"].passes[3][0], 4
    engine = Analyzer()
    engine.config = Config(given={"accelerators-maximum": {"most": most}})
    asked = proto.AnalyzeRequest(type=group.type, name=group.name, urn=group.urn)
    asked.properties.update(dict(group.properties))
    assert not engine.Analyze(asked, None).diagnostics
    whole = proto.AnalyzeStackRequest(resources=[proto.AnalyzerResource(type=group.type, name="group", urn=group.urn)])
    (said,) = engine.AnalyzeStack(whole, None).diagnostics
    assert said.message.startswith("the stack can come to 16 GPUs and TPU chips, more than 4: group 16; lower")
