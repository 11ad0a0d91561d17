"""Reads another stack's outputs as the types of the contract.

What a newer stack says more is left out; what this version needs and an older stack has not fails the deployment, in
one line that says so.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from .model import SCHEMA
from .targets import KINDS, AnyTarget, read_one

if TYPE_CHECKING:
    import pulumi

Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], reference: "pulumi.StackReference", output: str) -> "pulumi.Output[Model]":
    """One output of another stack, checked; fields that a newer stack added are left out.

    The deployment fails where the stack has no such output, or one of another shape.
    """

    def checked(value: Any) -> Model:
        try:
            return model.model_validate(value, extra="ignore")
        except ValidationError as error:
            raise _refusal(error, output, value) from None

    return _output(reference, output).apply(checked)


def read_targets(reference: "pulumi.StackReference") -> "pulumi.Output[dict[str, Any]]":
    """The targets of another stack by name, AwsBatchTarget and its like.

    One of a kind that this version does not know is left out, with a warning: a newer stack may have it.
    """

    def checked(targets: Any) -> dict[str, Any]:
        return dict(_known(_mapping(targets, "targets")))

    return _output(reference, "targets").apply(checked)


def read_target(model: type[Model], reference: "pulumi.StackReference", name: str) -> "pulumi.Output[Model]":
    """One target of another stack, of the class that goes with its kind, such as GkeTarget."""

    def picked(targets: Mapping[str, Any]) -> Model:
        import pulumi

        if name not in targets:
            raise pulumi.RunError(f"targets.{name}: the other stack has no such target; it has {', '.join(targets)}")
        found = targets[name]
        if not isinstance(found, model):
            raise pulumi.RunError(f"targets.{name}: is of kind {found.kind}, and {model.__name__} was asked for")
        return found

    return read_targets(reference).apply(picked)


def _known(targets: Mapping[str, Any]) -> list[tuple[str, AnyTarget]]:
    import pulumi

    found: list[tuple[str, AnyTarget]] = []
    for name, given in targets.items():
        target = _mapping(given, f"targets.{name}")
        if target.get("kind") not in KINDS:
            pulumi.log.warn(
                f"targets.{name}: is left out: this accel knows no kind {target.get('kind')!r}, only {', '.join(KINDS)}"
            )
            continue
        try:
            found.append((name, read_one(target)))
        except ValidationError as error:
            raise _refusal(error, f"targets.{name}", target) from None
    return found


def _mapping(value: Any, output: str) -> Mapping[str, Any]:
    import pulumi

    if not isinstance(value, Mapping):
        raise pulumi.RunError(f"{output}: is not what this accel reads: must be an object; is it the stack you meant?")
    return cast("Mapping[str, Any]", value)


def _output(reference: "pulumi.StackReference", output: str) -> "pulumi.Output[Any]":
    """Not `require_output`, whose refusal is a trace."""

    def there(value: Any) -> Any:
        import pulumi

        if value is None:
            raise pulumi.RunError(
                f"{output}: the other stack has no such output; what it promises: `pulumi stack output`"
            )
        return value

    return reference.get_output(output).apply(there)


def _refusal(error: ValidationError, output: str, value: Any) -> Exception:
    """What is missing or of another type, without the values."""
    import pulumi

    lines: list[str] = []
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        path = ".".join(str(part) for part in detail["loc"] if part not in KINDS)
        missing = detail["type"] == "missing"
        lines.append(f"{path}: {'is missing' if missing else detail['msg']}")
    theirs = cast("Mapping[str, Any]", value).get("schema") if isinstance(value, Mapping) else None
    named = f"{theirs:g}" if isinstance(theirs, int | float) else theirs  # the engine's numbers are floats
    whose = f"schema {named} of the contract; this accel reads schema {SCHEMA}"
    return pulumi.RunError(
        f"{output}: is not what this accel reads: {'; '.join(lines)} (the other stack writes {whose}: "
        "deploy it with the same version of accel, or install its version here)"
    )
