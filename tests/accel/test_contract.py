"""The contract only grows: another team's program was written against it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from accel.contract.access import AwsAccess
from accel.contract.monitoring import AwsMonitoring
from accel.contract.network import AwsNetwork
from accel.contract.targets import KINDS, Targets, read_one, write

GOLDEN = Path(__file__).parents[1] / "golden" / "contract.json"

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


def schema() -> dict[str, Any]:
    """The contract as JSON Schema, by output."""
    return {
        "targets": TypeAdapter(Targets).json_schema(by_alias=True),
        "network": AwsNetwork.model_json_schema(),
        "monitoring": AwsMonitoring.model_json_schema(),
        "access": AwsAccess.model_json_schema(),
    }


def fields(schema: Any, here: str = "") -> dict[str, Any]:
    """Every property with its type, by path; the words around it may change."""
    found: dict[str, Any] = {}
    if isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            kept = {key: value for key, value in inner.items() if key not in ("description", "title", "default")}
            found[f"{here}.{name}"] = kept
        for name, inner in schema.items():
            if name != "properties":
                found |= fields(inner, f"{here}/{name}")
    return found


def test_nothing_is_taken_away() -> None:
    """Adding a field is free: run with ACCEL_UPDATE_GOLDEN=1. A removal is an entry in UPGRADING.md."""
    if os.environ.get("ACCEL_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(schema(), indent=2, sort_keys=True) + "\n")
    promised = fields(json.loads(GOLDEN.read_text()))
    now = fields(schema())
    assert {path: now.get(path) for path in promised} == promised
    assert now.keys() == promised.keys(), "a new field: ACCEL_UPDATE_GOLDEN=1"


def test_the_law_sees_a_field_that_is_gone() -> None:
    without = json.loads(GOLDEN.read_text())
    del without["network"]["properties"]["vpc_id"]
    assert fields(without) != fields(schema())


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
    mapping = schema()["targets"]["additionalProperties"]["discriminator"]["mapping"]
    assert set(KINDS) == set(mapping)
