"""Types of the values of a job file."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from accel.contract.variables import RESERVED_PREFIXES
from accel.diagnostics.errors import BadInputs
from accel.diagnostics.validation import locate_faults
from accel.duration import PATTERN, WRITTEN, seconds
from accel.whole_numbers import INT_MAX


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    duration = seconds(value)
    if duration is None:
        raise ValueError(f"must be {WRITTEN}")
    return duration


_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def _variable(name: str) -> str:
    if not re.fullmatch(_VARIABLE, name):
        raise ValueError("not the name of an environment variable: letters, digits and _, not beginning with a digit")
    if name.startswith(RESERVED_PREFIXES):
        raise ValueError(f"names that begin with {' or '.join(RESERVED_PREFIXES)} are set by the platform")
    return name


def _number_as_text(value: Any) -> Any:
    """Convert 5 to "5". Refuse booleans and null, whose spelling is lost."""
    if isinstance(value, bool) or value is None:
        raise ValueError(
            f"must be text; YAML read it as {'nothing' if value is None else str(value).lower()}: quote it"
        )
    return str(value) if isinstance(value, int | float) else value


def _spot(value: Any) -> Any:
    if not isinstance(value, bool) and value != "prefer":
        raise ValueError("must be true, false or prefer")
    return value


def _one_line(value: str) -> str:
    if re.search(r"[\n\r\0]", value):
        raise ValueError("the value holds a line break or NUL; put it into a file or a secret")
    return value


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL, which no program can be given")
    return value


Seconds = Annotated[
    int,
    BeforeValidator(_seconds),
    Field(ge=1, le=INT_MAX, strict=True),
    WithJsonSchema(
        {"type": ["integer", "string"], "minimum": 1, "maximum": INT_MAX, "pattern": rf"^\s*(?=0*[1-9]){PATTERN}\s*$"}
    ),
]
Count = Annotated[int, Field(ge=1, le=INT_MAX, strict=True)]
Argument = Annotated[str, AfterValidator(_no_nul)]
VariableName = Annotated[
    str,
    AfterValidator(_variable),
    WithJsonSchema({"type": "string", "pattern": rf"^(?!{'|'.join(RESERVED_PREFIXES)}){_VARIABLE}$"}),
]
VariableValue = Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_one_line)]
Spot = Annotated[bool | Literal["prefer"], BeforeValidator(_spot)]
Variables = dict[VariableName, VariableValue]


class Part(BaseModel):
    """A part of a job file: unknown keys are refused, and values are not coerced from other types."""

    # The rejected value could be a secret that was pasted into the wrong field.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)

    if not TYPE_CHECKING:  # where the fields are the parameters

        def __init__(self, /, **fields: Any) -> None:
            """Check the fields. Raises BadInputs with a line for each fault."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                name = type(self).__name__
                raise BadInputs([f"{name}: {line}" for _, line in locate_faults(type(self), error)]) from None

        __init__.__pydantic_base_init__ = True
        """Marker that keeps pydantic from calling this constructor for nested parts, such as those of a job file."""


class Accelerator(Part):
    """GPUs of one task. `type` is any of the catalogue's names; without it, any GPU of the target will do. A TPU's type
    is a whole slice; `count` is then the number of a host's chips, and may be left out."""

    type: str | None = Field(default=None, min_length=1)
    count: Count = 1


class Mount(Part):
    """A volume or bucket made visible to the container at `path`."""

    source: str = Field(
        min_length=1,
        description="AWS Batch: efs://<file system id>[/folder], or host:///folder of the instance. GKE: "
        "volume://<key of the target's volumes>[/folder], or gs://<bucket>[/folder], also on VMs and Google Batch. "
        "Google Batch: nfs://<server>/<share>. local with an image: /folder",
    )
    path: str = Field(pattern=r"^/")
    read_only: bool = Field(default=False, strict=True)
