"""Base class of the contract's models, and the types of fields that several targets have."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = 1


class Contract(BaseModel):
    """One frozen part of the contract."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True, defer_build=True
    )


StopObject = Annotated[
    str | None,
    Field(description="Object that says whether a budget has stopped the stack: gs://<bucket>/<object>"),
]
Publication = Annotated[
    str | None,
    Field(
        description="Location at which the stack publishes the target, as --targets takes it; a copy may be older",
    ),
]
