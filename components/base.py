"""The base of every component: a frozen spec, rules applied to it, parented children, outputs read off annotations."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast

import pulumi
from pydantic import BaseModel, ConfigDict, Field, model_validator

from accel.diagnostics.faults import parse_path, replace_value, several
from accel.diagnostics.findings import Finding, apply

T = TypeVar("T")
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=40)]
"""The author's key for a resource. Short, since auto-naming appends to it and AWS stops at 63 or 64 for some names."""


class Spec(BaseModel):
    """The plain values of one component, as a person writes them in Pulumi.<stack>.yaml.

    A spec never holds a secret: it is stored in the state as the component's inputs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)

    def check(self) -> Sequence[Finding]:
        """Apply the cloud's rules to these values. Return the findings; fields are relative to this spec."""
        return ()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self.check())

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copy = super().model_copy(update=update, deep=deep)
        vars(copy).pop("findings", None)
        return copy

    @model_validator(mode="after")
    def _rejected(self) -> Self:
        rejected = [finding for finding in self.findings if finding.severity == "reject"]
        if rejected:
            raise several([(finding.field, finding.text) for finding in rejected])
        return self

    def settled(self) -> Self:
        """Return the spec with outdated values replaced by the ones that the cloud accepts today."""
        replacements = apply(self.findings).replacements
        if not replacements:
            return self
        values = self.model_dump()
        for field, value in replacements.items():
            values = replace_value(values, parse_path(field), value)
        return type(self).model_validate(values)


class Component(pulumi.ComponentResource):
    """A component resource whose annotated attributes are its outputs."""

    TYPE: ClassVar[str]

    def __init__(self, name: str, spec: Spec, opts: pulumi.ResourceOptions | None) -> None:
        # The state stores the spec as the component's inputs, so a preview and a policy can read it.
        super().__init__(self.TYPE, name, {"spec": spec.model_dump(mode="json")}, opts)
        self.warn(spec.findings)

    def warn(self, findings: Iterable[Finding]) -> None:
        """Log findings; those that are not the spec's do not fail an environment with strict checks."""
        for finding in findings:
            pulumi.log.warn(f"{finding.field}: {finding.text} [{finding.rule}]", self)

    def child(self, **options: Any) -> pulumi.ResourceOptions:
        """Return the options for a resource inside this component. Options reach children in no other way."""
        return pulumi.ResourceOptions(parent=self, **options)

    def finish(self) -> None:
        """Register the outputs. Call it in the last line of every constructor."""
        self.register_outputs({field: getattr(self, field) for field in outputs_of(type(self))})


def outputs_of(component: type[Component]) -> list[str]:
    own = inspect.get_annotations(component)
    return [name for name in own if name != "TYPE" and not name.startswith("_")]


def join(*parts: pulumi.Input[str]) -> pulumi.Output[str]:
    """Concatenate the parts like Output.concat, but skip those that are None. A destroy that runs the program for its
    hooks passes None for everything that the state lacks."""
    return pulumi.Output.all(*parts).apply(lambda known: "".join(part for part in known if part is not None))


def once(value: pulumi.Input[str], *others: pulumi.Input[Any]) -> pulumi.Output[str]:
    """Return the value once the others are known too. Return None where any of them is None, as in `join` or after a
    create that failed with --continue-on-error."""
    return pulumi.Output.all(value, *others).apply(lambda known: cast(str, None if None in known else known[0]))


def map_present(value: pulumi.Output[Any], make: Callable[[Any], T]) -> pulumi.Output[T]:
    """Apply `make` to the value; return None where the value is None, as in `once`."""
    return value.apply(lambda known: cast(T, None if known is None else make(known)))
