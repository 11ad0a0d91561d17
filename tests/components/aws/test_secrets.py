"""The execution role may read every secret that a job's variables name, in any form of the reference, and no other."""

import json
import string
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.aws.batch_roles import BatchRoles, BatchRolesArgs, BatchRolesSpec
from tests.laws import components as make
from tests.support import memory
from tests.support.iam import Ask, allows

ACCOUNT = "210020003000"
LETTERS = string.ascii_letters + string.digits
NAMES = st.text(LETTERS + "/_+=.@-", min_size=1, max_size=20)
WORDS = st.text(LETTERS + "_-", min_size=1, max_size=12)
PARTS = st.none() | st.tuples(*[WORDS | st.just("")] * 3)
PARTITIONS = st.sampled_from([("aws", "us-east-1"), ("aws-cn", "cn-north-1"), ("aws-us-gov", "us-gov-west-1")])
SUFFIXES = st.text(LETTERS, min_size=6, max_size=6)


def document(*references: str) -> Mapping[str, Any]:
    """The execution role's policy."""

    def program() -> None:
        spec = BatchRolesSpec(secrets=list(references[1:]))
        log = make.out("arn:log")
        BatchRoles("one", BatchRolesArgs(spec=spec, log_group_arn=log, repository_arns=[], secret_arns=references[:1]))

    seen = memory.run(program)
    (policy,) = [one for one in seen.of("iam/rolePolicy:RolePolicy") if one.name == "one-execution"]
    return json.loads(policy.inputs["policy"])


def secret_may_be_read(reference: str, own: str) -> bool:
    return allows([document(reference)], Ask("secretsmanager:GetSecretValue", own))


@settings(max_examples=40, deadline=None)
@given(PARTITIONS, NAMES, SUFFIXES, PARTS)
def test_a_reference_to_a_part_of_a_secret_allows_the_secret(
    where: tuple[str, str], name: str, suffix: str, part: tuple[str, str, str] | None
) -> None:
    partition, region = where
    own = f"arn:{partition}:secretsmanager:{region}:{ACCOUNT}:secret:{name}-{suffix}"
    reference = own if part is None else f"{own}:{':'.join(part)}"
    assert secret_may_be_read(reference, own)
    assert not secret_may_be_read(reference, own.replace(f":secret:{name}-", f":secret:{name}x-"))


def test_a_secret_without_the_suffix_of_its_arn_is_allowed_with_any() -> None:
    secret = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret"
    assert secret_may_be_read(f"{secret}:wandb", f"{secret}:wandb-AbCdEf")
    assert secret_may_be_read(f"{secret}:wandb:key::", f"{secret}:wandb-AbCdEf")
    assert not secret_may_be_read(f"{secret}:wandb", f"{secret}:wandb-other-AbCdEf")


@settings(max_examples=20, deadline=None)
@given(st.text(LETTERS + "_.-", min_size=1, max_size=20), st.sampled_from(["", ":3", ":latest"]))
def test_a_reference_to_a_version_of_a_parameter_allows_the_parameter(name: str, version: str) -> None:
    own = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/{name}"
    assert allows([document(f"{own}{version}")], Ask("ssm:GetParameters", own))
    assert not allows([document(f"{own}{version}")], Ask("ssm:GetParameters", f"{own}x"))


@pytest.mark.parametrize("name", ["/wandb/key", "token"])
def test_a_parameter_that_is_given_by_name_is_allowed(name: str) -> None:
    arn = f"arn:aws:ssm:us-east-1:111122223333:parameter/{name.removeprefix('/')}"
    assert allows([document(name)], Ask("ssm:GetParameters", arn))
    assert not allows([document(name)], Ask("ssm:GetParameters", f"{arn}/other"))


def test_both_lists_are_allowed_and_each_secret_once() -> None:
    own = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:wandb-AbCdEf"
    (statement,) = [
        each
        for each in document(f"{own}:user::", f"{own}:key::", f"{own}2")["Statement"]
        if each["Action"] == ["secretsmanager:GetSecretValue"]
    ]
    assert sorted(statement["Resource"]) == [own, f"{own}2-??????"]


def test_another_service_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a secret nor a parameter"):
        BatchRolesSpec(secrets=["arn:aws:s3:::keys"])
