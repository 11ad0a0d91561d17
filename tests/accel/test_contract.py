"""The contract only grows: another team's program was written against it."""

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from accel.contract.schema import OUTPUTS, document
from accel.contract.targets import KINDS, read_one, write
from tests.support import states

from .contract_changes import breaking_changes, fields, version

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "contract.json"

TARGET: dict[str, Any] = {
    "kind": "aws-batch",
    "schema": 1,
    "region": "us-east-1",
    "queue_arn": "arn:aws:batch:us-east-1:1:job-queue/gpu",
    "environments": [
        {
            "name": "spot",
            "arn": "a",
            "capacity": "spot",
            "instance_types": ["g5"],
            "max_vcpus": 8,
            "disk_gib": 200,
        }
    ],
    "definitions": {"train": {"arn": "d", "image": "i:1", "vcpus": 1, "memory_mib": 64, "gpus": 1}},
    "definition_prefix": "accel-dev",
    "log_group": "jobs",
    "job_role_arn": "j",
    "execution_role_arn": "e",
}


def grown(of: dict[str, Any], way: list[str], **more: Any) -> dict[str, Any]:
    """A copy of a schema with something put into the object at a way; None takes it away."""
    copied = copy.deepcopy(of)
    here = copied
    for step in way:
        here = here[step]
    for name, value in more.items():
        if value is None:
            del here[name]
        else:
            here[name] = value
    return copied


def test_nothing_is_taken_away() -> None:
    """Adding a field is free: raise MINOR and run with ACCEL_UPDATE_GOLDEN=1. A removal raises the outputs' schema, and
    is an entry in UPGRADING.md."""
    now, promised = document(), json.loads(GOLDEN.read_text())
    assert breaking_changes(promised, now) == []
    more = fields(now).keys() - fields(promised).keys()
    if os.environ.get("ACCEL_UPDATE_GOLDEN"):
        assert not more or version(now) > version(promised), "raise MINOR of accel.contract.schema"
        GOLDEN.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n")
    else:
        assert not more, "new fields: raise MINOR, and ACCEL_UPDATE_GOLDEN=1"


def test_what_is_published_is_the_contract() -> None:
    published = json.loads((ROOT / "docs" / "contract.schema.json").read_text())
    assert published == document(), "python -m accel.contract.schema > docs/contract.schema.json"


@pytest.mark.parametrize("commit", states.commits())
def test_earlier_versions_are_understood(commit: str) -> None:
    """What one promised still holds, and what its stacks export is read."""
    earlier = states.read(commit)
    assert earlier.contract is None or breaking_changes(earlier.contract, document()) == []
    outputs = earlier.resources[0]["outputs"]
    assert outputs.keys() & OUTPUTS.keys() >= {"targets", "network", "clusters"}
    for name in outputs.keys() & OUTPUTS.keys():
        TypeAdapter[Any](OUTPUTS[name]).validate_python(outputs[name])


NETWORK = ["$defs", "AwsNetwork"]
QUEUE_ARN = ["$defs", "AwsBatchTarget", "properties", "queue_arn"]


@pytest.mark.parametrize(
    "changed, said",
    [
        (lambda now: grown(now, [*NETWORK, "properties"], vpc_id=None), "vpc_id: is gone"),
        (lambda now: grown(now, ["properties"], clusters=None), ".clusters: is gone"),
        (lambda now: grown(now, QUEUE_ARN, type="integer"), "queue_arn: is of another type"),
        (
            lambda now: grown(now, ["$defs", "AwsBatchEnvironment", "properties", "capacity"], enum=["spot"]),
            "capacity: is of another type",
        ),
        (
            lambda now: grown(now, ["$defs", "AwsBatchTarget"], required=["claim_table"]),
            "claim_table: was not demanded before",
        ),
        (
            lambda now: grown(
                grown(now, [*NETWORK, "properties"], ipv6={"type": "boolean"}), NETWORK, required=["ipv6"]
            ),
            "ipv6: is new, and demanded of stacks that do not have it",
        ),
    ],
)
def test_the_law_sees_what_somebody_would_miss(changed: Any, said: str) -> None:
    (line,) = breaking_changes(document(), changed(document()))
    assert line.endswith(said)


@pytest.mark.parametrize(
    "changed",
    [
        lambda now: grown(now, [*NETWORK, "properties"], ipv6={"type": "boolean"}),
        lambda now: grown(now, QUEUE_ARN, description="other words"),
        lambda now: grown(
            now,
            ["$defs", "AwsBatchEnvironment", "properties", "capacity"],
            enum=["on-demand", "spot", "capacity-block"],
        ),
        lambda now: grown(now, ["properties"], more={"type": "object", "required": ["a"], "properties": {"a": {}}}),
    ],
)
def test_the_law_lets_it_grow(changed: Any) -> None:
    assert breaking_changes(document(), changed(document())) == []


def test_what_is_written_is_what_was_read() -> None:
    target = read_one(TARGET)
    written = write({"gpu": target})["gpu"]
    inside = {name: TARGET[name] for name in ("definitions", "environments")}  # which say their defaults too
    assert {key: written[key] for key in TARGET} | inside == TARGET
    assert read_one(written) == target


def test_readers_leave_out_what_they_do_not_know() -> None:
    assert read_one(
        {**TARGET, "schema": 9, "fleet": {"new": 1}, "environments": [{**TARGET["environments"][0], "x": 1}]}
    )


@pytest.mark.parametrize("missing", ["region", "queue_arn", "environments", "log_group"])
def test_readers_refuse_what_they_need_and_do_not_get(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        read_one({key: value for key, value in TARGET.items() if key != missing})


def test_kinds_are_all_named() -> None:
    mapping = document()["properties"]["targets"]["additionalProperties"]["discriminator"]["mapping"]
    assert set(KINDS) == set(mapping)
