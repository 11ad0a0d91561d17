"""Prints a reference as Markdown, of a model or of the commands: `python -m stacks.reference environment|job|cli`.

docs/environment.md, docs/job.md and docs/cli.md are what it prints; a test holds them to it.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from jobs.model.job import Job

from .reference_cli import page

Titles = Mapping[type[BaseModel], str]


def reference(title: str, model: type[BaseModel]) -> str:
    """One section for each model that is reached, the outermost first."""
    places = _places(model)
    counts = Counter(map(_title, places))
    titles = {one: _title(one) + (f" ({place})" if counts[_title(one)] > 1 else "") for one, place in places.items()}
    sections = [
        f"# {title}",
        "This page is generated from the models; every key that is not named here is refused.",
        *(_section(one, titles) for one in places),
    ]
    return "\n\n".join(sections) + "\n"


def _places(model: type[BaseModel]) -> dict[type[BaseModel], str]:
    """Each model that is reached, with the path of the first field that holds it, the outermost first."""
    found = {model: ""}
    queue = [model]
    while queue:
        here = queue.pop(0)
        for name, field in here.model_fields.items():
            for inner in _inside(field.annotation):
                if inner not in found:
                    found[inner] = f"{found[here]}.{name}".lstrip(".")
                    queue.append(inner)
    return found


def _section(model: type[BaseModel], titles: Titles) -> str:
    about = re.sub(r"\s*\n\s*", " ", (model.__doc__ or "").strip())
    rows = [f"| `{name}` | {_type(field.annotation, titles)} | {_default(field)} | {field.description or ''} |"
            for name, field in model.model_fields.items()]  # fmt: skip
    return "\n".join([f"## {titles[model]}", "", about, "", "| key | type | default | |", "|---|---|---|---|", *rows])


def _title(model: type[BaseModel]) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__.removesuffix("Spec")).lower()
    return words[:1].upper() + words[1:]


def _inside(hint: Any) -> Iterator[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
    for part in get_args(hint):
        yield from _inside(part)


def _type(hint: Any, titles: Titles) -> str:
    plain: str = getattr(hint, "__name__", "")
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        anchor = re.sub(r"[^\w -]", "", titles[hint].lower()).replace(" ", "-")
        return f"[{_title(hint).lower()}](#{anchor})"
    arguments = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is dict:
        return f"mapping of {_type(arguments[1], titles)}"
    if get_origin(hint) is list:
        return f"list of {_type(arguments[0], titles)}"
    if str(get_origin(hint)) == "typing.Literal":
        return " or ".join(f"`{value}`" for value in arguments)
    if get_origin(hint) is Annotated:
        return _type(arguments[0], titles)
    if arguments:
        return " or ".join(_type(part, titles) for part in arguments)
    return {"int": "whole number", "float": "number", "str": "text", "bool": "true or false"}.get(plain, plain)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined or value is None or value in ({}, []):
        return ""
    if isinstance(value, BaseModel):
        return "its own defaults"
    if isinstance(value, list):
        entries: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return "; ".join(_entry(entry) for entry in entries)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _entry(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "`" + ", ".join(f"{key}: {inner}" for key, inner in value.model_dump(exclude_none=True).items()) + "`"
    return f"`{value}`"


def pages() -> dict[str, str]:
    """Each generated page by its name."""
    from .environment.config import Environment

    return {
        "environment": reference("The environment: accel:environment in Pulumi.<stack>.yaml", Environment),
        "job": reference("The job file", Job),
        "cli": page(),
    }


if __name__ == "__main__":
    sys.stdout.write(pages()[sys.argv[1]])
