"""Base class of the contract's models."""

from pydantic import BaseModel, ConfigDict

SCHEMA = 1


class Contract(BaseModel):
    """One frozen part of the contract."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True, defer_build=True
    )
