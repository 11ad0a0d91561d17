"""Budgets of a stack by their config keys: output `budgets` of AWS, `gcp_budgets` of Google Cloud."""

from typing import Literal

from pydantic import Field

from .model import SCHEMA, Contract


class Budget(Contract):
    """A spending limit, and what stops the stack when it is reached."""

    kind: Literal["aws", "google"]
    schema_version: int = Field(default=SCHEMA, alias="schema")
    name: str = Field(description="Name of the budget, as the cloud knows it")
    amount: float | None = Field(description="Amount per month. Without it, as much as the month before")
    currency: str | None = None
    stops_at: float | None = Field(
        default=None,
        description="Share of the amount at which the stack is stopped. Without it, the budget only notifies",
    )
    basis: Literal["actual", "forecast"] = "actual"
    region: str | None = Field(default=None, description="Region of the function that stops the stack")
    function: str | None = Field(default=None, description="Function that stops the stack")
