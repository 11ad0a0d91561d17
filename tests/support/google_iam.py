"""What IAM Conditions would say of a permission on a resource: as much of CEL as those of this project use.

Sources: https://docs.cloud.google.com/iam/docs/conditions-attribute-reference,
https://docs.cloud.google.com/iam/docs/conditions-resource-attributes
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

KNOWN = {
    "compute.googleapis.com/Instance": r"projects/[^/]+/zones/[^/]+/instances/[^/]+",
    "compute.googleapis.com/InstanceTemplate": r"projects/[^/]+/global/instanceTemplates/[^/]+",
}
"""Types with attributes, by what their names look like. Nothing of Cloud TPU has any, nor has a managed group."""
TYPES = {"instances": "compute.googleapis.com/Instance", "instanceTemplates": "compute.googleapis.com/InstanceTemplate"}


class Text(str):
    """A string of CEL."""

    __slots__ = ()

    def extract(self, template: str) -> "Text":
        """What stands in the place of {name}, up to what the template has after it; "" where there is none."""
        before, name, after = re.fullmatch(r"(.*)\{(\w+)\}(.*)", template).groups()  # pyright: ignore
        assert name
        at = self.find(before)
        rest = self[at + len(before) :] if at >= 0 else ""
        return Text(rest[: rest.find(after)] if after else rest)

    def startsWith(self, prefix: str) -> bool:  # noqa: N802
        return self.startswith(prefix)


class Resource:
    """The variable `resource`. A type without attributes has empty ones."""

    def __init__(self, name: str) -> None:
        kind = TYPES.get(name.split("/")[-2], "")
        known = bool(kind and re.fullmatch(KNOWN[kind], name))
        self.type, self.name = Text(kind if known else ""), Text(name if known else "")


def holds(expression: str, name: str) -> bool:
    """Whether a condition is met for a resource by its name."""
    assert re.fullmatch(r"""[\w\s."/{}()=&|+-]+""", expression), expression
    python = expression.replace("&&", " and ").replace("||", " or ")
    return bool(eval(python, {"__builtins__": {}}, {"resource": Resource(name)}))  # noqa: S307


def may(bindings: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], permission: str, name: str) -> bool:
    """Whether the bindings of one member, each with its role, allow a permission on a resource."""
    return any(
        permission in role["permissions"]
        and (not binding.get("condition") or holds(binding["condition"]["expression"], name))
        for binding, role in bindings
    )
