"""A sweep in a job file: tasks of one job with parameters of their own."""

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from accel.whole_numbers import INT_MAX

from ..runtime import sweep as parameters
from .fields import Part, VariableName, VariableValue

TASKS_MAX = 100_000
"""More than any platform takes in one job; each platform has its own rule."""
WORD_MAX = 131_071
"""Bytes of one argument or variable that Linux gives a program: 32 pages of 4 KiB, less the terminating byte. Source:
https://man7.org/linux/man-pages/man2/execve.2.html"""

_LONGEST = 40
_SMALLEST, _LARGEST = Decimal("1e-300"), Decimal("1e300")


def _whole(value: Any) -> Any:
    """Convert the text of a whole number to an integer; values below `sweep` keep their spelling until here."""
    return int(value) if isinstance(value, str) and value.lstrip("+-").isdecimal() and len(value) < _LONGEST else value


def _number(text: str) -> str:
    try:
        value = abs(Decimal(text)) if len(text) <= _LONGEST else Decimal("nan")
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite() or not (value == 0 or _SMALLEST <= value <= _LARGEST):
        raise ValueError("must be a number, such as 0.1 or 1e-4")
    return text


def _truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


Whole = Annotated[
    int,
    BeforeValidator(_whole),
    Field(ge=0, le=INT_MAX, strict=True),
    WithJsonSchema({"type": ["integer", "string"], "minimum": 0, "maximum": INT_MAX, "pattern": r"^[+-]?\d{1,38}$"}),
]
Truth = bool | Literal["true", "false"]
Bound = Annotated[VariableValue, AfterValidator(_number)]
Bounds = Annotated[list[Bound], Field(min_length=2, max_length=2)]
Values = Annotated[list[VariableValue], Field(min_length=1)]
Grid = Annotated[dict[VariableName, Values], Field(min_length=1)]
Rows = Annotated[list[Annotated[dict[VariableName, VariableValue], Field(min_length=1)]], Field(min_length=1)]


class Draw(Part):
    """Distribution of a variable: one of these."""

    log: Bounds | None = Field(default=None, description="Lowest and highest value, uniform on a logarithmic scale")
    uniform: Bounds | None = Field(default=None, description="Lowest and highest value")
    int: Bounds | None = Field(default=None, description="Lowest and highest integer, inclusive")
    choice: Values | None = None


class Objective(Part):
    """Metric that ranks the tasks."""

    metric: str = Field(min_length=1, description="Name of a metric that the tasks report")
    best: Literal["max", "min"]


class Sweep(Part):
    """Variables with values of their own in each task: one of grid, list and random. docs/sweeps.md"""

    grid: Grid | None = Field(default=None, description="Every combination; the last name changes fastest")
    random: Annotated[dict[VariableName, Draw], Field(min_length=1)] | None = Field(
        default=None, description="Random values for `count` tasks, derived from `seed`"
    )
    count: Whole | None = Field(default=None, description="Number of tasks of `random`")
    seed: Whole | None = Field(default=None, description="Seed of `random`. Default: 0")
    objective: Objective | None = Field(default=None, description="Metric by which `accel-jobs results` ranks")
    shell: Annotated[bool, BeforeValidator(_truth, json_schema_input_type=Truth), Field(strict=True)] = Field(
        default=True,
        description="Export the parameters with the image's /bin/sh before command; false: the program reads them from "
        "ACCEL_SWEEP, as accel_runtime does",
    )
    list: Rows | None = Field(default=None, description="Values of each task, all with the same names")


def sweep_spec(sweep: Sweep) -> dict[str, Any]:
    """Return the sweep, with its objective, in the form that jobs.runtime.sweep reads."""
    objective = {"objective": sweep.objective.model_dump()} if sweep.objective else {}
    if sweep.grid is not None:
        return {"grid": sweep.grid, **objective}
    if sweep.list is not None:
        names = list(sweep.list[0])
        return {"list": {"names": names, "rows": [[row[name] for name in names] for row in sweep.list]}, **objective}
    drawn = {name: draw.model_dump(exclude_none=True) for name, draw in (sweep.random or {}).items()}
    return {"random": drawn, "count": sweep.count, "seed": sweep.seed or 0, **objective}


def text(spec: Mapping[str, Any]) -> str:
    """Return the value of ACCEL_SWEEP: ASCII without $, which platforms would expand."""
    return json.dumps(spec, separators=(",", ":")).replace("$", "\\u0024")


def faults(sweep: Sweep) -> list[str]:
    """Return faults between the fields, each `<path>: <words>`."""
    given = [name for name in ("grid", "list", "random") if getattr(sweep, name) is not None]
    if len(given) != 1:
        return [f"sweep: must have one of grid, list and random, has {' and '.join(given) or 'none'}"]
    found = list(_form(sweep))
    if not found and (count := parameters.count(sweep_spec(sweep))) > TASKS_MAX:
        found.append(f"sweep: has {count} combinations, of which one job takes {TASKS_MAX} at most")
    return found


def _form(sweep: Sweep) -> Iterator[str]:
    if sweep.random is None:
        beside = {"count": sweep.count, "seed": sweep.seed}
        yield from (f"sweep.{name}: is of random alone" for name, value in beside.items() if value is not None)
    elif not sweep.count:
        yield "sweep.count: is missing; random needs the number of tasks"
    for name, draw in (sweep.random or {}).items():
        yield from _draw(f"sweep.random.{name}", draw)
    first = set((sweep.list or [{}])[0])
    for number, row in enumerate(sweep.list or ()):
        if odd := sorted(first ^ set(row)):
            what = "has not" if odd[0] in first else "has"
            yield f"sweep.list.{number}: {what} {odd[0]}, unlike the first; every task sets the same variables"


def _draw(field: str, draw: Draw) -> Iterator[str]:
    given = draw.model_dump(exclude_none=True)
    if len(given) != 1:
        yield f"{field}: must have one of log, uniform, int and choice, has {' and '.join(given) or 'none'}"
        return
    kind, bounds = next(iter(given.items()))
    if kind == "choice":
        return
    low, high = (Decimal(each) for each in bounds)
    if kind == "int" and not all(_is_whole(each) for each in bounds):
        yield f"{field}.int: must be two whole numbers, such as [1, 8]"
    elif low > high or (low == high and kind != "int"):
        yield f"{field}.{kind}: the lowest comes first, and {bounds[0]} is not below {bounds[1]}"
    elif kind == "log" and low <= 0:
        yield f"{field}.log: {bounds[0]} has no logarithm; must be above 0"


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def clashes(sweep: Sweep, set_by: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a fault for each variable that both the sweep and the job set. `set_by` gives names by field."""
    ours = set(parameters.names(sweep_spec(sweep)))
    return [
        f"{field}.{name}: is set by the sweep; keep one"
        for field, names in set_by.items()
        for name in sorted(ours.intersection(names))
    ]
