"""Where targets come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from accel.clouds.aws import clients as aws
from accel.contract.targets import AwsBatchTarget, LocalTarget
from accel.diagnostics.errors import BadInput, BadInputs, CloudRefused, CloudSilent, NoCredentials, NotFound
from jobs.client import published_targets, targets
from tests.jobs.batch_target import BATCH

pytestmark = pytest.mark.usefixtures("home")

SOURCE = "ssm:us-east-1/accel/prod/targets"


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


# --- files


def test_without_a_source_this_machine_only(home: Path) -> None:
    found = targets.load()
    assert found.choose(None) == ("local", LocalTarget(root=str(home)))


def test_a_file(home: Path) -> None:
    found = targets.load(str(write(home / "x" / "t.json", {"gpu": BATCH, "cpu": {"kind": "local", "root": "src"}})))
    assert list(found.entries) == ["gpu", "cpu", "local"]
    assert isinstance(found.choose("gpu")[1], AwsBatchTarget)
    assert found.choose("cpu")[1] == LocalTarget(root=str(home / "x" / "src"))
    assert found.choose("local")[1] == LocalTarget(root=str(home))


def test_the_usual_file_is_found_from_below(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / ".accel" / "targets.json", {"cpu": {"kind": "local"}})
    (home / ".git").mkdir()
    (home / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(home / "a" / "b")
    assert targets.load().choose(None) == ("cpu", LocalTarget(root=str(home)))


def test_the_variable_and_the_option_win_over_the_usual_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / ".accel" / "targets.json", {"usual": {"kind": "local"}})
    monkeypatch.setenv("ACCEL_TARGETS", str(write(home / "v.json", {"variable": {"kind": "local"}})))
    assert targets.load().choose(None)[0] == "variable"
    assert targets.load(str(write(home / "o.json", {"option": {"kind": "local"}}))).choose(None)[0] == "option"


def test_local_may_be_defined(home: Path) -> None:
    found = targets.load(str(write(home / "t.json", {"local": {"kind": "local", "root": "/srv"}})))
    assert found.choose(None) == ("local", LocalTarget(root="/srv"))


def test_the_outputs_of_a_stack(home: Path) -> None:
    path = write(home / "t.json", {"targets": {"gpu": BATCH}, "network": {"vpc_id": "x"}})
    assert targets.load(str(path)).choose(None)[0] == "gpu"
    path = write(home / "t.json", {"targets": {"kind": "local"}})
    assert targets.load(str(path)).choose(None)[0] == "targets"


def test_what_a_newer_stack_says_more_is_left_out(home: Path) -> None:
    newer = BATCH | {"schema": 2, "colour": "blue", "environments": [BATCH["environments"][0] | {"more": 1}]}
    assert targets.load(str(write(home / "t.json", {"gpu": newer}))).choose("gpu")[1]


def test_a_newer_kind_is_listed_and_refused(home: Path) -> None:
    found = targets.load(str(write(home / "t.json", {"tpu": {"kind": "slurm"}})))
    with pytest.raises(BadInput, match="target tpu: needs a newer accel, which knows targets of kind slurm"):
        found.choose("tpu")
    with pytest.raises(BadInput, match="needs a newer accel"):
        found.choose(None)


@pytest.mark.parametrize(
    "document, faults",
    [
        ({"gpu": 5}, ["gpu: must be a mapping, is 5"]),
        ({"gpu": {}}, ["gpu.kind: is missing"]),
        ({"gpu": {"kind": 5}}, ["gpu.kind: must be text"]),
        ({"gpu": {**BATCH, "region": 5}}, ["gpu.region: must be text, is 5"]),
        ({"gpu": {**BATCH, "environments": []}}, ["gpu.environments:"]),
        (
            {"gpu": {key: value for key, value in BATCH.items() if key not in ("region", "queue_arn")}},
            ["gpu.region: is missing (and 1 more)"],
        ),
        (
            {"a": 5, "b": {}, "c": {"kind": "local", "root": 1}},
            ["a: must be", "b.kind: is missing", "c.root: must be"],
        ),
    ],
)
def test_a_malformed_entry_is_one_line(document: Any, faults: list[str], home: Path) -> None:
    path = write(home / "t.json", document)
    with pytest.raises(BadInputs) as caught:
        targets.load(str(path))
    assert len(caught.value.messages) == len(faults)
    for message, fault in zip(caught.value.messages, faults, strict=True):
        assert message.startswith(f"{path}: {fault}")


@pytest.mark.parametrize(
    "text, fault",
    [
        ("", ":1: is not JSON"),
        ("{\n\n]", ":3: is not JSON"),
        ("[]", "must be a mapping from target name to target, is a list"),
        ("5", "is 5"),
        ('"x"', "is 'x'"),
        ("[" * 100_000, "cannot be read"),
        ("\0", "is not JSON"),
    ],
)
def test_a_file_that_is_no_mapping(text: str, fault: str, home: Path) -> None:
    with pytest.raises(BadInput, match=fault):
        targets.load(str(write(home / "t.json", text)))


def test_a_file_that_is_not_there(home: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        targets.load("gone.json")
    (home / "bytes.json").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="cannot be read"):
        targets.load("bytes.json")


def test_choosing(home: Path) -> None:
    two = targets.load(str(write(home / "t.json", {"gpu": BATCH, "spot": BATCH})))
    with pytest.raises(BadInput, match="--to: is missing; the targets are gpu, spot, local"):
        two.choose(None)
    with pytest.raises(BadInput, match=r"unknown target gpo; did you mean gpu"):
        two.choose("gpo")
    one = targets.load(str(write(home / "t.json", {"gpu": BATCH})))
    assert one.choose(None)[0] == "gpu"
    assert one.choose("local")[0] == "local"


# --- published


class Ssm:
    """Answers with pages of parameters, or raises."""

    def __init__(self) -> None:
        self.answer: dict[str, str] | Exception = {}
        self.asked: list[dict[str, Any]] = []

    def client(self, service: str, region: str, **_: Any) -> Ssm:
        assert (service, region) == ("ssm", "us-east-1")
        return self

    def get_paginator(self, name: str) -> Ssm:
        assert name == "get_parameters_by_path"
        return self

    def paginate(self, **arguments: Any) -> list[dict[str, Any]]:
        self.asked.append(arguments)
        if isinstance(self.answer, Exception):
            raise self.answer
        path = arguments["Path"]
        return [{"Parameters": [{"Name": f"{path}/{key}", "Value": value}]} for key, value in self.answer.items()]


@pytest.fixture
def ssm(monkeypatch: pytest.MonkeyPatch) -> Ssm:
    made = Ssm()
    made.answer = {"gpu": json.dumps(BATCH), "new": '{"kind": "slurm"}'}
    monkeypatch.setattr(aws, "client", made.client)
    return made


def refused(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "GetParametersByPath",
    )


def test_parameters(ssm: Ssm) -> None:
    found = targets.load(SOURCE)
    assert list(found.entries) == ["gpu", "new", "local"]
    assert ssm.asked == [{"Path": "/accel/prod/targets", "Recursive": True, "WithDecryption": True}]


def test_definitions_in_parameters_of_their_own(ssm: Ssm) -> None:
    train = {"arn": "d", "image": "i:1", "vcpus": 1, "memory_mib": 64, "gpus": 1}
    rest = {name: value for name, value in BATCH.items() if name != "definitions"}
    old = json.dumps(BATCH | {"definitions": {"train": train}})
    ssm.answer = {"definitions/train": json.dumps(train), "gpu": json.dumps(rest), "old": old}
    found = targets.load(SOURCE)
    assert list(found.entries) == ["gpu", "old", "local"]
    assert found.choose("gpu")[1] == found.choose("old")[1]


def test_the_copy_is_used_for_an_hour(ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1e9
    monkeypatch.setattr(published_targets.time, "time", lambda: clock)
    targets.load(SOURCE)
    clock += 3599
    assert targets.load(SOURCE).age_s == 3599
    assert len(ssm.asked) == 1
    targets.load(SOURCE, refresh=True)
    assert len(ssm.asked) == 2
    clock += 3601
    targets.load(SOURCE)
    assert len(ssm.asked) == 3
    clock -= 10_000  # the clock was set back
    targets.load(SOURCE)
    assert len(ssm.asked) == 4


@pytest.mark.parametrize(
    "error",
    [EndpointConnectionError(endpoint_url="x"), refused("ThrottlingException"), refused("Internal", 500)],
)
def test_an_old_copy_is_better_than_silence(error: Exception, ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1e9
    monkeypatch.setattr(published_targets.time, "time", lambda: clock)
    targets.load(SOURCE)
    clock += 7200
    ssm.answer = error
    found = targets.load(SOURCE)
    assert found.choose("gpu")[0] == "gpu"
    (warning,) = found.warnings
    assert warning.startswith(f"targets of {SOURCE} are 2.0 h old: GetParametersByPath")


@pytest.mark.parametrize(
    "error, kind",
    [
        (EndpointConnectionError(endpoint_url="x"), CloudSilent),
        (NoCredentialsError(), NoCredentials),
        (refused("ExpiredTokenException"), NoCredentials),
        (refused("AccessDeniedException"), CloudRefused),
    ],
)
def test_without_a_copy_the_error_stands(error: Exception, kind: type[Exception], ssm: Ssm) -> None:
    ssm.answer = error
    with pytest.raises(kind):
        targets.load(SOURCE)


def test_a_refusal_is_not_hidden_by_an_old_copy(ssm: Ssm) -> None:
    targets.load(SOURCE)
    ssm.answer = refused("AccessDeniedException")
    with pytest.raises(CloudRefused):
        targets.load(SOURCE, refresh=True)


def test_no_parameters(ssm: Ssm) -> None:
    ssm.answer = {}
    with pytest.raises(NotFound, match="no parameter below /accel/prod/targets in us-east-1"):
        targets.load(SOURCE)


def test_a_parameter_that_is_no_json(ssm: Ssm) -> None:
    ssm.answer = {"gpu": "{"}
    with pytest.raises(BadInput, match="ssm:us-east-1/accel/prod/targets/gpu: is not JSON"):
        targets.load(SOURCE)


def test_another_account_has_another_copy(ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    targets.load(SOURCE)
    monkeypatch.setenv("AWS_PROFILE", "other")
    targets.load(SOURCE)
    assert len(ssm.asked) == 2


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"fetched": "x", "documents": {}}', '{"fetched": 1}'])
def test_a_spoilt_copy_is_no_copy(spoilt: str, ssm: Ssm, tmp_path: Path) -> None:
    targets.load(SOURCE)
    (copy,) = (tmp_path / "cache" / "accel").glob("targets-*.json")
    copy.write_text(spoilt)
    targets.load(SOURCE)
    assert len(ssm.asked) == 2


def test_a_cache_that_cannot_be_written_is_a_warning(ssm: Ssm, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    found = targets.load(SOURCE)
    assert "could not be kept" in found.warnings[0]
