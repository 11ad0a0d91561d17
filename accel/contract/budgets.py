"""Budgets of a stack by their config keys: output `budgets` of AWS, `gcp_budgets` of Google Cloud."""

from typing import Literal

from pydantic import Field

from .model import SCHEMA, Contract


class Budget(Contract):
    """A spending limit, and what stops the stack when it is reached."""

    kind: Literal["aws", "google"]
    schema_version: int = Field(default=SCHEMA, alias="schema")
    name: str = Field(description="as the cloud knows it")
    amount: float | None = Field(description="of a month; absent: as much as the month before")
    currency: str | None = None
    stops_at: float | None = Field(default=None, description="share of the amount; absent: people are told, no more")
    basis: Literal["actual", "forecast"] = "actual"
    region: str | None = Field(default=None, description="of the function")
    function: str | None = Field(default=None, description="that stops the stack")
