"""A law for every component that makes an IAM role: the environment's permissions boundary is on each of them."""

import functools
from typing import Any

from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.support import memory
from tests.support.environments import WATCHED
from tests.support.project import put

from .components import MAKERS, alone

ROLE = "aws:iam/role:Role"
BOUNDARY = "arn:aws:iam::210020003000:policy/boundary"
NETWORK = {"kind": "create", "zones": ["us-east-1a"], "egress": "nat", "flow_logs_days": 14}


@functools.cache
def everything() -> memory.Recorder:
    """An environment with all components that make roles."""
    values: dict[str, Any] = put("aws.network", NETWORK, WATCHED)
    environment = load_environment(put("aws.roles", {"permissions_boundary": BOUNDARY}, values))
    return memory.run(lambda: deploy(environment))


def components(seen: memory.Recorder) -> set[str]:
    """Type tokens of the components whose roles a run has registered."""
    by_urn = {one.urn: one for one in seen.registrations}
    return {by_urn[one.parent].type for one in seen.of(ROLE)}


def test_every_role_has_the_boundary() -> None:
    roles = everything().of(ROLE)
    assert {one.name: one.inputs.get("permissionsBoundary") for one in roles} == {one.name: BOUNDARY for one in roles}


def test_the_environment_has_every_component_that_makes_a_role() -> None:
    making = {token for maker in MAKERS.values() for token in components(alone(maker)[1])}
    assert components(everything()) == making
