"""The JSON Schemas for editors: made from the models, named by every example, and of one mind with the models."""

import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from pydantic import BaseModel, ValidationError

from accel.contract.targets import write
from accel.diagnostics.errors import BadInputs
from jobs.cli.main import jobs
from jobs.model import document
from jobs.model.job import Job
from stacks.cli.main import stacks
from stacks.environment.config import ConfigFaults, Environment, load_environment
from stacks.environment.deployment import deploy
from tests.jobs.bad_files import BAD_FILES
from tests.jobs.test_fuzz import mutated
from tests.stacks.test_corpus import cases, replaced_with
from tests.support import memory
from tests.support.environments import ENVIRONMENTS
from tests.support.pages import ROOT
from tests.support.project import KEY, environment
from tests.support.shown import kind_of, pairs, shown
from tests.support.soak import SOAK

SCHEMAS = ROOT / "accel" / "schemas"
PRINTED = {
    "job": (jobs, ["schema"]),
    "targets": (jobs, ["schema", "targets"]),
    "stack": (stacks, ["schema"]),
}
EXAMPLES = {"job": sorted((ROOT / "examples" / "jobs").glob("*.yaml")), "stack": sorted(ROOT.glob("Pulumi.*.yaml"))}
FIRST = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
MUTATIONS = 40_000 if SOAK else 1_000

KINDS: Mapping[str, frozenset[str]] = {
    "unknown key": frozenset({"extra_forbidden"}),
    "wrong type": frozenset(
        {"string_type", "int_type", "int_from_float", "float_type", "bool_type", "list_type", "dict_type"}
        | {"model_type", "model_attributes_type"}
    ),
    "missing key": frozenset({"missing", "union_tag_not_found"}),
    "not one of the values": frozenset({"literal_error", "union_tag_invalid", "string_pattern_mismatch"}),
    "out of range": frozenset(
        {"greater_than_equal", "less_than_equal", "greater_than", "less_than", "too_short", "too_long"}
        | {"string_too_short", "string_too_long"}
    ),
}
"""Faults of a single value, by pydantic's names: a schema refuses these too."""
STATED = frozenset[str]().union(*KINDS.values())


def schema(name: str) -> Any:
    """As an editor takes it: in its expressions `$` is the end, and not the line break before the end too."""
    return json.loads(re.sub(r'\$"(,?)\n', r'\\\\Z"\1\n', (SCHEMAS / f"{name}.schema.json").read_text()))


JOB, STACK = Draft7Validator(schema("job")), Draft7Validator(schema("stack"))


def of_environment(values: Any) -> Any:
    return {"config": {KEY: values}}


@pytest.mark.parametrize("name", PRINTED)
def test_a_schema_is_what_the_command_prints(name: str) -> None:
    command, words = PRINTED[name]
    done = CliRunner().invoke(command, words)
    kept = f"{command.name} {' '.join(words)} > accel/schemas/{name}.schema.json"
    assert done.output == (SCHEMAS / f"{name}.schema.json").read_text(), kept
    Draft7Validator.check_schema(json.loads(done.output))


@pytest.mark.parametrize(
    "name, path", [(name, path) for name, found in EXAMPLES.items() for path in found], ids=lambda each: str(each)[-30:]
)
def test_every_example_names_its_schema_and_is_valid(name: str, path: Path) -> None:
    named = FIRST.match(path.read_text())
    assert named and (path.parent / named[1]).resolve() == SCHEMAS / f"{name}.schema.json"
    faults = [fault.message for fault in Draft7Validator(schema(name)).iter_errors(yaml.safe_load(path.read_text()))]
    assert faults == []


def test_what_the_pages_show_is_valid() -> None:
    named = [block for block in shown() if kind_of(block) == "job" and "name:" in block.text]
    faults = {str(block): list(JOB.iter_errors(yaml.safe_load(block.text))) for block in named}
    faults |= {str(pair): list(STACK.iter_errors(of_environment(pair.environment))) for pair in pairs()}
    assert len(faults) > 20 and {at: found for at, found in faults.items() if found} == {}


def test_targets_of_a_stack_are_valid() -> None:
    values = {**environment("sandbox", "aws"), **environment("sandbox", "gcp")}
    targets = memory.run(lambda: deploy(load_environment(values))).exports["targets"]
    found = Draft7Validator(schema("targets"))
    assert len(targets) > 5 and list(found.iter_errors(targets)) == []
    assert not found.is_valid({"gpu": {**targets["gpu"], "region": 3}})
    assert found.is_valid({"gpu": {**targets["gpu"], "of_a_newer_stack": 3}})
    assert write({}) == {}


class Editor(yaml.SafeLoader):
    """YAML as an editor reads it: a date is text."""


Editor.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in found if not tag.endswith("timestamp")]
    for letter, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def seen(data: bytes) -> Any:
    """A file as an editor sees it; None where it is none, or not in JSON's terms."""
    try:
        values = yaml.load(data, Editor)  # noqa: S506 - a SafeLoader
        json.dumps(values)
    except Exception:  # noqa: BLE001 - rubbish
        return None
    return values


def stated(model: type[BaseModel], values: Any) -> set[str]:
    """The faults of single values that a model finds, where that is all that it finds."""
    try:
        model.model_validate(values)
    except ValidationError as refused:
        faults = refused.errors(include_url=False)
        return {fault["type"] for fault in faults if not _untold(fault["type"], values, fault["loc"])} & STATED
    return set()


def _untold(fault: str, value: Any, at: tuple[Any, ...]) -> bool:
    """What no schema can refuse: 2.0, to it a whole number, and `999999d`, whose seconds it cannot work out."""
    for part in at:
        value = value[part] if isinstance(value, dict) and part in value else value
    return (isinstance(value, float) and value.is_integer()) or (isinstance(value, str) and fault == "less_than_equal")


def job_files() -> Iterator[bytes]:
    yield from (text if isinstance(text, bytes) else text.encode(errors="surrogatepass") for text, _ in BAD_FILES)
    dice = random.Random(None if SOAK else 17)
    yield from (mutated(dice) for _ in range(MUTATIONS))


def test_what_the_schema_of_jobs_refuses_the_model_refuses_and_the_other_way() -> None:
    refused = 0
    for data in job_files():
        try:
            parsed = document.parse(data, "f.yaml", Job)
        except BadInputs:
            continue
        if accepted(parsed):
            values = seen(data)
            assert values is None or JOB.is_valid(values), (data, next(JOB.iter_errors(values)).message)
        elif isinstance(parsed.values, dict) and not parsed.faults and stated(Job, parsed.values):
            refused += 1
            assert not JOB.is_valid(parsed.values), data
    assert refused > 100


def accepted(parsed: document.Document) -> bool:
    try:
        parsed.job()
    except BadInputs:
        return False
    return True


def test_what_the_schema_of_stacks_refuses_the_model_refuses_and_the_other_way() -> None:
    refused = 0
    for case in cases():
        stack, path, wrong = case.values
        refused += agreed(replaced_with(environment(stack), path, wrong))
    assert refused > 100


def agreed(values: Any) -> bool:
    """Whether both refuse an environment; it is a failure where only the schema does, or a stated fault is passed."""
    faults = stated(Environment, values)
    found = list(STACK.iter_errors(of_environment(values)))
    if faults:
        assert found, (faults, values)
    if found:
        with pytest.raises(ConfigFaults):
            load_environment(values)
    return bool(faults)


@given(ENVIRONMENTS, st.randoms(use_true_random=False))
def test_environments_that_are_drawn_are_judged_alike(values: Any, dice: random.Random) -> None:
    agreed(values)
    agreed(spoilt(values, dice))


def spoilt(values: Any, dice: random.Random) -> Any:
    """With one entry of one mapping taken away, misspelt, or of another kind."""
    copied = json.loads(json.dumps(values))
    inside = [each for each in mappings(copied) if each]
    here = dice.choice(inside)
    key = dice.choice(sorted(here))
    match dice.randrange(3):
        case 0:
            del here[key]
        case 1:
            here[f"{key}_x"] = here.pop(key)
        case _:
            here[key] = dice.choice([[], {}, True, -1, 2**40, "no such value", None, [None]])
    return copied


def mappings(values: Any) -> Iterator[dict[str, Any]]:
    if isinstance(values, dict):
        yield values
    for inner in values.values() if isinstance(values, dict) else values if isinstance(values, list) else ():
        yield from mappings(inner)


@pytest.mark.parametrize(
    "kind, change",
    [
        ("unknown key", {"acelerator": {"count": 1}}),
        ("wrong type", {"cpus": "many"}),
        ("wrong type", {"accelerator": 1}),
        ("wrong type", {"env": ["A"]}),
        ("missing key", {"mounts": [{"source": "efs://fs-1"}]}),
        ("not one of the values", {"spot": "maybe"}),
        ("not one of the values", {"name": "a b"}),
        ("not one of the values", {"timeout_s": "4 hours"}),
        ("out of range", {"tasks": 0}),
        ("out of range", {"memory_mib": 3}),
        ("out of range", {"timeout_s": 0}),
        ("unknown key", {"env": {"A-B": "1"}}),
        ("unknown key", {"env": {"ACCEL_X": "1"}}),
    ],
)
def test_each_kind_of_fault_is_refused_by_both(kind: str, change: dict[str, Any]) -> None:
    assert kind in KINDS
    values = {"name": "a", "command": ["python"], **change}
    assert not JOB.is_valid(values)
    with pytest.raises(BadInputs):
        Job(**values)
