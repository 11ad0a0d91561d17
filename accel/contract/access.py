"""The `access` output of a stack."""

from pydantic import Field

from .model import SCHEMA, Contract


class AwsAccess(Contract):
    """Managed policies of a stack, to attach to people, groups and roles."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    submit_policy_arns: list[str]
    """Policies that are all required to submit jobs. There is one, unless a stack has very many definitions."""
