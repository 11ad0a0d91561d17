"""Conditions of IAM policies, as far as those of this project use them.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from collections.abc import Callable, Mapping
from typing import Any

from .permissions import matches

OPERATORS: Mapping[str, Callable[[list[str], str], bool]] = {
    "StringEquals": lambda wanted, value: value in wanted,
    "StringNotLike": lambda wanted, value: not matches(wanted, value),
    "Bool": lambda wanted, value: value.lower() in wanted,
}
ALL, IF_EXISTS = "ForAllValues:", "IfExists"


def met(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    """Whether a request fulfils a statement's conditions. `context`: its keys, in lower case, each with one value.
    An operator that is not done raises KeyError."""
    return all(
        _holds(operator, key.lower(), wanted if isinstance(wanted, list) else [wanted], context)
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _holds(operator: str, key: str, wanted: list[str], context: Mapping[str, str]) -> bool:
    if operator == "Null":
        return str(key not in context).lower() in wanted
    plain = operator.removeprefix(ALL).removesuffix(IF_EXISTS)
    test = OPERATORS[plain]
    # Without the key ForAllValues and IfExists hold, and so does what is negated.
    return test(wanted, context[key]) if key in context else operator != plain or "Not" in plain
