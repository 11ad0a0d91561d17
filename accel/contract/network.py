"""The `network` output of a stack."""

from pydantic import Field

from .targets import SCHEMA, Contract


class AwsNetwork(Contract):
    """Where instances of a stack run, for another stack to run some there too."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    vpc_id: str
    subnet_ids: list[str]
    security_group_ids: list[str]
