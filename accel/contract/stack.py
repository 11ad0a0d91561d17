"""Reader of another stack's outputs as the types of the contract. Ignores fields of a newer stack. If an older stack
lacks a field that this version needs, the deployment fails with a one-line explanation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from .model import SCHEMA
from .targets import KINDS, AnyTarget, read_one

if TYPE_CHECKING:
    import pulumi

Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], reference: "pulumi.StackReference", output: str) -> "pulumi.Output[Model]":
    """Read one output, ignoring new fields. The deployment fails if it is missing, or of another shape."""

    def checked(value: Any) -> Model:
        try:
            return model.model_validate(value, extra="ignore")
        except ValidationError as error:
            raise _refusal(error, output, value) from None

    return _output(reference, output).apply(checked)


def read_targets(reference: "pulumi.StackReference") -> "pulumi.Output[dict[str, Any]]":
    """Return targets by name. Skips unknown kinds, which a newer stack may have, with a warning."""

    def checked(targets: Any) -> dict[str, Any]:
        return dict(_known(_mapping(targets, "targets")))

    return _output(reference, "targets").apply(checked)


def read_target(model: type[Model], reference: "pulumi.StackReference", name: str) -> "pulumi.Output[Model]":
    """Return a target of the class for its kind, such as GkeTarget."""

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
    """Avoid `require_output`, which fails with a traceback."""

    def there(value: Any) -> Any:
        import pulumi

        if value is None:
            raise pulumi.RunError(
                f"{output}: the other stack has no such output; what it promises: `pulumi stack output`"
            )
        return value

    return reference.get_output(output).apply(there)


def _refusal(error: ValidationError, output: str, value: Any) -> Exception:
    """List missing fields and wrong types, without the values."""
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
