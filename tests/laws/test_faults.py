"""A run in which creates fail ends in a diagnostic; the next one makes what is missing and touches nothing else."""

import functools
import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import pulumi
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pulumi.output import Unknown

from accel.contract.schema import OUTPUTS
from stacks.environment.config import ConfigFaults, load_environment
from stacks.environment.deployment import deploy
from tests.components.gcp import budget_makers
from tests.support.environments import ENVIRONMENTS, GKE, STACKS, WATCHED, WORKING
from tests.support.memory_state import ENDED, Engine, Faults, Run
from tests.support.soak import SOAK

from .components import MAKERS

Program = Callable[[], Any]
PLANS = 5
"""Failures of each configuration: a case is one of them, with the healthy run after it."""
STACKS_TRIED, COMPONENTS_TRIED = (200, 800) if SOAK else (2, 4)
"""Configurations of a part."""
PARTS = range(2 if SOAK else 1)
"""Of the soak, to be run side by side (`-k part1`): 2,000 cases of whole stacks, 8,000 of single components."""
KEYED = {"targets", "repositories", "gcp_repositories", "clusters", "service_accounts", "budgets", "gcp_budgets"}
"""Outputs that are many promises, by the author's keys; any other is one."""
FAULTS = st.builds(
    Faults,
    creates=st.dictionaries(st.integers(0, 999), st.booleans(), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    goes_on=st.booleans(),
)
"""Places are thousandths of the creates that there are."""
PLAN = st.lists(FAULTS, min_size=1, max_size=2)
"""Failing runs, one after the other."""


@pytest.fixture(scope="module", autouse=True)
def few_collections() -> Iterator[None]:
    """The SDKs hold millions of objects, and each full collection would look at them all; a run leaves many more."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()


@functools.cache
def stacks() -> Mapping[str, Mapping[str, Any]]:
    engine = Engine()
    engine.up(of(GKE))
    return {STACKS["gcp"]: engine.outputs}


def of(document: Any) -> Program:
    loaded = load_environment(document)
    return lambda: deploy(loaded)


def well(run: Run) -> None:
    assert (run.raised, run.others, run.waiting, run.logged) == (None, [], [], [])


def nothing_or_whole(key: str, value: Any, promised: Any) -> bool:
    """What is in the contract is one promise; of what is only shown, each part is true by itself."""
    if key not in OUTPUTS and isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        return all(nothing_or_whole(key, each, promised[name]) for name, each in parts.items())
    return value is None or isinstance(value, Unknown) or value == promised


def diagnosed(run: Run, promised: Mapping[str, Any], faults: Faults) -> None:
    """It ended as the engine ends a program, and promised nothing that does not hold."""
    errors = [*([run.raised] if run.raised else []), *run.others]
    assert all(isinstance(error, pulumi.RunError) and str(error) == ENDED for error in errors), errors
    assert (run.waiting, run.logged) == ([], [])
    assert run.raised or faults.goes_on or not run.failed
    for key, value in (run.outputs or {}).items():
        parts = value if key in KEYED and isinstance(value, Mapping) else {key: value}
        whole = promised[key] if parts is value else {key: promised[key]}
        half = {name: each for name, each in parts.items() if not nothing_or_whole(key, each, whole[name])}
        assert not half, f"{key} is promised by half: {half}"


def holds(program: Program, plans: list[list[Faults]]) -> None:
    reference = Engine(stacks())
    made = reference.up(program)
    well(made)
    assert set(made.ops.values()) <= {"create"}
    again = reference.preview(program)
    well(again)
    assert (again.changes(), again.outputs or {}) == ({}, reference.outputs)
    for plan in plans:
        engine = Engine(stacks())
        for drawn in plan:
            places = {place * len(made.ops) // 1000: half for place, half in drawn.creates.items()}
            faults = replace(drawn, creates=places)
            diagnosed(engine.up(program, faults), reference.outputs, faults)
        before = dict(engine.state)
        healthy = engine.up(program)
        well(healthy)
        touched = {urn: op for urn, op in healthy.changes().items() if urn in before or op != "create"}
        # With --continue-on-error the SDK gives None for what failed and forgets where an input that is None came from,
        # so that resources are made without it (serialize_properties in pulumi/runtime/rpc.py).
        lacking = {urn for urn, kept in before.items() if kept.inputs != reference.state[urn].inputs}
        assert not lacking or any(faults.goes_on for faults in plan)
        assert touched == {urn: "update" for urn, kept in before.items() if kept.half or urn in lacking}
        assert engine.state == reference.state, "as if nothing had failed, so that a preview is empty too"
        assert engine.outputs == reference.outputs


PLANNED = st.lists(PLAN, min_size=PLANS, max_size=PLANS)


@pytest.mark.parametrize("part", PARTS, ids="part{}".format)
@settings(max_examples=STACKS_TRIED)
@given(document=ENVIRONMENTS, plans=PLANNED)
def test_a_stack_of_which_creates_failed(part: int, document: Any, plans: list[list[Faults]]) -> None:
    try:
        program = of(document)
    except ConfigFaults:
        assume(False)
    else:
        holds(program, plans)


@pytest.mark.parametrize("part", PARTS, ids="part{}".format)
@settings(max_examples=COMPONENTS_TRIED)
@given(name=st.sampled_from(sorted(MAKERS)), plans=PLANNED)
def test_a_component_of_which_creates_failed(part: int, name: str, plans: list[list[Faults]]) -> None:
    holds(lambda: MAKERS[name]("one"), plans)


@pytest.mark.parametrize(
    ("document", "type"),
    [
        (WORKING, "gcp:container/cluster:Cluster"),
        (WORKING, "gcp:container/nodePool:NodePool"),
        (WORKING, "gcp:billing/budget:Budget"),
        (WATCHED, "aws:batch/computeEnvironment:ComputeEnvironment"),
        (WATCHED, "aws:batch/jobQueue:JobQueue"),
        (WATCHED, "aws:budgets/budget:Budget"),
        (WATCHED, "aws:sns/topic:Topic"),
    ],
    ids=lambda value: value.rpartition(":")[2] if isinstance(value, str) else "",
)
def test_what_is_built_of_a_failed_create(document: Any, type: str) -> None:
    """With --continue-on-error every value of it is None, as in a destroy that runs the program."""
    holds(of(document), [[Faults(types=frozenset({type}), goes_on=True)]])


def test_a_plan_that_is_not_there_has_no_place() -> None:
    def program() -> None:
        pulumi.export("source", budget_makers.plan("one").source)

    faults = Faults(types=frozenset({"gcp:storage/bucketObject:BucketObject"}), goes_on=True)
    run = Engine(stacks()).up(program, faults)
    assert run.failed and isinstance((run.outputs or {})["source"], Unknown)
