"""Reads another stack's outputs as the types of the contract."""

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from .targets import read_one

if TYPE_CHECKING:
    import pulumi

Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], reference: "pulumi.StackReference", output: str) -> "pulumi.Output[Model]":
    """One output of another stack, checked; fields that a newer stack added are left out.

    The deployment fails where the stack has no such output, or one of another shape.
    """
    return reference.require_output(output).apply(lambda value: model.model_validate(value, extra="ignore"))


def read_targets(reference: "pulumi.StackReference") -> "pulumi.Output[dict[str, Any]]":
    """The targets of another stack by name: AwsBatchTarget, LocalTarget."""
    return reference.require_output("targets").apply(
        lambda targets: {name: read_one(target) for name, target in targets.items()}
    )
