"""The `access` output of a stack."""

from pydantic import Field

from .model import SCHEMA, Contract


class AwsAccess(Contract):
    """Who may do what with a stack: managed policies to attach to people, groups and roles."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    submit_policy_arns: list[str]
    """All of them together let one submit jobs; it is one policy unless a stack has very many definitions."""
