"""Laws that hold for every component, each with a component that breaks it and so must fail."""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pulumi
import pulumi_aws as aws
import pytest

import components
from accel.catalog.gcp_permissions import gcp_permissions
from accel.catalog.gcp_roles import of_types
from components.base import Component, Spec, outputs_of
from tests.support import memory

from .components import MAKERS, alone, subclasses

TOKENS = Path(__file__).parent.parent / "golden" / "tokens.txt"
Maker = Callable[[str], Component]


class Bad(Component):
    """Breaks every law at once: a fixed name, a resource inside apply, a child without its parent, a lost output."""

    TYPE = "accel:test:Bad"
    arn: pulumi.Output[str]
    lost: pulumi.Output[str]

    def __init__(self, name: str) -> None:
        super().__init__(name, Spec(), None)
        queue = aws.sqs.Queue("fixed-name", opts=self.child())
        queue.id.apply(lambda _: aws.sqs.Queue(f"{name}-late", opts=self.child()))
        aws.sqs.Queue("orphan")
        self.arn = queue.arn
        self.register_outputs({"arn": self.arn})


def law(test: Callable[..., None]) -> Callable[..., None]:
    cases = [pytest.param(maker, id=name) for name, maker in MAKERS.items()]
    cases.append(pytest.param(Bad, id="bad", marks=pytest.mark.xfail(strict=True, raises=AssertionError)))
    return pytest.mark.parametrize("make", cases)(test)


@law
def test_preview_registers_what_update_registers(make: Maker) -> None:
    def names(preview: bool) -> list[tuple[str, str]]:
        seen = memory.run(lambda: make("one"), preview=True) if preview else alone(make)[1]
        return sorted((one.type, one.name) for one in seen.registrations)

    assert names(preview=True) == names(preview=False)


@law
def test_every_resource_descends_from_the_component(make: Maker) -> None:
    seen = alone(make)[1].registrations
    root = next(one.urn for one in seen if one.name == "one" and one.type.startswith("accel:"))
    known = {root}
    for one in seen:
        assert one.urn == root or one.parent in known, f"{one.urn} hangs outside the component"
        known.add(one.urn)


@law
def test_every_annotated_output_is_registered(make: Maker) -> None:
    made, seen = alone(make)
    root = next(one.urn for one in seen.registrations if one.name == "one" and one.type == made.TYPE)
    assert set(seen.outputs[root]) == set(outputs_of(type(made)))
    assert all(value is not None for value in seen.outputs[root].values())


@law
def test_two_instances_do_not_collide(make: Maker) -> None:
    def two() -> None:
        make("one")
        make("two")

    urns = [one.urn for one in memory.run(two).registrations]
    assert sorted(urns) == sorted(set(urns))


@law
def test_a_childs_name_begins_with_the_components(make: Maker) -> None:
    # A URN holds the parents' types and not their names, so only the name keeps two components' children apart.
    for seen in alone(make)[1].registrations:
        assert seen.name.startswith("one") or seen.type.startswith("pulumi:"), seen.name


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_spec_is_kept_in_state(make: Maker) -> None:
    made, seen = alone(make)
    root = next(one for one in seen.registrations if one.type == made.TYPE and one.name == "one")
    assert isinstance(root.inputs["spec"], dict)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_custom_roles_have_permissions_that_exist(make: Maker) -> None:
    roles = alone(make)[1].of("projects/iAMCustomRole:IAMCustomRole")
    named = {permission for role in roles for permission in role.inputs["permissions"]}
    assert named <= gcp_permissions(), "Google refuses the whole role"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_type_of_google_has_its_permissions(make: Maker) -> None:
    made = {seen.type for seen in alone(make)[1].registrations if seen.type.startswith("gcp:")}
    assert made <= of_types().keys(), "`stacks permissions` does not know them"


def test_every_component_is_under_the_laws() -> None:
    for module in pkgutil.walk_packages(components.__path__, "components."):
        importlib.import_module(module.name)
    assert {type(alone(make)[0]) for make in MAKERS.values()} == set(subclasses())


def test_tokens_are_frozen() -> None:
    """A token is part of every URN: changing one replaces what it names. Adding a line here is free."""
    tokens = sorted(component.TYPE for component in subclasses())
    assert TOKENS.read_text().split() == tokens


PATIENT = {
    "gcp:compute/instanceGroupManager:InstanceGroupManager",
    "gcp:tpu/v2QueuedResource:V2QueuedResource",
    "gcp:tpu/v2Vm:V2Vm",
    "gcp:vertex/aiPersistentResource:AiPersistentResource",
}
"""What gets machines, and what the provider gives up after 15 or 20 minutes: components/gcp/timeouts.py."""
NO_TIMEOUTS = {"aws:batch/computeEnvironment:ComputeEnvironment"}
"""Types whose provider declares no timeouts, so that it ignores ours."""


def test_what_gets_machines_has_an_hour() -> None:
    seen = [one for make in MAKERS.values() for one in alone(make)[1].registrations]
    assert {one.type for one in seen} >= PATIENT | NO_TIMEOUTS
    for one in seen:
        wanted = ("60m",) * 3 if one.type in PATIENT else ("",) * 3
        assert one.timeouts == wanted, f"{one.type} {one.name}"
